"""Words and operands round-trip; nothing illegal passes either way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_cases import extremes, illegal_value, instructions, legal_value

from tilewright.ipu21.isa import (
    FORMS,
    Form,
    InvalidInstruction,
    OperandError,
    decode,
    decode_index,
    encode,
    form,
    is_provisional,
    provisional_mask,
)

pytestmark = pytest.mark.unit

NAMES = [item.text.replace(" ", "_") for item in FORMS]


@pytest.mark.parametrize("item", FORMS, ids=NAMES)
def test_every_form_round_trips(item: Form) -> None:
    generator = np.random.default_rng(item.index)
    cases = extremes(item)
    for _ in range(20):
        cases.append(
            tuple(
                int(generator.integers(operand.minimum // operand.step, operand.maximum // operand.step + 1))
                * operand.step
                for operand in item.operands
            )
        )
    for operands in cases:
        for coissue in (False, True) if item.coissue else (False,):
            words = encode(item, *operands, coissue=coissue)
            assert len(words) == item.words
            instruction = decode(*words)
            assert (instruction.form, instruction.operands, instruction.coissue) == (item, operands, coissue)
            assert decode_index(np.array(words[:1], dtype=np.uint32))[0] == item.index


@settings(max_examples=500)
@given(instructions())
def test_round_trip(case: tuple[Form, tuple[int, ...], bool]) -> None:
    item, operands, coissue = case
    instruction = decode(*encode(item, *operands, coissue=coissue))
    assert (instruction.form, instruction.operands, instruction.coissue) == (item, operands, coissue)


@settings(max_examples=500)
@given(st.data())
def test_operands_that_do_not_fit_are_refused(data: st.DataObject) -> None:
    item = data.draw(st.sampled_from([item for item in FORMS if item.operands]))
    position = data.draw(st.integers(0, len(item.operands) - 1))
    operands = [data.draw(legal_value(operand)) for operand in item.operands]
    operands[position] = data.draw(illegal_value(item.operands[position]))
    with pytest.raises(OperandError) as caught:
        encode(item, *operands)
    assert item.operands[position].name in str(caught.value)


@pytest.mark.parametrize("item", FORMS, ids=NAMES)
def test_just_past_the_limits_is_refused(item: Form) -> None:
    for position, operand in enumerate(item.operands):
        for value in (operand.minimum - operand.step, operand.maximum + operand.step):
            operands = [other.minimum for other in item.operands]
            operands[position] = value
            with pytest.raises(OperandError):
                encode(item, *operands)


@settings(max_examples=1000)
@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 0xFFFFFFFF))
def test_any_word_decodes_to_one_form_or_is_refused(word: int, following: int) -> None:
    matching = [item for item in FORMS if word & item.mask == item.fixed]
    assert len(matching) <= 1
    try:
        instruction = decode(word, following)
    except InvalidInstruction:
        # Either no form has this opcode, or a register the instruction updates is $m15.
        assert all(
            any(not operand.accepts(operand.extract(word)) for operand in item.operands if not operand.word)
            for item in matching
        )
        return
    assert [instruction.form] == matching
    words = encode(instruction.form, *instruction.operands, coissue=instruction.coissue)
    assert words == (word, following)[: len(words)]


def test_bulk_decoding_agrees_with_single_decoding() -> None:
    generator = np.random.default_rng(7)
    words = generator.integers(0, 1 << 32, 20000, dtype=np.uint32)
    # Random words rarely hit $m15 in an updated register; these do.
    step = form("ld32step $mDst0, $mBase0, $mDelta0+=, simm8").fixed
    words = np.concatenate([words, np.arange(step, step + (1 << 16), 16, dtype=np.uint32)])
    indices = decode_index(words)
    assert indices.dtype == np.int16
    for word, index in zip(words.tolist(), indices.tolist(), strict=True):
        try:
            expected = decode(word).form.index
        except InvalidInstruction:
            expected = -1
        assert index == expected
    assert 0 < np.count_nonzero(indices < 0) < words.size


def test_bulk_decoding_keeps_the_shape() -> None:
    assert decode_index(np.zeros((0,), dtype=np.uint32)).shape == (0,)
    assert decode_index(np.full((3, 5), 0x19E00000, dtype=np.uint32)).tolist() == [[65] * 5] * 3
    assert decode_index(np.full((8, 8), 0x19E00000, dtype=np.uint32)[::2, 1::3]).shape == (4, 3)


def test_bit_31_is_a_bundle_or_sendpicp() -> None:
    assert decode(0xC4203011).coissue
    assert decode(0x44203011).form is decode(0xC4203011).form
    picp = decode(0xF54A0109, 0x19015000)
    assert picp.form.mnemonic == "sendpicp"
    assert not picp.coissue
    assert picp.operands == (42, 0x14021, 1, 0, 0, 0x640, 0x15000)
    with pytest.raises(OperandError):
        encode("exitz $mSrc0", 15, coissue=True)
    with pytest.raises(InvalidInstruction):
        decode(encode("exitz $mSrc0", 15)[0] | 0x80000000)


def test_split_and_scaled_operands() -> None:
    assert encode("run $mEntry0, $mVBase0, zimm16", 0, 0, 61680) == (0x140F00F0,)
    assert encode("st32 $aSrc0, $mBase0, $mDelta0, zimm12", 0, 0, 15, 0xABC) == (0x5E0BFA0C,)
    assert encode("bri zimm19", 0x1FFFFC) == (0x4087FFFF,)
    assert encode("or $mDst0, $mSrc0, immz12", 4, 4, 0xF00000) == (0x4244C00F,)
    with pytest.raises(OperandError, match="multiples of 0x4"):
        encode("bri zimm19", 6)
    with pytest.raises(OperandError, match="pair is a multiple of 2"):
        encode("urand64 $aDst0:Dst0+1", 3)
    with pytest.raises(OperandError, match="cannot be \\$m15"):
        encode("st32step $mSrc0, $mBase0, $mDelta0+=, simm8", 0, 0, 15, 1)


def test_wrong_use_is_refused() -> None:
    with pytest.raises(OperandError, match="no instruction form"):
        encode("frobnicate", 1)
    with pytest.raises(OperandError, match="takes 2 operands, not 1"):
        encode("setzi $mDst0, zimm20", 1)
    for word in (-1, 1 << 32):
        with pytest.raises(InvalidInstruction):
            decode(word)


def test_provisional_words() -> None:
    amp = encode("f8v8hihov4amp $aDst0:Dst0+1, $aSrc0:Src0+1, $aSrc1:Src1+1, enumFlags", 0, 2, 4, 0)[0]
    p0 = encode("f16v4stacc $aDst0:Dst0+1, enumFlags", 0, 0)[0]
    p1 = encode("f16v4stacc $aDst0:Dst0+1, enumFlags", 0, 1)[0]
    plain, invalid = 0x19E00000, 0xFFFF
    assert is_provisional(amp)
    assert is_provisional(p1)
    assert not any(is_provisional(word) for word in (p0, plain, invalid))
    assert is_provisional(amp | 0x80000000)
    words = np.array([[amp, p0], [p1, plain]], dtype=np.uint32)
    assert provisional_mask(words).tolist() == [[True, False], [True, False]]
