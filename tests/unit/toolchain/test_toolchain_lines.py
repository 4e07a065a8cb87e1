"""Source lines in files: damage costs the lines at most, and is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.toolchain import AssemblyFaults, LinkedImage, ObjectFile, assemble, disassemble, link
from tilewright.ipu21.toolchain import elf_format as elf
from tilewright.ipu21.toolchain.elf_tables import ElfTables
from tilewright.ipu21.toolchain.image import image_source
from tilewright.tile import TileProgram

pytestmark = pytest.mark.unit

SOURCE = """.globl f
f:  nop
    add $m0, $m0, 1
.rept 3
    nop
.endr
    .long 0
    br $lr
.section .text.g, "ax"
g:  br $lr
"""
OBJECT = assemble(SOURCE, filename="f.S").to_bytes()
IMAGE = link([ObjectFile.from_bytes(OBJECT)]).to_elf()


def span(data: bytes) -> tuple[int, int]:
    """Where the line table lies."""
    (section,) = [item for item in ElfTables(data, "x").sections if item.name == ".debug_line"]
    return section.offset, section.offset + section.size


def loaded(item: ObjectFile) -> list[tuple[str, bytes]]:
    return [(section.name, section.data) for section in item.sections]


def test_lines_by_address() -> None:
    image = LinkedImage.from_elf(IMAGE)
    start = image.symbols["f"]
    found = [image_source(image, start + offset) for offset in range(0, 36, 4)]
    lines = [None if place is None else place[1] for place in found]
    # Nothing is known of data and of what lies behind the last instruction.
    assert lines == [2, 3, 5, 5, 5, None, 8, 10, None]
    assert image_source(image, start - 4) is None and found[0] == ("f.S", 2)
    assert TileProgram(image).source_at(start + 4) == ("f.S", 3)


def test_lines_of_what_a_compiler_made() -> None:
    text = """
.file "a.cpp"
.file 1 "dir" "a.cpp" md5 0x0123456789abcdef0123456789abcdef
.text
nop
.loc 1 5 3 prologue_end
nop
.section .text.g, "ax"
nop
.text
nop
"""
    item = assemble(text, filename="a.S")
    rows = [(line.offset, line.file, line.line) for line in item.section(".text").lines]
    assert rows == [(0, "a.S", 5), (4, "dir/a.cpp", 5), (12, "", 0)]
    # What a section says of itself does not hold for another.
    assert item.section(".text.g").lines[0][1:] == ("a.S", 9)
    for wrong, message in ((".loc 3 1", "no `.file` names file 3"), ('.file -1 "a"', "not in 0..")):
        with pytest.raises(AssemblyFaults, match=message):
            assemble(wrong)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (4, 9, "version 9"),
        (0, 0xFF, "cut off"),
        (14, 0, "a line range of 0"),
        (6, 0xFF, "longer than its unit"),
    ],
)
def test_damage_is_told(offset: int, value: int, message: str) -> None:
    for data, read in ((OBJECT, ObjectFile.from_bytes), (IMAGE, LinkedImage.from_elf)):
        broken = bytearray(data)
        broken[span(data)[0] + offset] = value
        item = read(bytes(broken), name="f.o")  # type: ignore[operator]
        (warning,) = item.warnings
        assert warning.startswith("f.o: its source lines cannot be read: ") and message in warning


@given(st.data())
def test_no_damage_to_lines_reaches_the_code(data: st.DataObject) -> None:
    begin, end = span(OBJECT)
    broken = bytearray(OBJECT)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(begin, end - 1))] = data.draw(st.integers(0, 255))
    item = ObjectFile.from_bytes(bytes(broken))
    assert loaded(item) == loaded(ObjectFile.from_bytes(OBJECT))
    assert ObjectFile.from_bytes(item.to_bytes()).sections == item.sections
    begin, end = span(IMAGE)
    broken = bytearray(IMAGE)
    broken[data.draw(st.integers(begin, end - 1))] ^= data.draw(st.integers(1, 255))
    image = LinkedImage.from_elf(bytes(broken))
    assert image.segments == LinkedImage.from_elf(IMAGE).segments
    assert LinkedImage.from_elf(image.to_elf()).segments == image.segments


def test_other_debug_sections_are_left_out() -> None:
    item = ObjectFile.from_bytes(OBJECT)
    assert not [section.name for section in item.sections if section.name.startswith(".debug")]
    names = [section.name for section in ElfTables(OBJECT, "x").sections]
    assert {".debug_line", ".debug_info", ".debug_abbrev", ".debug_ranges", ".rela.debug_line"} <= set(names)
    loadable = [s for s in ElfTables(IMAGE, "x").sections if s.flags & elf.SHF_ALLOC]
    assert not [section.name for section in loadable if section.name.startswith(".debug")]


def test_listings_tell_where_lines_begin() -> None:
    for item in (ObjectFile.from_bytes(OBJECT), LinkedImage.from_elf(IMAGE)):
        listed = [
            text.split()[-1] for text in disassemble(item).split("\n") if ": " in text and ".S:" in text
        ]
        assert listed == ["f.S:2", "f.S:3", "f.S:5", "f.S:8", "f.S:10"]
    # Whatever a foreign file calls its sources, the text stays text that assembles to the same bytes.
    item = ObjectFile.from_bytes(OBJECT.replace(b"f.S", b"a\nb"))
    text = disassemble(item)
    assert "a?b:3" in text
    assert [section.data for section in assemble(text).sections] == [data for _, data in loaded(item)]
