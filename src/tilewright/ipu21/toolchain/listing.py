"""Turns the bytes of one section into statements that assemble to the same bytes."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..isa.csrs import UPPER, csr_name
from ..isa.decode import Instruction, InvalidInstruction, decode
from ..isa.forms import COISSUE, Form, Operand
from ..isa.registers import register_name
from ..isa.text import format_instruction
from . import relocations
from .bundles import check_bundle, check_registers
from .diagnostics import SourceFault
from .instructions import Instruction as Written
from .instructions import fills, natural_relocation
from .matching import Candidate


@dataclass(frozen=True, slots=True)
class Reference:
    """A relocation as text: `type` of `relocations`, and the symbol expression."""

    type: int
    text: str


@dataclass(slots=True)
class Item:
    """One statement: the bytes it covers, its text, and for instructions their forms."""

    offset: int
    size: int
    text: str
    forms: tuple[Form, ...] = ()
    repeat: int | None = None  # bundles of the body, for an rpt


@dataclass(slots=True)
class Source:
    """What is to be listed: `labels` are offsets that start a statement, `target` names branch addresses."""

    data: bytes
    executable: bool
    labels: frozenset[int] = frozenset()
    references: Mapping[int, Reference] = field(default_factory=dict)
    target: Callable[[int], str] | None = None


def list_section(source: Source) -> list[Item]:
    """Statements covering all bytes, in order."""
    items = _list_code(source) if source.executable else _list_data(source, 0, len(source.data))
    if source.executable:
        _refuse_bad_repeats(source, items)
    return items


# ---- code


def _word(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little")


def _list_code(source: Source) -> list[Item]:
    items: list[Item] = []
    offset, end = 0, len(source.data)
    while offset + 4 <= end:
        item = _bundle(source, offset) or _single(source, offset)
        if item is None:
            items += _list_data(source, offset, offset + 4)
            offset += 4
        else:
            items.append(item)
            offset += item.size
    return items + _list_data(source, offset, end)


def _interrupted(source: Source, start: int, stop: int, references: tuple[int, ...]) -> bool:
    """True if a label or a misplaced relocation inside start..stop forbids showing it as instructions."""
    inside = range(start, stop)
    return any(offset in source.labels for offset in inside[1:]) or any(
        offset in source.references and offset not in references for offset in inside
    )


def _bundle(source: Source, offset: int) -> Item | None:
    data = source.data
    if offset + 8 > len(data):
        return None
    words = _word(data, offset), _word(data, offset + 4)
    if any(not word & COISSUE or word >> 28 == 0xF for word in words):
        return None
    if _interrupted(source, offset, offset + 8, (offset, offset + 4)):
        return None
    try:
        main, aux = decode(words[0]), decode(words[1])
        check_bundle(_written(main), _written(aux))
    except (InvalidInstruction, SourceFault):
        return None
    texts = [_text(source, main, offset), _text(source, aux, offset + 4)]
    if texts[0] is None or texts[1] is None:
        return None
    return Item(offset, 8, f"{{ {texts[0]} ; {texts[1]} }}", (main.form, aux.form), _repeat(main))


def _single(source: Source, offset: int) -> Item | None:
    data = source.data
    word = _word(data, offset)
    try:
        instruction = decode(word, _word(data, offset + 4))
    except InvalidInstruction:
        return None
    form = instruction.form
    size = 4 * form.words
    if instruction.coissue or offset + size > len(data) or (size > 4 and offset % 8):
        return None
    if _interrupted(source, offset, offset + size, (offset,)):
        return None
    try:
        check_registers(_written(instruction))
    except SourceFault:
        return None
    text = _text(source, instruction, offset)
    return None if text is None else Item(offset, size, text, (form,), _repeat(instruction))


def _written(instruction: Instruction) -> Written:
    operands = instruction.operands
    candidate = Candidate(instruction.form, (None,) * len(operands), operands)
    return Written(instruction.form.mnemonic, (candidate,), [], 0)


def _repeat(instruction: Instruction) -> int | None:
    return instruction.operands[1] + 1 if instruction.form.mnemonic == "rpt" else None


def _text(source: Source, instruction: Instruction, offset: int) -> str | None:
    """Text of one instruction, or None if its relocation fits no operand."""
    reference = source.references.get(offset)
    if reference is None:
        return format_instruction(instruction, symbolic=source.target)
    form = instruction.form
    kind = relocations.TYPES[reference.type]
    for index, operand in enumerate(form.operands):
        natural = natural_relocation(operand, form) == kind.number
        if not natural and not fills(kind, operand):
            continue
        if instruction.operands[index]:
            return None  # a field that is not zero would be lost
        shown = reference.text if natural else f"{reference.text}@{kind.spelling}"
        texts = [
            shown if number == index else _plain(other, value)
            for number, (other, value) in enumerate(zip(form.operands, instruction.operands, strict=True))
        ]
        return f"{form.mnemonic} {', '.join(texts)}"
    return None


def _plain(operand: Operand, value: int) -> str:
    if operand.is_register:
        return register_name(operand.kind, value) + operand.suffix
    if operand.names == "upper_csr":
        return "$" + (csr_name(value + UPPER, "worker") or str(value))
    return str(value)


def _refuse_bad_repeats(source: Source, items: list[Item]) -> None:
    """Show an rpt as data when the assembler would refuse its body."""
    by_offset = {item.offset: item for item in items if item.forms}
    for index, item in enumerate(items):
        if item.repeat is None:
            continue
        start = item.offset + item.size
        good = start % 8 == 0
        for number in range(item.repeat if good else 0):
            body = by_offset.get(start + 8 * number)
            if (
                body is None
                or len(body.forms) != 2
                or any(form.flags & {"control", "system"} for form in body.forms)
            ):
                good = False
                break
        if not good:
            data = _list_data(source, item.offset, item.offset + item.size)
            items[index] = Item(item.offset, item.size, "; ".join(piece.text for piece in data))


# ---- data

_DIRECTIVES = {1: ".byte", 2: ".short", 4: ".long", 8: ".quad"}
_RUN = 16
"""Zero bytes from which a `.space` is shorter to read."""


def _list_data(source: Source, start: int, end: int) -> list[Item]:
    items: list[Item] = []
    stops = sorted(
        {offset for offset in (*source.labels, *source.references) if start < offset < end} | {end}
    )
    offset = start
    while offset < end:
        reference = source.references.get(offset)
        if reference is not None:
            kind = relocations.TYPES[reference.type]
            natural = f"R_COLOSSUS_{8 * kind.size}" == kind.name
            suffix = "" if natural else f"@{kind.spelling}"
            items.append(Item(offset, kind.size, f"{_DIRECTIVES[kind.size]} {reference.text}{suffix}"))
            offset += kind.size
            continue
        stop = stops[bisect.bisect_right(stops, offset)]
        zeros = len(source.data[offset:stop]) - len(source.data[offset:stop].lstrip(b"\0"))
        if zeros >= _RUN:
            zeros -= zeros % 4 if offset + zeros < stop else 0
            items.append(Item(offset, zeros, f".space {zeros}"))
            offset += zeros
            continue
        size = 4 if stop - offset >= 4 else 1
        value = int.from_bytes(source.data[offset : offset + size], "little")
        items.append(Item(offset, size, f"{_DIRECTIVES[size]} {value:#x}"))
        offset += size
    return items
