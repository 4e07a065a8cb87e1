"""Rounding to half in every mode, judged by gfloat; every half through every lane-wise function by NumPy."""

from __future__ import annotations

import gfloat
import numpy as np
import pytest
from gfloat.formats import format_info_binary16
from lane_sweeps import ALL_HALVES, ALL_VALUES, IS_NAN, halves_of, interesting_singles, sweep, words_of_halves
from numpy.typing import NDArray

pytestmark = pytest.mark.external

MODES = [
    gfloat.RoundMode.TiesToEven,
    gfloat.RoundMode.TowardPositive,
    gfloat.RoundMode.TowardNegative,
    gfloat.RoundMode.TowardZero,
]
"""In the order of $FP_CTL.RND."""
NANOO = 1 << 20
LARGEST = 65504.0


def rounded(values: NDArray[np.float64], mode: int, nanoo: bool) -> NDArray[np.float64]:
    """What gfloat makes of finite or infinite doubles; overflow saturates or becomes NaN."""
    with np.errstate(all="ignore"):
        result = gfloat.round_ndarray(format_info_binary16, values.copy(), MODES[mode])
    # The size the rounded number would have without a largest one decides about overflow.
    step = 32.0
    unbounded = {
        0: np.rint(values / step) * step,
        1: np.ceil(values / step) * step,
        2: np.floor(values / step) * step,
        3: np.trunc(values / step) * step,
    }[mode]
    over = np.isfinite(values) & (np.abs(unbounded) > LARGEST) & (np.abs(values) > 60000)
    result[over] = np.nan if nanoo else np.copysign(LARGEST, values[over])
    return result


def same(found: NDArray[np.uint16], expected: NDArray[np.float64]) -> None:
    """Equal values, equal signs of zero, canonical NaN."""
    value = found.view(np.float16).astype(np.float64)
    np.testing.assert_array_equal(value, expected)
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(value[zero]), np.signbit(expected[zero]))
    assert np.all(found[np.isnan(expected)] == 0x7E00)


@pytest.mark.parametrize("nanoo", [False, True])
@pytest.mark.parametrize("mode", range(4))
def test_singles_to_halves(mode: int, nanoo: bool) -> None:
    values = interesting_singles(mode, 24_000)
    control = mode << 16 | (NANOO if nanoo else 0)
    expected = rounded(values.astype(np.float64), mode, nanoo)
    words = values.view(np.uint32)
    one = sweep("f32tof16 {d}, {x}", words.reshape(-1, 1), control=control)[:, 0]
    np.testing.assert_array_equal(one & 0xFFFF, one >> 16)
    same((one & 0xFFFF).astype(np.uint16), expected)
    two = sweep("f32v2tof16 {d}, {x}", words.reshape(-1, 2), control=control)
    same(halves_of(two), expected)
    four = sweep("f32v4tof16 {d}, {x}", words.reshape(-1, 4), results=2, control=control)
    same(halves_of(four), expected)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("name", ["add", "sub", "mul", "absadd"])
def test_sums_and_products(name: str, mode: int) -> None:
    """Every half once as the first operand; sums and products of halves are exact in a double.

    x - x is +0 in every mode; IEEE would have -0 in mode 2, which no public source confirms.
    """
    rng = np.random.default_rng(mode)
    second = rng.permutation(ALL_HALVES)
    a, b = ALL_VALUES.astype(np.float64), second.view(np.float16).astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = {"add": a + b, "sub": a - b, "mul": a * b, "absadd": abs(a) + abs(b)}[name]
    expected = rounded(exact, mode, False)
    for lanes, results in ((2, 1), (4, 2)):
        found = sweep(
            f"f16v{lanes}{name} {{d}}, {{x}}, {{y}}",
            words_of_halves(ALL_HALVES, lanes),
            words_of_halves(second, lanes),
            results=results,
            control=mode << 16,
        )
        same(halves_of(found), expected)


