"""Softmax against NumPy: bits and cycles, shapes around the workers' split, ragged and causal columns."""

from __future__ import annotations

import numpy as np
import pytest
from guarded_runs import guarded
from kernel_runs import DATA, call, run, twice
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS, softmax
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

Halves = NDArray[np.float16]

P, SCORES, STATE = DATA, REGION1_BASE, REGION1_BASE + 0x40000
SHAPES = [(rows, panels) for rows in (1, 2, 5, 6, 7, 9, 13, 20) for panels in (1, 2, 3, 9)]


class Case:
    """Operands of one call and what it must give. `diagonal` None: not causal."""

    def __init__(
        self,
        rows: int,
        panels: int,
        valid: int,
        diagonal: int | None = None,
        *,
        scale: float = 4,
        p: int = P,
        scores: int = SCORES,
        state: int = STATE,
        summed: bool = True,
    ) -> None:
        plain = softmax.SYMBOL if summed else softmax.UNSUMMED_SYMBOL
        self.symbol = plain if diagonal is None else softmax.CAUSAL_SYMBOL
        # The other words of a state may hold sums or what was there.
        self.words = slice(None) if summed or panels < 2 or valid != 16 * panels else slice(1)
        values = np.random.default_rng(100 * rows + valid).standard_normal((panels, rows, 16)) * scale
        self.values = np.clip(values, -65504, 65504).astype(np.float16)
        self.places = {"p": p, "scores": scores, "state": state}
        self.scalars = {"rows": rows, "panels": panels, "valid": valid}
        if diagonal is not None:
            self.scalars["diagonal"] = diagonal
        self.p, self.state = softmax.reference(self.values, valid, diagonal)

    @property
    def inputs(self) -> list[tuple[int, Halves]]:
        return [(self.places["scores"], self.values)]

    @property
    def outputs(self) -> list[tuple[int, int]]:
        return [(self.places["p"], self.p.nbytes), (self.places["state"], self.state.nbytes)]

    @property
    def pairs_of_zeros(self) -> int:
        """How often two neighbours are both the largest of their row."""
        largest = (self.values.astype(np.float32) == self.state[:, 0][:, None]).reshape(-1, 2)
        return int(largest.all(axis=1).sum())

    def check(self) -> None:
        outcome = run(self.symbol, self.places | self.scalars, self.inputs, self.outputs)
        np.testing.assert_array_equal(outcome.array(self.places["p"], self.p), self.p)
        state = outcome.array(self.places["state"], self.state)
        np.testing.assert_array_equal(state[:, self.words], self.state[:, self.words])
        saved = KERNELS[self.symbol].cycles(**self.scalars) - outcome.cycles
        assert 0 <= saved <= 6 * self.pairs_of_zeros


@pytest.mark.parametrize(("rows", "panels"), SHAPES)
def test_shapes(rows: int, panels: int) -> None:
    for valid in sorted({16 * panels, 16 * panels - 1, 16 * panels - 13, 16 * (panels - 1), 3, 0}):
        Case(rows, panels, valid).check()
        Case(rows, panels, valid, summed=False, p=SCORES if valid % 3 else P).check()


@pytest.mark.parametrize(("rows", "panels"), SHAPES)
def test_without_sums_in_place_and_apart(rows: int, panels: int) -> None:
    for p in (P, SCORES):
        Case(rows, panels, 16 * panels, summed=False, p=p).check()
    p, largest = softmax.unsummed_reference(Case(rows, panels, 16).values, 16)
    assert p.shape == (panels, rows, 16) and largest.shape == (rows,)


@pytest.mark.parametrize("valid", range(33))
def test_every_tail(valid: int) -> None:
    Case(7, 2, valid).check()
    Case(3, 3, valid, p=SCORES).check()


@pytest.mark.parametrize(("rows", "panels"), SHAPES)
def test_causal(rows: int, panels: int) -> None:
    for diagonal in (-30, -3, 0, 1, 15, 40):
        Case(rows, panels, 16 * panels - 5, diagonal).check()
        Case(rows, panels, 16 * panels, diagonal, p=SCORES).check()


@pytest.mark.parametrize(("panels", "valid"), [(1, 16), (1, 9), (2, 32), (0, 0)])
@pytest.mark.parametrize("summed", [False, True])
def test_no_rows_take_as_long_as_the_formula_says(panels: int, valid: int, summed: bool) -> None:
    case = Case(0, panels, valid, summed=summed)
    cycles = run(case.symbol, case.places | case.scalars, [], []).cycles
    assert cycles == KERNELS[case.symbol].cycles(rows=0, panels=panels, valid=valid)


def test_large_scores_saturate() -> None:
    for scale in (3000, 30000):
        Case(13, 4, 61, scale=scale).check()
        Case(13, 4, 61, 12, scale=scale, p=REGION1_BASE + 0x10000, scores=DATA).check()


