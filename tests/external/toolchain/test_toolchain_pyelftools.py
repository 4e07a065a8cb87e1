"""Our objects and images as an independent ELF reader sees them."""

from __future__ import annotations

import io

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from tilewright.ipu21.toolchain import assemble, link

pytestmark = pytest.mark.external

SOURCE = """
.section .text.f,"ax",@progbits
.globl f
.type f,@function
f: setzi $m0, table
   bri 1f
1: call $lr, g
   run $m0, $m1, f
.size f, .-f
l: nop
.data
.align 8
.type table,@object
table: .long f, l@21, table+4
.size table, 12
.bss
.align 16
.hidden h
.globl h
h: .space 40
.weak w
.set k, 3
.globl k
setting: .space 1
.data
.long w
"""

TYPES = {"notype": "STT_NOTYPE", "object": "STT_OBJECT", "function": "STT_FUNC", "section": "STT_SECTION"}
BINDINGS = {"local": "STB_LOCAL", "global": "STB_GLOBAL", "weak": "STB_WEAK"}


def test_object() -> None:
    item = assemble(SOURCE, filename="f.S")
    elf = ELFFile(io.BytesIO(item.to_bytes()))
    header = elf.header
    assert (header.e_type, header.e_machine, header.e_flags) == ("ET_REL", 248, 0x21)
    assert header.e_ident.EI_OSABI == "ELFOSABI_STANDALONE"

    for section in item.sections:
        found = elf.get_section_by_name(section.name)
        assert found is not None
        assert found["sh_type"] == ("SHT_NOBITS" if section.nobits else "SHT_PROGBITS")
        assert found["sh_addralign"] == section.alignment
        assert found["sh_size"] == section.size
        assert found["sh_flags"] == sum(
            bit for letter, bit in (("w", 1), ("a", 2), ("x", 4)) if letter in section.flags
        )
        if not section.nobits:
            assert found.data() == section.data

    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    symbols = list(table.iter_symbols())
    assert table["sh_info"] == 1 + sum(symbol.binding == "local" for symbol in item.symbols)
    assert len(symbols) == len(item.symbols) + 1
    for ours, theirs in zip(item.symbols, symbols[1:], strict=True):
        assert theirs.name == ours.name
        assert theirs["st_value"] == ours.value and theirs["st_size"] == ours.size
        assert theirs["st_info"]["type"] == TYPES[ours.type]
        assert theirs["st_info"]["bind"] == BINDINGS[ours.binding]
        assert theirs["st_other"]["visibility"] == ("STV_HIDDEN" if ours.hidden else "STV_DEFAULT")
        if ours.absolute:
            assert theirs["st_shndx"] == "SHN_ABS"
        elif ours.section is None:
            assert theirs["st_shndx"] == "SHN_UNDEF"
        else:
            assert elf.get_section(theirs["st_shndx"]).name == item.sections[ours.section].name

    for section in item.sections:
        found = elf.get_section_by_name(".rela" + section.name)
        if not section.relocations:
            assert found is None
            continue
        assert isinstance(found, RelocationSection)
        assert elf.get_section(found["sh_info"]).name == section.name
        read = [
            (entry["r_offset"], entry["r_info_type"], entry["r_info_sym"] - 1, entry["r_addend"])
            for entry in found.iter_relocations()
        ]
        assert read == [
            (entry.offset, entry.type, entry.symbol, entry.addend) for entry in section.relocations
        ]


def test_image() -> None:
    image = link([assemble(SOURCE)], externals={"g": 0x4D000}, entry="f", data_intervals=[(0x80000, 0x90000)])
    elf = ELFFile(io.BytesIO(image.to_elf()))
    assert (elf.header.e_type, elf.header.e_machine, elf.header.e_entry) == ("ET_EXEC", 248, image.entry)
    segments = list(elf.iter_segments())
    assert [(s["p_vaddr"], s.data()) for s in segments] == [(s.address, s.data) for s in image.segments]
    assert [s["p_flags"] for s in segments] == [5, 6]
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    assert {s.name: s["st_value"] for s in table.iter_symbols() if s.name} == image.symbols
