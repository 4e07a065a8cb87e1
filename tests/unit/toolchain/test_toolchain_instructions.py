"""Every instruction form through its text, aliases with known words, and values that do not fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.isa import FORMS, Form, decode, encode, format_instruction
from tilewright.ipu21.toolchain import AssemblyFaults, assemble

pytestmark = pytest.mark.unit

Words = Callable[[str], list[int]]
Faults = Callable[[str], AssemblyFaults]


@st.composite
def instructions(draw: st.DrawFn, form: Form) -> tuple[int, ...]:
    """Operands of a form that the assembler accepts too."""
    operands = []
    for operand in form.operands:
        step = operand.step
        value = draw(st.integers(operand.minimum // step, operand.maximum // step)) * step
        if operand.kind == "word_address":
            value &= (1 << 21) - 1
        operands.append(value)
    if form.mnemonic == "ld2x64pace" and operands[0] == operands[1]:
        operands[1] = (operands[0] + 2) % 16
    return tuple(operands)


# An rpt needs a body behind it; test_toolchain_repeat.py has those.
@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.mnemonic != "rpt"], ids=lambda form: form.text
)
def test_every_form_assembles_to_its_encoding(form: Form) -> None:
    @given(st.data())
    def check(data: st.DataObject) -> None:
        operands = data.draw(instructions(form))
        expected = encode(form, *operands)
        text = format_instruction(decode(*expected))
        section = assemble(text).section(".text")
        assert section.data == b"".join(word.to_bytes(4, "little") for word in expected), text

    # A few examples of each of the 368 forms; the encoder's own tests go deeper.
    from hypothesis import settings

    settings(max_examples=6)(check)()


KNOWN_WORDS = [
    ("nop", 0x19E00000),
    ("fnop", 0x1AD00000),
    ("zero $m8", 0x44F0F381),
    ("mov $m1, $m2", 0x42219000),
    ("mov $a1, $a2", 0x52219000),
    ("mov $m15, $a14", 0x5D0F00E0),
    ("movnz $m15, $m11, $m10", 0x47BAFA00),
    ("add $m0, $m0, 42", 0x2200002A),
    ("addz $m0, $m0, 42", 0x2000002A),
    ("adds $m0, $m0, 42", 0x2200002A),
    ("add $m0, $m0, 65432", 0x2000FF98),
    ("add $m0, $m0, -42", 0x2200FFD6),
    ("sub $m0, $m0, 42", 0x2200FFD6),
    ("sub $m0, $m0, -40000", 0x20009C40),
    ("sub $m0, 42, $m0", 0x3900002A),
    ("subz $m0, 42, $m0", 0x3700002A),
    ("sub $m3, $m5, $m4", 0x44405632),
    ("cmpeq $m0, $m0, 65432", 0x2600FF98),
    ("or $m4, $m4, 0xf00000", 0x4244C00F),
    ("or $m4, $m4, 0xc0000000", 0x4244CC00),
    ("or $m4, $m4, -0x40000000", 0x4244CC00),
    ("or $m5, $m5, 2", 0x42559002),
    ("setzi $m2, 0x3f", 0x1920003F),
    ("get $a15, 0", 0x510F0800),
    ("put 0, $a15", 0x51F08000),
    ("uput $FP_CLR, $a15", 0x51F08001),
    ("uput 0x101, $a15", 0x51F08001),
    ("uput FP_CLR, $a15", 0x51F08001),
    ("put $TAS, $a0", 0x51008008),
    ("put $INCOMING_MUX, $m2", 0x432080A0),
    ("put INCOMING_MUX, $m2", 0x432080A0),
    ("get $m0, $TILE_ID", 0x41000003),
    ("sync TEXCH_SYNCZONE_LOCAL", 0x41800002),
    ("ld32 $m8, $m11, 1", 0x01B8F001),
    ("st32 $m2, $sp, 0", 0x4FB2F000),
    ("st64 $a0:1, $m2, 0", 0x5F20F000),
    ("st64 $a0 : 1, $m2, $mzero, 0", 0x5F20F000),
    ("ld128 $aq1, $m0, $m0, $m0", 0x4D000845),
    ("ld64step $azeros, $mzero, $m11+=, $m11", 0x47FBB2E1),
    ("swap16 $m1, $m2", encode("roll16 $mDst0, $mSrc0, $mSrc1", 1, 2, 2)[0]),
    ("f32v2add $a0:1, $azeros, $azeros", 0x58E0E003),
    ("f32v2mul $a14:15, $a15:BL, $a12:13", 0x58F8C3E3),
    ("sort4x16hi $a15, $a15:B, $a14", 0x58F8E6F8),
    ("bri 0x42000", 0x40810800),
    ("call $lr, 0x402dc", 0x18A100B7),
    ("run $m0, $m0, 4660", 0x14010234),
    ("br $lr", 0x43A00000),
    ("trap 0", 0x41801000),
    ("delaypic 48, 0, 0x14000", 0x61814000),
    ("add, $m0, $m0, 42", 0x2200002A),
    ("ld32 $a0, $m0, $azero, $m1", 0x4D01F800),
]


@pytest.mark.parametrize(("text", "word"), KNOWN_WORDS)
def test_known_words(words: Words, text: str, word: int) -> None:
    assert words(text) == [word]


def test_load_constants(words: Words) -> None:
    assert words("ldconst $m0, 0xfffff") == [0x190FFFFF]
    assert words("ldconst $m0, 0") == [0x19000000]
    assert words("ldconst $m4, 0x3f800000") == words("or $m4, $mzero, 0x3f800000")
    assert words("ldconst $a4, -1") == words("setzi $a4, 0xfffff; or $a4, $a4, 0xfff00000")
    assert words("ldconst $m1, 0x12345678") == words("setzi $m1, 0x45678; or $m1, $m1, 0x12300000")


def test_load_constant_in_a_bundle(words: Words, faults: Faults) -> None:
    assert words("{ ldconst $m0, 5 ; fnop }") == words("{ setzi $m0, 5 ; fnop }")
    assert "has 3" in str(faults("{ ldconst $m0, 0x12345678 ; fnop }"))


def test_choice_between_immediates_waits_for_forward_values(words: Words) -> None:
    assert words(".set early, 65432\nadd $m0, $m0, early") == [0x2000FF98]
    assert words("add $m0, $m0, late\n.set late, 65432") == [0x2000FF98]
    assert words("add $m0, $m0, late\n.set late, 42") == [0x2200002A]
    assert words("or $m4, $m4, late\n.set late, 0xf00000") == [0x4244C00F]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("addd $m0, $m0, 1", "no instruction", "add"),
        ("f16v8topk $a0", "no public encoding", None),
        ("add $m0, $m0, 65536", "65536", "-32768 to 32767 or 0 to 65535"),
        ("sub $m0, $m0, 65536", "65536", None),
        ("setzi $m0, 0x100000", "1048576", "0 to 1048575"),
        ("setzi $m0, -1", "-1 does not fit", None),
        ("bri 6", "does not fit", "steps of 0x4"),
        ("or $m0, $m0, 0x1001", "does not fit", None),
        ("ld64 $a1:2, $m0, 0", "no register pair", "even"),
        ("ld64 $a0, $m0, 0", "cannot have these operands", "$a:pair"),
        ("add $m0, $a0, 1", "cannot have these operands", None),
        ("add $m0", "cannot have these operands", None),
        ("add $m0 $m1", "expected `,`", None),
        ("add $m0, $m99", "there is no register", None),
        ("ld32step $m0, $m0, $m15+=, 1", "cannot stand here", "$m15"),
        ("ld2x64pace $azeros, $azeros, $m0:1+=, $m2, 0", "same registers", "$a8:9"),
        ("get $m0, $FP_CLR", "$a register", "uget"),
        ("ldconst $m0, 0x100000000", "32 bits", None),
        ("ldconst $m0", "takes a register and a value", None),
        ("call $m0, sym + other", "needs numbers", None),
        ("mul $m0, $m0, sym", "only after linking", "sign-extended"),
        ("shl $m0, $m0, sym", "only after linking", None),
        ("setzi $m0, sym@nonsense", "no relocation", "@21"),
        ("setzi $m0, sym@16", "does not fill", None),
        ("add $m0, $m0, @", "unexpected", None),
        ("add $m0, $m0, 1 ?", "expected `,`", None),
        ("add $m0, $m0, \\x", "unexpected character", None),
    ],
)
def test_faults(faults: Faults, text: str, message: str, hint: str | None) -> None:
    diagnostic = faults(text).diagnostics[0]
    if message == "unexpected":
        assert "expected an expression" in diagnostic.message
    else:
        assert message in diagnostic.message
    if hint is not None:
        assert diagnostic.hint is not None and hint in diagnostic.hint


def test_modes(words: Words, faults: Faults) -> None:
    assert words(".supervisor\nsync 3") == [0x41800003]
    assert "supervisor only" in str(faults(".worker\nsync 3"))
    assert "worker only" in str(faults(".supervisor\nf32add $a0, $a1, $a2"))
    assert "worker only" in str(faults(".supervisor\nld64 $a0:1, $m0, 0"))
    assert "cannot issue bundles" in str(faults(".supervisor\n{ nop ; fnop }"))
    # Without a directive both are taken: the mode is not part of an object.
    assert len(words("sync 3\nf32add $a0, $a1, $a2")) == 2


def test_two_words_need_alignment(words: Words, faults: Faults) -> None:
    text = "sendpicp 42, 0x14021, 1, 0, 0, 1600, 0x15000"
    assert words(text)[0] == 0xF54A0109
    assert assemble(text).section(".text").alignment == 8
    assert "8-byte aligned" in str(faults("nop\n" + text))


def test_code_needs_an_executable_section(faults: Faults) -> None:
    assert "not executable" in str(faults(".data\nnop"))
    assert "4-byte aligned" in str(faults(".byte 1\nnop"))
