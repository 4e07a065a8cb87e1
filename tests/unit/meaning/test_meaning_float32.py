"""Single precision against NumPy (nearest) and exact fractions (directed modes)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import meaning_reference as reference
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.isa.meaning import float32
from tilewright.ipu21.isa.meaning.bits import DIVIDE, INVALID, OVERFLOW, SINGLE_NAN, WORD, single_value

pytestmark = pytest.mark.unit

bits = st.one_of(
    st.integers(0, WORD),
    st.sampled_from([0, 0x80000000, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000]),
)
ordinary = st.floats(-(2.0**50), 2.0**50, width=32).filter(lambda value: value == 0 or abs(value) > 1e-15)
MODES = [reference.UP, reference.DOWN, reference.ZERO]

OPERATIONS: list[tuple[Callable[[int, int, int], int], Callable[[np.float32, np.float32], np.float32]]] = [
    (float32.f32_add, np.add),
    (float32.f32_sub, np.subtract),
    (float32.f32_mul, np.multiply),
    (float32.f32_div, np.divide),
]


@given(bits, bits)
def test_arithmetic_is_numpys(x: int, y: int) -> None:
    for function, operation in OPERATIONS:
        with np.errstate(all="ignore"):
            expected = operation(reference.single(x), reference.single(y))
        found = function(x, y, 0) & WORD
        assert found == (SINGLE_NAN if np.isnan(expected) else reference.single_bits(expected))


EXACT: list[tuple[Callable[[int, int, int], int], Callable[[Fraction, Fraction], Fraction]]] = [
    (float32.f32_add, lambda a, b: a + b),
    (float32.f32_sub, lambda a, b: a - b),
    (float32.f32_mul, lambda a, b: a * b),
    (float32.f32_div, lambda a, b: a / b),
]


@given(ordinary, ordinary, st.sampled_from(MODES))
def test_directed_rounding(a: float, b: float, control: int) -> None:
    x, y = reference.single_bits(np.float32(a)), reference.single_bits(np.float32(b))
    for function, operation in EXACT:
        if function is float32.f32_div and b == 0:
            continue
        exact = operation(Fraction(a), Fraction(b))
        found = single_value(function(x, y, control) & WORD)
        assert found == float(reference.directed(exact, control, np.float32))


def test_flags() -> None:
    infinite, one, zero, largest = 0x7F800000, 0x3F800000, 0, 0x7F7FFFFF
    assert float32.f32_sub(infinite, infinite, 0) == SINGLE_NAN | INVALID
    assert float32.f32_mul(infinite, zero, 0) == SINGLE_NAN | INVALID
    assert float32.f32_div(zero, zero, 0) == SINGLE_NAN | INVALID
    assert float32.f32_div(one, zero, 0) == infinite | DIVIDE
    assert float32.f32_div(infinite, zero, 0) == infinite
    assert float32.f32_add(largest, largest, 0) == infinite | OVERFLOW
    assert float32.f32_add(infinite, largest, 0) == infinite
    assert float32.f32_add(0x7FC00001, one, 0) == SINGLE_NAN


@pytest.mark.parametrize(
    ("control", "positive", "negative"),
    [
        (reference.NEAREST, 0x7F800000, 0xFF800000),
        (reference.UP, 0x7F800000, 0xFF7FFFFF),
        (reference.DOWN, 0x7F7FFFFF, 0xFF800000),
        (reference.ZERO, 0x7F7FFFFF, 0xFF7FFFFF),
    ],
)
def test_overflow_in_every_mode(control: int, positive: int, negative: int) -> None:
    largest = 0x7F7FFFFF
    assert float32.f32_add(largest, largest, control) == positive | OVERFLOW
    assert float32.f32_add(largest | 1 << 31, largest | 1 << 31, control) == negative | OVERFLOW
    # Less than half a step above the largest number: only rounding away from zero leaves the format.
    above = float32.f32_add(largest, 0x72000000, control)
    assert above == (0x7F800000 | OVERFLOW if control == reference.UP else largest)


@given(bits, bits)
def test_comparisons_give_masks(x: int, y: int) -> None:
    a, b = reference.single(x), reference.single(y)
    for function, expected in (
        (float32.f32_cmpeq, a == b),
        (float32.f32_cmpne, a != b),
        (float32.f32_cmplt, a < b),
        (float32.f32_cmple, a <= b),
        (float32.f32_cmpgt, a > b),
        (float32.f32_cmpge, a >= b),
    ):
        assert function(x, y) == (WORD if expected else 0)


@given(bits, bits)
def test_maximum_and_minimum_ignore_one_nan(x: int, y: int) -> None:
    a, b = reference.single(x), reference.single(y)
    with np.errstate(invalid="ignore"):
        high, low = np.fmax(a, b), np.fmin(a, b)
    assert np.array_equal(reference.single(float32.f32_max(x, y)), high, equal_nan=True)
    assert np.array_equal(reference.single(float32.f32_min(x, y)), low, equal_nan=True)


def test_uniform_numbers_from_integers_reach_the_stated_minimum() -> None:
    assert single_value(float32.f32_sufromui(0x80000000, 0)) == 2.0**-33
    assert single_value(float32.f32_sufromui(0x7FFFFFFF, 0)) == -(2.0**-33)
    assert math.isclose(single_value(float32.f32_sufromui(0, 0)), -0.5)
