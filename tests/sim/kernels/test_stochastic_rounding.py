"""Stochastic rounding: how it is switched, and what it does to the error of a product."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import halves
from numpy.typing import NDArray

from tilewright.ipu21.kernels import link_kernels, object_of
from tilewright.ipu21.machine.memory import IMAGE_BASE, REGION1_BASE
from tilewright.ipu21.simulator.single import Result, finish, prepare, run_function
from tilewright.ipu21.toolchain import assemble, link

pytestmark = pytest.mark.sim

C, A, W = REGION1_BASE, 0x5C000, REGION1_BASE + 0x40000
FP_ICTL, PRNG_STATE = 0x20, 0x103
ESR, NANOO, OFLO = 1 << 19, 1 << 20, 1 << 2
ROWS = 600

Halves = NDArray[np.float16]


@pytest.mark.parametrize("before", [0, ESR, NANOO | OFLO, NANOO | OFLO | ESR])
@pytest.mark.parametrize("mode", [0, 1])
def test_only_the_rounding_bit_changes(before: int, mode: int) -> None:
    image = link_kernels(["set_rounding"], {})
    result = run_function(image, "set_rounding", {2: mode}, csrs={FP_ICTL: before})
    assert result.tile.csr(FP_ICTL) == before & ~ESR | mode * ESR


def product(a: Halves, w: Halves, mode: int, seed: int = 0) -> Result:
    """`set_rounding` and a product behind it, on workers with random generator states."""
    shape = a.shape[0] | len(w) << 16
    driver = f"""
        .section .text.driver, "ax"
        .globl driver
        .type driver, @function
        driver:
            add $m11, $m11, -8
            st32 $m10, $m11, $mzero, 0
            setzi $m2, {mode}
            call $m10, set_rounding
            setzi $m2, {C}
            setzi $m3, {A}
            setzi $m4, {W}
            setzi $m6, {a.shape[1]}
            setzi $m7, {shape & 0xFFFFF}
            or $m7, $m7, {shape & ~0xFFFFF:#x}
            setzi $m8, 512
            setzi $m9, {512 * a.shape[0]}
            call $m10, gemm_f16
            ld32 $m10, $m11, $mzero, 0
            add $m11, $m11, 8
            br $m10
    """
    objects = [object_of("gemm_f16"), object_of("set_rounding"), assemble(driver)]
    image = link(objects, intervals=((IMAGE_BASE, 0x50000),), roots=["driver"])
    tile = prepare(image, "driver", {}, {A: a, W: w})
    states = np.random.default_rng(seed).integers(0, 1 << 32, (6, 4))
    for worker in range(6):
        for part in range(4):
            tile.set_csr(PRNG_STATE + part, int(states[worker, part]), worker + 1)
    return finish(tile)


def parts(exact: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The half below each value, and the distance to the one above."""
    nearest = exact.astype(np.float16)
    below = np.where(nearest.astype(np.float64) > exact, np.nextafter(nearest, np.float16(-np.inf)), nearest)
    above = np.nextafter(below.astype(np.float16), np.float16(np.inf))
    return below.astype(np.float64), above.astype(np.float64) - below


def test_every_result_is_a_neighbour_with_the_right_probability() -> None:
    a, w = halves(1, 1, ROWS, 16), halves(2, 4, 1, 16, 16, scale=0.25)
    # Multiples of powers of two, so that float32 sums are exact.
    a, w = np.round(a * 256) / np.float16(256), np.round(w * 64) / np.float16(64)
    exact = np.einsum("gri,ngci->nrc", a.astype(np.float64), w.astype(np.float64))
    found = product(a, w, 1).read(C, exact.shape, np.float16).astype(np.float64)
    below, step = parts(exact)
    up = (found - below) / step
    assert set(np.unique(up)) == {0.0, 1.0}
    wanted = (exact - below) / step
    spread = np.sqrt((wanted * (1 - wanted)).sum())
    assert abs((up - wanted).sum()) < 4 * spread
    for low in np.arange(0, 1, 0.25):
        chosen = (wanted >= low) & (wanted < low + 0.25)
        assert abs(up[chosen].mean() - wanted[chosen].mean()) < 4 * np.sqrt(0.25 / chosen.sum())
    # The error's variance is step^2 p (1 - p).
    ratio = ((found - exact) ** 2).sum() / (step**2 * wanted * (1 - wanted)).sum()
    assert 0.97 < ratio < 1.03


@pytest.mark.parametrize("rows", [9, 60])
def test_error_of_many_groups_is_unbiased_and_adds_up(rows: int) -> None:
    """Sums that grow by less than half a step: nearest rounding loses all of it, stochastic rounding none."""
    groups = 24
    a = np.full((groups, rows, 16), 2.0**-8, np.float16)
    w = np.full((8, groups, 16, 16), 2.0**-8, np.float16)
    a[0], w[:, 0] = 8, 0.5  # 64: one step there is 2^-4, and each further group adds 2^-12
    nearest = product(a, w, 0).read(C, (8, rows, 16), np.float16)
    assert np.all(nearest == 64)
    found = product(a, w, 1).read(C, (8, rows, 16), np.float16).astype(np.float64)
    step, p = 2.0**-4, 2.0**-8
    mean, variance = 64 + (groups - 1) * p * step, (groups - 1) * step**2 * p * (1 - p)
    assert abs(found.mean() - mean) < 4 * np.sqrt(variance / found.size)
    assert abs(found.var() / variance - 1) < 8 / np.sqrt(found.size * (groups - 1) * p)


def test_workers_and_tiles_draw_differently() -> None:
    a, w = halves(1, 2, 36, 16), halves(2, 2, 2, 16, 16)
    a[:] = a[:, :1]
    one, same, other = (product(a, w, 1, seed).read(C, (2, 36, 16), np.uint16) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)
    rows = {one[:, 6 * worker : 6 * worker + 6].tobytes() for worker in range(6)}
    assert len(rows) == 6
