"""Source lines out of the DWARF line tables of objects and images, whoever wrote them. Nothing is trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from . import dwarf
from .leb128 import read_leb128
from .objects import ObjectFile, SourceLine
from .source_lines import by_place, joined

MAXIMUM_ROWS = 1 << 20

Place = tuple[int | None, int]
"""Where an address lies: (index of a section, offset), or (None, absolute address)."""


class DebugFault(Exception):
    """The line table is cut off or of a kind nobody knows."""


@dataclass(slots=True)
class _Reader:
    data: bytes
    position: int
    end: int

    def bytes(self, count: int) -> bytes:
        if count < 0 or count > self.end - self.position:
            raise DebugFault(f"{count} bytes at {self.position:#x} are beyond the end")
        self.position += count
        return self.data[self.position - count : self.position]

    def number(self, size: int) -> int:
        return int.from_bytes(self.bytes(size), "little")

    def leb(self, *, signed: bool = False) -> int:
        try:
            value, self.position = read_leb128(self.data, self.position, end=self.end, signed=signed)
        except ValueError:
            raise DebugFault(f"a number at {self.position:#x} has no end") from None
        return value

    def text(self) -> str:
        end = self.data.find(b"\0", self.position, self.end)
        if end < 0:
            raise DebugFault(f"a text at {self.position:#x} has no end")
        text = self.data[self.position : end].decode(errors="replace")
        self.position = end + 1
        return text


@dataclass(slots=True)
class LineTables:
    """What a line table needs of its surroundings.

    Attributes:
        strings: sections of texts by name.
        places: of values in the line table that depend on where something lies: byte offset -> place.
    """

    strings: Mapping[str, bytes]
    places: Mapping[int, Place] = field(default_factory=dict)

    def read(self, data: bytes) -> dict[int | None, list[SourceLine]]:
        """Rows by section, rising, with an entry without a line where knowledge ends. Raises DebugFault."""
        found: dict[int | None, list[SourceLine]] = {}
        position = 0
        while position < len(data):
            reader = _Reader(data, position, len(data))
            length = reader.number(4)
            if length >= 0xFFFFFFF0:
                raise DebugFault(f"a unit of the 64-bit format at {position:#x}")
            position = reader.position + length
            if position > len(data):
                raise DebugFault(f"the unit at {reader.position - 4:#x} is cut off")
            reader.end = position
            self._unit(reader, found)
        return {section: _ordered(rows) for section, rows in found.items()}

    def _unit(self, reader: _Reader, found: dict[int | None, list[SourceLine]]) -> None:
        version = reader.number(2)
        if not 2 <= version <= 5:
            raise DebugFault(f"a line table of version {version}")
        if version >= 5:
            reader.number(2)  # sizes of an address and of a segment selector
        length = reader.number(4)
        start = reader.position + length
        step = reader.number(1)
        if version >= 4:
            reader.number(1)
        reader.number(1)
        base = int.from_bytes(reader.bytes(1), "little", signed=True)
        span, opcodes = reader.number(1), reader.number(1)
        if span == 0 or opcodes == 0:
            raise DebugFault("a line range of 0")
        operands = list(reader.bytes(opcodes - 1))
        files = self._files(reader) if version >= 5 else _older_files(reader)
        if start > reader.end:
            raise DebugFault("the header is longer than its unit")
        reader.position = start
        _Program(self, reader, files, step, base, span, operands, first=int(version < 5)).run(found)

    def _files(self, reader: _Reader) -> list[str]:
        """File names of a version 5 header, from number 0 on."""
        folders = [entry.get(dwarf.CONTENT_PATH, "") for entry in self._entries(reader)]
        names = []
        for entry in self._entries(reader):
            folder = entry.get(dwarf.CONTENT_DIRECTORY, 0)
            home = folders[folder] if isinstance(folder, int) and folder < len(folders) else ""
            names.append(_joined(str(home) if folder else "", str(entry.get(dwarf.CONTENT_PATH, ""))))
        return names

    def _entries(self, reader: _Reader) -> list[dict[int, int | str]]:
        formats = [(reader.leb(), reader.leb()) for _ in range(reader.number(1))]
        count = reader.leb()
        if count > reader.end - reader.position:
            raise DebugFault(f"{count} entries in {reader.end - reader.position} bytes")
        return [{kind: self._value(reader, form) for kind, form in formats} for _ in range(count)]

    def _value(self, reader: _Reader, form: int) -> int | str:
        if form == dwarf.FORM_STRING:
            return reader.text()
        if form in (dwarf.FORM_LINE_STRP, dwarf.FORM_STRP):
            place = reader.position
            offset = reader.number(4)
            if place in self.places:
                offset = self.places[place][1]
            strings = self.strings.get(dwarf.LINE_STR if form == dwarf.FORM_LINE_STRP else dwarf.STR, b"")
            return _Reader(strings, offset, len(strings)).text()
        if form == dwarf.FORM_UDATA:
            return reader.leb()
        if form == dwarf.FORM_BLOCK:
            reader.bytes(reader.leb())
            return 0
        if form not in dwarf.FIXED_SIZES:
            raise DebugFault(f"a file entry of form {form:#x}")
        return reader.number(dwarf.FIXED_SIZES[form])


def _older_files(reader: _Reader) -> list[str]:
    """File names of a header up to version 4, from number 1 on."""
    folders = [""]
    while folder := reader.text():
        folders.append(folder)
    names = []
    while name := reader.text():
        folder_number = reader.leb()
        reader.leb()
        reader.leb()
        names.append(_joined(folders[folder_number] if folder_number < len(folders) else "", name))
    return names


def _joined(folder: str, name: str) -> str:
    """The path of a file; what would break a line of text becomes a question mark."""
    path = f"{folder}/{name}" if folder and not name.startswith(("/", "<")) else name
    return path if path.isprintable() else "".join(c if c.isprintable() else "?" for c in path)


@dataclass(slots=True)
class _Program:
    tables: LineTables
    reader: _Reader
    files: list[str]
    step: int
    base: int
    span: int
    operands: list[int]
    first: int
    section: int | None = None
    address: int = 0
    file: int = 1
    line: int = 1

    def run(self, found: dict[int | None, list[SourceLine]]) -> None:
        reader, known = self.reader, self._known()
        opcodes = len(self.operands) + 1
        rows: list[SourceLine] = []
        while reader.position < reader.end:
            code = reader.number(1)
            if code >= opcodes:
                lines, count = (code - opcodes) % self.span, (code - opcodes) // self.span
                self.address += self.step * count
                self.line += self.base + lines
                rows.append(self._row())
            elif code == 0:
                self._extended(found, rows)
            elif code == dwarf.COPY:
                rows.append(self._row())
            elif code in known:
                known[code]()
            else:
                for _ in range(self.operands[code - 1]):
                    reader.leb()
            if len(rows) > MAXIMUM_ROWS:
                raise DebugFault(f"over {MAXIMUM_ROWS} rows")

    def _known(self) -> dict[int, Callable[[], None]]:
        def advance_pc() -> None:
            self.address += self.step * self.reader.leb()

        def advance_line() -> None:
            self.line += self.reader.leb(signed=True)

        def set_file() -> None:
            self.file = self.reader.leb()

        def const_add_pc() -> None:
            self.address += self.step * ((255 - len(self.operands) - 1) // self.span)

        def fixed_advance_pc() -> None:
            self.address += self.reader.number(2)

        return {
            dwarf.ADVANCE_PC: advance_pc,
            dwarf.ADVANCE_LINE: advance_line,
            dwarf.SET_FILE: set_file,
            dwarf.CONST_ADD_PC: const_add_pc,
            dwarf.FIXED_ADVANCE_PC: fixed_advance_pc,
        }

    def _extended(self, found: dict[int | None, list[SourceLine]], rows: list[SourceLine]) -> None:
        reader = self.reader
        length = reader.leb()
        end = reader.position + length
        code = reader.number(1) if length else 0
        if code == dwarf.SET_ADDRESS:
            place = reader.position
            absolute = reader.number(min(length - 1, 8))
            self.section, self.address = self.tables.places.get(place, (None, absolute))
        elif code == dwarf.END_SEQUENCE:
            found.setdefault(self.section, []).extend([*rows, SourceLine(self._place(), "", 0)])
            rows.clear()
            self.section, self.address, self.file, self.line = None, 0, 1, 1
        if end > reader.end:
            raise DebugFault("an instruction of the line program is cut off")
        reader.position = end

    def _row(self) -> SourceLine:
        number = self.file - self.first
        known = 0 <= number < len(self.files) and 0 < self.line < 1 << 32
        return SourceLine(self._place(), self.files[number] if known else "", self.line if known else 0)

    def _place(self) -> int:
        if not 0 <= self.address < 1 << 32:
            raise DebugFault(f"a line at address {self.address:#x}")
        return self.address


def _ordered(rows: list[SourceLine]) -> list[SourceLine]:
    """Rising by offset, from the first that is known on, each saying something new."""
    ordered = joined(by_place(rows))
    return ordered if ordered and ordered[0].line else ordered[1:]


def take_debug_sections(item: ObjectFile) -> ObjectFile:
    """The object without its debug sections; its source lines are attributes of the sections they belong to.

    A line table that cannot be read is told as a warning: nothing that is loaded depends on it.
    """
    dropped = {index for index, section in enumerate(item.sections) if section.name.startswith(dwarf.PREFIX)}
    if not dropped:
        return item
    strings = {item.sections[index].name: item.sections[index].data for index in dropped}
    warnings = list(item.warnings)
    lines: dict[int | None, list[SourceLine]] = {}
    for index in sorted(dropped):
        section = item.sections[index]
        if section.name != dwarf.LINE:
            continue
        places: dict[int, Place] = {}
        for entry in section.relocations:
            symbol = item.symbols[entry.symbol]
            places[entry.offset] = (symbol.section, symbol.value + entry.addend)
        try:
            for home, rows in LineTables(strings, places).read(section.data).items():
                if home is not None and rows and rows[-1].offset > item.sections[home].size:
                    raise DebugFault(f"lines behind the end of {item.sections[home].name}")
                lines.setdefault(home, []).extend(rows)
        except DebugFault as fault:
            warnings.append(f"{item.name}: its source lines cannot be read: {fault}")
    return _without_sections(item, dropped, lines, tuple(warnings))


def _without_sections(
    item: ObjectFile,
    dropped: set[int],
    lines: Mapping[int | None, list[SourceLine]],
    warnings: tuple[str, ...],
) -> ObjectFile:
    kept = [index for index in range(len(item.sections)) if index not in dropped]
    sections = {index: number for number, index in enumerate(kept)}
    stay = [number for number, symbol in enumerate(item.symbols) if symbol.section not in dropped]
    symbols = {number: place for place, number in enumerate(stay)}
    return replace(
        item,
        sections=[
            replace(
                item.sections[index],
                lines=tuple(_ordered(lines.get(index, []))),
                relocations=[
                    replace(entry, symbol=symbols[entry.symbol])
                    for entry in item.sections[index].relocations
                    if entry.symbol in symbols
                ],
            )
            for index in kept
        ],
        symbols=[
            replace(symbol, section=None if symbol.section is None else sections[symbol.section])
            for symbol in (item.symbols[number] for number in stay)
        ],
        groups=[
            replace(
                group,
                signature=symbols[group.signature],
                members=tuple(sections[member] for member in group.members if member in sections),
            )
            for group in item.groups
        ],
        warnings=warnings,
    )
