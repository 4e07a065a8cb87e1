"""Source lines as DWARF 4, which every debugger reads: one unit per file that is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from . import dwarf
from .leb128 import leb128
from .objects import ObjectFile, ObjectSection, ObjectSymbol, Relocation, SourceLine
from .relocations import R32

VERSION = 4
_LINE_BASE, _LINE_RANGE, _OPCODE_BASE = -5, 14, 13
_PRODUCER = "tilewright"

Target = tuple[str, int]
"""What a value is relative to: a debug section by name, or (`""`, index of a section of the object)."""


@dataclass(slots=True)
class DebugSection:
    """A section's bytes and the 32-bit values in them that depend on where something lies."""

    name: str
    data: bytearray = field(default_factory=bytearray)
    values: list[tuple[int, Target, int]] = field(default_factory=list)

    def number(self, value: int, size: int) -> None:
        self.data += value.to_bytes(size, "little")

    def text(self, text: str) -> None:
        self.data += text.encode() + b"\0"

    def reference(self, target: Target | None, addend: int) -> None:
        """A 32-bit value; without a target it is an absolute address."""
        if target is not None:
            self.values.append((len(self.data), target, addend))
        self.number(addend, 4)


Run = tuple[Sequence[SourceLine], int]
"""Rows without a gap between them, and where the last one ends."""


def runs(lines: Sequence[SourceLine]) -> Iterator[Run]:
    """Rows up to each place from which on nothing is known."""
    begin = 0
    for index, line in enumerate(lines):
        if not line.line:
            if index > begin:
                yield lines[begin:index], line.offset
            begin = index + 1


def debug_sections(groups: Sequence[tuple[Target | None, Sequence[SourceLine]]]) -> list[DebugSection]:
    """Debug sections for the lines of each group, whose offsets are relative to its target."""
    line, ranges = DebugSection(dwarf.LINE), DebugSection(dwarf.RANGES)
    files = list(dict.fromkeys(row.file for _, lines in groups for row in lines if row.line))
    start = _line_header(line, files)
    numbers = {file: number for number, file in enumerate(files, 1)}
    for target, lines in groups:
        for rows, end in runs(lines):
            _sequence(line, target, rows, end, numbers)
            ranges.reference(target, rows[0].offset)
            ranges.reference(target, end)
    ranges.data += bytes(8)
    line.data[:4] = (len(line.data) - 4).to_bytes(4, "little")
    line.data[6:10] = (start - 10).to_bytes(4, "little")
    return [_abbreviations(), _unit(files[0]), ranges, line]


def _abbreviations() -> DebugSection:
    section = DebugSection(dwarf.ABBREV)
    pairs = (
        (dwarf.AT_PRODUCER, dwarf.FORM_STRING),
        (dwarf.AT_LANGUAGE, dwarf.FORM_DATA2),
        (dwarf.AT_NAME, dwarf.FORM_STRING),
        (dwarf.AT_STMT_LIST, dwarf.FORM_SEC_OFFSET),
        (dwarf.AT_LOW_PC, dwarf.FORM_ADDR),
        (dwarf.AT_RANGES, dwarf.FORM_SEC_OFFSET),
    )
    # Code 1, no children, attributes, the end of the entry and of the table.
    section.data += bytes([1, dwarf.TAG_COMPILE_UNIT, 0])
    for attribute, form in pairs:
        section.data += leb128(attribute) + leb128(form)
    section.data += bytes(3)
    return section


def _unit(name: str) -> DebugSection:
    section = DebugSection(dwarf.INFO, bytearray(4))
    section.number(VERSION, 2)
    section.reference((dwarf.ABBREV, 0), 0)
    section.data += bytes([4, 1])  # bytes of an address; the entry's code
    section.text(_PRODUCER)
    section.number(dwarf.LANGUAGE_ASSEMBLER, 2)
    section.text(name)
    section.reference((dwarf.LINE, 0), 0)
    section.number(0, 4)
    section.reference((dwarf.RANGES, 0), 0)
    section.data[:4] = (len(section.data) - 4).to_bytes(4, "little")
    return section


