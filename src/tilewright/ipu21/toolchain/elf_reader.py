"""Reads ELF32 Colossus objects and images. Nothing in the file is trusted."""

from __future__ import annotations

import itertools
import struct

from ..machine.memory import TILE_BASE, TILE_END
from . import dwarf
from . import elf_format as elf
from .debug_reader import DebugFault, LineTables
from .elf_tables import ElfTables, SectionHeader, SymbolEntry
from .image import LinkedImage, LinkedSegment, provisional_words
from .objects import STACK_SIZES, Group, ObjectFile, ObjectSection, ObjectSymbol, Relocation, SourceLine
from .relocations import TYPES
from .stack_sizes import read_entries
from .symbols import MAXIMUM_SECTION_BYTES

MAXIMUM_ALIGNMENT = 1 << 20

_BINDINGS = {number: name for name, number in elf.BINDING_NUMBERS.items()}
_TYPES = {number: name for name, number in elf.TYPE_NUMBERS.items()} | {elf.STT_COMMON: "object"}
_CONTENT = (elf.SHT_PROGBITS, elf.SHT_NOBITS, elf.SHT_NOTE)
_TABLES = (elf.SHT_STRTAB, elf.SHT_RELA, elf.SHT_REL, elf.SHT_GROUP, elf.SHT_SYMTAB_SHNDX)


def read_object(data: bytes, *, name: str) -> ObjectFile:
    """An object from its bytes. Sections that are not loaded are kept without their relocations.

    Raises ObjectError for anything malformed or not supported, naming file, section and offset.
    """
    tables = ElfTables(data, name)
    if tables.header.type != elf.ET_REL:
        raise tables.fault(f"this is ELF type {tables.header.type}, not a relocatable object")
    number = tables.header.flags & elf.FLAGS_MASK
    result = ObjectFile(name, architecture=elf.ARCHITECTURES[number])
    indices: dict[int, int] = {}
    symtab: SectionHeader | None = None
    for header in tables.sections[1:]:
        if header.type == elf.SHT_SYMTAB:
            if symtab is not None:
                raise tables.fault("there are two symbol tables")
            symtab = header
        elif header.type in _CONTENT:
            indices[header.index] = len(result.sections)
            result.sections.append(_section(tables, header))
        elif header.type not in _TABLES:
            if header.flags & elf.SHF_ALLOC:
                raise tables.fault(f"loaded sections of type {header.type:#x} are not supported", header.name)
            indices[header.index] = len(result.sections)
            result.sections.append(_section(tables, header))
        elif header.type == elf.SHT_SYMTAB_SHNDX:
            raise tables.fault("extended section numbers are not supported", header.name)
        elif header.type == elf.SHT_REL and tables.section(header.info, header.name).flags & elf.SHF_ALLOC:
            raise tables.fault("relocations without addends are not used on this machine", header.name)

    entries = tables.symbols(symtab) if symtab is not None else []
    if symtab is not None:
        _symbols(tables, symtab, entries, indices, result)
    for header in tables.sections[1:]:
        if header.type == elf.SHT_RELA:
            _relocations(tables, header, symtab, len(entries), indices, result)
        elif header.type == elf.SHT_GROUP:
            result.groups.append(_group(tables, header, symtab, len(entries), indices))
    return result


def _section(tables: ElfTables, header: SectionHeader) -> ObjectSection:
    if header.alignment & (header.alignment - 1) or header.alignment > MAXIMUM_ALIGNMENT:
        raise tables.fault(
            f"alignment {header.alignment} is no power of two up to {MAXIMUM_ALIGNMENT}", header.name
        )
    if header.size > MAXIMUM_SECTION_BYTES and header.flags & elf.SHF_ALLOC:
        raise tables.fault(f"{header.size} bytes are more than any tile holds", header.name)
    return ObjectSection(
        header.name,
        tables.content(header),
        elf.flag_letters(header.flags),
        max(header.alignment, 1),
        header.type == elf.SHT_NOBITS,
        header.size,
    )


