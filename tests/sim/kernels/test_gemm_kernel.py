"""The float16 matrix kernels against their definition, over awkward shapes and all ways to start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import Outcome, call, halves, image_of, run, twice
from numpy.typing import NDArray

from tilewright.errors import PlacementError, UnsupportedError
from tilewright.ipu21.kernels import KERNELS, STRAIGHT, gemm, link_kernels
from tilewright.ipu21.kernels.gemm_few import FINAL, FIRST, LAST, MIDDLE
from tilewright.ipu21.kernels.gemm_few_stream import FewPanel, Opening
from tilewright.ipu21.kernels.gemm_frame import (
    ADD,
    CHUNK_ROWS,
    FEW_ROWS,
    MODES,
    NEAR_ROWS,
    PART_ROWS,
    ROW,
    ZERO,
)
from tilewright.ipu21.kernels.gemm_source import SYMBOLS
from tilewright.ipu21.kernels.gemm_tables import straight_names, straight_of
from tilewright.ipu21.machine.memory import REGION1_BASE, TILE_END
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import run_function

pytestmark = pytest.mark.sim

C = REGION1_BASE
A = 0x5C000
SHAPES = [(1, 1), (1, 2), (1, 5), (2, 1), (2, 3), (3, 2), (5, 4)]

TOLERANCE = 4.0
"""c of the tolerance c * 2^-11 * sqrt(panels) * largest partial sum."""

Halves = NDArray[np.float16]


class Case:
    """One product: its operands, where they lie, and what must come out.

    Args:
        mode: where sums start. in_place: the start array is C itself.
        standard: W lies in region 0.
    """

    def __init__(
        self,
        rows: int,
        inner: int,
        columns: int,
        mode: str = ZERO,
        *,
        in_place: bool = False,
        standard: bool = False,
        seed: int = 0,
    ) -> None:
        seed = seed or rows * 100 + inner * 10 + columns
        self.symbol = SYMBOLS[mode]
        self.shape = {"rows": rows, "inner": inner, "columns": columns}
        self.a = halves(seed, inner, rows, 16)
        self.w = halves(seed + 1, columns, inner, 16, 16, scale=0.25)
        shape = {ZERO: (0,), ROW: (columns, 16), ADD: (columns, rows, 16)}[mode]
        self.start = halves(seed + 2, *shape)
        size = -(-(rows * columns * 32) // 0x8000) * 0x8000
        self.where = {"c": C, "w": 0x70000 if standard else C + size}
        after = C + size + (0 if standard else -(-self.w.nbytes // 0x8000) * 0x8000)
        self.where["a"] = A if self.a.nbytes <= 0x70000 - A else after
        if mode != ZERO:
            behind = after + (0 if self.where["a"] == A else self.a.nbytes)
            self.where["start"] = C if in_place else behind
        self.wide = not standard
        self.mode = mode
        self.straight: str | None = None

    @property
    def arguments(self) -> dict[str, int]:
        strides = {"w_inner_stride": 512, "w_column_stride": 512 * self.shape["inner"]}
        return {**self.where, **self.shape, **strides}

    @property
    def inputs(self) -> list[tuple[int, NDArray[Any]]]:
        start = [(self.where["start"], self.start)] if self.mode != ZERO else []
        return [(self.where["a"], self.a), (self.where["w"], self.w), *start]

    @property
    def expected(self) -> Halves:
        return gemm.reference(self.a, self.w, self.start if self.mode != ZERO else None)

    @property
    def cycles(self) -> int:
        return int(KERNELS[self.symbol].cycles(**self.shape, wide=self.wide, straight=bool(self.straight)))

    def run(self) -> tuple[Halves, Outcome]:
        """C and the outcome; everything around the operands is random and must stay."""
        expected = self.expected
        outcome = run(self.symbol, self.arguments, self.inputs, [(C, expected.nbytes)])
        return outcome.array(C, expected), outcome

    def check(self) -> None:
        """Result, cycles and stray bytes."""
        c, outcome = self.run()
        np.testing.assert_array_equal(c, self.expected)
        assert outcome.cycles == self.cycles

    def check_thoroughly(self) -> None:
        """The same on a tile that faults on bytes nobody wrote and on words that two workers share."""
        image = link_kernels([self.symbol, self.straight], {}) if self.straight else image_of(self.symbol)
        result = run_function(
            image,
            self.symbol,
            KERNELS[self.symbol].contract.registers(**self.arguments),
            dict(self.inputs),
            checks=Checks.thorough(),
        )
        np.testing.assert_array_equal(result.read(C, self.expected.shape, np.float16), self.expected)
        assert result.cycles == self.cycles


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", range(1, 41))
def test_result_is_exact(mode: str, rows: int) -> None:
    for inner, columns in SHAPES:
        Case(rows, inner, columns, mode).check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", range(1, 41))
def test_nothing_unwritten_or_shared_is_read(mode: str, rows: int) -> None:
    for inner, columns in ((1, 1), (1, 3), (2, 2), (4, 1)):
        Case(rows, inner, columns, mode).check_thoroughly()
        Case(rows, inner, columns, mode, standard=True).check_thoroughly()
        if mode == ADD:
            Case(rows, inner, columns, mode, in_place=True).check_thoroughly()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "rows", [19, 24, 31, 36, 59, 150, NEAR_ROWS, NEAR_ROWS + 1, 285, 288, 790, 797, PART_ROWS + 288]
)
def test_straight_middle_panels_save_a_slot_each(rows: int, mode: str) -> None:
    for inner, columns in ((2, 2), (3, 1), (4, 3)):
        case = Case(rows, inner, columns, mode)
        with_loop = case.cycles
        case.straight = straight_of(rows)
        assert case.straight is not None
        case.check_thoroughly()
        assert with_loop - case.cycles == 6 * (inner - 2) * columns


def test_straight_panels_are_asked_for_where_there_are_some() -> None:
    asked = [
        straight_of(rows) for rows in (12, 13, 18, 19, 24, 25, 30, 31, NEAR_ROWS, NEAR_ROWS + 1, 288, 289)
    ]
    near, far = "gemm_f16_near_", "gemm_f16_far_"
    assert asked[:8] == [None, None, None, f"{near}4", f"{near}4", None, None, f"{near}6"]
    assert asked[8:] == [f"{near}26", f"{far}26", f"{far}48", None]
    asked = [straight_of(PART_ROWS + rows) for rows in (12, 13, 18, 19, 30, 288)]
    assert asked == [None, None, None, f"{far}4", f"{far}5", f"{far}48"]
    every = {name for name in map(straight_of, range(2000)) if name}
    assert every <= set(STRAIGHT)
    # The kernel itself has that one; the supervisor counts it with the others.
    assert set(straight_names()) - every == {f"{near}5"}


@pytest.mark.parametrize(
    "rows",
    [47, 53, 60, NEAR_ROWS, NEAR_ROWS + 1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 1000, 2003],
)
@pytest.mark.parametrize("mode", MODES)
def test_large_row_counts_are_exact(rows: int, mode: str) -> None:
    for inner, columns in [(1, 2), (2, 1), (3, 2)] if rows <= CHUNK_ROWS + 1 else [(2, 2)]:
        Case(rows, inner, columns, mode).check()
        Case(rows, inner, columns, mode, in_place=mode == ADD).check_thoroughly()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [2 * CHUNK_ROWS, 2 * CHUNK_ROWS + FEW_ROWS, 2 * CHUNK_ROWS + FEW_ROWS + 1])
def test_chunks_are_exact(rows: int, mode: str) -> None:
    Case(rows, 1, 2, mode).check_thoroughly()


@pytest.mark.parametrize("rows", [3, 4, 5, 6, 25, 26])
def test_rows_of_a_last_chunk_are_far_apart(rows: int) -> None:
    Case(CHUNK_ROWS + 6 * rows - 1, 3, 2).check()


@pytest.mark.parametrize("rows", [4, 12, 18, 31, 200, 800])
def test_standard_weights_take_longer(rows: int) -> None:
    for inner, columns in ((1, 2), (3, 2)):
        case = Case(rows, inner, columns, standard=True)
        case.check()
        assert case.cycles >= Case(rows, inner, columns).cycles + 32 * inner * columns


@pytest.mark.parametrize("rows", [1, 5, 12, 13, 26, 60])
@pytest.mark.parametrize("keys", [16, 32, 80])
@pytest.mark.parametrize("standard", [False, True])
def test_transposed_right_operand_needs_no_repacking(rows: int, keys: int, standard: bool) -> None:
    """Q K^T of two a16 matrices: K's panels are its own records, `keys` rows apart."""
    groups = 3
    q, k = halves(rows, groups, rows, 16), halves(keys, groups, keys, 16)
    where = {"c": C, "a": A, "w": 0x70000 if standard else C + 0x10000}
    shape = {"rows": rows, "inner": groups, "columns": keys // 16}
    strides = {"w_inner_stride": 32 * keys, "w_column_stride": 512}
    expected = gemm.reference(q, k.reshape(groups, keys // 16, 16, 16).transpose(1, 0, 2, 3))
    outcome = run(
        "gemm_f16", {**where, **shape, **strides}, [(A, q), (where["w"], k)], [(C, expected.nbytes)]
    )
    np.testing.assert_array_equal(outcome.array(C, expected), expected)
    assert outcome.cycles == gemm.cycles(**shape, wide=not standard, straight=False)


def test_weights_as_rows_and_activations_as_panels() -> None:
    """The swapped orientation: C^T = W^T A^T; 16 activation rows are the stationary panel."""
    inputs, outputs, groups = 16, 96, 4
    x, w = halves(1, groups, inputs, 16), halves(2, groups, outputs, 16)
    where = {"c": C, "a": A, "w": C + 0x8000}
    shape = {"rows": outputs, "inner": groups, "columns": 1}
    strides = {"w_inner_stride": 32 * inputs, "w_column_stride": 512}
    expected = gemm.reference(w, x.reshape(groups, 1, 16, 16).transpose(1, 0, 2, 3))
    outcome = run(
        "gemm_f16", {**where, **shape, **strides}, [(A, w), (C + 0x8000, x)], [(C, expected.nbytes)]
    )
    np.testing.assert_array_equal(outcome.array(C, expected), expected)


def test_chunks_of_inner_groups_add_up() -> None:
    """A product cut along K, each part starting from the result of the one before, is the whole product."""
    rows, inner, columns = 23, 6, 3
    whole = Case(rows, inner, columns)
    part = halves(0, columns, rows, 16) * 0
    for begin in range(0, inner, 2):
        case = Case(rows, 2, columns, ADD, in_place=True)
        case.a, case.w, case.start = whole.a[begin : begin + 2], whole.w[:, begin : begin + 2], part
        part, _ = case.run()
    np.testing.assert_array_equal(part, whole.expected)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(5, 6, 2), (24, 1, 1), (24, 8, 2), (48, 16, 3)])
def test_result_is_close_to_the_true_product(rows: int, inner: int, columns: int) -> None:
    case = Case(rows, inner, columns)
    c, _ = case.run()
    left = case.a.transpose(1, 0, 2).reshape(rows, inner * 16).astype(np.float64)
    right = case.w.transpose(0, 2, 1, 3).reshape(columns * 16, inner * 16).T.astype(np.float64)
    product = left @ right
    steps = [left[:, : 16 * k] @ right[: 16 * k] for k in range(1, inner + 1)]
    bound = TOLERANCE * 2.0**-11 * np.sqrt(inner) * np.abs(steps).max()
    assert np.abs(c.transpose(1, 0, 2).reshape(rows, columns * 16) - product).max() <= bound


@pytest.mark.parametrize("rows", [10, 16, 25])
def test_rows_are_independent(rows: int) -> None:
    case = Case(rows, 3, 2)
    expected, _ = case.run()
    case.a[:, rows - 4 :] = np.float16(np.nan)
    case.a[:, rows - 7] = np.float16(np.inf)
    found, _ = case.run()
    kept = [row for row in range(rows - 4) if row != rows - 7]
    np.testing.assert_array_equal(found[:, kept], expected[:, kept])


@pytest.mark.parametrize("rows", [2, 12, 18])
def test_sums_saturate(rows: int) -> None:
    case = Case(rows, 2, 1)
    case.a[:], case.w[:] = 200, 200
    case.w[:, 1] = -1
    c, _ = case.run()
    # 16 * 200 * 200 is above the largest half; the second group goes on from that.
    assert np.all(c == np.float16(65504 - 16 * 200))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("first", "second"),
    [((50, 4, 2), (19, 2, 3)), ((18, 1, 1), (61, 3, 1)), ((800, 3, 1), (23, 3, 2)), ((7, 2, 1), (3, 1, 2))],
)
def test_a_call_does_not_depend_on_the_one_before(
    first: tuple[int, int, int], second: tuple[int, int, int], mode: str
) -> None:
    inputs, outputs, arguments, results = [], [], [], []
    for offset, shape in ((0, first), (0x30000, second)):
        case = Case(*shape, mode)
        case.where = {name: C + offset + index * 0x8000 for index, name in enumerate(("c", "w", "start"))}
        case.where["a"] = C + offset + 0x18000
        if mode == ZERO:
            del case.where["start"]
        arguments.append(case.arguments)
        inputs += case.inputs
        outputs.append((case.where["c"], case.expected.nbytes))
        results.append(case.expected)
    symbol = SYMBOLS[mode]
    outcome = call(twice(symbol, arguments), "driver", {}, inputs, [*outputs, (0x585E0, 0x100)])
    for (begin, _), result in zip(outputs, results, strict=True):
        np.testing.assert_array_equal(outcome.array(begin, result), result)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(3, 4, 1), (31, 4, 3), (18, 1, 2), (800, 3, 2)])
