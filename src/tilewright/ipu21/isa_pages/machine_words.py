"""What the instructions do that no value function describes: memory, control, exchange."""

from __future__ import annotations

_ACCESS = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
_EXTENSION = {
    "ldz": "zeros above",
    "lds": "its sign above",
    "ldb": "the value repeated in every lane",
    "ld": "",
}

_TEXT: dict[str, str] = {
    "br": "Go on at the address in the register.",
    "bri": "Go on at the address in the instruction.",
    "brz": "Go on at the address if the register is zero.",
    "brnz": "Go on at the address if the register is not zero.",
    "brneg": "Go on at the address if bit 31 of the register is set.",
    "brpos": "Go on at the address if bit 31 of the register is clear.",
    "brnzdec": "If the register is not zero, go on at the address. The register is decremented in any case.",
    "call": "Put the address of the next instruction into the register and go on at the address.",
    "exitz": (
        "End this worker and report whether the register is zero. Reports of all workers are joined "
        "by AND in $SSR.LC."
    ),
    "exitnz": "End this worker and report whether the register is not zero (see exitz).",
    "exitneg": "End this worker and report whether bit 31 of the register is set (see exitz).",
    "exitpos": "End this worker and report whether bit 31 of the register is clear (see exitz).",
    "get": "Read a control register into an $m register. The number 0..255 depends on the context.",
    "put": "Write an $m register into a control register.",
    "uget": (
        "Read a control register of the worker's upper space (number 0x100 and above) into an $a register."
    ),
    "uput": "Write an $a register into a control register of the worker's upper space.",
    "rpt": (
        "Repeat the bundles that follow: the first operand counts the rounds (16 bits of a register),"
        " the second gives the number of bundles minus one. The body starts 8-byte aligned, holds "
        "bundles only, and none of them may be a control or system instruction. Zero rounds skip the "
        "body."
    ),
    "trap": "Stop this context with the breakpoint exception of the given number.",
    "sync": (
        "Wait at a barrier. Zone 2 waits for the workers of this tile; 3 for all tiles; 4 to 7 for "
        "external groups, with bit 3 set as master; 0 until expected words have arrived, 1 for the "
        "barriers announced by sans."
    ),
    "sans": "Announce that this tile takes part in the next n + 1 barriers without waiting at them.",
    "run": (
        "Start one worker at the entry with vertex base = base + 4 * immediate, in the lowest free "
        "slot (assumed)."
    ),
    "runall": (
        "Start all six workers at the entry; worker w has vertex base = base + w * 4 * immediate. No "
        "worker may be running."
    ),
    "ld64putcs": "Load 8 bytes at $CCCSLOAD into the given common weight and advance $CCCSLOAD.",
    "ld128putcs": (
        "Load 16 bytes at $CCCSLOAD into the given common weight and the next, and advance $CCCSLOAD."
        " The address must be in region 1."
    ),
    "delay": "Wait n + 1 events.",
    "delaypic": "Wait n + 1 events, then write the incoming pointer (select 0) or the incoming format (1).",
    "delayxpic": "Wait n + 1 events, then write the incoming multiplexer (select 0) or that of the pair (1).",
    "send": "Send n + 1 words (8-byte items with control bit 2) from an item address to the exchange.",
    "sendoff": "Send n + 1 items, starting the given number of items after the end of the stream so far.",
    "sendpic": "Send n + 1 items of the running stream and write one incoming control.",
    "sendpicp": (
        "Send n + 1 items from an item address; the payload word writes a multiplexer and a pointer. "
        "8-byte aligned, two words."
    ),
    "tapack": "Pack three 21-bit addresses into a register pair, for the paced instructions.",
    "atom": "Copy an $a register to an $m register.",
    "ld2x64pace": (
        "Load 8 bytes at address 0 and 8 bytes at address 1 of a packed triple, into two pairs, and "
        "move both addresses."
    ),
    "ldst64pace": (
        "Load 8 bytes at address 0 and store a pair at address 2 of a packed triple, and move both."
    ),
    "ld2xst64pace": (
        "Load 8 bytes at addresses 0 and 1 into a quad and store a pair at address 2 of a packed "
        "triple, and move all three."
    ),
    "st64pace": "Store a pair at address 2 of a packed triple and move it.",
    "ld64a32pace": "Load 8 bytes at address 0 and 4 bytes at address 1 of a packed triple, and move both.",
    "ld64b16pace": (
        "Load 8 bytes at address 0 and a half at address 1, repeated in both lanes, and move both."
    ),
    "ld64a32": (
        "Load 8 bytes at the list pointer into elements 2 and 3 of the quad, and advance it by 8; load 4 "
        "bytes at base + the low half of the delta into element 1. Element 0 and the delta stay."
    ),
    "ldb16b16": (
        "Load two halves at base + the low and base + the high half of the deltas, each repeated in both "
        "lanes of its element. The low delta grows by 2 bytes, the high one by 2 * the low nibble of the "
        "mini deltas, which shift right by 4. Open on the machine: which delta takes the nibble, its sign "
        "and its unit."
    ),
    "ldd16b16": (
        "Load a half at base + delta, repeated in both lanes, and read the next 16-bit delta from the list."
    ),
    "ldd16a32": "Load 4 bytes at base + delta and read the next 16-bit delta from the list.",
    "ldd16a64": "Load 8 bytes at base + delta and read the next 16-bit delta from the list.",
    "ldd16v2a32": "Load 4 bytes at base + the upper half of the delta word and read the next delta word.",
    "stm32": "Store an $m register at base + 4 * the offset register.",
    "stm32step": "Store an $m register at the base, then advance the base by 4 * the offset register.",
}

_PACED = (
    " Each move is chosen by two bits of the immediate: 0 one access, 1 to 3 a signed 10-bit "
    "field of the stride register."
)


def machine_words(mnemonic: str) -> str | None:
    """What such an instruction does, or None."""
    if mnemonic in _TEXT:
        return _TEXT[mnemonic] + (_PACED if mnemonic.endswith("pace") else "")
    step = mnemonic.endswith("step")
    plain = mnemonic.removesuffix("step")
    if plain.startswith("st"):
        size = _ACCESS.get(plain[2:])
        return None if size is None else _stepped(f"Store {size} bytes", step, size)
    for prefix in ("ldz", "lds", "ldb", "ld"):
        if plain.startswith(prefix) and plain[len(prefix) :] in _ACCESS:
            size = _ACCESS[plain[len(prefix) :]]
            above = f", {_EXTENSION[prefix]}" if _EXTENSION[prefix] else ""
            return _stepped(f"Load {size} byte{'s' if size > 1 else ''}{above}", step, size)
    return None


def _stepped(what: str, step: bool, size: int) -> str:
    if step:
        return f"{what} at base + delta, then advance delta by {size} * the offset."
    return f"{what} at base + delta + {size} * the offset."
