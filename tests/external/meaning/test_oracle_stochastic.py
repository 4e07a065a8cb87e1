"""Stochastic rounding: the share of upward roundings is the discarded fraction, and lanes are independent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from lane_sweeps import sweep

from tilewright.ipu21.isa import csrs
from tilewright.ipu21.simulator.single import run_function
from tilewright.ipu21.toolchain import assemble, link

pytestmark = pytest.mark.external

ESR = 1 << 19
SIGMAS = 4.5
TRIALS = 12_000


def check_share(up: np.ndarray, fraction: float) -> None:
    share = float(np.mean(up))
    # 16 random bits: the probability is a multiple of 2**-16.
    spread = math.sqrt(max(fraction * (1 - fraction), 1e-9) / up.size)
    assert abs(share - fraction) <= SIGMAS * spread + 2.0**-16, (share, fraction)


VALUES = [
    (1.0, 2.0**-10),
    (-1.0, 2.0**-10),
    (3.0, 2.0**-9),
    (1000.0, 0.5),
    (0.1, 2.0**-14),
    (2.0**-14, 2.0**-24),
    (5 * 2.0**-24, 2.0**-24),
    (0.0, 2.0**-24),
    (-30000.0, 16.0),
]
"""A number near the half grid, and the step of the grid there."""


@pytest.mark.parametrize("fraction", [0.0, 2.0**-8, 0.125, 0.5, 0.9])
@pytest.mark.parametrize(("base", "step"), VALUES)
def test_share_of_upward_roundings(base: float, step: float, fraction: float) -> None:
    low = float(np.float16(base))
    sign = -1.0 if base < 0 else 1.0
    value = np.float32(low + sign * fraction * step)
    exact = abs(float(value) - low) / step
    words = np.full((TRIALS, 4), value, np.float32).view(np.uint32)
    found = sweep("f32v4tof16 {d}, {x}", words, results=2, control=ESR, upper={csrs.PRNG_SEED: 17})
    results = found.view(np.float16).astype(np.float64)
    assert set(np.unique(results)) <= {low, low + sign * step}
    up = results != low
    if exact == 0:
        assert not up.any()
        return
    check_share(up, exact)
    for lane in range(4):
        check_share(up[:, lane], exact)
    if 0.1 < exact < 0.95:
        correlation = np.corrcoef(up.T.astype(np.float64))
        assert np.all(np.abs(correlation[~np.eye(4, dtype=bool)]) < SIGMAS / math.sqrt(TRIALS))


@pytest.mark.parametrize("number_format", [0, 1])
def test_stochastic_rounding_to_float8(number_format: int) -> None:
    fraction_bits = 3 if number_format else 2
    value = np.float16(1 + 0.3125 * 2.0**-fraction_bits)
    words = np.full((TRIALS, 8), value, np.float16).view(np.uint32)
    found = sweep(
        "f16v8tof8 {d}, {x}",
        words,
        results=2,
        control=ESR,
        upper={csrs.PRNG_SEED: 19, csrs.FP_NFMT: number_format},
    ).view(np.uint8)
    codes = np.unique(found)
    assert len(codes) == 2 and codes[1] == codes[0] + 1
    for lane in range(8):
        check_share(found[:, lane] == codes[1], 0.3125)


def test_long_sums_do_not_stall() -> None:
    """What stochastic rounding is for: 4096 times 2**-4 on 1024 stays 1024 to nearest, and is 1280 on
    average otherwise."""
    source = """
.globl f
.type f, @function
f:  setzi $m0, worker
    runall $m0, $m2, 0
    sync 2
    br $m10
.align 8
worker:
    get $m1, $WSR
    and $m1, $m1, 7
    setzi $a1, 0x2c00
    sort4x16lo $a1, $a1, $a1
    ld32 $a0, $m13, $m15, $m1
    uput $PRNG_SEED, $a0
    setzi $a0, 0x6400
    sort4x16lo $a0, $a0, $a0
    setzi $m3, 4095
    nop
loop:
    f16v2add $a0, $a0, $a1
    brnzdec $m3, loop
    add $m1, $m1, 8
    st32 $a0, $m13, $m15, $m1
    exitz $m15
"""
    image = link([assemble(source)], roots=["f"])

    def totals(control: int) -> np.ndarray:
        memory = np.arange(16, dtype=np.uint32) * 7919 + 5
        result = run_function(image, "f", {2: 0x5C000}, {0x5C000: memory}, csrs={csrs.FP_ICTL: control})
        return result.read(0x5C020, 12, np.float16).astype(np.float64)

    assert set(totals(0)) == {1024.0}
    sums = totals(ESR)
    # Each step of 1 is taken with probability 1/16.
    spread = math.sqrt(4096 * (1 / 16) * (15 / 16))
    assert len(set(sums)) > 1
    assert abs(sums.mean() - 1280) < SIGMAS * spread / math.sqrt(12)