def _symbols(
    tables: ElfTables,
    symtab: SectionHeader,
    entries: list[SymbolEntry],
    indices: dict[int, int],
    result: ObjectFile,
) -> None:
    for number, entry in enumerate(entries[1:], 1):
        where = f"symbol {number} ({entry.name})"
        binding, kind = _BINDINGS.get(entry.binding), _TYPES.get(entry.type)
        if binding is None or kind is None:
            raise tables.fault(f"unknown binding {entry.binding} or type {entry.type}", where)
        if (binding == "local") != (number < symtab.info):
            raise tables.fault("local and global symbols are mixed", where)
        absolute, common = entry.section == elf.SHN_ABS, entry.section == elf.SHN_COMMON
        if common and (
            not 0 < entry.value <= MAXIMUM_ALIGNMENT
            or entry.value & (entry.value - 1)
            or entry.size > MAXIMUM_SECTION_BYTES
            or binding == "local"
        ):
            raise tables.fault(
                f"{entry.size} common bytes of a {binding} symbol aligned to {entry.value}", where
            )
        section: int | None = None
        if entry.section != elf.SHN_UNDEF and not absolute and not common:
            if entry.section >= elf.SHN_LORESERVE:
                raise tables.fault(f"section number {entry.section:#x} is not supported", where)
            home = tables.section(entry.section, where)
            section = indices.get(home.index)
            # Compilers also make section symbols for tables; nothing that is loaded refers to those.
            if section is None and kind != "section":
                raise tables.fault(f"lies in {home.name}, which holds no program bytes", where)
            if section is not None and entry.value > result.sections[section].size:
                raise tables.fault(f"offset {entry.value:#x} is outside its section", where)
        result.symbols.append(
            ObjectSymbol(
                entry.name,
                entry.value,
                entry.size,
                binding,
                kind,
                section,
                absolute,
                entry.other == elf.STV_HIDDEN,
                common,
            )
        )


def _group(
    tables: ElfTables,
    header: SectionHeader,
    symtab: SectionHeader | None,
    symbols: int,
    indices: dict[int, int],
) -> Group:
    data = tables.content(header)
    if symtab is None or header.link != symtab.index or not 0 < header.info < symbols:
        raise tables.fault(f"the group's signature is symbol {header.info} of {symbols}", header.name)
    if header.entry_size != 4 or len(data) % 4 or not data:
        raise tables.fault(f"has entries of {header.entry_size} bytes in {len(data)}", header.name)
    flags, *members = struct.unpack(f"<{len(data) // 4}I", data)
    if flags & ~elf.GRP_COMDAT:
        raise tables.fault(f"unknown group flags {flags:#x}", header.name)
    # Relocation sections go with their targets, so only content needs remembering.
    kept = [indices[member] for member in members if tables.section(member, header.name).index in indices]
    return Group(header.info - 1, tuple(kept), bool(flags & elf.GRP_COMDAT))


def _relocations(
    tables: ElfTables,
    header: SectionHeader,
    symtab: SectionHeader | None,
    symbols: int,
    indices: dict[int, int],
    result: ObjectFile,
) -> None:
    target_header = tables.section(header.info, header.name)
    index = indices.get(target_header.index)
    wanted = target_header.flags & elf.SHF_ALLOC or target_header.name in (STACK_SIZES, dwarf.LINE)
    if index is None or not wanted:
        return  # debug data and the like are never loaded
    if symtab is None or header.link != symtab.index:
        raise tables.fault(f"uses symbol table {header.link}", header.name)
    if header.entry_size != elf.RELA.size or header.size % elf.RELA.size:
        raise tables.fault(f"has entries of {header.entry_size} bytes in {header.size}", header.name)
    target = result.sections[index]
    for offset, info, addend in elf.RELA.iter_unpack(tables.content(header)):
        where = f"{target.name}+{offset:#x}"
        number, symbol = info & 0xFF, info >> 8
        kind = TYPES.get(number)
        if kind is None:
            raise tables.fault(f"unknown relocation type {number}", where)
        if kind.number == 0:
            continue
        if not 0 < symbol < symbols:
            raise tables.fault(f"refers to symbol {symbol} of {symbols}", where)
        if offset + kind.size > target.size or target.nobits:
            raise tables.fault(f"{kind.name} reaches outside its section", where)
        target.relocations.append(Relocation(offset, number, symbol - 1, addend))


