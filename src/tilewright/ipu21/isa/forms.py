"""Instruction forms: one per mnemonic and operand pattern, with where each operand sits in the word.

Built from the data file (`table.py`). Two mnemonics, the topk pair, are known by name only and have no form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...errors import TilewrightError
from .table import table

COISSUE = 0x80000000
"""Bit 31: set in both words of a bundle. A word with 31:28 = 1111 is `sendpicp`, never in a bundle."""

_REGISTERS = {"mreg": 1, "areg": 1, "mpair": 2, "apair": 2, "aquad": 4}
_SHIFTS = {"word_address": 2, "uimm_shl20": 20}


class OperandError(TilewrightError):
    """An instruction is given operands its encoding cannot hold."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a form.

    Attributes:
        name: the table's name, e.g. `mDst0` or `zimm12`.
        kind: `mreg`, `areg`, `mpair`, `apair`, `aquad` (value = number of the first register), `uimm`,
            `simm`, `uimm_shl20` (value = the full 32-bit number), `word_address` (value = byte address).
        pieces: (lsb, width, value_lsb): the word's bits from `lsb` hold the bits of `value >> shift` from
            `value_lsb`.
        minimum, maximum, step: the legal values. An automatically updated register is never $m15 (derived:
            the published vectors leave it out).
        shift: bits dropped from the value before it is split into pieces.
        suffix: decoration behind the operand in the text: `+=`, `++`, `@`, `>>`, `:B`, `:BL`, `:BU`.
        word: 0, or 1 for the payload of `sendpicp`.
        names: what named constants it takes: `csr`, `upper_csr`, the name of an enum or flag family, or None.
    """

    name: str
    kind: str
    pieces: tuple[tuple[int, int, int], ...]
    minimum: int
    maximum: int
    step: int
    shift: int = 0
    suffix: str = ""
    word: int = 0
    names: str | None = None

    @property
    def width(self) -> int:
        """Bits of the word that hold this operand."""
        return sum(width for _, width, _ in self.pieces)

    @property
    def is_register(self) -> bool:
        return self.kind in _REGISTERS

    def accepts(self, value: int) -> bool:
        """True if the encoding can hold the value."""
        return self.minimum <= value <= self.maximum and value % self.step == 0

    def place(self, value: int) -> int:
        """The word's bits for a legal value."""
        raw = value >> self.shift
        bits = 0
        for lsb, width, value_lsb in self.pieces:
            bits |= ((raw >> value_lsb) & ((1 << width) - 1)) << lsb
        return bits

    def extract(self, word: int) -> int:
        """The value in a word; sign-extended for `simm`."""
        raw = 0
        for lsb, width, value_lsb in self.pieces:
            raw |= ((word >> lsb) & ((1 << width) - 1)) << value_lsb
        if self.kind == "simm" and raw > self.maximum:
            raw -= 1 << self.width
        return raw << self.shift


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One instruction form. Compared by identity: there is one object per form.

    Attributes:
        index: position in `FORMS`.
        mnemonic: as written, without operands.
        text: the table's form string, e.g. `setzi $mDst0, zimm20`; unique.
        operands: in assembly order; those of the payload of `sendpicp` follow the ones the form string shows.
        pipeline: `main` or `aux`.
        mode: `both`, `worker` or `supervisor`.
        fixed: the word with every operand zero.
        mask: the bits that must equal `fixed`: opcode bits and the alignment bits of pairs and quads.
        words: 1, or 2 for `sendpicp`.
        coissue: may sit in a bundle; then bit 31 is not part of `mask`.
        flags: `control` (changes the program counter or ends a worker), `system` (CSRs, sync, exchange,
            launch). Neither may be in a repeat body.
        since: first chip generation known to have it: `ipu1`, `ipu2`, `ipu21`.
        evidence: `known` (published) or `derived`.
        word_checked: a published word with its text agrees with this form.
        flag_family: the family of named flags it takes whose numbers are not public, e.g. `TAMP_F16V4`, or
            None.
        note: what is special about it, or empty.
    """

    index: int
    mnemonic: str
    text: str
    operands: tuple[Operand, ...]
    pipeline: str
    mode: str
    fixed: int
    mask: int
    words: int
    coissue: bool
    flags: frozenset[str]
    since: str
    evidence: str
    word_checked: bool
    flag_family: str | None
    note: str = field(default="", repr=False)

    def operand(self, name: str) -> Operand:
        """The operand of that name. Raises KeyError."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        raise KeyError(name)


