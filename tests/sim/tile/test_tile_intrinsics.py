"""The machine instructions that stand for written-out conversions of halves give the same bits."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from tilewright.ipu21.isa.meaning import float16
from tilewright.ipu21.simulator import intrinsics

pytestmark = [
    pytest.mark.sim,
    pytest.mark.skipif(not intrinsics.CPU.get("f16c", False), reason="this CPU does not convert halves"),
]


@pytest.mark.parametrize("direct", [False, True])
def test_rounding_to_half(direct: bool) -> None:
    if direct and not intrinsics.CPU.get("avx512fp16", False):
        pytest.skip("this CPU does not round doubles to halves")
    rounded = intrinsics.nearest_half(direct)
    compiled = numba.njit("int64(float64)")(lambda value: rounded(value))
    random = np.random.default_rng(7)
    halves = random.integers(0, 1 << 16, 3000).astype(np.uint16).view(np.float16)
    ordinary = halves[np.isfinite(halves)].astype(np.float64)
    steps = np.spacing(halves[np.isfinite(halves)]).astype(np.float64)
    ties = ordinary + steps / 2
    values = [ordinary, ties, np.nextafter(ties, 1e9), np.nextafter(ties, -1e9), ties * (1 + 2.0**-30)]
    values += [random.standard_normal(3000) * 2.0 ** random.integers(-40, 20, 3000)]
    values += [np.array([0.0, -0.0, np.inf, -np.inf, 65519.999, 65520.0, 2.0**-25, 2.0**-25 * (1 + 2**-52)])]
    for value in np.concatenate(values).tolist():
        assert compiled(value) == float16.nearest_half(value), value
    assert compiled(np.nan) & 0x7FFF > 0x7C00


def test_widening_every_half() -> None:
    compiled = numba.njit("float64(int64)")(lambda half: intrinsics.half_value(half))
    for half in range(1 << 16):
        wide, expected = compiled(half), float16.half_value(half)
        assert wide == expected or (wide != wide and expected != expected)
        assert np.signbit(wide) == np.signbit(expected)
