"""Sums of half panels against NumPy: bits, cycles, and that nothing else is written."""

from __future__ import annotations

import numpy as np
import pytest
from guarded_runs import guarded
from kernel_runs import DATA, call, halves, run, twice
from numpy.typing import NDArray

from tilewright.ipu21.kernels import half_sums
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

STATE, X = DATA, REGION1_BASE


class Case:
    """The half panel begins `half` halves of a record behind a panel."""

    def __init__(self, rows: int, half: int, shift: int = 0) -> None:
        self.panel = halves(10 * rows + half, rows, 16)
        random = np.random.default_rng(rows)
        self.before = random.uniform(1, 2, (rows, 2)).astype(np.float32)
        self.places = {"state": STATE + shift, "x": X + shift + 16 * half}
        self.arguments = {**self.places, "rows": rows}
        self.inputs: list[tuple[int, NDArray[np.generic]]] = [
            (X + shift, self.panel),
            (STATE + shift, self.before),
        ]
        self.expected = self.before.copy()
        self.expected[:, 1] = half_sums.reference(self.panel[:, 8 * half : 8 * half + 8])


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 12, 13, 40])
@pytest.mark.parametrize("half", [0, 1])
def test_shapes(rows: int, half: int) -> None:
    case = Case(rows, half)
    outcome = run(half_sums.SYMBOL, case.arguments, case.inputs, [(STATE, case.expected.nbytes)])
    np.testing.assert_array_equal(outcome.array(STATE, case.expected), case.expected)
    assert outcome.cycles == half_sums.cycles(rows)
    exact = case.panel[:, 8 * half : 8 * half + 8].astype(np.float64).sum(axis=1)
    np.testing.assert_allclose(case.expected[:, 1], exact, rtol=1e-6, atol=1e-5)


def test_no_rows() -> None:
    arguments = {"state": STATE, "x": X, "rows": 0}
    assert run(half_sums.SYMBOL, arguments, [], []).cycles == half_sums.cycles(0)


@pytest.mark.parametrize("rows", [1, 6, 13])
def test_no_races_and_nothing_unwritten(rows: int) -> None:
    case = Case(rows, 1)
    result = guarded(half_sums.SYMBOL, case.arguments, case.inputs)
    np.testing.assert_array_equal(result.read(STATE, case.expected.shape, np.float32), case.expected)


def test_a_call_does_not_depend_on_the_one_before() -> None:
    cases = [Case(13, 1), Case(2, 0, 0x4000)]
    image = twice(half_sums.SYMBOL, [case.arguments for case in cases])
    inputs = [item for case in cases for item in case.inputs]
    outputs = [(case.places["state"], case.expected.nbytes) for case in cases]
    outcome = call(image, "driver", {}, inputs, [*outputs, (0x58600, 0xE0)])
    for case in cases:
        np.testing.assert_array_equal(outcome.array(case.places["state"], case.expected), case.expected)


def test_formula_takes_arrays() -> None:
    rows = np.array([0, 1, 9, 48])
    assert half_sums.cycles(rows).tolist() == [int(half_sums.cycles(int(r))) for r in rows]