def _operand(entry: dict[str, Any]) -> Operand:
    kind: str = entry["kind"]
    pieces = tuple((int(lsb), int(width), int(value_lsb)) for lsb, width, value_lsb in entry["pieces"])
    width = sum(piece[1] for piece in pieces)
    shift = _SHIFTS.get(kind, 0)
    minimum, step = 0, _REGISTERS.get(kind, 1 << shift)
    if kind in _REGISTERS:
        maximum = 14 if entry.get("not15") else 16 - step
    elif kind == "simm":
        minimum, maximum = -(1 << (width - 1)), (1 << (width - 1)) - 1
    else:
        maximum = ((1 << width) - 1) << shift
    return Operand(
        name=entry["name"],
        kind=kind,
        pieces=pieces,
        minimum=minimum,
        maximum=maximum,
        step=step,
        shift=shift,
        suffix=entry.get("suffix", ""),
        word=entry.get("word", 0),
        names=entry.get("names"),
    )


def _mask(operands: tuple[Operand, ...], coissue: bool) -> int:
    free = COISSUE if coissue else 0
    for operand in operands:
        if operand.word:
            continue
        for lsb, width, value_lsb in operand.pieces:
            free |= ((1 << width) - 1) << lsb
            if operand.is_register and operand.step > 1:
                # The low bits of an aligned register number are zero, so they act as opcode bits.
                free &= ~((((operand.step - 1) >> value_lsb) & ((1 << width) - 1)) << lsb)
    return ~free & 0xFFFFFFFF


def _form(index: int, entry: dict[str, Any], families: frozenset[str]) -> Form:
    operands = tuple(_operand(item) for item in entry["operands"])
    return Form(
        index=index,
        mnemonic=entry["form"].split(" ", 1)[0],
        text=entry["form"],
        operands=operands,
        pipeline=entry["pipeline"],
        mode=entry["mode"],
        fixed=int(entry["fixed"], 16),
        mask=_mask(operands, entry["coissue"]),
        words=entry.get("words", 1),
        coissue=entry["coissue"],
        flags=frozenset(entry.get("flags", ())),
        since=entry["since"],
        evidence=entry["evidence"],
        word_checked=entry.get("word_checked", False),
        flag_family=next((item.names for item in operands if item.names in families), None),
        note=entry.get("note", ""),
    )


_FAMILIES = frozenset(name for name, entry in table()["enums"].items() if entry.get("flag_family"))

FORMS: tuple[Form, ...] = tuple(
    _form(index, entry, _FAMILIES) for index, entry in enumerate(table()["forms"])
)
"""Every form that can be encoded; a form's index is its position."""

UNENCODABLE: tuple[str, ...] = tuple(entry["mnemonic"] for entry in table()["unencodable"])
"""Mnemonics known by name only (open): nothing can be encoded for them."""

FORCED_SPELLING: dict[Form, str] = {}
"""The mnemonic that selects exactly this form where the plain one would select a sibling for some values.

`addz`, `adds`, ... choose the zero- or sign-extended immediate (known). `orhi`, `andhi`, `andchi` choose the
immediate of the twelve high bits; the vendor has no spelling for that, these are ours (assumed)."""

_BY_TEXT = {form.text: form for form in FORMS}
_BY_MNEMONIC: dict[str, tuple[Form, ...]] = {}


def _index_names() -> None:
    for item in FORMS:
        _BY_MNEMONIC[item.mnemonic] = (*_BY_MNEMONIC.get(item.mnemonic, ()), item)
    for entry in table()["spellings"]:
        item, spelling = _BY_TEXT[entry["form"]], entry["spelling"]
        _BY_MNEMONIC[spelling] = (*_BY_MNEMONIC.get(spelling, ()), item)
        FORCED_SPELLING[item] = spelling


_index_names()


def form(text: str) -> Form:
    """The form with this form string. Raises KeyError."""
    return _BY_TEXT[text]


def forms_named(mnemonic: str) -> tuple[Form, ...]:
    """The forms a mnemonic or forcing spelling (`addz`, `orhi`) can mean, in table order; maybe none."""
    return _BY_MNEMONIC.get(mnemonic, ())


def mnemonics() -> tuple[str, ...]:
    """Every mnemonic and forcing spelling, sorted; for suggestions."""
    return tuple(sorted(_BY_MNEMONIC))
