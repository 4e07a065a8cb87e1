"""Objects and images as ELF: back and forth, and refusing everything malformed."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import ObjectError
from tilewright.ipu21.toolchain import (
    Group,
    LinkedImage,
    LinkedSegment,
    ObjectFile,
    ObjectSection,
    ObjectSymbol,
    Relocation,
    assemble,
    link,
)

pytestmark = pytest.mark.unit

SOURCE = """
.section .text.f,"ax",@progbits
.globl f
.type f,@function
f: setzi $m0, table
   bri 1f
1: call $lr, g
.size f, .-f
.data
.align 8
table: .long f, 1f@21, table+4
1: .quad 5
.bss
.align 16
buffer: .space 40
.weak w
.set k, 3
.globl k
.section .note.stuff
.asciz "not loaded"
"""


@pytest.fixture(scope="module")
def item() -> ObjectFile:
    return assemble(SOURCE, filename="f.S")


def test_header(item: ObjectFile) -> None:
    data = item.to_bytes()
    assert data[:8] == b"\x7fELF\x01\x01\x01\xff"
    type_, machine = struct.unpack_from("<HH", data, 16)
    (flags,) = struct.unpack_from("<I", data, 36)
    assert (type_, machine, flags) == (1, 248, 0x21)


def test_object_reads_back_equal(item: ObjectFile) -> None:
    data = item.to_bytes()
    again = ObjectFile.from_bytes(data, name="f.S")
    assert again == item
    assert again.to_bytes() == data


def test_image_reads_back_equal(item: ObjectFile) -> None:
    image = link([item], externals={"g": 0x4D000}, data_intervals=[(0x80000, 0x90000)])
    data = image.to_elf()
    assert struct.unpack_from("<HH", data, 16) == (2, 248)
    again = LinkedImage.from_elf(data)
    assert again == image
    assert again.to_elf() == data


_NAMES = st.text(alphabet="abcxyz._", min_size=1, max_size=8)


@st.composite
def objects(draw: st.DrawFn) -> ObjectFile:
    sections = []
    for _ in range(draw(st.integers(0, 4))):
        nobits = draw(st.booleans())
        data = draw(st.binary(max_size=40))
        sections.append(
            ObjectSection(
                draw(_NAMES),
                b"" if nobits else data,
                draw(st.sampled_from(["", "a", "aw", "ax"])),
                1 << draw(st.integers(0, 6)),
                nobits,
                len(data),
            )
        )
    symbols = []
    for binding in sorted(
        draw(st.lists(st.sampled_from(["local", "global", "weak"]), max_size=5)), key="local".__ne__
    ):
        home = draw(st.sampled_from([None, *range(len(sections))]))
        absolute = home is None and draw(st.booleans())
        value = draw(st.integers(0, sections[home].size)) if home is not None else 0
        symbols.append(
            ObjectSymbol(
                draw(_NAMES),
                draw(st.integers(0, 0xFFFFFFFF)) if absolute else value,
                draw(st.integers(0, 100)),
                binding,
                draw(st.sampled_from(["notype", "object", "function"])),
                home,
                absolute,
                draw(st.booleans()),
            )
        )
    for section in sections:
        if symbols and section.allocated and not section.nobits and section.size >= 8:
            section.relocations = draw(
                st.lists(
                    st.builds(
                        Relocation,
                        st.integers(0, section.size - 8),
                        st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15, 16, 17]),
                        st.integers(0, len(symbols) - 1),
                        st.integers(-(1 << 31), (1 << 31) - 1),
                    ),
                    max_size=3,
                )
            )
    groups = []
    if symbols and sections:
        members = st.lists(st.integers(0, len(sections) - 1), unique=True).map(
            lambda found: tuple(sorted(found))
        )
        groups = draw(
            st.lists(st.builds(Group, st.integers(0, len(symbols) - 1), members, st.booleans()), max_size=2)
        )
    return ObjectFile("random", sections, symbols, groups)


@given(objects())
def test_any_object_reads_back_equal(item: ObjectFile) -> None:
    data = item.to_bytes()
    assert ObjectFile.from_bytes(data, name="random") == item
    assert item.to_bytes() == data


@given(st.data())
def test_corruption_is_refused_or_harmless(data: st.DataObject) -> None:
    """No byte of the file can make the reader raise anything but ObjectError, or read outside the file."""
    blob = bytearray(_OBJECT)
    for _ in range(data.draw(st.integers(1, 4))):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(blob), len(blob), data.draw(st.integers(0, len(blob)))]))
    try:
        again = ObjectFile.from_bytes(bytes(blob[:cut]), name="broken")
    except ObjectError as error:
        assert "broken" in str(error)
    else:
        again.to_bytes()


@given(st.data())
def test_corrupt_images(data: st.DataObject) -> None:
    blob = bytearray(_IMAGE)
    for _ in range(data.draw(st.integers(1, 4))):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    try:
        LinkedImage.from_elf(bytes(blob), name="broken")
    except ObjectError as error:
        assert "broken" in str(error)


_OBJECT = assemble(SOURCE, filename="f.S").to_bytes()
_IMAGE = link([assemble(SOURCE, filename="f.S")], externals={"g": 0x4D000}).to_elf()


def _patched(offset: int, layout: str, *values: int) -> bytes:
    blob = bytearray(_OBJECT)
    struct.pack_into(layout, blob, offset, *values)
    return bytes(blob)


def _section_header(index: int) -> int:
    (table,) = struct.unpack_from("<I", _OBJECT, 32)
    return int(table) + 40 * index


def _named(name: str) -> int:
    """Index of a section header of the object by name."""
    count, names = struct.unpack_from("<HH", _OBJECT, 48)
    (strings,) = struct.unpack_from("<I", _OBJECT, _section_header(names) + 16)
    for index in range(count):
        (offset,) = struct.unpack_from("<I", _OBJECT, _section_header(index))
        end = _OBJECT.index(b"\0", strings + offset)
        if _OBJECT[strings + offset : end].decode() == name:
            return index
    raise KeyError(name)


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "reaches beyond"),
        (b"\x7fELF" + bytes(60), "no 32-bit little-endian"),
        (b"MZ" + bytes(60), "no ELF file"),
        (_patched(18, "<H", 62), "machine is 62"),
        (_patched(36, "<I", 0x01), "made for ipu1, whose code cannot run on ipu21"),
        (_patched(36, "<I", 0x33), "architecture 0x33"),
        (_patched(32, "<I", 0xFFFFFFF0), "section header table"),
        (_patched(50, "<H", 99), "section names"),
        (_patched(16, "<H", 2), "not a relocatable"),
        (_patched(_section_header(1) + 16, "<I", 0xFFFFFF00), "reaches beyond"),
        (_patched(_section_header(1) + 32, "<I", 3), "no power of two"),
        (_patched(_section_header(_named(".symtab")) + 36, "<I", 12), "entries of 12 bytes"),
        (_patched(_section_header(_named(".symtab")) + 24, "<I", 77), "section 77"),
        (_patched(_section_header(_named(".symtab")) + 28, "<I", 99), "mixed"),
        (_patched(_section_header(_named(".rela.text.f")) + 36, "<I", 8), "entries of 8 bytes"),
        (_patched(_section_header(_named(".rela.text.f")) + 28, "<I", 50), "section 50"),
        (_patched(_section_header(_named(".rela.text.f")) + 24, "<I", 1), "uses symbol table 1"),
    ],
)
def test_malformed_tables(blob: bytes, message: str) -> None:
    with pytest.raises(ObjectError, match=message) as caught:
        ObjectFile.from_bytes(blob, name="bad.o")
    assert "bad.o" in str(caught.value)


def _first_relocation() -> int:
    (offset,) = struct.unpack_from("<I", _OBJECT, _section_header(_named(".rela.text.f")) + 16)
    return int(offset)


def test_unknown_relocation_names_file_section_and_offset() -> None:
    with pytest.raises(ObjectError, match=r"bad\.o, \.text\.f\+0x0: unknown relocation type 12"):
        ObjectFile.from_bytes(_patched(_first_relocation() + 4, "<I", 1 << 8 | 12), name="bad.o")


def test_relocation_outside_its_section() -> None:
    with pytest.raises(ObjectError, match=r"\.text\.f\+0xa.*outside"):
        ObjectFile.from_bytes(_patched(_first_relocation(), "<I", 10), name="bad.o")


def test_relocation_symbol_out_of_range() -> None:
    with pytest.raises(ObjectError, match="symbol 200 of"):
        ObjectFile.from_bytes(_patched(_first_relocation() + 4, "<I", 200 << 8 | 3), name="bad.o")


def test_image_outside_tile_memory() -> None:
    for segment in (LinkedSegment(0x1000, b"abcd", "r"), LinkedSegment(0xE7FFC, bytes(8), "r")):
        with pytest.raises(ObjectError, match="no place in tile memory"):
            LinkedImage.from_elf(LinkedImage((segment,)).to_elf())


def test_overlapping_segments() -> None:
    image = LinkedImage((LinkedSegment(0x50000, bytes(8), "r"), LinkedSegment(0x50004, bytes(8), "rx")))
    with pytest.raises(ObjectError, match="overlap"):
        LinkedImage.from_elf(image.to_elf())


def test_globals_before_locals_are_refused() -> None:
    item = ObjectFile("x", [], [ObjectSymbol("g", binding="global"), ObjectSymbol("l")])
    with pytest.raises(ObjectError, match="stands after a global"):
        item.to_bytes()
