"""Conversions, classes, lateral sums and elementary functions against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import meaning_reference as reference
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.isa.meaning import convert, transcendental
from tilewright.ipu21.isa.meaning.bits import DIVIDE, INVALID, OVERFLOW, SINGLE_NAN, WORD, single_value
from tilewright.ipu21.isa.meaning.float16 import half_value

pytestmark = pytest.mark.unit

ALL = np.arange(65536, dtype=np.uint32).astype(np.uint16)
FINITE = ALL[(ALL & 0x7C00) != 0x7C00]
words = st.integers(0, WORD)
singles = st.floats(width=32, allow_nan=False).map(lambda value: reference.single_bits(np.float32(value)))


def test_every_half_widens() -> None:
    values = ALL.view(np.float16).astype(np.float32).view(np.uint32)
    nan = (ALL & 0x7FFF) > 0x7C00
    found = np.array([convert.f16tof32(int(half)) for half in ALL])
    np.testing.assert_array_equal(found[~nan], values[~nan])
    assert set(found[nan]) == {SINGLE_NAN}
    assert convert.f16v2tof32(0x3C00C000) == (0xC0000000, 0x3F800000)


@given(singles)
def test_narrowing_is_numpys(x: int) -> None:
    with np.errstate(over="ignore"):
        expected = np.float16(reference.single(x))
    found = convert.f32tof16(x, 0, 0)
    if np.isinf(expected) and np.isfinite(reference.single(x)):
        half = 0xFBFF if x >> 31 else 0x7BFF
        assert found >> 32 == OVERFLOW >> 32
    else:
        half = reference.half_bits(expected)
    assert found & WORD == half * 0x10001
    assert convert.f32v2tof16(x, 0, 0, 0, 0) & WORD == half
    low, high = convert.f32v4tof16(0, x, x, 0, 0, 0, 0, 0, 0)
    assert (low & WORD, high & WORD) == (half << 16, half)


@given(singles, st.sampled_from([0, 1, 2, 3]))
def test_rounding_to_an_integer(x: int, mode: int) -> None:
    value = reference.single(x)
    expected = (np.rint, np.ceil, np.floor, np.trunc)[mode](value)
    assert convert.f32int(x, mode) == reference.single_bits(expected)


@given(st.floats(-3e9, 5e9, width=32).map(np.float32), st.sampled_from([0, 1, 2, 3]))
def test_to_integers(value: np.float32, mode: int) -> None:
    x, control = reference.single_bits(value), mode << 16
    integer = int((np.rint, np.ceil, np.floor, np.trunc)[mode](value))
    signed, unsigned = convert.f32toi32(x, control), convert.f32toui32(x, control)
    clipped = min(max(integer, -(2**31)), 2**31 - 1)
    assert signed == clipped % 2**32 | (INVALID if clipped != integer else 0)
    clipped = min(max(integer, 0), 2**32 - 1)
    assert unsigned == clipped | (INVALID if clipped != integer else 0)


@given(words)
def test_from_integers(x: int) -> None:
    assert convert.f32fromui32(x, 0) == reference.single_bits(np.float32(np.uint32(x)))
    assert convert.f32fromi32(x, 0) == reference.single_bits(np.float32(np.uint32(x).view(np.int32)))


def test_published_class_numbers() -> None:
    quiet, signalling, minus_zero = 0x7E00, 0x7C01, 0x8000
    assert convert.f16v4class(quiet | signalling << 16, minus_zero | 0x3C00 << 16) & 0xFFFFFF == 0x050102
    assert convert.f32class(0x7FC00000) == 2
    assert convert.f32class(0x7F800001) == 1
    assert convert.f32class(0x80000000) == 5
    others = {convert.half_class(half) for half in (0, 0x7C00, 0xFC00, 0x3C00, 0xBC00, 1, 0x8001)}
    assert not others & {0, 1, 2, 5}


def test_lateral_sums_and_maxima() -> None:
    assert single_value(convert.f16v2sum(0x3C004000, 0)) == 3.0
    sums = [single_value(word) for word in convert.f16v4sum(0x3C004000, 0x44000001, 0)]
    assert sums == [3.0, float(np.float32(4.0 + 2.0**-24))]
    assert convert.f16v2maxc(0xC0003C00) == 0x3C003C00
    assert convert.f16v4maxc(0x3C00C000, 0x44004000) == 0x44004400


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


HALF_FUNCTIONS: list[tuple[Callable[[int, int, int], int], Callable[[np.ndarray], np.ndarray]]] = [
    (transcendental.f16_tanh, np.tanh),
    (transcendental.f16_exp, np.exp),
    (transcendental.f16_exp2, np.exp2),
    (transcendental.f16_ln, np.log),
    (transcendental.f16_log2, np.log2),
    (transcendental.f16_sigm, sigmoid),
]


@pytest.mark.parametrize(("function", "exact"), HALF_FUNCTIONS)
def test_every_half_through_elementary_functions(
    function: Callable[[int, int, int], int], exact: Callable[[np.ndarray], np.ndarray]
) -> None:
    halves = FINITE[::3]
    with np.errstate(all="ignore"):
        expected = exact(halves.view(np.float16).astype(np.float64)).astype(np.float16)
    expected = np.clip(expected, -65504, 65504)
    found = np.array([half_value(function(int(half), 0, 0) & 0xFFFF) for half in halves])
    infinite = np.isinf(found)
    np.testing.assert_array_equal(found[~infinite], expected.astype(np.float64)[~infinite])
    assert np.all(halves[infinite] & 0x7FFF == 0), "only the logarithm of zero is infinite"


SINGLE_FUNCTIONS: list[tuple[Callable[[int, int], int], Callable[[np.ndarray], np.ndarray]]] = [
    (transcendental.f32_tanh, np.tanh),
    (transcendental.f32_exp, np.exp),
    (transcendental.f32_exp2, np.exp2),
    (transcendental.f32_ln, np.log),
    (transcendental.f32_log2, np.log2),
    (transcendental.f32_sigm, sigmoid),
    (transcendental.f32_sqrt, np.sqrt),
    (transcendental.f32_oox, lambda x: 1 / x),
    (transcendental.f32_oorx, lambda x: 1 / np.sqrt(x)),
]


@pytest.mark.parametrize(("function", "exact"), SINGLE_FUNCTIONS)
def test_elementary_functions_of_singles(
    function: Callable[[int, int], int], exact: Callable[[np.ndarray], np.ndarray]
) -> None:
    values = np.random.default_rng(1).normal(0, 10, 2000).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = exact(values.astype(np.float64)).astype(np.float32)
    found = np.array([single_value(function(reference.single_bits(value), 0) & WORD) for value in values])
    np.testing.assert_array_equal(found, expected.astype(np.float64))


def test_poles_and_domains() -> None:
    assert transcendental.f32_exp(0, 0) == 0x3F800000
    assert transcendental.f16_exp(0x8000, 0, 0) == 0x3C00
    assert transcendental.f32_ln(0, 0) == 0xFF800000 | DIVIDE
    assert transcendental.f32_log2(0xBF800000, 0) == SINGLE_NAN | INVALID
    assert transcendental.f32_oox(0x80000000, 0) == 0xFF800000 | DIVIDE
    assert transcendental.f32_oorx(0xBF800000, 0) == SINGLE_NAN | INVALID
    assert transcendental.f32_sqrt(0x80000000, 0) == 0x80000000
    assert transcendental.f32_exp(0x7F800000, 0) == 0x7F800000
    assert transcendental.f32_exp(0xFF800000, 0) == 0
    assert transcendental.f32_exp(0x47000000, 0) == 0x7F800000 | OVERFLOW
