"""Bounds-checked access to the tables of an ELF32 file that nobody vouches for."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ...errors import ObjectError
from . import elf_format as elf

MAXIMUM_FILE_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Header:
    type: int
    entry: int
    flags: int
    program_offset: int
    program_count: int
    section_offset: int
    section_count: int
    names_index: int


@dataclass(frozen=True, slots=True)
class SectionHeader:
    index: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


@dataclass(frozen=True, slots=True)
class SymbolEntry:
    name: str
    value: int
    size: int
    binding: int
    type: int
    other: int
    section: int


class ElfTables:
    """Header, section headers and tables of one file. Every access raises ObjectError when it leaves the
    file.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        if len(data) > MAXIMUM_FILE_BYTES:
            raise self.fault(f"{len(data)} bytes are more than any tile program has")
        self.header = self._header()
        self.sections = self._sections()

    def fault(self, what: str, where: str | None = None, *, hint: str | None = None) -> ObjectError:
        """An error for this file."""
        return ObjectError(what, where=f"{self.name}, {where}" if where else self.name, hint=hint)

    def span(self, offset: int, size: int, what: str) -> bytes:
        """`size` bytes at `offset`."""
        if offset > len(self.data) or size > len(self.data) - offset:
            raise self.fault(
                f"{what} at {offset:#x}, {size} bytes, reaches beyond the file's {len(self.data)} bytes"
            )
        return self.data[offset : offset + size]

    def record(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        fields: tuple[int, ...] = layout.unpack(self.span(offset, layout.size, what))
        return fields

    def content(self, section: SectionHeader) -> bytes:
        """Bytes of a section; empty for nobits."""
        if section.type == elf.SHT_NOBITS:
            return b""
        return self.span(section.offset, section.size, f"section {section.name or section.index}")

    def section(self, index: int, what: str) -> SectionHeader:
        """Section header by index, as `what` refers to it."""
        if not 0 < index < len(self.sections):
            raise self.fault(f"{what} refers to section {index} of {len(self.sections)}")
        return self.sections[index]

    def string(self, table: bytes, offset: int, what: str) -> str:
        if offset >= len(table):
            raise self.fault(f"{what} has its name at {offset:#x} of a string table of {len(table)} bytes")
        end = table.find(b"\0", offset)
        if end < 0:
            raise self.fault(f"the name of {what} has no end")
        try:
            return table[offset:end].decode()
        except UnicodeDecodeError:
            raise self.fault(f"the name of {what} is not UTF-8") from None

    def _header(self) -> Header:
        ident = self.span(0, 16, "the ELF header")
        if ident[:4] != b"\x7fELF":
            raise self.fault("this is no ELF file")
        if ident[4] != 1 or ident[5] != 1 or ident[6] != 1:
            raise self.fault("this is no 32-bit little-endian ELF file")
        values = struct.unpack("<HHIIIIIHHHHHH", self.span(16, elf.HEADER.size - 16, "the ELF header"))
        (
            type_,
            machine,
            version,
            entry,
            phoff,
            shoff,
            flags,
            ehsize,
            phentsize,
            phnum,
            shentsize,
            shnum,
            names,
        ) = values
        if machine != elf.MACHINE:
            raise self.fault(f"the machine is {machine}, not {elf.MACHINE} (Colossus)")
        if version != 1 or ehsize != elf.HEADER.size:
            raise self.fault(f"unknown header version {version} or size {ehsize}")
        number = flags & elf.FLAGS_MASK
        if number not in (0, elf.FLAGS_IPU2, elf.FLAGS_IPU21):
            known = elf.ARCHITECTURES.get(number)
            raise self.fault(
                f"made for {known or f'architecture {number:#x}'}, whose code cannot run on ipu21",
                hint="compile it for ipu2 or ipu21",
            )
        if shnum and shentsize != elf.SECTION_HEADER.size:
            raise self.fault(f"section headers have {shentsize} bytes")
        if phnum and phentsize != elf.PROGRAM_HEADER.size:
            raise self.fault(f"program headers have {phentsize} bytes")
        if shoff and not shnum:
            raise self.fault("files with more than 65,279 sections are not supported")
        return Header(type_, entry, flags, phoff, phnum, shoff, shnum, names)

    def _sections(self) -> list[SectionHeader]:
        header = self.header
        if header.section_count == 0:
            return []
        self.span(
            header.section_offset, header.section_count * elf.SECTION_HEADER.size, "the section header table"
        )
        raw = [
            self.record(
                elf.SECTION_HEADER,
                header.section_offset + index * elf.SECTION_HEADER.size,
                f"section header {index}",
            )
            for index in range(header.section_count)
        ]
        if header.names_index >= len(raw):
            raise self.fault(f"section names are in section {header.names_index} of {len(raw)}")
        names_header = raw[header.names_index]
        names = self.span(names_header[4], names_header[5], "the section name table")
        result = []
        for index, fields in enumerate(raw):
            name = self.string(names, fields[0], f"section {index}") if index else ""
            section = SectionHeader(index, name, *fields[1:])
            if index and section.type != elf.SHT_NOBITS:
                self.span(section.offset, section.size, f"section {name}")
            result.append(section)
        return result

    def symbols(self, table: SectionHeader) -> list[SymbolEntry]:
        """Entries of a symbol table, the empty first one included."""
        if table.entry_size != elf.SYMBOL.size or table.size % elf.SYMBOL.size:
            raise self.fault(f"{table.name} has entries of {table.entry_size} bytes in {table.size}")
        strings = self.content(self.section(table.link, table.name))
        data = self.content(table)
        result = []
        for index, (name, value, size, info, other, home) in enumerate(elf.SYMBOL.iter_unpack(data)):
            text = self.string(strings, name, f"symbol {index}") if name else ""
            result.append(SymbolEntry(text, value, size, info >> 4, info & 15, other & 3, home))
        if result and result[0] != SymbolEntry("", 0, 0, 0, 0, 0, 0):
            raise self.fault(f"the first entry of {table.name} is not empty")
        return result
