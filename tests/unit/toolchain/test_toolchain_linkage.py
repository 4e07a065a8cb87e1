"""Common symbols, other names for symbols, relocations by name, and subsections of code."""

from __future__ import annotations

import pytest

from tilewright.errors import AssemblyError, LinkError, ObjectError
from tilewright.ipu21.toolchain import AssemblyFaults, ObjectFile, assemble, disassemble, link
from tilewright.ipu21.toolchain.objects import ObjectSymbol

pytestmark = pytest.mark.unit


def common(text: str) -> ObjectFile:
    """An object read back from its file."""
    return ObjectFile.from_bytes(assemble(text, filename=text.split("\n")[0]).to_bytes())


USER = ".globl start\nstart: setzi $m0, shared\nsetzi $m1, shared + 4\n"


def test_common_symbols_in_an_object() -> None:
    item = common(".comm a, 10, 32\n.comm a, 12\n.comm b, 6\n.weak c\n.comm c, 4, 4\n.long a\n")
    assert item.symbol("a") == ObjectSymbol("a", 32, 12, "global", "object", common=True)
    assert item.symbol("b").value == 4
    assert item.symbol("c").binding == "weak"
    again = assemble(disassemble(item))
    assert sorted(again.symbols, key=repr) == sorted(item.symbols, key=repr)


def test_a_local_common_symbol_is_in_bss() -> None:
    item = assemble(".local a\n.comm a, 8, 8\n.lcomm b, 4\n.data\n.long a, b\n")
    assert item.section(".bss").size == 12
    assert not any(symbol.common for symbol in item.symbols)


def test_a_link_gives_the_largest_of_all() -> None:
    objects = [common(USER), common(".comm shared, 4, 64"), common(".comm shared, 100, 4\n.comm other, 4")]
    image = link(objects)
    assert image.symbols["shared"] % 64 == 0
    assert image.symbols["other"] >= image.symbols["shared"] + 100
    word = int.from_bytes(image.read(image.symbols["start"] + 4, 4), "little")
    assert word & 0xFFFFF == image.symbols["shared"] + 4
    # What nothing leads to goes, common or not.
    assert "other" not in link(objects, roots=["start"]).symbols


def test_a_definition_comes_before_a_common_symbol_and_that_before_a_weak_one() -> None:
    strong = common(".data\n.globl shared\nshared: .long 1, 2\n")
    assert link([common(USER), common(".comm shared, 400"), strong]).symbols["shared"] < 0x4C100
    weak = common(".data\n.weak shared\nshared: .long 1, 2\n")
    image = link([weak, common(USER), common(".comm shared, 400")])
    assert image.read(image.symbols["shared"], 4) == bytes(4)
    assert link([common(USER), common(".comm shared, 4")], externals={"shared": 0x60000}).symbols[
        "shared"
    ] == (0x60000)


def test_a_file_with_an_impossible_common_symbol_is_refused() -> None:
    data = assemble(".comm a, 10, 32").to_bytes()
    place = data.index((32).to_bytes(4, "little") + (10).to_bytes(4, "little"))
    for alignment in (0, 3, 1 << 30):
        bad = data[:place] + alignment.to_bytes(4, "little") + data[place + 4 :]
        with pytest.raises(ObjectError, match="common bytes"):
            ObjectFile.from_bytes(bad)


def test_weak_references() -> None:
    item = assemble(".weakref a, b\n.weakref c, d\n.weakref e, f\n.long a, c, d\n")
    bindings = {symbol.name: symbol.binding for symbol in item.symbols if symbol.name}
    assert bindings == {"b": "weak", "d": "global"}
    with pytest.raises(LinkError, match="undefined: d "):
        link([item])


def test_versions_are_other_names() -> None:
    item = assemble(".globl f\nf: nop\n.symver f, g@@V1\n.symver f, f@V2\n.symver f, h@V3, remove\n")
    assert {symbol.name for symbol in item.symbols if symbol.defined} == {"f", "g", "h"}
    assert item.symbol("g").section == item.symbol("f").section


def test_relocations_by_name() -> None:
    item = assemble(
        ".data\n.long 0\n.reloc a, R_COLOSSUS_16, x + 2\na: .short 0\n.reloc 0, BFD_RELOC_32, y\n"
    )
    found = [
        (entry.offset, entry.type, item.symbols[entry.symbol].name, entry.addend)
        for entry in item.section(".data").relocations
    ]
    assert found == [(0, 4, "y", 0), (4, 2, "x", 2)]


def test_names_with_a_dollar_sign_stand_for_numbers() -> None:
    (section,) = assemble(".set $mine, 50\nget $m1, $mine\nget $m1, 50\nget $m1, $PC\nget $m1, 0\n").sections
    words = [section.data[index : index + 4] for index in range(0, 16, 4)]
    assert words[0] == words[1] and words[2] == words[3] and words[0] != words[2]


def test_sections_that_are_left_out_of_programs() -> None:
    item = assemble('.section .x,"e",@llvm_linker_options\n.byte 1\n.section .y,"",@0x6fff4c03\n.byte 2\n')
    assert [section.allocated for section in item.sections] == [False, False]


def test_code_in_subsections() -> None:
    text = """
.globl first, last
.text 1
last: call $m10, far
.text
first: bri last
rpt 2, 0
{ nop ; fnop }
.subsection 1
bri first
"""
    item = assemble(text, filename="kernel.S")
    straight = assemble(
        """
.globl first, last
first: bri last
rpt 2, 0
{ nop ; fnop }
last: call $m10, far
bri first
"""
    )
    assert item.section(".text").data == straight.section(".text").data
    assert item.section(".text").relocations == straight.section(".text").relocations
    assert item.symbol("last").value == 16
    assert [(line.offset, line.line) for line in item.section(".text").lines if line.line] == [
        (0, 6),
        (4, 7),
        (8, 8),
        (16, 4),
        (20, 10),
    ]


def test_sizes_that_change_what_they_measure() -> None:
    """Each number is as short as it can be once all are."""
    text = ".data\n" + "".join(f".uleb128 e{n}-s{n}\ns{n}: .zero {125 + n % 4}\ne{n}:\n" for n in range(8))
    data = assemble(text + ".uleb128 end-s0\nend:\n").section(".data").data
    assert data[:1] == b"\x7d" and len(data) == sum(126 + n % 4 + (n % 4 == 3) for n in range(8)) + 2


def test_sizes_that_never_settle_are_refused() -> None:
    text = ".data 1\nend: .byte 0\n.data\nstart: .space end - start + 1\n"
    with pytest.raises(AssemblyError, match="still change after 20 readings"):
        assemble(text)
    with pytest.raises(AssemblyFaults, match="no instruction or macro `foo`"):
        assemble(text + "foo\n")
