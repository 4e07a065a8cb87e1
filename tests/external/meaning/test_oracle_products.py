"""Sums of products of the matrix unit against NumPy's float32 and float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.ipu21.isa.meaning import amp, products, slic
from tilewright.ipu21.isa.meaning.float8 import multiply_float8

Array = np.ndarray[Any, Any]
LANES = [products.lane_of(unit) for unit in range(16)]
TOTAL = {
    True: lambda before, terms: before + ((terms[0] + terms[1]) + terms[2] + terms[3]),
    False: lambda before, terms: np.float32(np.float64(before) + terms.astype(np.float64).sum(axis=0)),
}


@pytest.fixture(params=[True, False], ids=["singles", "exact"])
def total(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Array]:
    monkeypatch.setattr(products, "SUMS_OF_SINGLES", request.param)
    return TOTAL[request.param]


def halves(rng: np.random.Generator, *shape: int) -> Array:
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 8, shape)).astype(np.float16)


def words_of(values: Array) -> list[int]:
    return [int(word) for word in values.view(np.uint32)]


def test_units_in_the_order_of_results() -> None:
    """Two of set 0, two of set 1, and so on."""
    assert sorted(range(16), key=products.lane_of) == [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]


@pytest.mark.parametrize("phase", range(4))
def test_amp(phase: int, total: Callable[..., Array]) -> None:
    rng = np.random.default_rng(phase)
    for _ in range(50):
        x, weights = halves(rng, 4), halves(rng, 4, 4, 16)
        sums = rng.standard_normal(32).astype(np.float32)
        accumulators = sums.copy()
        amp.multiply_halves(*words_of(x), phase, 8, 2, accumulators, weights.astype(np.float32).ravel())
        terms = x[:, None].astype(np.float32) * weights[phase][:, LANES].astype(np.float32)
        before = sums[1::2] if phase == 0 else sums[::2]
        assert accumulators[::2].tobytes() == total(before, terms).tobytes()
        both = sums.copy()
        amp.multiply_all_halves(*words_of(x), phase, both, weights.astype(np.float32).ravel())
        assert both.tobytes() == accumulators.tobytes()


def test_amp_of_bytes(total: Callable[..., Array]) -> None:
    """Eight products of F143."""
    rng = np.random.default_rng(8)
    kind = ml_dtypes.float8_e4m3fnuz
    for _ in range(50):
        x = rng.standard_normal(8).astype(kind)
        weights = rng.standard_normal((64, 8)).astype(kind)
        sums = rng.standard_normal(32).astype(np.float32)
        accumulators = sums.copy()
        words = weights.view(np.uint32).ravel()
        multiply_float8(*(int(w) for w in x.view(np.uint32)), 1, 8, accumulators, words, 3, 0)
        terms = x[:, None].astype(np.float32) * weights[1::4].astype(np.float32).T
        if products.SUMS_OF_SINGLES:
            dot = np.zeros(16, np.float32)
            for term in terms:
                dot += term
            expected = sums[::2] + dot
        else:
            expected = (sums[::2].astype(np.float64) + terms.astype(np.float64).sum(axis=0)).astype(
                np.float32
            )
        assert accumulators[::2].tobytes() == expected.tobytes()


def test_slic(total: Callable[..., Array]) -> None:
    """A stage takes its sum from the stage before it."""
    rng = np.random.default_rng(9)
    for _ in range(50):
        x, weights = halves(rng, 4), halves(rng, 4, 4, 16)
        sums = rng.standard_normal(32).astype(np.float32)
        accumulators = sums.copy()
        partials = rng.standard_normal(2).astype(np.float32)
        slic.slide(0, *words_of(x), 1, *partials.tolist(), accumulators, weights.astype(np.float32).ravel())
        terms = x[:, None].astype(np.float32) * weights[1][:, LANES[:8]].astype(np.float32)
        before = np.concatenate([sums[4:16:2], partials])
        assert accumulators[:16:2].tobytes() == total(before, terms).tobytes()
