"""The instruction table in the form the compiled engine reads: one array of integers.

Record of a form (`ROW` integers from `ROW * (form index + 1)`; row 0 is unused):

- 0 `INFO`: packed properties, see the `INFO_*` shifts.
- 1 `FIELDS`: for each of four operand places six bits: the lsb of its register field + 1, or 0 if the place
  is empty, or 63 if it holds the immediate. Places of value instructions: three sources, then the
  destination; the immediate takes a place only where operands are single words. Places of memory and
  control instructions: their register operands in assembly order. From bit 24 on, a bit per place: it is an
  A register.
- 2 `IMMEDIATE`: three pieces of (lsb 5 bits, width 5, value_lsb 5), then the shift (5 bits) at 45, then the
  sign bit's position + 1 (6 bits) at 50, then the number of a flag map (6 bits) at 56, 0 for none.
- 3 `HAZARDS`: register fields the supervisor must wait for: four of (lsb + 1), six bits each.
- 4 `RESULTS`: register fields a supervisor instruction writes, the same way.
- 5 `NEVER_15`: register fields that must not hold 15, the same way.

Behind the records: where each primary opcode's forms begin in the list of (mask, fixed, form index + 1), the
list, which control registers exist, and the flag maps: 256 numbers each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ..isa.csrs import CSRS
from ..isa.enums import FLAG_FAMILIES, flag_map
from ..isa.forms import FORMS, Form, Operand
from ..isa.meaning import (
    accumulate,
    amp,
    convert,
    float8,
    float16,
    float32,
    integer,
    lanes,
    prng,
    slic,
    transcendental,
)
from ..isa.meaning.arrays import Integers
from ..isa.meaning.registry import MEANINGS, Meaning
from ..machine.timing import MULTI_SLOT
from . import codes
from .stops import CAUSES

MEANING_MODULES = (
    integer,
    lanes,
    float16,
    float32,
    convert,
    transcendental,
    prng,
    accumulate,
    float8,
    amp,
    slic,
)

ROW = 6
INFO, FIELDS, IMMEDIATE, HAZARDS, RESULTS, NEVER_15 = range(ROW)

INFO_FUNCTION = 0
"""10 bits: number of the function within its group."""
INFO_GROUP = 10
"""4 bits."""
INFO_RESULTS = 14
"""2 bits: result words of an aux instruction."""
INFO_LANES = 16
"""3 bits: lanes of a vector instruction; for memory log2 of the access size."""
INFO_BROADCAST = 19
"""2 bits: 1 repeats the first source's word, 2 its low half, 3 its high half; for memory the extension."""
INFO_DRAWS = 21
"""2 bits: pseudo-random draws."""
INFO_DRAWS_ALWAYS = 23
"""1 bit: draws even when rounding is not stochastic."""
INFO_WORKER = 24
INFO_SUPERVISOR = 25
INFO_COISSUE = 26
INFO_NO_REPEAT = 27
"""1 bit: not allowed in a repeat body."""
INFO_WINDOW = 28
"""1 bit: keeps an exchange window open."""
INFO_A_REGISTER = 29
"""1 bit: a memory instruction's data register is an A register."""
INFO_QUICK_ZERO = 30
"""1 bit: takes one turn for a zero operand."""
INFO_SLOTS = 31
"""4 bits: issue turns."""

IMMEDIATE_PLACE = 63
A_PLACES = 24

MACHINE_PARAMETERS = frozenset(
    (
        *("control", "draw", "draw1", "draw2", "draw3", "random0", "random1", "random2", "random3"),
        *("scale", "number_format", "input_scale", "input_format", "tas"),
        *("accumulators", "accumulator_words", "weights", "single_weights", "weight_words"),
    )
)
STATE_PARAMETERS = frozenset(
    ("accumulators", "accumulator_words", "weights", "single_weights", "weight_words")
)

_A_REGISTERS = frozenset(("areg", "apair", "aquad"))
_WORDS_OF = {"areg": 1, "mreg": 1, "apair": 2, "mpair": 2, "aquad": 4}
_BROADCAST = {"": 0, ":B": 1, ":BL": 2, ":BU": 3}


@dataclass
class Group:
    """The value functions of one engine group, in order of their numbers, with their argument texts."""

    functions: list[Meaning] = field(default_factory=list)
    arguments: list[tuple[str, ...]] = field(default_factory=list)

    def number(self, meaning: Meaning, arguments: tuple[str, ...]) -> int:
        """The function's number, given on first sight; its arguments must always be the same."""
        for index, known in enumerate(self.functions):
            if known.function is meaning.function and self.arguments[index] == arguments:
                return index
        self.functions.append(meaning)
        self.arguments.append(arguments)
        return len(self.functions) - 1


@dataclass(frozen=True)
class InstructionTables:
    """The array and the function numbering it uses.

    Attributes:
        array: the integers described above.
        groups: the value functions per engine group.
        simulated: for each form, whether it has a meaning.
    """

    array: Integers
    groups: dict[int, Group]
    simulated: tuple[bool, ...]


