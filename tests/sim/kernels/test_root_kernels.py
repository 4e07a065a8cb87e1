"""What is particular to the float16 root family: its rounding, its activations, its goals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from kernel_runs import DATA, run
from numpy.typing import NDArray
from root_cases import WIDE, Case, member_named

from tilewright.errors import UnsupportedError
from tilewright.ipu21.kernels import KERNELS, root
from tilewright.ipu21.kernels.gelu import CUBIC, LINEAR
from tilewright.ipu21.kernels.root_worker import VARIANTS
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

Halves = NDArray[np.float16]


def test_large_piece() -> None:
    Case(member_named(VARIANTS, "root_f16"), 100, 4, 2, WIDE).check()
    Case(member_named(VARIANTS, "root_f16"), 1, 200, 2, WIDE).check()
    Case(member_named(VARIANTS, "root_f16"), 3, 1, 300, WIDE).check()


def test_one_rounding() -> None:
    """Many small addends that vanish one by one in half precision."""
    case = Case(member_named(VARIANTS, "root_f16_bias_residual"), 1, 1, 8, WIDE)
    inputs = [(WIDE["own"], np.full(16, 2048, np.float16)), (WIDE["remote"], np.full(128, 0.5, np.float16))]
    inputs += [(WIDE["bias"], np.full(16, 1, np.float16)), (WIDE["residual"], np.full(16, 3, np.float16))]
    outcome = run("root_f16_bias_residual", case.arguments, inputs, [(WIDE["out"], 32)])
    assert np.all(outcome.array(WIDE["out"], case.expected) == 2056)


def exact(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """GeLU with the complementary error function, which keeps the negative tail."""
    return np.array([value / 2 * math.erfc(-value / math.sqrt(2)) for value in x])


def finite_halves() -> Halves:
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    return every[np.isfinite(every)]


def test_exact_activation_of_every_half() -> None:
    x = finite_halves()
    expected = exact(x.astype(np.float64))
    error = np.abs(root.exact_gelu(x).astype(np.float64) - expected)
    assert np.all(error <= root.EXACT_ERROR * np.maximum(np.abs(expected), 0.25))
    # A shape of 61 rows x 65 panels, the first 16 values over again at the end.
    tile = np.resize(x, (65, 61, 16))
    arguments: dict[str, Any] = {"out": DATA, "own": REGION1_BASE, "remote": 0, "rows": 61, "panels": 65}
    arguments |= {"own_stride": 61 * 32, "remote_count": 0, "remote_stride": 0}
    outcome = run("root_f16_exact", arguments, [(REGION1_BASE, tile)], [(DATA, tile.nbytes)])
    np.testing.assert_array_equal(outcome.array(DATA, tile), root.exact_gelu(tile))


def test_exact_activation_of_normal_values() -> None:
    """The rounding of halves outweighs the cubic, which no bound for the worst value would tell."""
    x = np.random.default_rng(0).normal(0, 1, 50_000).astype(np.float16)
    wide = x.astype(np.float64)

    def deviation(found: Halves) -> float:
        return float(np.sqrt(np.mean((found.astype(np.float64) - exact(wide)) ** 2)))

    below = np.array([math.erfc(value / math.sqrt(2)) for value in wide])
    with np.errstate(divide="ignore"):
        argument = np.log((2 - below) / below).astype(np.float16).astype(np.float64)
    rounded = (wide * (1 / (1 + np.exp(-argument))).astype(np.float16)).astype(np.float16)
    assert deviation(root.exact_gelu(x)) <= 1.25 * deviation(rounded)
    assert deviation(root.exact_gelu(x)) < deviation(root.gated(x, LINEAR, CUBIC))


def test_goals() -> None:
    """8 bytes of partials per cycle for large pieces."""
    cycles = KERNELS["root_f16"].cycles(rows=60, panels=9, own_stride=0, remote_count=7, remote_stride=0)
    assert 8 * 60 * 9 * 32 / cycles >= 8
    rows = np.array([1, 9, 60, 0])
    each = [int(root.cycles(VARIANTS[0], int(r), 3, 2)) for r in rows]
    assert root.cycles(VARIANTS[0], rows, 3, 2).tolist() == each


def test_arguments_are_packed() -> None:
    case = Case(member_named(VARIANTS, "root_f16_exact"), 9, 2, 3, WIDE)
    registers = KERNELS["root_f16_exact"].contract.registers(**case.arguments)
    assert registers[5] == registers[6] == 0
    assert registers[7] == 9 | 2 << 16
    assert registers[8] == 32 * 12 | 3 << 20
    assert registers[9] == 32 * 18
    with pytest.raises(UnsupportedError, match="remote_count"):
        KERNELS["root_f16_exact"].contract.registers(**case.arguments | {"remote_count": 4096})
