"""Integer and lane instructions against models over Python integers and NumPy lanes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.isa.meaning import integer, lanes

pytestmark = pytest.mark.unit

words = st.one_of(
    st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF])
)


def signed(word: int) -> int:
    return int(np.uint32(word).view(np.int32))


def unsigned(value: int) -> int:
    return value % 2**32


@given(words, words)
def test_arithmetic_wraps(a: int, b: int) -> None:
    assert integer.add(a, b) == unsigned(a + b)
    assert integer.sub(a, b) == unsigned(a - b)
    assert integer.mul(a, b) == unsigned(a * b)
    assert integer.absolute(a) == (0 if a == 0x80000000 else abs(signed(a)))
    assert integer.maximum(a, b) == unsigned(max(signed(a), signed(b)))
    assert integer.minimum(a, b) == unsigned(min(signed(a), signed(b)))


@given(words, words)
def test_comparisons(a: int, b: int) -> None:
    assert integer.cmpeq(a, b) == (a == b)
    assert integer.cmpne(a, b) == (a != b)
    assert integer.cmpult(a, b) == (a < b)
    assert integer.cmpslt(a, b) == (signed(a) < signed(b))


@given(words, words)
def test_bitwise(a: int, b: int) -> None:
    assert integer.bitwise_and(a, b) == a & b
    assert integer.bitwise_or(a, b) == a | b
    assert integer.and_complement(a, b) == a & unsigned(~b)
    assert integer.bitwise_not(a) == unsigned(~a)
    assert integer.xor(a, b) == a ^ b
    assert integer.xnor(a, b) == unsigned(~(a ^ b))


@given(words, st.integers(0, 31))
def test_shifts(a: int, amount: int) -> None:
    assert integer.shl(a, amount) == unsigned(a << amount)
    assert integer.shr(a, amount) == a >> amount
    assert integer.shrs(a, amount) == unsigned(signed(a) >> amount)


@pytest.mark.parametrize("amount", [32, 33, 64, 0xFFFFFFFF])
def test_shift_by_the_whole_width_leaves_nothing(amount: int) -> None:
    assert integer.shl(0xFFFFFFFF, amount) == 0
    assert integer.shr(0xFFFFFFFF, amount) == 0
    assert integer.shrs(0x80000000, amount) == 0xFFFFFFFF
    assert integer.shrs(0x7FFFFFFF, amount) == 0


@given(words)
def test_bit_counts(a: int) -> None:
    text = f"{a:032b}"
    assert integer.clz(a) == len(text) - len(text.lstrip("0"))
    assert integer.popc(a) == text.count("1")
    assert integer.cms(a) == len(text) - len(text.lstrip(text[0])) - 1
    reversed_bytes = "".join(text[start : start + 8][::-1] for start in range(0, 32, 8))
    assert integer.bitrev8(a) == int(reversed_bytes, 2)


@given(words, words, words)
def test_movnz_moves_unless_zero(old: int, condition: int, value: int) -> None:
    assert integer.movnz(old, condition, value) == (value if condition != 0 else old)
    assert integer.movnz(old, 0, value) == old


def lanes8(word: int) -> list[int]:
    return list(word.to_bytes(4, "little"))


def lanes16(word: int) -> list[int]:
    return [word & 0xFFFF, word >> 16]


@given(words, words)
def test_16_bit_permutes(a: int, b: int) -> None:
    s, t = lanes16(a), lanes16(b)
    assert lanes16(lanes.sort4x16lo(a, b)) == [s[0], t[0]]
    assert lanes16(lanes.sort4x16hi(a, b)) == [s[1], t[1]]
    assert lanes16(lanes.roll16(a, b)) == [s[1], t[0]]


@given(words, words)
def test_8_bit_permutes(a: int, b: int) -> None:
    s, t = lanes8(a), lanes8(b)
    assert lanes8(lanes.shuf8x8lo(a, b)) == [s[0], t[0], s[1], t[1]]
    assert lanes8(lanes.shuf8x8hi(a, b)) == [s[2], t[2], s[3], t[3]]
    assert lanes8(lanes.sort8x8lo(a, b)) == [s[0], s[2], t[0], t[2]]
    assert lanes8(lanes.sort8x8hi(a, b)) == [s[1], s[3], t[1], t[3]]
    assert lanes8(lanes.sort8(a)) == [s[0], s[2], s[1], s[3]]
    assert lanes8(lanes.swap8(a)) == [s[1], s[0], s[3], s[2]]
    assert lanes8(lanes.roll8r(a, b)) == [s[1], s[2], s[3], t[0]]
    assert lanes8(lanes.roll8l(a, b)) == [s[3], t[0], t[1], t[2]]


def test_32_bit_permutes() -> None:
    assert lanes.sort4x32lo(1, 2, 3, 4) == (1, 3)
    assert lanes.sort4x32hi(1, 2, 3, 4) == (2, 4)
    assert lanes.roll32(1, 2, 3, 4) == (2, 3)
