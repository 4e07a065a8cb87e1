"""Half precision against NumPy (nearest) and exact fractions (directed modes); exhaustive where cheap."""

from __future__ import annotations

from fractions import Fraction

import meaning_reference as reference
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.isa.meaning import float16
from tilewright.ipu21.isa.meaning.bits import HALF_NAN, INVALID, OVERFLOW
from tilewright.ipu21.isa.meaning.float16 import ESR, NANOO, half_value, round_half

pytestmark = pytest.mark.unit

ALL = np.arange(65536, dtype=np.uint32).astype(np.uint16)
EDGES = [0, 0x8000, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x7E00]
bits = st.one_of(st.integers(0, 0xFFFF), st.sampled_from(EDGES))
finite = bits.filter(lambda half: half & 0x7C00 != 0x7C00)


def test_every_half_widens_to_numpys_value() -> None:
    found = np.array([half_value(int(half)) for half in ALL])
    np.testing.assert_array_equal(found, ALL.view(np.float16).astype(np.float64))


def test_every_half_rounds_to_itself_in_every_mode() -> None:
    finite_halves = ALL[(ALL & 0x7C00) != 0x7C00]
    for control in (0, reference.UP, reference.DOWN, reference.ZERO, ESR):
        assert all(round_half(half_value(int(half)), control, 0xFFFF) == half for half in finite_halves)


def test_midpoints_of_all_neighbours_round_to_even() -> None:
    lower = ALL[ALL < 0x7BFF].view(np.float16).astype(np.float64)
    upper = ALL[1:0x7C00].view(np.float16).astype(np.float64)
    with np.errstate(over="ignore"):
        for fraction in (0.25, 0.5, 0.75):
            values = lower + (upper - lower) * fraction
            found = np.array([round_half(float(value), 0, 0) for value in values], dtype=np.uint16)
            np.testing.assert_array_equal(found, values.astype(np.float16).view(np.uint16))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_any_double(value: float) -> None:
    result = round_half(value, 0, 0)
    with np.errstate(over="ignore"):
        expected = np.float16(value)
    if np.isinf(expected):
        assert result == (0xFBFF if value < 0 else 0x7BFF) | OVERFLOW
        assert round_half(value, NANOO, 0) == HALF_NAN | OVERFLOW
    else:
        assert result == reference.half_bits(expected)


@given(st.floats(-65504, 65504), st.sampled_from([reference.UP, reference.DOWN, reference.ZERO]))
def test_directed_rounding(value: float, control: int) -> None:
    result = round_half(value, control, 0)
    expected = reference.directed(Fraction(value), control, np.float16)
    assert half_value(result) == float(expected)


@given(finite, finite)
def test_arithmetic_is_numpys(x: int, y: int) -> None:
    with np.errstate(over="ignore"):
        a, b = reference.half(x), reference.half(y)
        cases = (
            (float16.f16_add(x, y, 0, 0), a + b),
            (float16.f16_sub(x, y, 0, 0), a - b),
            (float16.f16_mul(x, y, 0, 0), a * b),
            (float16.f16_absadd(x, y, 0, 0), abs(a) + abs(b)),
        )
    for found, expected in cases:
        if np.isinf(expected):
            assert found == (0xFBFF if expected < 0 else 0x7BFF) | OVERFLOW
        else:
            assert found == reference.half_bits(expected)


def test_infinities_propagate_and_invalid_operations_give_nan() -> None:
    infinite, negative = 0x7C00, 0xFC00
    assert float16.f16_add(infinite, 0x3C00, 0, 0) == infinite
    assert float16.f16_add(infinite, negative, 0, 0) == HALF_NAN | INVALID
    assert float16.f16_mul(infinite, 0, 0, 0) == HALF_NAN | INVALID
    assert float16.f16_add(0x7E01, 0x3C00, 0, 0) == HALF_NAN


@given(bits, bits)
def test_comparisons_give_masks(x: int, y: int) -> None:
    a, b = reference.half(x), reference.half(y)
    for function, expected in (
        (float16.f16_cmpeq, a == b),
        (float16.f16_cmpne, a != b),
        (float16.f16_cmplt, a < b),
        (float16.f16_cmple, a <= b),
        (float16.f16_cmpgt, a > b),
        (float16.f16_cmpge, a >= b),
    ):
        assert function(x, y) == (0xFFFF if expected else 0)


@given(bits, bits)
def test_maximum_and_minimum_ignore_one_nan(x: int, y: int) -> None:
    a, b = reference.half(x), reference.half(y)
    found = (float16.f16_max(x, y), float16.f16_min(x, y))
    assert np.array_equal(np.float64(half_value(found[0])), np.fmax(a, b).astype(np.float64), equal_nan=True)
    assert np.array_equal(np.float64(half_value(found[1])), np.fmin(a, b).astype(np.float64), equal_nan=True)
    magnitude = np.fmax(abs(a), abs(b)).astype(np.float64)
    assert np.array_equal(np.float64(half_value(float16.f16_absmax(x, y))), magnitude, equal_nan=True)


def test_clamp_limits_and_lets_nan_pass() -> None:
    one, two, minus = 0x3C00, 0x4000, 0xBC00
    assert float16.f16_clamp(two, minus, one) == one
    assert float16.f16_clamp(0xC000, minus, one) == minus
    assert float16.f16_clamp(0x3800, minus, one) == 0x3800
    assert float16.f16_clamp(0x7E01, minus, one) == 0x7E01


@pytest.mark.parametrize("value", [1.0 + 2.0**-12, 1.0 + 3 * 2.0**-13, -(2.0**-25), 3 * 2.0**-27])
def test_stochastic_rounding_is_unbiased(value: float) -> None:
    draws = range(0, 65536, 16)
    mean = float(np.mean([half_value(round_half(value, ESR, draw)) for draw in draws]))
    assert mean == pytest.approx(value, rel=1e-3 * 2.0**-10 if abs(value) >= 1 else 1e-3)
    neighbours = {half_value(round_half(value, ESR, draw)) for draw in draws}
    assert len(neighbours) == 2


def test_uniform_numbers_from_integers() -> None:
    values = np.array([half_value(float16.f16_sufromui(int(x), 0, 0)) for x in ALL])
    expected = ((ALL.astype(np.float64) + 0.5) / 65536 - 0.5).astype(np.float16).astype(np.float64)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(values, -values[::-1])
    assert np.abs(values).min() == 2.0**-17
