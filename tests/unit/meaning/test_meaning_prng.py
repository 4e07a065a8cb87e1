"""The generator against the published algorithm, written here over plain 64-bit Python integers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.isa.meaning import prng

pytestmark = pytest.mark.unit

MASK = 2**64 - 1
state64 = st.integers(0, MASK)


def rotl(x: int, k: int) -> int:
    return (x << k | x >> (64 - k)) & MASK


def xoroshiro128aox(s0: int, s1: int) -> tuple[int, int, int]:
    """(output, next s0, next s1), constants (55, 14, 36)."""
    sx = s0 ^ s1
    sa = s0 & s1
    output = sx ^ (rotl(sa, 1) | rotl(sa, 2))
    return output, rotl(s0, 55) ^ sx ^ (sx << 14 & MASK), rotl(sx, 36)


def split(value: int) -> tuple[int, int]:
    return value & 0xFFFFFFFF, value >> 32


@given(state64, state64)
def test_one_step(s0: int, s1: int) -> None:
    output, n0, n1 = xoroshiro128aox(s0, s1)
    assert prng.output(split(s0), split(s1)) == split(output)
    assert prng.next_s0(split(s0), split(s1)) == split(n0)
    assert prng.next_s1(split(s0), split(s1)) == split(n1)


@given(st.integers(0, MASK), st.integers(1, 63).filter(lambda amount: amount != 32))
def test_rotation(value: int, amount: int) -> None:
    assert prng.rotate_left(*split(value), amount) == split(rotl(value, amount))


def test_seeding_fills_the_state_with_the_seed_and_its_complement_turned_by_13() -> None:
    seed = 0x12345678
    complement = seed ^ 0xFFFFFFFF
    s0 = seed | complement << 32
    assert prng.seeded(seed, 0) | prng.seeded(seed, 1) << 32 == s0
    assert prng.seeded(seed, 2) | prng.seeded(seed, 3) << 32 == rotl(s0, 13)


def test_masks_keep_with_the_given_probability() -> None:
    assert prng.keep_half(0x1234, 0xFFFF, 0x10000) == 0x1234
    assert prng.keep_half(0x1234, 0, 0) == 0
    kept = sum(prng.keep_half(1, draw, 0x4000) for draw in range(65536))
    assert kept == 0x4000
    assert prng.f16v4rmask(0x20001, 0x40003, 0x8000, 0x0000FFFF, 0xFFFF0000) == (0x20000, 0x00003)


def test_normal_approximation_has_its_extremes_and_mean() -> None:
    assert prng.gaussian(0, 0) == -186 / 32
    assert prng.gaussian(0x3FFFFFFF, 0x3FFFFFFF) == 186 / 32
    assert prng.f32v2grand(0, 0, 0x3FFFFFFF, 0x3FFFFFFF) == (0xC0BA0000, 0x40BA0000)
