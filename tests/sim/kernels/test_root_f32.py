"""What is particular to the float32 root family: its activations, its goals, its contract."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernel_runs import DATA, run
from root_cases import WIDE, Case, member_named

from tilewright.errors import PlacementError, UnsupportedError
from tilewright.ipu21.kernels import KERNELS, root_f32
from tilewright.ipu21.kernels.kernel import STACK_BYTES
from tilewright.ipu21.kernels.root_f32_worker import MEMBERS
from tilewright.ipu21.kernels.root_frame import EXACT, TANH
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim


def test_large_piece() -> None:
    Case(member_named(MEMBERS, "root_f32"), 100, 4, 2, WIDE).check()
    Case(member_named(MEMBERS, "root_f32_bias"), 1, 200, 2, WIDE).check()
    Case(member_named(MEMBERS, "root_f32"), 3, 1, 300, WIDE).check()


def tanh_form(x: np.ndarray) -> np.ndarray:
    """In double precision, as the equal x / (1 + e^-2z), which has no cancellation."""
    wide = x.astype(np.float64)
    z = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    return wide / (1 + np.exp(-2 * z))


def exact_form(x: np.ndarray) -> np.ndarray:
    """With the complementary error function, which keeps the negative tail."""
    values = [value / 2 * math.erfc(-value / math.sqrt(2)) for value in x.reshape(-1).tolist()]
    return np.array(values).reshape(x.shape)


def activated(activation: str, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """(values from -limit to limit, their activation on the tile)."""
    x = np.linspace(-limit, limit, 32 * 64 * 16, dtype=np.float32).reshape(32, 64, 16)
    arguments = {"out": REGION1_BASE + 0x40000, "own": REGION1_BASE, "remote": 0, "rows": 64, "panels": 32}
    arguments |= {"own_stride": 64 * 64, "remote_count": 0, "remote_stride": 0}
    symbol = f"root_f32_{activation}"
    outcome = run(symbol, arguments, [(REGION1_BASE, x)], [(arguments["out"], x.nbytes)])
    found = outcome.array(arguments["out"], x)
    np.testing.assert_array_equal(found, root_f32.gelu(x, activation))
    return x, found


def test_activation_is_close_to_the_tanh_form() -> None:
    """The relative error stays below 1e-6 where y is not tiny."""
    x, found = activated(TANH, 6)
    expected = tanh_form(x)
    error = np.abs(found - expected)
    z = np.sqrt(2 / np.pi) * np.abs(x + 0.044715 * x.astype(np.float64) ** 3)
    assert np.all(error <= 2.0**-22 * (1 + 2 * np.where(x < 0, z, 0)) * np.abs(expected))
    assert np.all(error[x > -2] <= 1e-6 * np.abs(expected[x > -2]))


@pytest.mark.parametrize("limit", [1, 6, 40])
def test_activation_is_close_to_the_exact_form(limit: float) -> None:
    x, found = activated(EXACT, limit)
    expected = exact_form(x)
    error = np.abs(found - expected)
    assert np.all(error <= root_f32.EXACT_ERROR * np.maximum(np.abs(expected), 0.25))
    assert np.all(error[x > -1] <= 1e-6 * np.abs(expected[x > -1]))


@pytest.mark.parametrize("activation", [TANH, EXACT])
def test_activation_of_extremes(activation: str) -> None:
    x = np.zeros((1, 1, 16), np.float32)
    x[0, 0, :8] = [0, -0.0, 1e30, -1e30, 40, -40, 1e-30, np.nan]
    arguments = {"out": DATA, "own": REGION1_BASE, "remote": 0, "rows": 1, "panels": 1}
    arguments |= {"own_stride": 64, "remote_count": 0, "remote_stride": 0}
    outcome = run(f"root_f32_{activation}", arguments, [(REGION1_BASE, x)], [(DATA, 64)])
    expected = np.array([0, 0, 1e30, 0, 40, 0, 0.5e-30, np.nan], np.float32)
    np.testing.assert_allclose(outcome.array(DATA, x)[0, 0, :8], expected, rtol=2e-7, atol=1e-38)


def test_goals() -> None:
    """8 bytes of partials per cycle for large pieces."""
    cycles = KERNELS["root_f32"].cycles(rows=60, panels=9, own_stride=0, remote_count=7, remote_stride=0)
    assert 8 * 60 * 9 * 64 / cycles >= 8
    rows = np.array([1, 9, 60, 0])
    each = [int(root_f32.cycles(MEMBERS[0], int(r), 3, 2)) for r in rows]
    assert root_f32.cycles(MEMBERS[0], rows, 3, 2).tolist() == each


def test_contract() -> None:
    assert len(MEMBERS) == 12
    assert max(member.frame_bytes for member in MEMBERS) <= STACK_BYTES
    contract = KERNELS["root_f32_bias_residual_tanh"].contract
    case = Case(member_named(MEMBERS, "root_f32_bias_residual_tanh"), 9, 2, 3, WIDE)
    registers = contract.registers(**case.arguments)
    assert registers[7] == 9 | 2 << 16
    assert registers[8] == 64 * 12 | 3 << 20
    with pytest.raises(UnsupportedError, match="remote_count"):
        contract.registers(**case.arguments | {"remote_count": 4096})
    with pytest.raises(PlacementError, match="aligned"):
        contract.registers(**case.arguments | {"own": DATA + 4})
