"""Disassembly assembles back to the same bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import ObjectError
from tilewright.ipu21.isa import FORMS, encode
from tilewright.ipu21.toolchain import ObjectFile, assemble, disassemble, link

pytestmark = pytest.mark.unit

SOURCE = """
.section .text.kernel,"ax",@progbits
.globl kernel
.type kernel,@function
.supervisor
kernel:
    setzi $m4, .Lworker
    runall $m4, $m11, 0
    put $INCOMING_MUX, $m5
    sync TEXCH_SYNCZONE_LOCAL
    add $m0, $m0, table
    bri 1f
1:  brnzdec $m3, kernel
    call $lr, external
    br $lr
.size kernel, .-kernel
.worker
.allow_optimizations
.Lworker:
    ld32 $m2, $mvertex_base, 0
    or $a0, $azero, 0x3f800000
    rpt $m2, 1
    { ld64step $a0:1, $mzero, $m3+=, 1 ; f16v4add $a2:3, $a0:1, $a4:5 }
    { setzi $m1, table ; fnop }
    uput $FP_CLR, $azero
    exitz $mzero
    .byte 1, 2, 3
.data
.align 8
table: .long kernel, .Lworker+4, 5
    .short external@16@s3
    .ascii "text"
    .space 100
    .quad table+8
.rodata
x: .byte 0
.bss
.align 4
buffer: .space 64
tail:
.set k, 77
.globl k
.weak perhaps
.long 0
"""


def content(item: ObjectFile) -> list[tuple[str, bytes, int, int]]:
    return [(s.name, s.data, s.size, s.alignment) for s in item.sections]


def shown_relocations(item: ObjectFile) -> list[tuple[str, int, int, str, int]]:
    """Relocations with what they mean: a symbol's own section and offset unless it is undefined."""
    result = []
    for section in item.sections:
        for entry in section.relocations:
            symbol = item.symbols[entry.symbol]
            home = symbol.name if symbol.section is None else item.sections[symbol.section].name
            result.append((section.name, entry.offset, entry.type, home, symbol.value + entry.addend))
    return result


def test_object_assembles_back() -> None:
    item = assemble(SOURCE)
    text = disassemble(item)
    again = assemble(text)
    assert content(again) == content(item)
    assert shown_relocations(again) == shown_relocations(item)
    # Globals keep their names and attributes.
    assert [s for s in again.symbols if s.binding != "local"] == [
        s for s in item.symbols if s.binding != "local"
    ]
    assert disassemble(again) == disassemble(assemble(disassemble(again)))


def test_object_text_is_symbolic() -> None:
    text = disassemble(assemble(SOURCE))
    assert "call $m10, external" in text
    assert "brnzdec $m3, kernel" in text
    assert "add $m0, $m0, table" in text
    assert ".short external@16@s3" in text
    assert "{ ld64step $a0:1, $m15, $m3+=, 1 ; f16v4add $a2:3, $a0:1, $a4:5 }" in text
    assert "sync TEXCH_SYNCZONE_LOCAL" in text


def test_image_assembles_back() -> None:
    source = SOURCE.replace("add $m0, $m0, table", "")  # no tile address fits 16 bits
    image = link([assemble(source)], externals={"external": 0x4D000})
    again = assemble(disassemble(image))
    assert [section.data for section in again.sections] == [segment.data for segment in image.segments]
    assert "call $m10, external" in disassemble(image)


def test_image_at_an_odd_word_still_assembles_back() -> None:
    """The text's sections start 8-aligned, so an rpt that relies on another start is shown as data."""
    source = ".rodata\n.long 1\n.text\nnop\nrpt $m2, 0\n{ nop ; fnop }\n"
    for start in (0x4C010, 0x4C014):
        image = link([assemble(source)], intervals=[(start, 0x50000)])
        again = assemble(disassemble(image))
        assert [section.data for section in again.sections] == [segment.data for segment in image.segments]


def test_raw_code_names_its_branch_targets() -> None:
    code = b"".join(word.to_bytes(4, "little") for word in (0x19E00000, 0x40813004, 0x43A00000))
    text = disassemble(code, address=0x4C00C)
    assert "bri .L4c010" in text
    assert assemble(text).section(".text").data == code


def test_raw_code_is_whole_words() -> None:
    with pytest.raises(ObjectError, match="whole number of words"):
        disassemble(b"abc")


def test_foreign_symbol_names() -> None:
    item = assemble(".globl f\nf: bri f\nl: bri l")
    from dataclasses import replace

    item.symbols = [
        replace(symbol, name=f"strange name<{index}>") for index, symbol in enumerate(item.symbols)
    ]
    again = assemble(disassemble(item))
    assert content(again) == content(item)
    assert shown_relocations(again) == shown_relocations(item)


@st.composite
def code(draw: st.DrawFn) -> bytes:
    """Words of every kind: instructions, bundles, repeats with good and bad bodies, and noise."""
    words: list[int] = []
    forms = st.sampled_from(FORMS)

    def operands(index: int) -> list[int]:
        return [
            draw(st.integers(operand.minimum // operand.step, operand.maximum // operand.step)) * operand.step
            for operand in FORMS[index].operands
        ]

    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["instruction", "bundle", "repeat", "noise"]))
        if kind == "noise":
            words.append(draw(st.integers(0, 0xFFFFFFFF)))
            continue
        if kind == "repeat":
            words.append(encode("rpt $mSrc0, zimm8", 3, draw(st.integers(0, 2)))[0])
            kind = "bundle"
        if kind == "bundle":
            for pipeline in ("main", "aux"):
                form = draw(
                    forms.filter(lambda item, wanted=pipeline: item.coissue and item.pipeline == wanted)
                )
                words += encode(form, *operands(form.index), coissue=True)
        else:
            form = draw(forms)
            words += encode(form, *operands(form.index))
    return b"".join(word.to_bytes(4, "little") for word in words)


@given(code=code(), address=st.sampled_from([0, 0x4C010, 0x4C014, 0x50000]))
def test_any_words_assemble_back(code: bytes, address: int) -> None:
    text = disassemble(code, address=address)
    assert assemble(text).section(".text").data == code, text


@given(data=st.binary(max_size=200).map(lambda blob: blob[: len(blob) // 4 * 4]))
def test_noise_assembles_back(data: bytes) -> None:
    item = assemble(disassemble(data))
    assert (item.section(".text").data if data else b"") == data
