"""The one-line builders give the words of `encode` and refuse what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_cases import legal_value

from tilewright.ipu21.isa import OperandError, build, csrs, encode, form

pytestmark = pytest.mark.unit

FORM_OF: dict[str, tuple[Callable[..., object], str]] = {
    "setzi": (build.setzi, "setzi $mDst0, zimm20"),
    "add_imm": (build.add_imm, "add $mDst0, $mSrc0, simm16"),
    "or_": (build.or_, "or $mDst0, $mSrc0, $mSrc1"),
    "shl_imm": (build.shl_imm, "shl $mDst0, $mSrc0, zimm12"),
    "ld32": (build.ld32, "ld32 $mDst0, $mBase0, $mDelta0, zimm12"),
    "st32": (build.st32, "st32 $mSrc0, $mBase0, $mDelta0, zimm12"),
    "put": (build.put, "put zimm8, $mSrc0"),
    "get": (build.get, "get $mDst0, zimm8"),
    "call": (build.call, "call $mDst0, zimm20"),
    "br": (build.br, "br $mSrc0"),
    "bri": (build.bri, "bri zimm19"),
    "brz": (build.brz, "brz $mSrc0, zimm19"),
    "brnz": (build.brnz, "brnz $mSrc0, zimm19"),
    "brnzdec": (build.brnzdec, "brnzdec $mSrcDst0, zimm19"),
    "sync": (build.sync, "sync zimm4"),
    "sans": (build.sans, "sans zimm19"),
    "trap": (build.trap, "trap zimm4"),
    "runall": (build.runall, "runall $mEntry0, $mVBase0, zimm16"),
    "delay": (build.delay, "delay zimm19"),
    "delaypic": (build.delaypic, "delaypic count, picSel, picValue"),
    "delayxpic": (build.delayxpic, "delayxpic count, xpicSel, xpicValue"),
    "send": (build.send, "send count, srcWord, sctl"),
    "sendoff": (build.sendoff, "sendoff count, srcDelta, sctl"),
    "sendpicp": (build.sendpicp, "sendpicp count, srcWord, sctl, picSel"),
}


@pytest.mark.parametrize("name", FORM_OF)
@settings(max_examples=30)
@given(data=st.data())
def test_builder_agrees_with_encode(name: str, data: st.DataObject) -> None:
    builder, text = FORM_OF[name]
    operands = [data.draw(legal_value(operand)) for operand in form(text).operands]
    words = encode(text, *operands)
    assert builder(*operands) == (words if len(words) == 2 else words[0])


@pytest.mark.parametrize("name", FORM_OF)
def test_builder_limits(name: str) -> None:
    builder, text = FORM_OF[name]
    limits = form(text).operands
    for position, operand in enumerate(limits):
        legal = [other.maximum for other in limits]
        words = encode(text, *legal)
        assert builder(*legal) == (words if len(words) == 2 else words[0])
        illegal = [operand.minimum - operand.step, operand.maximum + operand.step]
        if operand.step > 1:
            illegal.append(operand.minimum + 1)
        for value in illegal:
            wrong = [*legal[:position], value, *legal[position + 1 :]]
            with pytest.raises(OperandError, match="does not fit"):
                builder(*wrong)


def test_mov_and_nop() -> None:
    for d in range(16):
        for s in range(16):
            assert build.mov(d, s) == encode("or $mDst0, $mSrc0, zimm12", d, s, 0)[0]
    for d, s in ((16, 0), (0, 16), (-1, 0), (0, -1)):
        with pytest.raises(OperandError):
            build.mov(d, s)
    assert build.nop() == 0x19E00000


def test_sendpic_value_width_depends_on_the_selector() -> None:
    text = "sendpic count, ctlSel, ctlValue"
    for select, limit in ((0, 1 << 13), (1, 1 << 13), (2, 1 << 18), (3, 1 << 18)):
        assert build.sendpic(63, select, limit - 1) == encode(text, 63, select, limit - 1)[0]
        for wrong in ((63, select, limit), (64, select, 0), (0, select, -1), (-1, select, 0)):
            with pytest.raises(OperandError):
                build.sendpic(*wrong)
    with pytest.raises(OperandError):
        build.sendpic(0, 4, 0)


def test_public_words() -> None:
    assert build.put(csrs.INCOMING_MUX, 8) == 0x438080A0
    assert build.call(10, 0x402DC) == 0x18A100B7
    assert build.add_imm(11, 11, -32) == 0x22BBFFE0
    assert build.runall(0, 15, 0) == 0x1500F000
    assert build.brnzdec(1, 0x400DC) == 0x13190037
