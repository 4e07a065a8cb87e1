"""Layer norm, softmax and l2 norm: references against sums of exact fractions, tolerances against float16.

The emulations take operands in float16, statistics in float32, and round every stored number to float16.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import ops
from tilewright.errors import ShapeError
from tilewright.operators import operator
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

Floats = NDArray[np.float32]


def half(array: NDArray[Any]) -> NDArray[np.float16]:
    return array.astype(np.float16)


def single(array: NDArray[Any]) -> Floats:
    return array.astype(np.float32)


def rows(kind: str, columns: int, count: int = 40) -> Floats:
    generator = np.random.default_rng(columns)
    x = generator.standard_normal((count, columns))
    if kind == "shifted":
        x = x * 0.3 + 20
    if kind == "outlier":
        x[:, columns // 2] *= 300
    if kind == "small":
        x = x * 1e-3
    if kind == "wide":
        x = x * 30
    return single(x)


def layer_norm_by_fractions(x: Floats, gamma: Floats, beta: Floats, epsilon: float) -> list[list[float]]:
    """In 30 digits, variance as E[x^2] - mean^2, which the reference does not use."""
    found = []
    with mpmath.workdps(30):
        for row in x.tolist():
            values = [mpmath.mpf(v) for v in row]
            mean = mpmath.fsum(values) / len(values)
            variance = mpmath.fsum(v * v for v in values) / len(values) - mean * mean
            factor = 1 / mpmath.sqrt(variance + epsilon)
            found.append(
                [
                    float((v - mean) * factor * g + b)
                    for v, g, b in zip(values, gamma.tolist(), beta.tolist(), strict=True)
                ]
            )
    return found


@pytest.mark.parametrize("kind", ["plain", "shifted", "outlier", "small"])
@pytest.mark.parametrize("epsilon", [1e-5, 1e-12])
def test_layer_norm_is_the_formula(kind: str, epsilon: float) -> None:
    x = rows(kind, 12, 5)
    gamma, beta = rows("plain", 13, 2)[:, :12]
    expected = layer_norm_by_fractions(x, gamma, beta, epsilon)
    np.testing.assert_allclose(
        ops.layer_norm(x, gamma, beta, epsilon=epsilon), expected, rtol=1e-5, atol=1e-6
    )


def test_a_row_of_equal_numbers_becomes_beta() -> None:
    x = np.full((2, 7), 1e4, np.float32)
    beta = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(ops.layer_norm(x, np.ones(7), beta, epsilon=1e-12), [beta, beta])


def device_layer_norm(
    x: Floats, gamma: Floats, beta: Floats, epsilon: float, mixed: bool
) -> NDArray[np.float16]:
    """`mixed`: x * factor + offset, factor and offset in float16; otherwise (x - mean) * factor by steps."""
    h = half(x)
    f = single(h)
    columns = np.float32(x.shape[-1])
    mean = np.sum(f, axis=-1, keepdims=True) / columns
    variance = np.maximum(np.sum(f * f, axis=-1, keepdims=True) / columns - mean * mean, 0)
    factor = 1 / np.sqrt(variance + np.float32(epsilon))
    if mixed:
        normalised = half(f * single(half(factor)) + single(half(-mean * factor)))
    else:
        normalised = half(single(half(f - mean)) * factor)
    return half(single(half(normalised * half(gamma))) + single(half(beta)))


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("kind", ["plain", "shifted", "outlier", "small"])
@pytest.mark.parametrize("columns", [2, 3, 16, 64, 384, 1152])
def test_float16_layer_norm_stays_within_the_tolerance(kind: str, columns: int, mixed: bool) -> None:
    x = rows(kind, columns)
    gamma, beta = rows("plain", columns + 1, 2)[:, :columns]
    attributes = {"epsilon": 1e-5}
    expected = operator("layer_norm").reference(attributes, x, gamma, beta)
    tolerance = operator("layer_norm").tolerance(attributes, x, gamma, beta)
    actual = device_layer_norm(x, gamma, beta, 1e-5, mixed)
    assert tolerance.violation(actual, expected) is None
    if columns >= 16 and kind == "plain":
        without_mean = half(single(x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True)) * gamma + beta))
        assert tolerance.violation(without_mean, expected) is not None
        assert np.median(np.asarray(tolerance.absolute)) < 0.01


def softmax_by_fractions(x: Floats) -> list[list[float]]:
    with mpmath.workdps(30):
        found = []
        for row in x.tolist():
            powers = [mpmath.exp(v) for v in row]
            total = mpmath.fsum(powers)
            found.append([float(power / total) for power in powers])
    return found


@pytest.mark.parametrize("kind", ["plain", "shifted", "wide"])
def test_softmax_is_the_formula(kind: str) -> None:
    x = rows(kind, 12, 5)
    np.testing.assert_allclose(ops.softmax(x), softmax_by_fractions(x), rtol=1e-6, atol=1e-37)


def test_softmax_of_special_rows() -> None:
    x = np.array([[-np.inf, 0, 0], [1e30, 1e30, -1e30], [3, 3, 3]], np.float32)
    third = np.float32(1 / 3)
    np.testing.assert_array_equal(ops.softmax(x), [[0, 0.5, 0.5], [0.5, 0.5, 0], [third] * 3])
    assert np.all(np.isnan(ops.softmax(np.array([0, np.nan, 1]))))
    assert ops.softmax(np.full(3, -np.inf)).shape == (3,)


def device_softmax(x: Floats) -> NDArray[np.float16]:
    f = single(half(x))
    exponentials = half(np.exp(single(half(f - np.max(f, axis=-1, keepdims=True)))))
    return half(single(exponentials) / np.sum(single(exponentials), axis=-1, keepdims=True))


@pytest.mark.parametrize("kind", ["plain", "shifted", "wide", "small", "masked"])
@pytest.mark.parametrize("columns", [1, 2, 16, 64, 384, 1152])
def test_float16_softmax_stays_within_the_tolerance(kind: str, columns: int) -> None:
    x = rows(kind, columns)
    if kind == "masked":
        x[:, columns // 2 + 1 :] -= 10000
    expected = ops.softmax(x)
    tolerance = operator("softmax").tolerance({}, x)
    assert tolerance.violation(device_softmax(x), expected) is None
    if columns >= 2 and kind == "plain":
        assert tolerance.violation(half(ops.softmax(x * np.float32(1.05))), expected) is not None
        assert np.all(np.asarray(tolerance.absolute) < 0.02 * expected + 1e-6)


@pytest.mark.parametrize("kind", ["plain", "shifted", "outlier", "small"])
@pytest.mark.parametrize("columns", [1, 2, 16, 64, 384])
def test_l2_normalize_is_the_formula_and_float16_stays_within_the_tolerance(kind: str, columns: int) -> None:
    x = rows(kind, columns)
    expected = ops.l2_normalize(x)
    exact = [[v / math.sqrt(math.fsum(u * u for u in row)) for v in row] for row in x.tolist()]
    np.testing.assert_allclose(expected, exact, rtol=1e-6)
    f = single(half(x))
    factor = 1 / np.sqrt(np.sum(f * f, axis=-1, keepdims=True))
    factor = single(half(factor)) if kind != "small" else factor
    tolerance = operator("l2_normalize").tolerance({"epsilon": 1e-12}, x)
    assert tolerance.violation(half(f * factor), expected) is None
    assert tolerance.violation(half(expected * np.float32(1.01)), expected) is not None


def test_rows_of_zeros_stay_zero() -> None:
    np.testing.assert_array_equal(ops.l2_normalize(np.zeros((2, 3))), np.zeros((2, 3)))
    np.testing.assert_allclose(ops.l2_normalize([3e-13, 4e-13], epsilon=1e-12), [0.3, 0.4], rtol=1e-6)
    zeros = np.zeros((2, 3), np.float32)
    bound = operator("l2_normalize").tolerance({"epsilon": 1e-12}, zeros).absolute
    assert np.max(bound) < 1e-7


REFUSED: list[tuple[str, list[tuple[int, ...]], str]] = [
    (
        "layer_norm",
        [(2, 3), (4,), (3,)],
        r"layer_norm: gamma should have the shape \[3\]: x = .*, gamma = .*\[4\]",
    ),
    ("layer_norm", [(2, 3), (3,), (1, 3)], r"beta should have the shape \[3\]"),
    ("layer_norm", [(), (), ()], "x needs at least one axis"),
    ("softmax", [()], r"softmax: x needs at least one axis: x = float32\[\]"),
    ("l2_normalize", [()], r"l2_normalize: x needs at least one axis: x = float32\[\]"),
]


@pytest.mark.parametrize(("name", "operands", "message"), REFUSED)
def test_refusals_name_every_operand(name: str, operands: list[tuple[int, ...]], message: str) -> None:
    rule = operator(name)
    with pytest.raises(ShapeError, match=message):
        rule.infer(rule.resolve({}), *map(TensorType, operands))
