"""Costs of kernel calls, from kernels that are made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright.ipu21.kernels.gemm_frame import FEW_ROWS
from tilewright.ipu21.kernels.kernel import Contract, Operand, Scalar
from tilewright.ipu21.plan import cost

pytestmark = pytest.mark.unit


def test_a_call_takes_its_formula_and_what_is_beside_it_but_never_less_than_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(cost.KERNELS, "made_up", SimpleNamespace(cycles=lambda rows: 3 * rows))
    monkeypatch.setattr(cost, "_beside", lambda symbol: -50)
    assert cost.kernel("made_up", rows=20) == 10
    assert cost.kernel("made_up", rows=16) == 0
    assert cost.kernel("made_up", rows=np.array([1, 17, 100])).tolist() == [0, 1, 250]


@pytest.mark.parametrize("launch", [(9, 11, 0), None])
def test_the_call_that_is_looked_at_is_legal_and_of_common_size(
    monkeypatch: pytest.MonkeyPatch, launch: tuple[int, int, int] | None
) -> None:
    contract = Contract(
        (Operand("out", "a16", "out"), Operand("none", "a16", "unused"), Operand("in", "a16", "in")),
        (
            Scalar("any", ""),
            Scalar("many", "", minimum=40, maximum=99),
            Scalar("few", "", maximum=10),
            Scalar("even", "", minimum=8, multiple=32),
        ),
    )
    seen: dict[int, int] = {}

    def run_ahead(code: Any, entry: int, arguments: dict[int, Any], stack: int) -> list[Any]:
        seen.update((number, int(value)) for number, (value,) in arguments.items())
        return [SimpleNamespace(stop=4, cycles=7)]

    symbol = f"made_up_{launch}"
    monkeypatch.setitem(cost.KERNELS, symbol, SimpleNamespace(contract=contract))
    monkeypatch.setattr(cost, "link_kernels", lambda symbols, _: SimpleNamespace(symbols={symbol: 0}))
    monkeypatch.setattr(cost, "Code", lambda image: image)
    monkeypatch.setattr(cost, "run_ahead", run_ahead)
    monkeypatch.setattr(cost, "tail_of", lambda code, stop: SimpleNamespace(launch=launch))
    assert cost._beside(symbol) == (cost.START if launch else cost.GO_ON) - 7
    assert [seen[number] for number in sorted(seen)][3:] == [cost.SIZE, 40, 10, 32]
    assert seen[3] == 0 != seen[2] != seen[4]


def test_few_rows_are_judged_by_a_prologue_of_their_own() -> None:
    rows = np.array([6, FEW_ROWS, FEW_ROWS + 1])
    for inner, columns in ((1, 1), (2, 1), (1, 3)):
        fewest, few, more = cost.gemm(rows, inner, columns)
        assert 0 < fewest == few < more
        assert cost.gemm(FEW_ROWS, inner, columns) == few
