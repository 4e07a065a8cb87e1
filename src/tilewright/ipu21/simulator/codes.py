"""Numbers by which the compiled engine knows groups of instructions and the instructions it handles
itself."""

from __future__ import annotations

GROUP_NONE = 0
GROUP_WORDS = 1
GROUP_MEMORY = 2
GROUP_CONTROL = 3
GROUP_AUX_WORDS = 4
GROUP_HALVES = 5
GROUP_SINGLES = 6
GROUP_WHOLE = 7
GROUP_STATE = 8
GROUP_UPPER = 9
"""Groups from GROUP_AUX_WORDS on belong to the aux pipeline."""

LOAD, LOAD_STEP, STORE, STORE_STEP, STM, STM_STEP = 0, 1, 2, 3, 4, 5
LD2X64PACE, LDST64PACE, LD2XST64PACE, ST64PACE, LD64A32PACE, LD64B16PACE = 6, 7, 8, 9, 10, 11
TAPACK, DELTA_LOAD, DELTA_LOAD_PAIR, ATOM, LD64A32, LDB16B16 = 12, 13, 14, 15, 16, 17
"""Functions of GROUP_MEMORY."""

EXTEND_ZERO, EXTEND_SIGN, EXTEND_REPEAT = 0, 1, 2
"""What a narrow load does with the rest of the register: zeros, the sign, or the value again."""

BR, BRI, BRZ, BRNZ, BRNEG, BRPOS, BRNZDEC, CALL = 0, 1, 2, 3, 4, 5, 6, 7
EXITZ, EXITNZ, EXITNEG, EXITPOS = 8, 9, 10, 11
RPT, GET, PUT, TRAP = 12, 13, 14, 15
SYNC, SANS, RUN, RUNALL, LD64PUTCS, LD128PUTCS = 16, 17, 18, 19, 20, 21
DELAY, DELAYPIC, DELAYXPIC, SEND, SENDOFF, SENDPIC, SENDPICP = 22, 23, 24, 25, 26, 27, 28
"""Functions of GROUP_CONTROL; from SYNC on they are the supervisor's."""

UGET, UPUT = 0, 1
"""Functions of GROUP_UPPER."""

CONTROL_CODES = {
    "br": BR,
    "bri": BRI,
    "brz": BRZ,
    "brnz": BRNZ,
    "brneg": BRNEG,
    "brpos": BRPOS,
    "brnzdec": BRNZDEC,
    "call": CALL,
    "exitz": EXITZ,
    "exitnz": EXITNZ,
    "exitneg": EXITNEG,
    "exitpos": EXITPOS,
    "rpt": RPT,
    "get": GET,
    "put": PUT,
    "trap": TRAP,
    "sync": SYNC,
    "sans": SANS,
    "run": RUN,
    "runall": RUNALL,
    "ld64putcs": LD64PUTCS,
    "ld128putcs": LD128PUTCS,
    "delay": DELAY,
    "delaypic": DELAYPIC,
    "delayxpic": DELAYXPIC,
    "send": SEND,
    "sendoff": SENDOFF,
    "sendpic": SENDPIC,
    "sendpicp": SENDPICP,
}

UPPER_CODES = {"uget": UGET, "uput": UPUT}

MEMORY_CODES: dict[str, tuple[int, int, int]] = {
    "ld2x64pace": (LD2X64PACE, 3, EXTEND_ZERO),
    "ldst64pace": (LDST64PACE, 3, EXTEND_ZERO),
    "ld2xst64pace": (LD2XST64PACE, 3, EXTEND_ZERO),
    "st64pace": (ST64PACE, 3, EXTEND_ZERO),
    "ld64a32pace": (LD64A32PACE, 2, EXTEND_ZERO),
    "ld64b16pace": (LD64B16PACE, 1, EXTEND_REPEAT),
    "tapack": (TAPACK, 0, EXTEND_ZERO),
    "atom": (ATOM, 0, EXTEND_ZERO),
    "ldd16b16": (DELTA_LOAD, 1, EXTEND_REPEAT),
    "ldd16a32": (DELTA_LOAD, 2, EXTEND_ZERO),
    "ldd16a64": (DELTA_LOAD, 3, EXTEND_ZERO),
    "ldd16v2a32": (DELTA_LOAD_PAIR, 2, EXTEND_ZERO),
    "ld64a32": (LD64A32, 2, EXTEND_ZERO),
    "ldb16b16": (LDB16B16, 1, EXTEND_REPEAT),
    "stm32": (STM, 2, EXTEND_ZERO),
    "stm32step": (STM_STEP, 2, EXTEND_ZERO),
}
"""Mnemonic to function, log2 of the access size, and extension."""

for _name, _size, _extend in (
    ("ldz8", 0, EXTEND_ZERO),
    ("lds8", 0, EXTEND_SIGN),
    ("ldb8", 0, EXTEND_REPEAT),
    ("ldz16", 1, EXTEND_ZERO),
    ("lds16", 1, EXTEND_SIGN),
    ("ldb16", 1, EXTEND_REPEAT),
    ("ld32", 2, EXTEND_ZERO),
    ("ld64", 3, EXTEND_ZERO),
    ("ld128", 4, EXTEND_ZERO),
):
    MEMORY_CODES[_name] = (LOAD, _size, _extend)
    MEMORY_CODES[_name + "step"] = (LOAD_STEP, _size, _extend)
for _name, _size in (("st32", 2), ("st64", 3)):
    MEMORY_CODES[_name] = (STORE, _size, EXTEND_ZERO)
    MEMORY_CODES[_name + "step"] = (STORE_STEP, _size, EXTEND_ZERO)