OPCODES_AT = ROW * (len(FORMS) + 1)
"""129 integers: begin of each primary opcode's candidates, in triples from `CANDIDATES_AT`."""
CSRS_AT = OPCODES_AT + 129
"""512 integers: bit 0 the supervisor has this register, bit 1 a worker has it."""
FLAG_MAPS_AT = CSRS_AT + 512
_FAMILIES = sorted(FLAG_FAMILIES)
CAUSES_AT = FLAG_MAPS_AT + 256 * len(_FAMILIES)
"""$SSR.ETYPE of each exception kind."""
CANDIDATES_AT = CAUSES_AT + len(CAUSES)


def _register_lsb(operand: Operand) -> int:
    """Position of a register field as a four-bit field at that position (quads keep only their top bits)."""
    lsb, _, value_lsb = operand.pieces[0]
    return lsb - value_lsb


def _immediate(operand: Operand) -> int:
    packed = 0
    for place, (lsb, width, value_lsb) in enumerate(operand.pieces):
        packed |= (lsb | width << 5 | value_lsb << 10) << (15 * place)
    packed |= operand.shift << 45
    if operand.kind == "simm":
        packed |= operand.width << 50
    if operand.names in FLAG_FAMILIES and flag_map(operand.names) is not None:
        packed |= (_FAMILIES.index(operand.names) + 1) << 56
    return packed


def _flag_maps() -> list[int]:
    return [number for family in _FAMILIES for number in flag_map(family) or range(256)]


def _is_destination(operand: Operand) -> bool:
    return "Dst" in operand.name


def _sources(form: Form) -> list[Operand]:
    return [item for item in form.operands if not _is_destination(item) or "SrcDst" in item.name]


def _argument_names(form: Form) -> list[str]:
    """How the engine names the words of the sources: x0..x3, y0..y3, then the immediate."""
    names: list[str] = []
    letters = iter("xyz")
    for operand in _sources(form):
        if not operand.is_register:
            names.append("immediate")
            continue
        letter = next(letters)
        count = _WORDS_OF[operand.kind]
        names += [f"{letter}{index}" for index in range(count)]
    return names


def _bound_arguments(form: Form, meaning: Meaning) -> tuple[str, ...]:
    """The argument texts of a `whole` function, machine parameters by their names."""
    words = iter(_argument_names(form))
    arguments = tuple(name if name in MACHINE_PARAMETERS else next(words) for name in meaning.parameters)
    if next(words, None) is not None:
        raise ValueError(f"{form.text}: {meaning.name} does not take all operands")
    return arguments


def _draws(meaning: Meaning) -> int:
    if any(name in meaning.parameters for name in ("random2", "random3")):
        return 2
    return 1 if any(name.startswith(("draw", "random")) for name in meaning.parameters) else 0


def _value_info(form: Form, groups: dict[int, Group]) -> int:
    """Group, function and vector properties of a form that a value function gives a meaning; 0 if none
    does."""
    meaning = MEANINGS.get(form.mnemonic)
    if meaning is None:
        return 0
    destination = next((item for item in form.operands if _is_destination(item)), None)
    results = 0 if destination is None else _WORDS_OF[destination.kind]
    arguments = meaning.parameters
    lanes = 0
    if form.pipeline == "main":
        group = codes.GROUP_WORDS
    elif meaning.marshalling in ("words", "per_word"):
        group = codes.GROUP_AUX_WORDS
    elif meaning.marshalling == "halves":
        group, lanes = codes.GROUP_HALVES, 2 * results
    elif meaning.marshalling == "singles":
        group, lanes = codes.GROUP_SINGLES, results
    else:
        arguments = _bound_arguments(form, meaning)
        has_state = not STATE_PARAMETERS.isdisjoint(arguments)
        group = codes.GROUP_STATE if has_state else codes.GROUP_WHOLE
    number = groups[group].number(meaning, arguments)
    draws = _draws(meaning)
    always = draws > 0 and "control" not in meaning.parameters
    broadcast = next((_BROADCAST[item.suffix] for item in _sources(form) if item.suffix), 0)
    return (
        number << INFO_FUNCTION
        | group << INFO_GROUP
        | results << INFO_RESULTS
        | lanes << INFO_LANES
        | broadcast << INFO_BROADCAST
        | draws << INFO_DRAWS
        | always << INFO_DRAWS_ALWAYS
    )


