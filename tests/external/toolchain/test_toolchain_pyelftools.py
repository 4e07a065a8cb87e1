"""Our objects and images as an independent ELF reader sees them."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from tilewright.ipu21.toolchain import ObjectFile, assemble, link
from tilewright.ipu21.toolchain.debug_reader import LineTables
from tilewright.ipu21.toolchain.debug_writer import with_debug_sections
from tilewright.ipu21.toolchain.gp import extract_object
from tilewright.ipu21.toolchain.image import LinkedImage
from tilewright.ipu21.toolchain.objects import SourceLine

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
    item = with_debug_sections(item)
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


LINES = (
    """.macro twice x
    add $m0, $m0, \\x   # line 2
    add $m0, $m0, \\x
.endm
.section .text.f,"ax",@progbits
.globl f
f:  setzi $m0, 1       # 7
    twice 5
    .long 0, 0         # data: no line
    {   add $m0, $m0, 1  # 10
        fnop }
    .align 16
.include "other.inc"
.text
    nop                # 15
# 300 lines later
"""
    + "\n" * 300
    + """    br $lr
.section .text.g,"axG",@progbits,g,comdat
.weak g
g:  br $lr
"""
)
PLACES = {
    ".text.f": [(0, "k.S", 7), (4, "k.S", 2), (8, "k.S", 3), (12, "", 0), (20, "k.S", 10), (28, "", 0),
                (32, "other.inc", 1), (36, "k.S", 0)],
    ".text": [(0, "k.S", 15), (4, "k.S", 317), (8, "", 0)],
    ".text.g": [(0, "k.S", 320), (4, "", 0)],
}  # fmt: skip


def written(folder: Path) -> ObjectFile:
    (folder / "other.inc").write_text("br $lr\n")
    return assemble(LINES, filename=str(folder / "k.S"))


def rows_of(elf: ELFFile) -> list[tuple[int, str, int]]:
    """(address, file name, line) of every row of every unit, ends with line 0, equal neighbours once."""
    found: list[tuple[int, str, int]] = []
    dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        first = int(program["version"] < 5)
        rows: list[tuple[int, str, int]] = []
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            name = program["file_entry"][state.file - first].name.decode()
            row = (
                state.address,
                "" if state.end_sequence else Path(name).name,
                0 if state.end_sequence else state.line,
            )
            if rows and rows[-1][0] == row[0]:
                rows.pop()
            rows.append(row)
        found += rows
    return [row for index, row in enumerate(found) if index == 0 or row[1:] != found[index - 1][1:]]


def short(lines: Iterable[SourceLine]) -> list[tuple[int, str, int]]:
    return [(line.offset, Path(line.file).name, line.line) for line in lines]


def test_lines_of_an_image(tmp_path: Path) -> None:
    image = link([written(tmp_path)], roots=["f", "g"])
    data = image.to_elf()
    starts = {name: address for segment in image.segments for name, address in segment.sections}
    placed = {}
    for name in (".text.f", ".text.g"):  # the second begins where the first ends
        placed |= {starts[name] + offset: (file, line) for offset, file, line in PLACES[name]}
    expected = [(address, file if line else "", line) for address, (file, line) in sorted(placed.items())]
    assert rows_of(ELFFile(io.BytesIO(data))) == expected
    assert LinkedImage.from_elf(data).lines == image.lines and short(image.lines) == expected


LOCATIONS = """
.file 1 "/home/x" "a.cpp"
.file 2 "b.hpp"
.loc 1 12 0
nop
nop
.loc 1 13 19 prologue_end
nop
.loc 2 7 1 is_stmt 0
nop
.loc 1 0
nop
nop
.loc 1 13 5 is_stmt 1
nop
nop
"""


@pytest.mark.skipif(shutil.which("llvm-mc") is None, reason="no llvm-mc to compare with")
@pytest.mark.skipif(shutil.which("llvm-dwarfdump") is None, reason="no llvm-dwarfdump to read it")
def test_locations_of_a_compiler_mean_what_llvm_makes_of_them(tmp_path: Path) -> None:
    """For another machine, whose `nop` has one byte."""
    (tmp_path / "k.s").write_text(LOCATIONS)
    made = str(tmp_path / "k.o")
    command = ["llvm-mc", "-triple=x86_64-linux-gnu", "-filetype=obj", str(tmp_path / "k.s"), "-o", made]
    subprocess.run(command, check=True, timeout=60)
    shown = subprocess.run(
        ["llvm-dwarfdump", "--debug-line", made], check=True, timeout=60, capture_output=True, text=True
    )
    names = {"1": "a.cpp", "2": "b.hpp"}
    theirs = []
    for words in (line.split() for line in shown.stdout.splitlines() if line.startswith("0x")):
        address, line, _, file = words[:4]
        unknown = line == "0" or "end_sequence" in words
        theirs.append((4 * int(address, 16), "" if unknown else names[file], 0 if unknown else int(line)))
    item = assemble(LOCATIONS, filename="k.s")
    assert short(item.section(".text").lines) == theirs
    assert short(ObjectFile.from_bytes(item.to_bytes()).section(".text").lines) == theirs


def test_lines_of_an_object(tmp_path: Path) -> None:
    item = written(tmp_path)
    again = ObjectFile.from_bytes(item.to_bytes())
    assert again.to_bytes() == item.to_bytes()
    for one, other in zip(item.sections, again.sections, strict=True):
        assert one.lines == other.lines
        assert short(one.lines) == [(o, f if line else "", line) for o, f, line in PLACES.get(one.name, [])]
    # pyelftools knows no relocations of this machine: give every section a base, and do them by hand.
    elf = ELFFile(io.BytesIO(item.to_bytes()))
    bases = {section.name: index << 12 for index, section in enumerate(elf.iter_sections())}
    symbols = list(elf.get_section_by_name(".symtab").iter_symbols())
    data = bytearray(item.to_bytes())
    for name in (".debug_line", ".debug_info", ".debug_ranges"):
        section = elf.get_section_by_name(name)
        for entry in elf.get_section_by_name(f".rela{name}").iter_relocations():
            symbol = symbols[entry["r_info_sym"]]
            home = elf.get_section(symbol["st_shndx"]).name
            base = 0 if home.startswith(".debug") else bases[home]
            place = section["sh_offset"] + entry["r_offset"]
            data[place : place + 4] = (base + symbol["st_value"] + entry["r_addend"]).to_bytes(4, "little")
    elf = ELFFile(io.BytesIO(bytes(data)))
    expected = sorted(
        (bases[name] + offset, file if line else "", line)
        for name, places in PLACES.items()
        for offset, file, line in places
    )
    assert sorted(rows_of(elf)) == expected
    dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
    (unit,) = dwarf.iter_CUs()
    top = unit.get_top_DIE()
    assert top.tag == "DW_TAG_compile_unit" and top.attributes["DW_AT_name"].value.endswith(b"k.S")
    spans = dwarf.range_lists().get_range_list_at_offset(top.attributes["DW_AT_ranges"].value)
    inside = {address for span in spans for address in range(span.begin_offset, span.end_offset)}
    assert inside == {
        address
        for (begin, _, line), (end, _, _) in itertools.pairwise(expected)
        if line
        for address in range(begin, end)
    }


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to make line tables")
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_line_tables_of_a_compiler(version: int, tmp_path: Path) -> None:
    functions = [
        f"int f{n}(int a) {{\n  while (a > {n})\n    a = a * 3 + {n};\n\n\n  return a;\n}}\n"
        for n in range(40)
    ]
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.h").write_text("".join(functions[:20]))
    (tmp_path / "main.c").write_text('#include "sub/inner.h"\n' + "\n" * 500 + "".join(functions[20:]))
    output = tmp_path / "a.out"
    flags = [f"-gdwarf-{version}", "-O1", "-nostdlib", "-no-pie", "-Wl,-e,f0"]
    subprocess.run(
        ["gcc", *flags, "main.c", "-o", str(output)], check=True, capture_output=True, cwd=tmp_path
    )
    elf = ELFFile(io.BytesIO(output.read_bytes()))
    names = (".debug_line", ".debug_line_str", ".debug_str")
    sections = {name: elf.get_section_by_name(name).data() for name in names if elf.get_section_by_name(name)}
    lines = LineTables(sections).read(sections[".debug_line"])[None]
    assert short(lines) == rows_of(elf) and len(lines) > 100
    assert {Path(line.file).name for line in lines if line.line} == {"main.c", "inner.h"}


@pytest.mark.skipif(
    "TILEWRIGHT_GP" not in os.environ, reason="TILEWRIGHT_GP names no archive with debug data"
)
def test_lines_of_the_vendors_compiler() -> None:
    path = Path(os.environ["TILEWRIGHT_GP"])
    item = extract_object(path.read_bytes(), name=path.name)
    assert not item.warnings
    code = [section for section in item.sections if section.executable and section.size]
    assert code and all(section.lines and section.lines[0].offset == 0 for section in code)
    assert all(line.offset <= section.size for section in code for line in section.lines)
