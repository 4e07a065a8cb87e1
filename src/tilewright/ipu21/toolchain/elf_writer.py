"""Writes ELF32 Colossus files. The bytes depend on nothing but the object or image."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import ObjectError
from . import elf_format as elf
from .debug_writer import debug_sections
from .objects import STACK_SIZES, ObjectFile
from .stack_sizes import write_entries

if TYPE_CHECKING:
    from .image import LinkedImage


@dataclass(slots=True)
class _Output:
    name: str
    type: int
    flags: int
    data: bytes
    size: int
    alignment: int
    address: int = 0
    link: int = 0
    info: int = 0
    entry_size: int = 0


@dataclass(frozen=True, slots=True)
class _Load:
    """A PT_LOAD whose bytes start with section number `first`."""

    first: int
    address: int
    size: int
    permissions: int


def _assemble_file(
    sections: Sequence[_Output],
    *,
    type_: int,
    entry: int = 0,
    segments: Sequence[_Load] = (),
    flags: int = elf.FLAGS_IPU21,
) -> bytes:
    """Lay out header, program headers, section bytes and section headers."""
    names = elf.StringTable()
    name_offsets = [names.add(section.name) for section in sections]
    names_offset = names.add(".shstrtab")
    every = [
        *sections,
        _Output(".shstrtab", elf.SHT_STRTAB, 0, bytes(names.data), len(names.data), 1),
    ]
    name_offsets.append(names_offset)

    body = bytearray(elf.HEADER.size + elf.PROGRAM_HEADER.size * len(segments))
    offsets = []
    for section in every:
        body += bytes(-len(body) % max(section.alignment, 1)) if section.data else b""
        offsets.append(len(body))
        body += section.data
    body += bytes(-len(body) % 4)
    table = len(body)
    body += elf.SECTION_HEADER.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    for section, name, offset in zip(every, name_offsets, offsets, strict=True):
        body += elf.SECTION_HEADER.pack(
            name,
            section.type,
            section.flags,
            section.address,
            offset,
            section.size,
            section.link,
            section.info,
            section.alignment,
            section.entry_size,
        )
    elf.HEADER.pack_into(
        body,
        0,
        elf.IDENT,
        type_,
        elf.MACHINE,
        1,
        entry,
        elf.HEADER.size if segments else 0,
        table,
        flags,
        elf.HEADER.size,
        elf.PROGRAM_HEADER.size if segments else 0,
        len(segments),
        elf.SECTION_HEADER.size,
        len(every) + 1,
        len(every),
    )
    position = elf.HEADER.size
    for load in segments:
        elf.PROGRAM_HEADER.pack_into(
            body,
            position,
            elf.PT_LOAD,
            offsets[load.first],
            load.address,
            load.address,
            load.size,
            load.size,
            load.permissions,
            4,
        )
        position += elf.PROGRAM_HEADER.size
    return bytes(body)


def _flag_bits(letters: str) -> int:
    return sum(bit for letter, bit in elf.FLAG_BITS.items() if letter in letters)


def _architecture_flags(item: ObjectFile) -> int:
    return next(number for number, name in elf.ARCHITECTURES.items() if name == item.architecture)


def write_object(item: ObjectFile) -> bytes:
    """Bytes of a relocatable file. Raises ObjectError when the object cannot be expressed in ELF32."""
    outputs: list[_Output] = []
    with_relocations = [index for index, section in enumerate(item.sections) if section.relocations]
    first = len(item.groups) + 1  # header number of the object's first section; groups must precede members
    first_relocation = first + len(item.sections)
    symtab_index = first_relocation + len(with_relocations)
    if symtab_index + 3 >= elf.SHN_LORESERVE:
        raise ObjectError(f"{len(item.sections)} sections are more than ELF32 can number", where=item.name)
    grouped = {member for group in item.groups for member in group.members}
    for group in item.groups:
        members = [first + member for member in group.members]
        members += [
            first_relocation + number
            for number, index in enumerate(with_relocations)
            if index in group.members
        ]
        data = struct.pack(f"<{len(members) + 1}I", elf.GRP_COMDAT if group.comdat else 0, *members)
        outputs.append(
            _Output(
                ".group",
                elf.SHT_GROUP,
                0,
                data,
                len(data),
                4,
                link=symtab_index,
                info=group.signature + 1,
                entry_size=4,
            )
        )
    for index, section in enumerate(item.sections):
        kind = elf.SHT_NOBITS if section.nobits else elf.SHT_PROGBITS
        data = b"" if section.nobits else section.data
        size = section.size if section.nobits else len(data)
        flags = _flag_bits(section.flags) | (elf.SHF_GROUP if index in grouped else 0)
        outputs.append(_Output(section.name, kind, flags, data, size, section.alignment))
    for index in with_relocations:
        section = item.sections[index]
        data = b"".join(
            elf.RELA.pack(entry.offset, (entry.symbol + 1) << 8 | entry.type, entry.addend)
            for entry in section.relocations
        )
        outputs.append(
            _Output(
                ".rela" + section.name,
                elf.SHT_RELA,
                elf.SHF_INFO_LINK | (elf.SHF_GROUP if index in grouped else 0),
                data,
                len(data),
                4,
                link=symtab_index,
                info=first + index,
                entry_size=elf.RELA.size,
            )
        )

    strings = elf.StringTable()
    table = bytearray(elf.SYMBOL.size)
    locals_end = 1
    for number, symbol in enumerate(item.symbols, 1):
        if symbol.binding == "local":
            if locals_end != number:
                raise ObjectError(f"local symbol {symbol.name} stands after a global one", where=item.name)
            locals_end = number + 1
        home = (
            elf.SHN_ABS
            if symbol.absolute
            else elf.SHN_COMMON
            if symbol.common
            else elf.SHN_UNDEF
            if symbol.section is None
            else first + symbol.section
        )
        table += elf.SYMBOL.pack(
            strings.add(symbol.name),
            symbol.value & 0xFFFFFFFF,
            symbol.size,
            elf.BINDING_NUMBERS[symbol.binding] << 4 | elf.TYPE_NUMBERS[symbol.type],
            elf.STV_HIDDEN if symbol.hidden else 0,
            home,
        )
    outputs.append(
        _Output(
            ".symtab",
            elf.SHT_SYMTAB,
            0,
            bytes(table),
            len(table),
            4,
            link=symtab_index + 1,
            info=locals_end,
            entry_size=elf.SYMBOL.size,
        )
    )
    outputs.append(_Output(".strtab", elf.SHT_STRTAB, 0, bytes(strings.data), len(strings.data), 1))
    return _assemble_file(outputs, type_=elf.ET_REL, flags=_architecture_flags(item))


def write_image(image: LinkedImage) -> bytes:
    """Bytes of a linked file: one PT_LOAD and one section per segment, and an absolute symbol table."""
    outputs: list[_Output] = []
    segments: list[_Load] = []
    for segment in image.segments:
        letters = ("a", *(letter for letter in "wx" if letter in segment.flags))
        first = len(outputs)
        starts = segment.sections or ((".text" if "x" in segment.flags else ".data", segment.address),)
        ends = [address for _, address in starts[1:]] + [segment.end]
        for (name, address), end in zip(starts, ends, strict=True):
            data = segment.data[address - segment.address : end - segment.address]
            # Only the first may be moved to an aligned file offset: the segment's bytes are contiguous.
            alignment = 4 if len(outputs) == first else 1
            flags = _flag_bits("".join(letters))
            outputs.append(_Output(name, elf.SHT_PROGBITS, flags, data, len(data), alignment, address))
        permissions = 4 | (2 if "w" in segment.flags else 0) | (1 if "x" in segment.flags else 0)
        segments.append(_Load(first, segment.address, len(segment.data), permissions))
    if image.stack_sizes:
        entries = write_entries(image)
        outputs.append(_Output(STACK_SIZES, elf.SHT_PROGBITS, 0, entries, len(entries), 1))
    if image.lines:
        outputs += [
            _Output(section.name, elf.SHT_PROGBITS, 0, bytes(section.data), len(section.data), 1)
            for section in debug_sections([(None, image.lines)])
        ]
    strings = elf.StringTable()
    table = bytearray(elf.SYMBOL.size)
    for name, value in image.symbols.items():
        table += elf.SYMBOL.pack(
            strings.add(name), value, 0, elf.BINDING_NUMBERS["global"] << 4, 0, elf.SHN_ABS
        )
    outputs.append(
        _Output(
            ".symtab", elf.SHT_SYMTAB, 0, bytes(table), len(table), 4, 0, len(outputs) + 2, 1, elf.SYMBOL.size
        )
    )
    outputs.append(_Output(".strtab", elf.SHT_STRTAB, 0, bytes(strings.data), len(strings.data), 1))
    return _assemble_file(outputs, type_=elf.ET_EXEC, entry=image.entry or 0, segments=segments)
