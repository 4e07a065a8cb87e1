"""Linking: resolution, what is kept, placement, fill, relocation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import LinkError, ObjectError
from tilewright.ipu21.machine.memory import IMAGE_BASE, REGION1_BASE
from tilewright.ipu21.toolchain import (
    Group,
    LinkedImage,
    ObjectFile,
    ObjectSymbol,
    Relocation,
    assemble,
    link,
)
from tilewright.ipu21.toolchain.objects import CODE_FILL

pytestmark = pytest.mark.unit

BASE = 0x50000
CODE = [(BASE, 0x60000)]


def item(source: str, name: str = "a.S") -> ObjectFile:
    return assemble(source, filename=name)


def words(data: bytes) -> list[int]:
    return [int.from_bytes(data[index : index + 4], "little") for index in range(0, len(data), 4)]


def test_addresses_meet_published_fields() -> None:
    """A setzi, a bri and a run of a symbol at a known address give the linker tests' fields."""
    source = '.globl f\nf: setzi $m0, t\nbri t\nrun $m0, $m0, t\n.section .text.t,"ax"\n.align 4096\nt: nop\n'
    image = link([item(source)], intervals=[(0x4F000, 0x60000)], roots=["f"])
    assert image.symbols["f"] == 0x4F000
    data = image.segments[0].data
    assert words(data)[:3] == [0x19050000, 0x40800000 | 0x14000, 0x14010000]
    # The gap up to the aligned section is code, so it is filled with nops.
    assert set(words(data)[3:-1]) == {CODE_FILL}
    assert image.segments[0].sections == ((".text", 0x4F000), (".text.t", 0x50000))


def test_default_region() -> None:
    image = link([item("nop")])
    assert image.segments[0].address == IMAGE_BASE
    assert image.entry is None


def test_strong_over_weak_in_both_orders() -> None:
    weak = item(".weak f\nf: nop\n.globl user\nuser: bri f", "weak.S")
    strong = item(".globl f\nf: nop\nnop", "strong.S")
    for objects in ([weak, strong], [strong, weak]):
        image = link(objects, intervals=CODE)
        start = BASE if objects[0] is strong else BASE + 8
        assert image.symbols["f"] == start
        assert words(image.read(image.symbols["user"], 4)) == [0x40800000 | start >> 2]


def test_first_weak_wins_among_weak_ones() -> None:
    image = link([item(".weak f\nf: nop"), item(".weak f\nf: nop", "b.S")], intervals=CODE)
    assert image.symbols["f"] == BASE


def test_undefined_weak_is_zero() -> None:
    image = link([item(".weak f\nsetzi $m0, f")], intervals=CODE)
    assert words(image.segments[0].data) == [0x19000000]


def test_all_duplicates_are_named() -> None:
    first = item(".globl f, g\nf: nop\ng: nop", "one.S")
    second = item(".globl f, g\nf: nop\ng: nop", "two.S")
    with pytest.raises(LinkError, match=r"f \(one\.S and two\.S\), g \(one\.S and two\.S\)"):
        link([first, second])


def test_all_undefined_symbols_are_named_with_their_use() -> None:
    with pytest.raises(LinkError) as caught:
        link([item("bri f\ncall $m0, g\n", "one.S"), item(".data\n.long h", "two.S")])
    text = str(caught.value)
    assert "f (used in one.S, .text+0x0)" in text
    assert "g (used in one.S, .text+0x4)" in text
    assert "h (used in two.S, .data+0x0)" in text


def test_missing_entry_and_roots_are_named() -> None:
    with pytest.raises(LinkError, match=r"entry_here .* root_here"):
        link([item("nop")], entry="entry_here", roots=["root_here"])


def test_locals_stay_in_their_object() -> None:
    one, two = item(".type l,@function\nl: bri l", "one.S"), item("nop\n.type l,@function\nl: bri l", "two.S")
    image = link([one, two], intervals=CODE)
    assert words(image.segments[0].data) == [
        0x40800000 | BASE >> 2,
        CODE_FILL,
        0x40800000 | (BASE + 8) >> 2,
    ]
    assert image.symbols == {"l": BASE}


def test_externals_override() -> None:
    objects = [item(".globl f\nf: nop\n.globl u\nu: bri f")]
    image = link(objects, intervals=CODE, externals={"f": 0x4D000, "unused": 0x4D004})
    assert words(image.segments[0].data)[1] == 0x40800000 | 0x4D000 >> 2
    assert image.symbols["f"] == 0x4D000 and image.symbols["unused"] == 0x4D004


def test_absolute_globals_carry_constants() -> None:
    image = link([item(".set n, 0x123\n.globl n"), item("setzi $m0, n", "b.S")], intervals=CODE)
    assert words(image.segments[0].data) == [0x19000123]