def test_nothing_behind_the_operands_is_read(rows: int, inner: int, columns: int) -> None:
    """A ends at the end of memory."""
    case = Case(rows, inner, columns)
    case.where["a"] = TILE_END - case.a.nbytes
    case.check_thoroughly()


@pytest.mark.parametrize("mode", MODES)
def test_no_columns_or_rows_is_no_work(mode: str) -> None:
    for rows, columns in ((0, 1), (18, 0), (0, 0)):
        case = Case(18, 1, 1, mode)
        case.shape |= {"rows": rows, "columns": columns}
        outcome = run(case.symbol, case.arguments, [], [])
        assert outcome.cycles == case.cycles < 60


@pytest.mark.parametrize("rows", [18, 24, 25, 29, 48, 96, 152, 153, 192, 365, 586, 729, 768])
@pytest.mark.parametrize(("inner", "columns"), [(1, 8), (2, 4), (16, 1), (64, 16)])
def test_formula_keeps_the_goal(rows: int, inner: int, columns: int) -> None:
    assert gemm.cycles(rows, inner, columns) <= gemm.goal(rows, inner, columns)


@pytest.mark.parametrize("rows", range(1, 18))
def test_few_rows_take_little_more_than_their_share(rows: int) -> None:
    """Four slots per row, a hundred cycles for the weights and the launch."""
    assert gemm.panel_cycles(rows) <= 24 * -(-rows // 6) + 102


@pytest.mark.parametrize("mode", MODES)
def test_few_rows_flow_from_panel_to_panel(mode: str) -> None:
    """Eight multiplications and the exit, one more for each row whose sums are rounded on the way; four and a
    store at the end.
    """
    assert FewPanel(mode, FIRST, LAST).slots == 9
    assert FewPanel(mode, FIRST, MIDDLE).slots == 10
    assert FewPanel(mode, MIDDLE, LAST).slots == 11
    assert FewPanel(mode, FIRST, FINAL).slots == 14
    assert FewPanel().slots == 11
    assert FewPanel(ZERO, MIDDLE, FINAL).slots == 15
    pointers = {ZERO: 4, ROW: 8, ADD: 11}[mode]
    assert Opening(mode, False, False).slots == pointers + 10
    assert Opening(mode, True, False).slots == pointers + 9 + (mode == ROW)
    assert Opening(mode, True, True).slots == pointers + 14


@pytest.mark.parametrize("mode", [ROW, ADD])
@pytest.mark.parametrize("rows", range(1, FEW_ROWS + 1))
def test_interleaved_input_and_start_may_lie_side_by_side(mode: str, rows: int) -> None:
    """Words that are loaded together have different parity; so have a start's and the result's."""
    for inner, columns in SHAPES:
        case = Case(rows, inner, columns, mode)
        case.where["a"] = C + 0x20000
        case.where["start"] = case.where["a"] + case.a.nbytes
        case.check_thoroughly()
        case.where |= {"a": A, "start": C + 0x4000}
        case.check_thoroughly()


@pytest.mark.parametrize("rows", [3, FEW_ROWS])
def test_sums_from_zeros_do_not_look_at_a_start(rows: int) -> None:
    """What is given for it would lead from C to A, of which two words cannot be loaded at once."""
    case = Case(rows, 2, 2)
    contract = KERNELS[case.symbol].contract
    registers = contract.registers(**case.arguments) | {5: (A - C) & 0xFFFFFFFF}
    image = image_of(case.symbol)
    result = run_function(image, case.symbol, registers, dict(case.inputs), checks=Checks.thorough())
    np.testing.assert_array_equal(result.read(C, case.expected.shape, np.float16), case.expected)


def test_formula_takes_arrays() -> None:
    rows, inner, columns = (
        np.array([1, 18, 153, 800, 24]),
        np.array([1, 1, 2, 3, 9]),
        np.array([3, 4, 3, 2, 0]),
    )
    wide = np.array([True, False, True, False, True])
    each = zip(rows, inner, columns, wide, strict=True)
    expected = [int(gemm.cycles(int(r), int(k), int(n), bool(w))) for r, k, n, w in each]
    assert gemm.cycles(rows, inner, columns, wide).tolist() == expected


def test_contract_refuses_what_the_code_cannot_do() -> None:
    shape = {"rows": 18, "inner": 2, "columns": 3, "w_inner_stride": 512, "w_column_stride": 1 << 20}
    good = {"c": C, "a": A, "w": C + 0x8000, **shape}
    contract = KERNELS["gemm_f16"].contract
    assert contract.registers(**good) == {
        2: C, 3: A, 4: C + 0x8000, 5: 0, 6: 18, 7: 2 | 3 << 16, 8: 512, 9: 1 << 20
    }  # fmt: skip
    for name, value in (
        ("rows", gemm.MAXIMUM_ROWS + 1),
        ("inner", 0),
        ("inner", 4096),
        ("w_inner_stride", 8),
    ):
        with pytest.raises(UnsupportedError, match=name):
            contract.registers(**good | {name: value})
    for name, value in (("c", C + 8), ("c", A), ("w", C + 8), ("a", A + 8)):
        with pytest.raises(PlacementError, match=f"^{name} "):
            contract.registers(**good | {name: value})
    spans = {"c": (C, C + 576), "w": (C + 0x8000, C + 0x8200), "a": (C + 0x2000, C + 0x2240)}
    with pytest.raises(PlacementError, match="share"):
        contract.check_placement(spans)
    contract.check_placement(spans | {"a": (A, A + 576)})
    started = KERNELS["gemm_add_f16"].contract
    spans = spans | {"a": (A, A + 576), "start": (A + 0x1000, A + 0x1240)}
    with pytest.raises(PlacementError, match="share"):
        started.check_placement(spans)
    high = C + 0x20000
    started.check_placement(spans | {"a": (high, high + 576), "start": (high + 0x1000, high + 0x1240)})
    started.check_placement(spans | {"start": (C, C + 576)})
