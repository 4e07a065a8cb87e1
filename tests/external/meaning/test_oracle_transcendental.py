"""Elementary functions against mpmath (singles) and NumPy's double functions (every half)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from lane_sweeps import ALL_HALVES, ALL_VALUES, halves_of, sweep, words_of_halves
from numpy.typing import NDArray

pytestmark = pytest.mark.external

SINGLE_ULP = 1.0
"""Documented tolerance for singles, in units of the last place."""
COUNT = 1500


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "exp": (mpmath.exp, -100, 88),
    "exp2": (lambda x: mpmath.power(2, x), -148, 127.9),
    "ln": (mpmath.log, 0, 1e30),
    "log2": (lambda x: mpmath.log(x, 2), 0, 1e30),
    "tanh": (mpmath.tanh, -12, 12),
    "sigm": (sigmoid, -90, 90),
    "sqrt": (mpmath.sqrt, 0, 1e38),
    "oox": (lambda x: 1 / x, -1e38, 1e38),
    "oorx": (lambda x: 1 / mpmath.sqrt(x), 0, 1e38),
}
"""Function, and the range its arguments are drawn from."""


def arguments(name: str, low: float, high: float) -> NDArray[np.float32]:
    rng = np.random.default_rng(len(name))
    even = rng.uniform(max(low, -1e6), min(high, 1e6), COUNT // 3)
    sizes = 2.0 ** rng.uniform(-120, np.log2(high), COUNT // 3)
    around = 1 + rng.normal(0, 1e-3, COUNT // 3)
    signs = rng.choice([-1.0, 1.0], COUNT) if low < 0 else np.ones(COUNT)
    values = np.concatenate([even, sizes, around]) * signs
    return np.clip(values, low if low else 2.0**-126, high).astype(np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_singles(name: str) -> None:
    function, low, high = FUNCTIONS[name]
    values = arguments(name, low, high)
    found = sweep(f"f32{name} {{d}}, {{x}}", values.view(np.uint32).reshape(-1, 1))[:, 0].view(np.float32)
    with mpmath.workprec(140):
        exact = [function(mpmath.mpf(float(value))) for value in values]
        near = np.array([float(value) for value in exact]).astype(np.float32)
        ulp = np.spacing(np.abs(near)).astype(np.float64)
        error = np.array(
            [abs(float(mpmath.mpf(float(f)) - value)) for f, value in zip(found, exact, strict=True)]
        )
    finite = np.isfinite(near)
    assert finite.mean() > 0.9
    assert np.all(error[finite] <= SINGLE_ULP * ulp[finite])
    # Ours are the correctly rounded ones but for rare ties of the double function.
    assert np.mean(error[finite] <= 0.500001 * ulp[finite]) > 0.999


HALF_FUNCTIONS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "ln": np.log,
    "log2": np.log2,
    "tanh": np.tanh,
    "sigm": lambda x: 1 / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("name", HALF_FUNCTIONS)
def test_every_half(name: str) -> None:
    with np.errstate(all="ignore"):
        exact = HALF_FUNCTIONS[name](ALL_VALUES.astype(np.float64))
        expected = exact.astype(np.float16).astype(np.float64)
    # A finite argument saturates, but for the pole of the logarithm.
    bounded = np.isfinite(ALL_VALUES) & ((ALL_VALUES != 0) | (exact == 1))
    expected[bounded] = np.clip(expected[bounded], -65504, 65504)
    found = halves_of(sweep(f"f16v2{name} {{d}}, {{x}}", words_of_halves(ALL_HALVES, 2)))
    np.testing.assert_array_equal(found.view(np.float16).astype(np.float64), expected)


@pytest.mark.parametrize(
    ("name", "argument", "result"),
    [
        ("exp", 0.0, 1.0),
        ("exp", -np.inf, 0.0),
        ("exp", np.inf, np.inf),
        ("exp2", -0.0, 1.0),
        ("ln", 1.0, 0.0),
        ("ln", 0.0, -np.inf),
        ("ln", np.inf, np.inf),
        ("ln", -1.0, np.nan),
        ("log2", 8.0, 3.0),
        ("tanh", np.inf, 1.0),
        ("tanh", -np.inf, -1.0),
        ("sigm", 0.0, 0.5),
        ("sigm", -np.inf, 0.0),
        ("sqrt", 4.0, 2.0),
        ("sqrt", -1.0, np.nan),
        ("oox", np.inf, 0.0),
        ("oox", 0.0, np.inf),
        ("oorx", np.inf, 0.0),
        ("oorx", 0.25, 2.0),
        ("exp", np.nan, np.nan),
        ("sqrt", np.nan, np.nan),
    ],
)
def test_special_arguments(name: str, argument: float, result: float) -> None:
    words = np.array([[argument]], np.float32).view(np.uint32)
    found = sweep(f"f32{name} {{d}}, {{x}}", words)[0].view(np.float32)[0]
    np.testing.assert_array_equal(found, np.float32(result))