def _line_header(line: DebugSection, files: Sequence[str]) -> int:
    """Write the header, with room for the two lengths; returns where the program begins."""
    line.data += bytes(4) + VERSION.to_bytes(2, "little") + bytes(4)
    # Units of one byte, one operation per instruction, rows are statements.
    line.data += bytes([1, 1, 1, _LINE_BASE & 0xFF, _LINE_RANGE, _OPCODE_BASE, *dwarf.OPERANDS])
    line.data += b"\0"  # no folders: files have whole paths
    for file in files:
        line.text(file)
        line.data += bytes(3)
    line.data += b"\0"
    return len(line.data)


def _sequence(
    line: DebugSection, target: Target | None, rows: Sequence[SourceLine], end: int, files: dict[str, int]
) -> None:
    address, file, number = rows[0].offset, 1, 1
    line.data += bytes([0, 5, dwarf.SET_ADDRESS])
    line.reference(target, address)
    for row in rows:
        if files[row.file] != file:
            file = files[row.file]
            line.data += bytes([dwarf.SET_FILE]) + leb128(file)
        lines, bytes_ = row.line - number, row.offset - address
        special = lines - _LINE_BASE + _LINE_RANGE * bytes_ + _OPCODE_BASE
        if 0 <= lines - _LINE_BASE < _LINE_RANGE and special < 256:
            line.data.append(special)
        else:
            line.data += bytes([dwarf.ADVANCE_LINE]) + leb128(lines, signed=True)
            line.data += bytes([dwarf.ADVANCE_PC]) + leb128(bytes_) + bytes([dwarf.COPY])
        address, number = row.offset, row.line
    line.data += bytes([dwarf.ADVANCE_PC]) + leb128(end - address) + bytes([0, 1, dwarf.END_SEQUENCE])


def with_debug_sections(item: ObjectFile) -> ObjectFile:
    """The object with its source lines in sections of their own; as it is if it has none."""
    homes = _homes(item)
    groups: list[tuple[Target | None, Sequence[SourceLine]]] = [
        (("", index), section.lines)
        for index, section in enumerate(item.sections)
        if section.lines and index in homes
    ]
    if not groups:
        return item
    made = debug_sections(groups)
    first = len(item.sections)
    locals_ = [symbol for symbol in item.symbols if symbol.binding == "local"]
    others = item.symbols[len(locals_) :]
    added = [ObjectSymbol("", type="section", section=first + number) for number in range(len(made))]
    places = {section.name: len(locals_) + number for number, section in enumerate(made)}

    def moved(symbol: int) -> int:
        return symbol if symbol < len(locals_) else symbol + len(added)

    def relocation(offset: int, target: Target, addend: int) -> Relocation:
        name, index = target
        if name:
            return Relocation(offset, R32, places[name], addend)
        return Relocation(offset, R32, moved(homes[index]), addend - item.symbols[homes[index]].value)

    sections = [
        replace(
            section,
            relocations=[replace(entry, symbol=moved(entry.symbol)) for entry in section.relocations],
        )
        for section in item.sections
    ]
    sections += [
        ObjectSection(
            section.name,
            bytes(section.data),
            size=len(section.data),
            relocations=[relocation(*value) for value in section.values],
        )
        for section in made
    ]
    groups_ = [replace(group, signature=moved(group.signature)) for group in item.groups]
    return replace(item, sections=sections, symbols=[*locals_, *added, *others], groups=groups_)


def _homes(item: ObjectFile) -> dict[int, int]:
    """A symbol of each section, to which addresses in it can be relative; local ones serve best."""
    homes: dict[int, int] = {}
    for number, symbol in reversed(list(enumerate(item.symbols))):
        if symbol.section is not None:
            homes[symbol.section] = number
    return homes
