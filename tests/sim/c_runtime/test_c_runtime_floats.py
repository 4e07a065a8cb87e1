"""Functions of floats against NumPy's of doubles, with the error each may have in units of the last place.

The simulator's elementary instructions are rounded correctly, which the hardware's need not be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driver import call
from numpy.typing import NDArray

pytestmark = pytest.mark.sim

EDGES = np.array(
    [
        *(0x00000000, 0x3F800000, 0x7F800000, 0x7FC00000, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF),
        *(0x3F000000, 0x3EFFFFFF, 0x3F490FDB, 0x3FC90FDB, 0x40490FDB, 0x40000000, 0x40400000, 0x4B000001),
    ],
    dtype=np.uint32,
)
SPECIAL = np.concatenate([EDGES, EDGES | 0x80000000]).view(np.float32)
Reference = Callable[..., Any]


def rounded_away(x: NDArray[Any]) -> NDArray[Any]:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def fmod(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return np.fmod(a, b)


ONE: dict[str, tuple[Reference, float, tuple[float, float]]] = {
    "sinf": (np.sin, 2.5, (-900, 900)),
    "cosf": (np.cos, 2.5, (-900, 900)),
    "tanf": (np.tan, 4, (-900, 900)),
    "asinf": (np.arcsin, 2.5, (-1, 1)),
    "acosf": (np.arccos, 2.5, (-1, 1)),
    "atanf": (np.arctan, 3, (-4, 4)),
    "sinhf": (np.sinh, 3, (-4, 4)),
    "coshf": (np.cosh, 3, (-90, 90)),
    "cbrtf": (np.cbrt, 4, (-10, 10)),
    "erff": (np.vectorize(math.erf, otypes=[float]), 2, (-4.5, 4.5)),
    "expm1f": (np.expm1, 2, (-1, 1)),
    "log1pf": (np.log1p, 3, (-0.9, 3)),
    "log10f": (np.log10, 2.5, (0, 100)),
    "expf": (np.exp, 0.51, (-80, 80)),
    "exp2f": (np.exp2, 0.51, (-80, 80)),
    "logf": (np.log, 0.51, (0, 100)),
    "log2f": (np.log2, 0.51, (0, 100)),
    "sqrtf": (np.sqrt, 0.51, (0, 100)),
    "tanhf": (np.tanh, 0.51, (-4, 4)),
    "fabsf": (np.abs, 0, (-4, 4)),
    "rintf": (np.rint, 0, (-4, 4)),
    "roundf": (rounded_away, 0, (-4, 4)),
    "ceilf": (np.ceil, 0, (-4, 4)),
    "floorf": (np.floor, 0, (-4, 4)),
    "truncf": (np.trunc, 0, (-4, 4)),
}
"""Name -> reference, greatest error, and where most of the arguments come from."""

TWO: dict[str, tuple[Reference, float]] = {
    "powf": (np.power, 6),
    "atan2f": (np.arctan2, 3),
    "hypotf": (np.hypot, 2.5),
    "fmodf": (fmod, 0),
    "copysignf": (np.copysign, 0),
    "fminf": (np.fmin, 0),
    "fmaxf": (np.fmax, 0),
}


def random_bits(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    return rng.integers(0, 1 << 32, count).astype(np.uint32).view(np.float32)


def assert_close(found: NDArray[np.float32], exact: NDArray[np.float64], most: float) -> None:
    """Within `most` units of the last place; infinities, NaNs and signs of zero as they are."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        error = np.abs(found.astype(np.float64) - exact) / np.spacing(np.abs(nearest))
    same = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    bad = ~same & ~(error <= most)
    assert not bad.any(), (found[bad][:5], exact[bad][:5], error[bad][:5])


def bits(*columns: NDArray[np.float32]) -> NDArray[np.uint32]:
    return np.stack([column.view(np.uint32) for column in columns], axis=1)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_float(name: str, engines: str) -> None:
    reference, most, (low, high) = ONE[name]
    rng = np.random.default_rng(len(name))
    values = np.concatenate([rng.uniform(low, high, 800).astype(np.float32), random_bits(rng, 400), SPECIAL])
    found = call(name, bits(values), "worker", engines)[:, 2].copy().view(np.float32)
    with np.errstate(all="ignore"):
        exact = reference(values.astype(np.float64))
    assert_close(found, exact, most)
    signs = (exact == 0) & (found == 0)
    assert (np.signbit(found[signs]) == np.signbit(exact[signs])).all()


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_floats(name: str, engines: str) -> None:
    reference, most = TWO[name]
    rng = np.random.default_rng(len(name))
    grid = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    spread = rng.uniform(-3, 3, (2, 500)).astype(np.float32)
    first = np.concatenate([grid[0], random_bits(rng, 500), spread[0]])
    second = np.concatenate([grid[1], random_bits(rng, 500), spread[1]])
    if name == "powf":
        base = np.abs(random_bits(rng, 500))
        with np.errstate(all="ignore"):
            power = (rng.uniform(-150, 128, 500) / np.log2(base.astype(np.float64))).astype(np.float32)
        first = np.concatenate([first, base, -spread[0]])
        second = np.concatenate([second, power, np.round(spread[1] * 5)])
    found = call(name, bits(first, second), "worker", engines)[:, 2].copy().view(np.float32)
    with np.errstate(all="ignore"):
        exact = reference(first.astype(np.float64), second.astype(np.float64))
    assert_close(found, exact, most)
    if name not in ("fminf", "fmaxf"):  # which zero is the smaller is open
        signs = (exact == 0) & (found == 0)
        assert (np.signbit(found[signs]) == np.signbit(exact[signs])).all()


@pytest.mark.parametrize("name", ["sinf", "cosf"])
def test_angles_of_many_turns(name: str, engines: str) -> None:
    """Near a multiple of a quarter turn only the digits of 2/pi decide."""
    rng = np.random.default_rng(5)
    turns = (rng.integers(0, 1 << 40, 1000) * (math.pi / 2)).astype(np.float32)
    values = np.concatenate([turns, turns * np.float32(2.0**80), random_bits(rng, 1000)])
    found = call(name, bits(values), "worker", engines)[:, 2].copy().view(np.float32)
    with np.errstate(all="ignore"):
        exact = (np.sin if name == "sinf" else np.cos)(values.astype(np.float64))
    assert_close(found, exact, 2.5)