def test_only_reachable_sections_stay() -> None:
    source = """
    .section .text.start,"ax"
    .globl start
    start: call $m10, used
    .section .text.used,"ax"
    .globl used
    used: setzi $m0, .Ltable
    .section .text.unused,"ax"
    .globl unused
    unused: bri nowhere
    .section .rodata.table,"a"
    .Ltable: .long kept_by_table
    .section .text.kept_by_table,"ax"
    kept_by_table: nop
    .section .text.root,"ax"
    .globl root
    root: nop
    """
    image = link([item(source)], entry="start", roots=["root"], intervals=CODE)
    names = [name for segment in image.segments for name, _ in segment.sections]
    assert names == [".text.start", ".text.used", ".rodata.table", ".text.kept_by_table", ".text.root"]
    assert image.entry == BASE
    assert "unused" not in image.symbols
    with pytest.raises(LinkError, match="nowhere"):
        link([item(source)], intervals=CODE)


def test_sections_move_to_the_next_interval_and_never_back() -> None:
    objects = [
        item("nop"),
        item("nop\nnop\nnop", "b.S"),
        item("nop", "c.S"),
    ]
    image = link(objects, intervals=[(BASE, BASE + 12), (BASE + 16, BASE + 32)])
    assert [(segment.address, len(segment.data)) for segment in image.segments] == [
        (BASE, 4),
        (BASE + 16, 16),
    ]


def test_memory_between_intervals_is_never_filled() -> None:
    image = link([item("nop"), item("nop", "b.S")], intervals=[(BASE, BASE + 4), (BASE + 8, BASE + 12)])
    assert [(segment.address, len(segment.data)) for segment in image.segments] == [(BASE, 4), (BASE + 8, 4)]


def test_lack_of_room_names_everything() -> None:
    with pytest.raises(LinkError) as caught:
        link(
            [item(".align 8\n.space 100\nnop", "big.S")],
            intervals=[(BASE, BASE + 64), (BASE + 128, BASE + 200)],
        )
    text = str(caught.value)
    assert ".text (big.S)" in text and "104 bytes" in text and "aligned to 8" in text
    assert "0x50000..0x50040 (64 bytes), 0x50080..0x500c8 (72 bytes)" in text


def test_data_intervals() -> None:
    source = "nop\n.data\n.long 1\n.bss\n.align 16\n.space 20"
    image = link([item(source)], intervals=CODE, data_intervals=[(REGION1_BASE, REGION1_BASE + 64)])
    assert [(s.address, s.flags, len(s.data)) for s in image.segments] == [
        (BASE, "rx", 4),
        (REGION1_BASE, "rw", 36),
    ]
    assert image.segments[1].data == bytes([1, 0, 0, 0]) + bytes(32)


@pytest.mark.parametrize(
    ("intervals", "data", "message"),
    [
        ([], None, "no executable interval"),
        ([(BASE, BASE)], None, "is empty"),
        ([(BASE + 64, BASE + 128), (BASE, BASE + 32)], None, "starts below"),
        ([(0x4BF00, BASE)], None, "starts below"),
        ([(BASE, 0x80004)], None, "reaches beyond 0x80000"),
        ([(BASE, BASE + 64)], [(0x80000, 0xE8004)], "reaches beyond 0xe8000"),
        ([(BASE, BASE + 64)], [(BASE + 32, BASE + 96)], "overlaps"),
    ],
)
def test_bad_intervals(
    intervals: list[tuple[int, int]], data: list[tuple[int, int]] | None, message: str
) -> None:
    with pytest.raises(LinkError, match=message):
        link([item("nop")], intervals=intervals, data_intervals=data)


def test_relocation_faults_say_where() -> None:
    with pytest.raises(LinkError, match=r"one\.S, \.text\+0x4: R_COLOSSUS_16.*for f"):
        link([item("nop\nadd $m0, $m0, f\n.globl f\nf: nop", "one.S")])
    with pytest.raises(LinkError, match="not a multiple of 8"):
        link([item(".globl f\nf: nop\n.data\n.short (f+4)@16@s3", "one.S")], intervals=CODE)


def test_branch_into_unloaded_section_is_refused() -> None:
    with pytest.raises(LinkError, match="not loaded"):
        link([item(".section .note\nx: .byte 1\n.text\nsetzi $m0, x")])


def test_provisional_words_are_listed() -> None:
    source = (
        ".data\n.long 0x5b4a0741\n.text\nf16v4hihov4amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P1\nnop\n"
        "f16v4stacc $a0:1, TSTACC_P1"
    )
    image = link([item(source)], intervals=CODE)
    assert [address for address, _ in image.provisional] == [BASE, BASE + 8]
    assert image.provisional[0][1] == words(image.read(BASE, 4))[0]


def test_payload_of_sendpicp_is_no_instruction() -> None:
    # The payload's bits are those of a provisional amp word.
    amp = words(assemble("f16v4hihov4amp $a0:1, $a2:3, $a4:5, 1").section(".text").data)[0]
    code = words(assemble("sendpicp 0, 0, 0, 0, 0, 0, 0").section(".text").data)
    source = f".align 8\n.long {code[0]:#x}, {amp:#x}\nnop"
    assert link([item(source)], intervals=CODE).provisional == ()


