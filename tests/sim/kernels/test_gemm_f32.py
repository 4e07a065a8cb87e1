"""The float32 matrix kernels against their definition, over awkward shapes and all ways to start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import image_of, run
from numpy.typing import NDArray

from tilewright.errors import PlacementError, UnsupportedError
from tilewright.ipu21.kernels import KERNELS, gemm_f32
from tilewright.ipu21.kernels.gemm_f32_source import STREAM_CHUNK_ROWS, SYMBOLS
from tilewright.ipu21.kernels.gemm_frame import ADD, FEW_ROWS, MODES, ROW, ZERO
from tilewright.ipu21.machine.memory import REGION1_BASE, TILE_END
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import run_function

pytestmark = pytest.mark.sim

C = REGION1_BASE
A = 0x5C000
SHAPES = [(2, 1), (2, 2), (4, 1), (2, 3), (6, 2)]

Singles = NDArray[np.float32]


def singles(seed: int, *shape: int) -> Singles:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Case:
    """One product; arguments as of the float16 cases."""

    def __init__(
        self,
        rows: int,
        inner: int,
        columns: int,
        mode: str = ZERO,
        in_place: bool = False,
        standard: bool = False,
    ) -> None:
        seed = rows * 100 + inner * 10 + columns
        self.mode, self.wide, self.symbol = mode, not standard, SYMBOLS[mode]
        self.shape = {"rows": rows, "inner": inner, "columns": columns}
        self.a, self.w = singles(seed, inner // 2, rows, 16), singles(seed + 1, columns, inner, 16, 8)
        start = {ZERO: (0,), ROW: (columns, 16), ADD: (columns, rows, 16)}[mode]
        self.start = singles(seed + 2, *start)
        size = -(-(rows * columns * 64) // 0x8000) * 0x8000
        after = C + size + (0 if standard else -(-self.w.nbytes // 0x8000) * 0x8000)
        self.where = {"c": C, "w": 0x78000 if standard else C + size, "a": A}
        if self.a.nbytes > 0x78000 - A:
            self.where["a"], after = after, after + -(-self.a.nbytes // 0x8000) * 0x8000
        if mode != ZERO:
            self.where["start"] = C if in_place else after

    @property
    def arguments(self) -> dict[str, int]:
        strides = {"w_inner_stride": 512, "w_column_stride": 512 * self.shape["inner"]}
        return {**self.where, **self.shape, **strides}

    @property
    def inputs(self) -> list[tuple[int, NDArray[Any]]]:
        start = [(self.where["start"], self.start)] if self.mode != ZERO else []
        return [(self.where["a"], self.a), (self.where["w"], self.w), *start]

    @property
    def expected(self) -> Singles:
        return gemm_f32.reference(self.a, self.w, self.start if self.mode != ZERO else None)

    def check(self) -> None:
        """Result, cycles and stray bytes; everything around the operands is random and must stay."""
        expected = self.expected
        outcome = run(self.symbol, self.arguments, self.inputs, [(C, expected.nbytes)])
        np.testing.assert_array_equal(outcome.array(C, expected), expected)
        assert outcome.cycles == KERNELS[self.symbol].cycles(**self.shape, wide=self.wide)

    def check_thoroughly(self) -> None:
        """The same on a tile that faults on bytes nobody wrote and on words that two workers share."""
        registers = KERNELS[self.symbol].contract.registers(**self.arguments)
        result = run_function(
            image_of(self.symbol), self.symbol, registers, dict(self.inputs), checks=Checks.thorough()
        )
        np.testing.assert_array_equal(result.read(C, self.expected.shape, np.float32), self.expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", range(1, 41))
def test_result_is_exact(mode: str, rows: int) -> None:
    for inner, columns in SHAPES:
        case = Case(rows, inner, columns, mode)
        case.check()
        case.check_thoroughly()
    Case(rows, 2, 2, mode, standard=True).check()
    if mode == ADD:
        Case(rows, 4, 2, mode, in_place=True).check_thoroughly()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "rows", [152, *(STREAM_CHUNK_ROWS + more for more in (0, 1, FEW_ROWS + 1, 100)), 1000]
)
def test_large_row_counts_are_exact(mode: str, rows: int) -> None:
    for inner, columns in ((2, 2), (4, 1)):
        case = Case(rows, inner, columns, mode)
        case.check()
        case.check_thoroughly()
    if mode == ADD:
        Case(rows, 2, 2, mode, in_place=True).check_thoroughly()


@pytest.mark.parametrize("mode", MODES)
def test_many_panels(mode: str) -> None:
    for rows in (3, 9, 14, 25):
        case = Case(rows, 12, 7, mode)
        case.check()
        case.check_thoroughly()


def test_a_result_is_a_legal_left_operand() -> None:
    rows, first = 21, Case(21, 2, 2)
    outcome = run(first.symbol, first.arguments, first.inputs, [(C, first.expected.nbytes)])
    second = Case(rows, 4, 1)
    second.a = outcome.array(C, first.expected).copy()
    second.check()
    left = first.a.transpose(1, 0, 2).reshape(rows, 16).astype(np.float64)
    panels = [
        c.w.transpose(0, 2, 1, 3).reshape(len(c.w) * 16, -1).T.astype(np.float64) for c in (first, second)
    ]
    np.testing.assert_allclose(second.expected[0], left @ panels[0] @ panels[1], rtol=0, atol=1e-4)


def test_nothing_behind_the_operands_is_read() -> None:
    for rows in (1, 11, 23, 40):
        case = Case(rows, 2, 2)
        case.where["a"] = TILE_END - case.a.nbytes
        case.check_thoroughly()


@pytest.mark.parametrize("mode", [ROW, ADD])
def test_sums_may_start_beside_the_result(mode: str) -> None:
    for rows in (5, 14, 25):
        case = Case(rows, 4, 2, mode)
        case.where["start"] = C + case.expected.nbytes + 16
        case.check_thoroughly()


def test_rows_are_independent() -> None:
    for rows in (4, 11, 26):
        case = Case(rows, 2, 2)
        case.a[:, 1] = np.nan
        case.a[:, 3] = np.inf
        expected = case.expected
        outcome = run(case.symbol, case.arguments, case.inputs, [(C, expected.nbytes)])
        kept = [row for row in range(rows) if row not in (1, 3)]
        np.testing.assert_array_equal(outcome.array(C, expected)[:, kept], expected[:, kept])


def test_no_columns_or_rows_is_no_work() -> None:
    for rows, columns in ((0, 1), (18, 0)):
        case = Case(18, 2, 1)
        case.shape |= {"rows": rows, "columns": columns}
        outcome = run(case.symbol, case.arguments, [], [])
        assert outcome.cycles == gemm_f32.cycles(**case.shape) < 60


def test_a_panel_takes_eight_cycles_per_row_and_84() -> None:
    """With two rows or fewer per worker a little more than with three."""
    for rows in (18, 60, 240):
        two = gemm_f32.cycles(rows, 8, 1) - gemm_f32.cycles(rows, 6, 1)
        assert two == 2 * (8 * rows + 84)
    for rows in (1, FEW_ROWS):
        assert gemm_f32.cycles(rows, 8, 1) - gemm_f32.cycles(rows, 6, 1) == 2 * 186
    rows = np.array([0, 1, 12, 13, 100, 385, 1000])
    each = [int(gemm_f32.cycles(int(count), 4, 3)) for count in rows]
    assert gemm_f32.cycles(rows, 4, 3).tolist() == each


def test_contract_refuses_what_the_code_cannot_do() -> None:
    contract = KERNELS["gemm_add_f32"].contract
    good = Case(18, 2, 1, ADD).arguments
    contract.registers(**good)
    for name, value in (("inner", 3), ("inner", 0), ("rows", gemm_f32.MAXIMUM_ROWS + 1)):
        with pytest.raises(UnsupportedError, match=name):
            contract.registers(**good | {name: value})
    with pytest.raises(PlacementError, match="must lie in interleaved"):
        contract.registers(**good | {"c": A})
    spans = {"c": (C, C + 64), "w": (A, A + 512), "start": (A + 512, A + 576), "a": (A + 576, A + 640)}
    with pytest.raises(PlacementError, match="share"):
        contract.check_placement(spans)
