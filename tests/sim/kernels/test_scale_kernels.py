"""Scaling by one factor and by rows against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from guarded_runs import guarded
from kernel_runs import DATA, call, halves, run, twice
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS, scale
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

OUT, X, STATE = DATA, REGION1_BASE, REGION1_BASE + 0x40000
FACTORS = [0.125, 1 / np.sqrt(72), -3.7, 1e-3, 0.0, 200.0]


def bits(factor: float) -> int:
    return int(np.float32(factor).view(np.uint32))


@pytest.mark.parametrize("words", [*range(14), 24, 25, 37, 100, 1000])
@pytest.mark.parametrize("out", [OUT, X])
def test_scale(words: int, out: int) -> None:
    x = halves(words, 4 * words, scale=30)
    for factor in FACTORS:
        arguments = {"out": out, "x": X, "words": words, "factor": bits(factor)}
        outcome = run(scale.SYMBOL, arguments, [(X, x)], [(out, x.nbytes)])
        found = outcome.array(out, x)
        np.testing.assert_array_equal(found, scale.reference(x, bits(factor)))
        assert outcome.cycles == scale.cycles(words)
        exact = x.astype(np.float64) * np.float64(np.float32(factor))
        bound = 2.0**-11 * np.abs(exact) + (2.0**-22 * abs(factor) + 2.0**-25) * np.abs(x) + 2.0**-25
        assert np.all(np.abs(found - exact) <= bound)


def rows_case(rows: int, panels: int) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    x = halves(rows, panels, rows, 16)
    state = np.random.default_rng(panels).uniform(0.5, 700, (rows, 2)).astype(np.float32)
    state[2::5, 1] = 0
    return x, state


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5, 6, 7, 9, 13, 20])
@pytest.mark.parametrize("panels", [0, 1, 2, 3, 9])
def test_scale_rows(rows: int, panels: int) -> None:
    x, state = rows_case(rows, panels)
    expected = scale.rows_reference(x, state)
    for out, at in ((OUT, X), (X, X), (REGION1_BASE, DATA + 8)):
        arguments = {"out": out, "x": at, "state": STATE, "rows": rows, "panels": panels}
        outcome = run(scale.ROWS_SYMBOL, arguments, [(at, x), (STATE, state)], [(out, x.nbytes)])
        np.testing.assert_array_equal(outcome.array(out, x), expected)
        assert outcome.cycles == scale.rows_cycles(rows, panels)
    sums = state[:, 1].astype(np.float64)[None, :, None]
    exact = np.divide(x, sums, out=np.zeros(x.shape), where=sums != 0)
    assert np.all(
        np.abs(expected - exact) <= 2.0**-10.9 * np.abs(exact) + 2.0**-24 * np.maximum(np.abs(x), 1)
    )


def test_no_races_and_nothing_unwritten() -> None:
    x, state = rows_case(7, 3)
    for out in (OUT, X):
        arguments = {"out": out, "x": X, "state": STATE, "rows": 7, "panels": 3}
        result = guarded(scale.ROWS_SYMBOL, arguments, [(X, x), (STATE, state)])
        np.testing.assert_array_equal(result.read(out, x.shape, np.float16), scale.rows_reference(x, state))
        for words in (1, 6, 13, 84):
            arguments = {"out": out, "x": X, "words": words, "factor": bits(0.3)}
            guarded(scale.SYMBOL, arguments, [(X, x.reshape(-1)[: 4 * words])])


@pytest.mark.parametrize("symbol", [scale.SYMBOL, scale.ROWS_SYMBOL])
def test_a_call_does_not_depend_on_the_one_before(symbol: str) -> None:
    calls, outputs, expected = [], [], []
    inputs: list[tuple[int, NDArray[np.generic]]] = []
    for number, (rows, panels) in enumerate([(7, 3), (2, 1)]):
        x, state = rows_case(rows, panels)
        shift = 0x2000 * number
        places = {"out": OUT + shift, "x": X + shift}
        inputs.append((X + shift, x))
        if symbol == scale.SYMBOL:
            calls.append(places | {"words": x.size // 4, "factor": bits(0.7 + number)})
            expected.append(scale.reference(x, bits(0.7 + number)))
        else:
            calls.append(places | {"state": STATE + shift, "rows": rows, "panels": panels})
            inputs.append((STATE + shift, state))
            expected.append(scale.rows_reference(x, state))
        outputs.append((OUT + shift, x.nbytes))
    outcome = call(twice(symbol, calls), "driver", {}, inputs, [*outputs, (0x58600, 0xE0)])
    for (begin, _), result in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(outcome.array(begin, result), result)


def test_formulas_take_arrays() -> None:
    words = np.array([0, 1, 6, 7, 1000])
    assert scale.cycles(words).tolist() == [int(scale.cycles(int(n))) for n in words]
    rows = np.array([0, 1, 7, 60])
    each = [int(scale.rows_cycles(int(r), 3)) for r in rows]
    assert KERNELS[scale.ROWS_SYMBOL].cycles(rows=rows, panels=3).tolist() == each
