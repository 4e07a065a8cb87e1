"""References against independent float64 evaluations; tolerances against float16 emulations.

The emulations do what the design says of the device: float16 operands, float32 sums inside a panel of 16
inner elements, float16 between panels and splits.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import ops
from tilewright.operators import operator
from tilewright.operators.rounding import ROUNDING_FACTOR, largest_partial_sums
from tilewright.operators.tolerance import HALF_ULP

pytestmark = pytest.mark.unit

Half = NDArray[np.float16]
PLAIN = {"transpose_b": False}
TANH = {"approximate": "tanh"}
EXACT = {"approximate": "none"}


def half(array: NDArray[Any]) -> Half:
    return array.astype(np.float16)


def panel_product(a: NDArray[Any], b: NDArray[Any], splits: int) -> Half:
    """a @ b as the device sums it: `splits` parts of the inner extent, each panel by panel."""
    parts = np.array_split(np.arange(a.shape[1]), splits)
    total: Half | None = None
    for part in parts:
        partial = np.zeros((a.shape[0], b.shape[1]), np.float16)
        for start in range(0, len(part), 16):
            inner = part[start : start + 16]
            panel = half(a)[:, inner].astype(np.float32) @ half(b)[inner].astype(np.float32)
            partial = half(partial.astype(np.float32) + panel)
        total = partial if total is None else half(total.astype(np.float32) + partial.astype(np.float32))
    assert total is not None
    return total


@pytest.mark.parametrize("splits", [1, 4])
@pytest.mark.parametrize("shape", [(1, 16, 5), (7, 13, 3), (9, 100, 8), (4, 1000, 6), (33, 64, 128)])
@pytest.mark.parametrize("kind", ["signed", "positive", "cancelling"])
def test_float16_sums_stay_within_the_tolerance(shape: tuple[int, int, int], splits: int, kind: str) -> None:
    rows, inner, columns = shape
    generator = np.random.default_rng(inner + splits)
    a = generator.standard_normal((rows, inner)).astype(np.float32)
    b = generator.standard_normal((inner, columns)).astype(np.float32)
    if kind == "positive":
        a, b = np.abs(a), np.abs(b)
    if kind == "cancelling":
        a[:, inner // 2 : 2 * (inner // 2)] = -a[:, : inner // 2]
        b[inner // 2 : 2 * (inner // 2)] = b[: inner // 2]
    expected = ops.matmul(a, b)
    tolerance = operator("matmul").tolerance(PLAIN, a, b, splits=splits)
    actual = panel_product(a, b, splits)
    assert tolerance.violation(actual, expected) is None
    worst = float(np.max(np.abs(actual - expected)))
    assert worst <= float(np.max(tolerance.absolute)) / 2, "the factor is chosen with a margin of two"
    broken = actual.copy()
    broken[0] = half(expected[0] * 1.5 + 1)
    assert tolerance.violation(broken, expected) is not None or kind != "signed"


def test_the_tolerance_of_a_product_is_the_documented_formula() -> None:
    a, b = np.ones((1, 40), np.float32), np.ones((40, 1), np.float32)
    bound = float(np.max(operator("matmul").tolerance(PLAIN, a, b, splits=2).absolute))
    assert bound == pytest.approx(ROUNDING_FACTOR * HALF_ULP * math.sqrt(3 + 2) * 40, rel=1e-4)


def test_largest_partial_sums_are_those_of_every_prefix() -> None:
    generator = np.random.default_rng(4)
    a, b = generator.standard_normal((2, 1, 3, 7)), generator.standard_normal((4, 7, 5))
    prefixes = [np.abs(a[..., :k] @ b[:, :k]) for k in range(1, 8)]
    np.testing.assert_allclose(largest_partial_sums(a, b), np.max(prefixes, axis=0), rtol=1e-12)


@pytest.mark.parametrize("exponent", [-3, -5, -7])
def test_tiny_operands_lose_what_float16_cannot_hold(exponent: int) -> None:
    generator = np.random.default_rng(exponent + 10)
    a = (generator.standard_normal((5, 40)) * 10.0**exponent).astype(np.float32)
    b = generator.standard_normal((40, 6)).astype(np.float32)
    tolerance = operator("matmul").tolerance(PLAIN, a, b)
    assert tolerance.violation(panel_product(a, b, 1), ops.matmul(a, b)) is None


def test_float16_addition_stays_within_the_tolerance() -> None:
    generator = np.random.default_rng(2)
    scale = 10.0 ** generator.uniform(-6, 3, (200, 50))
    a = (generator.standard_normal((200, 50)) * scale).astype(np.float32)
    b = np.concatenate([-a[:100], generator.standard_normal((100, 50)).astype(np.float32)])
    actual = half(half(a).astype(np.float32) + half(b).astype(np.float32))
    tolerance = operator("add").tolerance({}, a, b)
    assert tolerance.violation(actual, ops.add(a, b)) is None
    assert tolerance.violation(actual * np.float16(1.01), ops.add(a, b)) is not None


def test_gelu_is_the_formula() -> None:
    points = np.concatenate([np.linspace(-12, 12, 2001), [0.0, -0.0, 1e-30, 1e8, -1e8]]).astype(np.float32)
    expected = [
        0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) for x in points.tolist()
    ]
    np.testing.assert_allclose(ops.gelu(points), np.float32(expected), rtol=1e-6, atol=1e-15)


def test_exact_gelu_is_the_error_function() -> None:
    """Against 40 digits of mpmath, also far out where 1 + erf cancels."""
    points = np.concatenate([np.linspace(-13, 13, 521), [1e-30, -1e-30, 1e8]]).astype(np.float32)
    with mpmath.workdps(40):
        exact = [float(mpmath.mpf(x) * mpmath.ncdf(mpmath.mpf(x))) for x in points.tolist()]
    np.testing.assert_allclose(ops.gelu(points, approximate="none"), exact, rtol=1e-6, atol=1e-37)
    ends = ops.gelu(np.array([0, -np.inf, np.inf, np.nan], np.float32), approximate="none")
    np.testing.assert_array_equal(ends, [0, 0, np.inf, np.nan])


def test_the_tanh_form_is_close_to_the_exact_one() -> None:
    points = np.linspace(-5, 5, 1001)
    difference = np.abs(ops.gelu(points) - ops.gelu(points, approximate="none"))
    assert 1e-4 < difference.max() < 5e-4


def test_float16_gelu_stays_within_the_tolerance() -> None:
    x = np.linspace(-10, 10, 20001).astype(np.float32)
    h = half(x)
    one = np.float16(1)
    cube = half(half(h * h) * np.float16(0.044715))
    inner = half(np.float16(math.sqrt(2 / math.pi)) * half(h * half(one + cube)))
    actual = half(half(h * np.float16(0.5)) * half(one + half(np.tanh(inner.astype(np.float32)))))
    tolerance = operator("gelu").tolerance(TANH, x)
    assert tolerance.violation(actual, ops.gelu(x)) is None
    assert tolerance.violation(half(np.maximum(x, 0)), ops.gelu(x)) is not None, "a rectifier is not a GeLU"


def test_float16_exact_gelu_stays_within_the_tolerance() -> None:
    """x/2 * (1 + tanh(x p(x^2))) with the quadratic p that fits best, every step rounded to float16."""
    x = np.linspace(-10, 10, 20001).astype(np.float32)
    fitted = np.linspace(0.05, 3.5, 400)
    wanted = np.arctanh([math.erf(t / math.sqrt(2)) for t in fitted.tolist()]) / fitted
    p2, p1, p0 = (np.float16(c) for c in np.polyfit(fitted**2, wanted, 2, w=np.exp(-(fitted**2) / 2)))
    h = half(x)
    square = half(np.minimum(half(h * h), np.float16(12)))
    inner = half(h * half(half(half(square * p2) + p1) * square + p0))
    actual = half(half(h * np.float16(0.5)) * half(np.float16(1) + half(np.tanh(inner.astype(np.float32)))))
    expected = ops.gelu(x, approximate="none")
    tolerance = operator("gelu").tolerance(EXACT, x)
    assert tolerance.violation(actual, expected) is None
    assert tolerance.violation(half(x / (1 + np.exp(-1.702 * x))), expected) is not None, "a sigmoid form"