@pytest.mark.parametrize(("panels", "valid"), [(3, 40), (1, 16), (2, 32)])
@pytest.mark.parametrize("summed", [False, True])
def test_scores_of_minus_infinity_do_not_count(panels: int, valid: int, summed: bool) -> None:
    case = Case(14, panels, valid, summed=summed)
    case.values[:, :, 1::3] = -np.inf
    case.values[:, 2] = -np.inf
    case.values[:, 9] = -np.inf
    case.p, case.state = softmax.reference(case.values, valid)
    assert case.state[9].tolist() == [-65504, 0]
    assert case.state[2].tolist() == [-65504, 0]
    outcome = run(case.symbol, case.places | case.scalars, case.inputs, case.outputs)
    np.testing.assert_array_equal(outcome.array(P, case.p), case.p)
    state = outcome.array(STATE, case.state)
    np.testing.assert_array_equal(state[:, case.words], case.state[:, case.words])


def test_rows_of_the_lowest_half() -> None:
    """All that count are -65504: the padding must not count beside them."""
    case = Case(2, 2, 21)
    case.values[:] = softmax.LOWEST
    case.p, case.state = softmax.reference(case.values, 21)
    assert case.state.tolist() == [[-65504, 21]] * 2
    case.check()


@pytest.mark.parametrize(("diagonal", "summed"), [(None, True), (None, False), (2, True)])
def test_no_races_and_nothing_unwritten(diagonal: int | None, summed: bool) -> None:
    for rows, panels, valid in ((7, 1, 16), (2, 1, 16), (13, 3, 48), (2, 2, 32), (13, 3, 37), (2, 4, 17)):
        for p in (P, SCORES):
            case = Case(rows, panels, valid, diagonal, p=p, summed=summed)
            result = guarded(case.symbol, case.places | case.scalars, case.inputs)
            np.testing.assert_array_equal(result.read(p, case.p.shape, np.float16), case.p)


@pytest.mark.parametrize("diagonal", [None, -1])
def test_no_work(diagonal: int | None) -> None:
    Case(0, 3, 40, diagonal).check()
    Case(7, 0, 0, diagonal).check()
    Case(0, 0, 0, diagonal).check()


def test_against_softmax_in_double() -> None:
    case = Case(9, 4, 60, scale=2)
    p, state = case.p.astype(np.float64), case.state.astype(np.float64)
    scores = case.values.astype(np.float64).transpose(1, 0, 2).reshape(9, 64)[:, :60]
    exact = np.exp(scores - scores.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    found = p.transpose(1, 0, 2).reshape(9, 64)[:, :60] / state[:, 1:]
    # Half an ulp of the difference (below 16) in the exponent, half an ulp of p, either in the sum too.
    assert np.all(np.abs(found - exact) <= 2 * (2.0**-8 + 2.0**-11) * exact + 2.0**-24)


@pytest.mark.parametrize(("diagonal", "summed"), [(None, True), (None, False), (3, True)])
def test_a_call_does_not_depend_on_the_one_before(diagonal: int | None, summed: bool) -> None:
    more = {"p": P + 0x4000, "scores": SCORES + 0x4000, "state": STATE + 0x400}
    cases = [Case(13, 4, 51, diagonal, summed=summed), Case(2, 2, 32, diagonal, summed=summed, **more)]
    image = twice(cases[0].symbol, [case.places | case.scalars for case in cases])
    inputs = [item for case in cases for item in case.inputs]
    outputs = [item for case in cases for item in case.outputs]
    outcome = call(image, "driver", {}, inputs, [*outputs, (0x58600, 0xE0)])
    for case in cases:
        np.testing.assert_array_equal(outcome.array(case.places["p"], case.p), case.p)
        state = outcome.array(case.places["state"], case.state)
        np.testing.assert_array_equal(state[:, case.words], case.state[:, case.words])


def test_what_sums_cost() -> None:
    """Of 17 slots per half panel, one; and a row's own sum."""
    rows, panels = 48, 6
    both = [
        int(KERNELS[symbol].cycles(rows=rows, panels=panels, valid=16 * panels))
        for symbol in (softmax.SYMBOL, softmax.UNSUMMED_SYMBOL)
    ]
    assert both[0] - both[1] >= rows * (2 * panels + 6) - 60


def test_goal() -> None:
    """1.6 cycles per element and 26 slots per row, and the fixed part once."""
    assert softmax.cycles(48, 16, 256) <= 1.65 * 48 * 256 + 48 * 26 + 200
    rows = np.array([0, 1, 9, 48])
    each = [int(softmax.cycles(int(r), 3, 40)) for r in rows]
    assert softmax.cycles(rows, 3, 40).tolist() == each
    each = [int(softmax.causal_cycles(int(r), 3, 40, -2)) for r in rows]
    assert softmax.causal_cycles(rows, 3, 40, -2).tolist() == each
