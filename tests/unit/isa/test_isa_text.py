"""Printed instructions read back to the same word, and look as the vendor writes them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from isa_cases import extremes, instructions, read_text

from tilewright.ipu21.isa import FORMS, Form, decode, encode, format_instruction

pytestmark = pytest.mark.unit


def text_of(form: str, *operands: int) -> str:
    return format_instruction(decode(*encode(form, *operands)))


@pytest.mark.parametrize("item", FORMS, ids=lambda item: item.text.replace(" ", "_"))
def test_text_of_every_form_reads_back(item: Form) -> None:
    for operands in extremes(item):
        words = encode(item, *operands)
        for mode in (None, "supervisor", "worker"):
            assert read_text(format_instruction(decode(*words), mode=mode)) == words


@settings(max_examples=500)
@given(instructions())
def test_text_reads_back(case: tuple[Form, tuple[int, ...], bool]) -> None:
    item, operands, _ = case
    words = encode(item, *operands)
    assert read_text(format_instruction(decode(*words))) == words


@pytest.mark.parametrize(
    ("form", "operands", "text"),
    [
        (
            "ld64step $aDst0:Dst0+1, $mBase0, $mDelta0+=, simm8",
            (0, 15, 2, 3),
            "ld64step $a0:1, $m15, $m2+=, 3",
        ),
        (
            "f16v4hihov4amp $aDst0:Dst0+1, $aSrc0:Src0+1, $aSrc1:Src1+1, enumFlags",
            (0, 2, 4, 0),
            "f16v4hihov4amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P0",
        ),
        (
            "f16v4hihov4amp $aDst0:Dst0+1, $aSrc0:Src0+1, $aSrc1:Src1+1, enumFlags",
            (0, 2, 4, 63),
            "f16v4hihov4amp $a0:1, $a2:3, $a4:5, 63",
        ),
        ("f16v2add $aDst0, $aSrc0:BU, $aSrc1", (1, 2, 3), "f16v2add $a1, $a2:BU, $a3"),
        ("ldd16a32 $aDst0, $mAddr0++, $mBase0, $mDelta0@", (0, 1, 2, 3), "ldd16a32 $a0, $m1++, $m2, $m3@"),
        ("setzi $mDst0, zimm20", (14, 0), "nop"),
        ("setzi $mDst0, zimm20", (14, 1), "setzi $m14, 1"),
        ("setzi $aDst0, zimm20", (13, 0), "fnop"),
        ("setzi $mDst0, zimm20", (0, 0x4C000), "setzi $m0, 0x4c000"),
        ("or $mDst0, $mSrc0, zimm12", (1, 2, 0), "mov $m1, $m2"),
        ("or $mDst0, $mSrc0, immz12", (1, 2, 0), "orhi $m1, $m2, 0"),
        ("or $mDst0, $mSrc0, immz12", (1, 2, 1 << 20), "or $m1, $m2, 0x100000"),
        ("or64 $aDst0:Dst0+1, $aSrc0:Src0+1, $aSrc1:Src1+1", (2, 4, 14), "mov $a2:3, $a4:5"),
        ("or64 $aDst0:Dst0+1, $aSrc0:Src0+1, $aSrc1:Src1+1", (2, 14, 14), "zero $a2:3"),
        ("add $mDst0, $mSrc0, simm16", (0, 0, -42), "add $m0, $m0, -42"),
        ("add $mDst0, $mSrc0, zimm16", (0, 0, 42), "addz $m0, $m0, 42"),
        ("add $mDst0, $mSrc0, zimm16", (0, 0, 0x8000), "add $m0, $m0, 32768"),
        ("movz $mSrcDst0, $mSrc0, $mSrc1", (1, 2, 3), "movnz $m1, $m2, $m3"),
        ("f32int $aDst0, $aSrc1, enumRnd", (1, 2, 3), "f32int $a1, $a2, TFPU_ROUND_ZERO"),
        ("sync zimm4", (2,), "sync TEXCH_SYNCZONE_LOCAL"),
        ("sync zimm4", (9,), "sync 9"),
        ("brnz $mSrc0, zimm19", (3, 0x4C0F0), "brnz $m3, 0x4c0f0"),
    ],
)
def test_text(form: str, operands: tuple[int, ...], text: str) -> None:
    assert text_of(form, *operands) == text


def test_control_registers_are_named_when_the_name_is_certain() -> None:
    tile_id = decode(*encode("get $mDst0, zimm8", 0, 3))
    assert format_instruction(tile_id) == "get $m0, 3"
    assert format_instruction(tile_id, mode="supervisor") == "get $m0, $TILE_ID"
    assert format_instruction(tile_id, mode="worker") == "get $m0, $WORKER_BASE"
    assert text_of("put zimm8, $mSrc0", 160, 2) == "put $INCOMING_MUX, $m2"
    assert text_of("uput zimm8, $aSrc0", 1, 2) == "uput $FP_CLR, $a2"
    assert text_of("uput zimm8, $aSrc0", 200, 2) == "uput 200, $a2"


def test_branch_targets_can_be_symbols() -> None:
    branch = decode(*encode("call $mDst0, zimm20", 10, 0x50000))
    assert format_instruction(branch, symbolic=lambda address: f"at_{address:x}") == "call $m10, at_50000"