def grouped(name: str, count: int) -> ObjectFile:
    """An object with an inline function in a COMDAT group, and a caller outside it."""
    result = item(
        '.section .text.inline,"ax"\n.weak inline\ninline: nop\n'
        + "nop\n" * count
        + f'.section .text.caller,"ax"\n.globl caller{name}\ncaller{name}: call $m10, inline\n',
        name,
    )
    index = next(number for number, symbol in enumerate(result.symbols) if symbol.name == "inline")
    result.groups = [Group(index, (0,))]
    return ObjectFile.from_bytes(result.to_bytes(), name=name)


def test_first_group_of_a_signature_stays() -> None:
    image = link([grouped("a", 0), grouped("b", 5)], intervals=CODE)
    names = [name for segment in image.segments for name, _ in segment.sections]
    assert names == [".text.inline", ".text.caller", ".text.caller"]
    assert words(image.segments[0].data) == [CODE_FILL, 0x18A00000 | BASE >> 2, 0x18A00000 | BASE >> 2]


def test_reference_into_a_replaced_group_is_refused() -> None:
    second = grouped("b", 5)
    second.symbols.insert(0, ObjectSymbol("", type="section", section=0))
    second.groups = [Group(second.groups[0].signature + 1, (0,))]
    second.sections[1].relocations = [Relocation(0, 8, 0, 0)]
    with pytest.raises(LinkError, match="another object's group replaces"):
        link([grouped("a", 0), second], intervals=CODE)


def test_same_inputs_same_bytes() -> None:
    source = ".globl f\nf: nop\nbri g\n.data\n.long f\n.weak g"
    images = [
        link([item(source), item(".globl g\ng: nop", "b.S")], intervals=CODE).to_elf() for _ in range(2)
    ]
    assert images[0] == images[1]


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from([1, 4, 8, 16, 64]), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_placement_is_aligned_ordered_and_disjoint(shapes: list[tuple[int, int, bool]]) -> None:
    objects = []
    for number, (size, alignment, code) in enumerate(shapes):
        flags = "ax" if code else "aw"
        objects.append(
            assemble(
                f'.section .s{number},"{flags}"\n.globl x{number}\n.balign {alignment}\nx{number}:\n'
                f".fill {size}, 4, {number + 1}\n"
            )
        )
    image = link(objects, intervals=CODE)
    last = BASE
    for number, (size, alignment, _) in enumerate(shapes):
        address = image.symbols[f"x{number}"]
        assert address >= last and address % alignment == 0 and address - last < max(alignment, 4)
        assert words(image.read(address, 4 * size)) == [number + 1] * size
        last = address + 4 * size
    for first, second in zip(image.segments, image.segments[1:], strict=False):
        assert first.end <= second.address


def test_section_groups_of_sources() -> None:
    source = (
        '.section .text.h,"axG",@progbits,h,comdat\n.weak h\nh: br $lr\n.text\n.globl {0}\n{0}: call $lr, h\n'
    )
    first, second = (
        ObjectFile.from_bytes(assemble(source.format(name)).to_bytes(), name=name) for name in ("f", "g")
    )
    assert [first.signature(group) for group in first.groups] == ["h"]
    image = link([first, second])
    assert sum(len(segment.data) for segment in image.segments) == 12
    assert image.symbols["h"] == image.symbols["f"] - 4 or image.symbols["h"] == image.symbols["f"] + 4


def test_stated_stack_sizes_stay_with_their_functions() -> None:
    source = ".globl f, g\nf: br $lr\n.section .text.g\ng: br $lr\n"
    sizes = ".section .stack_sizes\n.long f\n.uleb128 8\n.long g\n.uleb128 2080\n"
    item = ObjectFile.from_bytes(assemble(source + sizes).to_bytes())
    assert item.section(".stack_sizes").data[4:] == bytes([8, 0, 0, 0, 0, 0xA0, 0x10])
    whole = link([item])
    assert whole.stack_sizes == {"f": 8, "g": 2080}
    assert LinkedImage.from_elf(whole.to_elf()).stack_sizes == whole.stack_sizes
    assert link([item], roots=["g"]).stack_sizes == {"g": 2080}
    item.section(".stack_sizes").data += b"\1\2"
    with pytest.raises(ObjectError, match="cut off"):
        link([item])


def test_objects_of_the_older_generation() -> None:
    data = bytearray(assemble(".globl f\nf: br $lr\n").to_bytes())
    data[36] = 2
    item = ObjectFile.from_bytes(bytes(data), name="old.o")
    assert item.architecture == "ipu2" and item.to_bytes() == bytes(data)
    assert "old.o is made for ipu2" in "".join(link([item]).warnings)