def test_broadcast_of_one_half() -> None:
    second = np.random.default_rng(1).permutation(ALL_HALVES)
    values = second.view(np.float16).astype(np.float64).reshape(-1, 4)
    words, others = words_of_halves(ALL_HALVES, 2)[::2], words_of_halves(second, 4)
    factors = ALL_VALUES.astype(np.float64).reshape(-1, 2)[::2]
    with np.errstate(invalid="ignore"):
        for suffix, lane in (("BL", 0), ("BU", 1)):
            # A single word and a pair are not aligned in one stream, so the factor comes as a pair.
            padded = np.concatenate([words, words], axis=1)
            found = sweep(f"f16v4mul {{d}}, $a0:{suffix}, {{y}}", padded, others, results=2)
            same(halves_of(found), rounded((factors[:, lane : lane + 1] * values).reshape(-1), 0, False))


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons(name: str) -> None:
    second = np.random.default_rng(3).permutation(ALL_HALVES)
    second[::5] = ALL_HALVES[::5]
    a, b = ALL_VALUES, second.view(np.float16)
    operation = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }[name]
    for lanes in (2, 4):
        found = sweep(
            f"f16v{lanes}cmp{name} {{d}}, {{x}}, {{y}}",
            words_of_halves(ALL_HALVES, lanes),
            words_of_halves(second, lanes),
            results=lanes // 2,
        )
        np.testing.assert_array_equal(halves_of(found), np.where(operation(a, b), 0xFFFF, 0))


def test_maximum_minimum_clamp() -> None:
    second = np.random.default_rng(5).permutation(ALL_HALVES)
    a, b = ALL_VALUES.astype(np.float64), second.view(np.float16).astype(np.float64)
    for name, expected in (
        ("max", np.fmax(a, b)),
        ("min", np.fmin(a, b)),
        ("absmax", np.fmax(abs(a), abs(b))),
    ):
        found = sweep(
            f"f16v4{name} {{d}}, {{x}}, {{y}}",
            words_of_halves(ALL_HALVES, 4),
            words_of_halves(second, 4),
            results=2,
        )
        np.testing.assert_array_equal(halves_of(found).view(np.float16).astype(np.float64), expected)
    bounds = np.array([-1.5, 2.25], np.float16).view(np.uint32).reshape(1, 1)
    found = sweep(
        "f16v2clamp {d}, {x}, {y}",
        words_of_halves(ALL_HALVES, 2),
        np.repeat(bounds, len(ALL_HALVES) // 2, axis=0),
    )
    np.testing.assert_array_equal(
        halves_of(found).view(np.float16).astype(np.float64), np.clip(a, -1.5, 2.25)
    )


def test_every_half_to_single() -> None:
    expected = ALL_VALUES.astype(np.float32)
    words = words_of_halves(ALL_HALVES, 2)
    pairs = sweep("f16v2tof32 {d}, {x}", words, results=2).view(np.float32).reshape(-1)
    np.testing.assert_array_equal(pairs, expected)
    low = sweep("f16tof32 {d}, {x}", words)[:, 0].view(np.float32)
    np.testing.assert_array_equal(low, expected[::2])


def test_lateral_sums() -> None:
    shuffled = np.random.default_rng(6).permutation(ALL_HALVES)
    values = shuffled.view(np.float16).astype(np.float64).reshape(-1, 2)
    with np.errstate(all="ignore"):
        expected = values.sum(axis=1).astype(np.float32)
    found = sweep("f16v2sum {d}, {x}", words_of_halves(shuffled, 2))[:, 0].view(np.float32)
    np.testing.assert_array_equal(found, expected)
    found = sweep("f16v4sum {d}, {x}", words_of_halves(shuffled, 4), results=2).view(np.float32).reshape(-1)
    np.testing.assert_array_equal(found, expected)


def test_every_half_is_classified_once() -> None:
    found = sweep("f16v2class {d}, {x}", words_of_halves(ALL_HALVES, 2))[:, 0]
    classes = np.stack([found & 0xFF, found >> 8 & 0xFF], axis=1).reshape(-1)
    quiet = IS_NAN & (ALL_HALVES & 0x200 != 0)
    np.testing.assert_array_equal(classes == 2, quiet)
    np.testing.assert_array_equal(classes == 1, IS_NAN & ~quiet)
    np.testing.assert_array_equal(classes == 5, ALL_HALVES == 0x8000)
    assert np.all(classes[~IS_NAN] > 2)