def read_image(data: bytes, *, name: str) -> LinkedImage:
    """An image from its bytes: loadable segments, absolute symbols, entry.

    Raises ObjectError for anything malformed, or a segment outside tile memory.
    """
    tables = ElfTables(data, name)
    header = tables.header
    if header.type != elf.ET_EXEC:
        raise tables.fault(f"this is ELF type {header.type}, not a linked image")
    segments: list[LinkedSegment] = []
    total = 0
    for number in range(header.program_count):
        what = f"program header {number}"
        fields = tables.record(
            elf.PROGRAM_HEADER, header.program_offset + number * elf.PROGRAM_HEADER.size, what
        )
        kind, offset, address, _, file_size, memory_size, flags, _ = fields
        if kind != elf.PT_LOAD:
            continue
        if (
            file_size > memory_size
            or not TILE_BASE <= address <= TILE_END
            or memory_size > TILE_END - address
        ):
            raise tables.fault(f"{memory_size} bytes at {address:#x} are no place in tile memory", what)
        total += memory_size
        if total > TILE_END - TILE_BASE:
            raise tables.fault("the segments are larger than tile memory", what)
        content = tables.span(offset, file_size, what) + bytes(memory_size - file_size)
        letters = "r" + ("w" if flags & 2 else "") + ("x" if flags & 1 else "")
        names = tuple(
            (section.name, section.address)
            for section in tables.sections[1:]
            if section.flags & elf.SHF_ALLOC and address <= section.address < address + max(memory_size, 1)
        )
        segments.append(LinkedSegment(address, content, letters, names))
    segments.sort(key=lambda segment: segment.address)
    for first, second in itertools.pairwise(segments):
        if first.end > second.address:
            raise tables.fault(f"segments at {first.address:#x} and {second.address:#x} overlap")
    symbols: dict[str, int] = {}
    for section in tables.sections[1:]:
        if section.type == elf.SHT_SYMTAB:
            for entry in tables.symbols(section):
                if entry.name and entry.section != elf.SHN_UNDEF:
                    symbols.setdefault(entry.name, entry.value)
    provisional = [
        word
        for segment in segments
        if "x" in segment.flags
        for word in provisional_words(segment.address, segment.data)
    ]
    sizes: dict[str, int] = {}
    for section in tables.sections[1:]:
        if section.name == STACK_SIZES:
            named = {address: symbol for symbol, address in reversed(symbols.items())}
            for address, size in read_entries(tables.content(section), f"{name}, {STACK_SIZES}"):
                sizes[named.get(address, f"{address:#x}")] = size
    lines, warnings = _image_lines(tables)
    return LinkedImage(
        tuple(segments), symbols, header.entry or None, tuple(provisional), sizes, warnings, lines
    )


def _image_lines(tables: ElfTables) -> tuple[tuple[SourceLine, ...], tuple[str, ...]]:
    """Source lines of an image, and what is to be told if they cannot be read."""
    strings = {
        section.name: tables.content(section)
        for section in tables.sections[1:]
        if section.name in (dwarf.LINE, dwarf.LINE_STR, dwarf.STR)
    }
    try:
        return tuple(LineTables(strings).read(strings.get(dwarf.LINE, b"")).get(None, ())), ()
    except DebugFault as fault:
        return (), (f"{tables.name}: its source lines cannot be read: {fault}",)
