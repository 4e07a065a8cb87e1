"""The workers' generator against the published algorithm, over the instructions that draw from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from lane_sweeps import Words, sweep
from numpy.typing import NDArray

from tilewright.ipu21.isa import csrs

pytestmark = pytest.mark.external

MASK = 2**64 - 1
ESR = 1 << 19


class Aox:
    """xoroshiro128aox, written down from the paper (arXiv 2203.04058): constants 55, 14, 36."""

    def __init__(self, seed: int) -> None:
        """The state that writing a seed leaves: the seed with its complement, and that turned by 13 bits."""
        self.s0 = seed | (seed ^ 0xFFFFFFFF) << 32
        self.s1 = self.turned(self.s0, 13)

    @staticmethod
    def turned(value: int, bits: int) -> int:
        return (value << bits | value >> (64 - bits)) & MASK

    def next(self) -> int:
        s0, s1 = self.s0, self.s1
        mixed, both = s0 ^ s1, s0 & s1
        result = mixed ^ (self.turned(both, 1) | self.turned(both, 2))
        self.s0 = self.turned(s0, 55) ^ mixed ^ (mixed << 14 & MASK)
        self.s1 = self.turned(mixed, 36)
        return result


def draws(seed: int, count: int) -> NDArray[np.uint64]:
    generator = Aox(seed)
    return np.array([generator.next() for _ in range(count)], np.uint64)


def nothing(count: int) -> Words:
    return np.zeros((count, 1), np.uint32)


@pytest.mark.parametrize("seed", [0, 1, 42, 0x80000000, 0xFFFFFFFF, 0x12345678])
def test_draws(seed: int) -> None:
    expected = draws(seed, 3000)
    wide = sweep("urand64 {d}", nothing(3000), results=2, upper={csrs.PRNG_SEED: seed})
    np.testing.assert_array_equal(wide.view(np.uint64)[:, 0], expected)
    narrow = sweep("urand32 {d}", nothing(3000), upper={csrs.PRNG_SEED: seed})[:, 0]
    np.testing.assert_array_equal(narrow, (expected & np.uint64(0xFFFFFFFF)).astype(np.uint32))


def test_state_words_written_one_by_one() -> None:
    state = {csrs.PRNG_0_0: 1, csrs.PRNG_0_1: 2, csrs.PRNG_1_0: 3, csrs.PRNG_1_1: 4}
    generator = Aox(0)
    generator.s0, generator.s1 = 1 | 2 << 32, 3 | 4 << 32
    found = sweep("urand64 {d}", nothing(50), results=2, upper=state).view(np.uint64)[:, 0]
    np.testing.assert_array_equal(found, np.array([generator.next() for _ in range(50)], np.uint64))


def lanes16(values: NDArray[np.uint64]) -> NDArray[np.uint32]:
    return values.view(np.uint16).reshape(-1, 4).astype(np.uint32)


@pytest.mark.parametrize("probability", [0, 1, 0x4000, 0xFFFF, 0x10000])
def test_masks_keep_by_16_bits_per_element(probability: int) -> None:
    count = 4000
    values = np.random.default_rng(1).integers(1, 2**16, (count, 4)).astype(np.uint16)
    words = values.view(np.uint32)
    keep = lanes16(draws(7, count)) < (probability & 0xFFFF)
    keep |= probability >> 16 == 1
    masks = np.full((count, 1), probability, np.uint32)
    # The probability comes in $a4, beside a word that keeps the stream aligned.
    found = sweep(
        "f16v4rmask {d}, {x}, $a4",
        words,
        np.concatenate([masks, masks], axis=1),
        results=2,
        upper={csrs.PRNG_SEED: 7},
    )
    np.testing.assert_array_equal(found.view(np.uint16), np.where(keep, values, 0))
    share = keep.mean()
    expected = 1.0 if probability >> 16 else probability / 65536
    assert abs(share - expected) <= 4.5 * math.sqrt(expected * (1 - expected) / keep.size) + 1e-12


def test_masks_of_singles() -> None:
    """Which 16 bits decide is ours to choose: the low ones of each half of the draw."""
    count = 4000
    values = np.random.default_rng(2).integers(1, 2**32, (count, 2)).astype(np.uint32)
    keep = lanes16(draws(9, count))[:, ::2] < 0x3000
    masks = np.full((count, 2), 0x3000, np.uint32)
    found = sweep("f32v2rmask {d}, {x}, $a4", values, masks, results=2, upper={csrs.PRNG_SEED: 9})
    np.testing.assert_array_equal(found, np.where(keep, values, 0))


def test_normal_numbers_look_normal() -> None:
    count = 20_000
    found = sweep("f32v2grand {d}", nothing(count), results=2, upper={csrs.PRNG_SEED: 3})
    values = found.view(np.float32).astype(np.float64).reshape(-1)
    halves = sweep("f16v2grand {d}", nothing(count), upper={csrs.PRNG_SEED: 3})
    np.testing.assert_array_equal(halves.view(np.float16).reshape(-1).astype(np.float64), values)
    bound = 4.5 / math.sqrt(len(values))
    assert abs(values.mean()) < bound and abs(values.std() - 1) < bound
    assert abs((values**3).mean()) < bound * math.sqrt(15)
    # Twelve uniform summands have slightly light tails: kurtosis 2.9.
    assert abs((values**4).mean() - 2.9) < bound * math.sqrt(96)
    pairs = values.reshape(-1, 2)
    assert abs((pairs[:, 0] * pairs[:, 1]).mean()) < bound * math.sqrt(2)


def test_uniform_numbers_are_uniform() -> None:
    """Chi-square of 256 bins for each byte of a draw; 4.5 sigma."""
    found = sweep("urand64 {d}", nothing(20_000), results=2, upper={csrs.PRNG_SEED: 11})
    for byte in range(8):
        counts = np.bincount(found.view(np.uint8).reshape(-1, 8)[:, byte], minlength=256)
        statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
        assert abs(statistic - 255) < 4.5 * math.sqrt(2 * 255)


@pytest.mark.parametrize("instruction", ["f32v2tof16 {d}, {x}", "f16v2add {d}, $a0, $a1"])
def test_stochastic_rounding_follows_the_draws(instruction: str) -> None:
    """Documented default: an instruction takes one draw, lane i its bits 16i..16i+15, and rounds up if these,
    added to the 16 highest discarded bits, carry."""
    count = 4000
    rng = np.random.default_rng(5)
    if "add" in instruction:
        values = rng.uniform(1, 2, (count, 2, 2)).astype(np.float16)
        values[:, 1] *= np.float16(2.0**-6)
        exact = values.astype(np.float64).sum(axis=1)
        words = values.view(np.uint32).reshape(count, 2)
    else:
        singles = rng.uniform(1, 2, (count, 2)).astype(np.float32)
        exact, words = singles.astype(np.float64), singles.view(np.uint32)
    bits = lanes16(draws(13, count))[:, :2]
    grid = exact * 2.0**10 * np.where(exact >= 2, 0.5, 1)
    fraction = np.floor((grid - np.floor(grid)) * 65536)
    up = fraction + bits >= 65536
    expected = (np.floor(grid) + up) / (2.0**10 * np.where(exact >= 2, 0.5, 1))
    found = sweep(instruction, words, control=ESR, upper={csrs.PRNG_SEED: 13})
    np.testing.assert_array_equal(found.view(np.float16).astype(np.float64), expected)