def _engine_info(form: Form) -> int:
    """Group, function and properties of a form the engine executes itself; 0 if it does not."""
    if form.mnemonic in codes.MEMORY_CODES and form.pipeline == "main":
        function, size, extend = codes.MEMORY_CODES[form.mnemonic]
        a_register = any(item.kind in _A_REGISTERS for item in form.operands)
        return (
            function << INFO_FUNCTION
            | codes.GROUP_MEMORY << INFO_GROUP
            | size << INFO_LANES
            | extend << INFO_BROADCAST
            | a_register << INFO_A_REGISTER
        )
    if form.mnemonic in codes.CONTROL_CODES:
        return codes.CONTROL_CODES[form.mnemonic] << INFO_FUNCTION | codes.GROUP_CONTROL << INFO_GROUP
    if form.mnemonic in codes.UPPER_CODES:
        results = 1 if form.mnemonic == "uget" else 0
        return (
            codes.UPPER_CODES[form.mnemonic] << INFO_FUNCTION
            | codes.GROUP_UPPER << INFO_GROUP
            | results << INFO_RESULTS
        )
    return 0


_WINDOW_CONTROL = frozenset(("call", "get", "put", "delay", "delaypic", "delayxpic"))


def _properties(form: Form, info: int) -> int:
    group = info >> INFO_GROUP & 15
    exchange = form.mnemonic in _WINDOW_CONTROL or form.mnemonic.startswith("send")
    window = exchange or group == codes.GROUP_WORDS
    return (
        info
        | (form.mode != "supervisor") << INFO_WORKER
        | (form.mode != "worker" and form.pipeline == "main") << INFO_SUPERVISOR
        | form.coissue << INFO_COISSUE
        | bool(form.flags) << INFO_NO_REPEAT
        | window << INFO_WINDOW
        | (form.mnemonic == "f16v2exp") << INFO_QUICK_ZERO
        | MULTI_SLOT.get(form.mnemonic, 1) << INFO_SLOTS
    )


def _pack(places: list[int]) -> int:
    packed = 0
    for place, value in enumerate(places):
        packed |= value << (6 * place)
    return packed


def _places(form: Form, group: int) -> int:
    places: list[Operand | None]
    if group in (codes.GROUP_MEMORY, codes.GROUP_CONTROL):
        places = [item for item in form.operands if item.is_register]
    else:
        with_immediate = group in (codes.GROUP_WORDS, codes.GROUP_AUX_WORDS)
        places = [item for item in _sources(form) if item.is_register or with_immediate]
        if len(places) > 3:
            raise ValueError(f"{form.text}: more than three sources")
        destination = next((item for item in form.operands if _is_destination(item)), None)
        places += [*[None] * (3 - len(places)), destination]
    packed = _pack([_place(item) for item in places])
    for place, item in enumerate(places):
        packed |= (item is not None and item.kind in _A_REGISTERS) << (A_PLACES + place)
    return packed


def _place(operand: Operand | None) -> int:
    if operand is None:
        return 0
    return _register_lsb(operand) + 1 if operand.is_register else IMMEDIATE_PLACE


def _updates(operand: Operand) -> bool:
    return _is_destination(operand) or operand.suffix in ("+=", "++", "@", ">>")


def _row(form: Form, groups: dict[int, Group]) -> list[int]:
    info = _properties(form, _engine_info(form) or _value_info(form, groups))
    group = info >> INFO_GROUP & 15
    main = [item for item in form.operands if item.kind == "mreg"]
    reads = [item for item in main if not _is_destination(item) or "SrcDst" in item.name]
    immediate = next((item for item in form.operands if not item.is_register), None)
    fields = 0 if group == codes.GROUP_NONE else _places(form, group)
    return [
        info,
        fields,
        0 if immediate is None or len(immediate.pieces) > 3 else _immediate(immediate),
        _pack([_register_lsb(item) + 1 for item in reads]),
        _pack([_register_lsb(item) + 1 for item in main if _updates(item)]),
        _pack([_register_lsb(item) + 1 for item in main if item.maximum == 14]),
    ]


def _candidates() -> tuple[list[int], list[int]]:
    """Begins per primary opcode, and the (mask, fixed, form index + 1) triples."""
    begins, triples = [0], []
    for opcode in range(128):
        for form in FORMS:
            if (opcode << 24 ^ form.fixed) & form.mask & 0x7F000000 == 0:
                triples += [form.mask, form.fixed, form.index + 1]
        begins.append(len(triples) // 3)
    return begins, triples


def _registers() -> list[int]:
    known = [0] * 512
    for csr in CSRS:
        known[csr.number] |= {"supervisor": 1, "worker": 2, "both": 3}[csr.context]
    # A worker register that programs write to tag themselves; its meaning is not public.
    known[7] |= 2
    return known


@lru_cache(maxsize=1)
def instruction_tables() -> InstructionTables:
    """The tables, built once per process."""
    groups = {number: Group() for number in range(16)}
    rows = [[0] * ROW] + [_row(form, groups) for form in FORMS]
    begins, triples = _candidates()
    flat = (
        [value for row in rows for value in row]
        + begins
        + _registers()
        + _flag_maps()
        + list(CAUSES)
        + triples
    )
    simulated = tuple((row[INFO] >> INFO_GROUP & 15) != codes.GROUP_NONE for row in rows[1:])
    return InstructionTables(np.array(flat, dtype=np.int64), groups, simulated)
