"""The matrix kernel against its definition, over awkward shapes."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import Outcome, call, halves, image_of, run, twice
from numpy.typing import NDArray

from tilewright.errors import PlacementError, UnsupportedError
from tilewright.ipu21.kernels import gemm
from tilewright.ipu21.kernels.gemm_source import NEAR_ROWS, STRIDE_ROWS
from tilewright.ipu21.machine.memory import REGION1_BASE, TILE_END
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import run_function

pytestmark = pytest.mark.sim

C = REGION1_BASE
A = 0x5C000

TOLERANCE = 4.0
"""c of the tolerance c * 2^-11 * sqrt(panels) * largest partial sum."""

Halves = NDArray[np.float16]


def operands(rows: int, inner: int, columns: int, seed: int = 0) -> tuple[Halves, Halves]:
    return halves(seed, inner, rows, 16), halves(seed + 1, columns, inner, 16, 16, scale=0.25)


def places(rows: int, inner: int, columns: int) -> dict[str, int]:
    """C at the start of region 1, W in a later element, A in region 0 or, if it is large, behind W."""
    w = C + 0x8000 * -(-(rows * columns * 32) // 0x8000)
    a = A if rows * inner * 32 <= REGION1_BASE - A else w + 512 * inner * columns
    return {"c": C, "w": w, "a": a}


def multiply(a: Halves, w: Halves) -> tuple[Halves, Outcome]:
    inner, rows, _ = a.shape
    columns = len(w)
    where = places(rows, inner, columns)
    outcome = run(
        "gemm_f16",
        {**where, "rows": rows, "inner": inner, "columns": columns},
        [(where["a"], a), (where["w"], w)],
        [(where["c"], rows * columns * 32)],
    )
    return outcome.array(where["c"], np.zeros((columns, rows, 16), np.float16)), outcome


@pytest.mark.parametrize("rows", [*range(18, 31), 35, 36, 47, 53, 60])
@pytest.mark.parametrize(("inner", "columns"), [(1, 1), (1, 2), (1, 5), (2, 1), (2, 3), (3, 2), (5, 4)])
def test_result_is_exact(rows: int, inner: int, columns: int) -> None:
    a, w = operands(rows, inner, columns, seed=rows * 100 + inner * 10 + columns)
    c, outcome = multiply(a, w)
    np.testing.assert_array_equal(c, gemm.reference(a, w))
    assert outcome.cycles == gemm.cycles(rows, inner, columns)


@pytest.mark.parametrize(
    "rows",
    [NEAR_ROWS - 1, NEAR_ROWS, NEAR_ROWS + 1, STRIDE_ROWS - 1, STRIDE_ROWS, STRIDE_ROWS + 1, 1000, 2003],
)
@pytest.mark.parametrize(("inner", "columns"), [(1, 2), (2, 2), (3, 2), (4, 1)])
def test_large_row_counts_are_exact(rows: int, inner: int, columns: int) -> None:
    a, w = operands(rows, inner, columns, seed=rows)
    c, outcome = multiply(a, w)
    np.testing.assert_array_equal(c, gemm.reference(a, w))
    assert outcome.cycles == gemm.cycles(rows, inner, columns)


def test_most_rows() -> None:
    a, w = operands(gemm.MAXIMUM_ROWS, 1, 1)
    c, outcome = multiply(a, w)
    np.testing.assert_array_equal(c, gemm.reference(a, w))
    assert outcome.cycles == gemm.cycles(gemm.MAXIMUM_ROWS, 1, 1)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(24, 1, 1), (24, 8, 2), (48, 16, 3), (31, 5, 2)])
def test_result_is_close_to_the_true_product(rows: int, inner: int, columns: int) -> None:
    a, w = operands(rows, inner, columns)
    c, _ = multiply(a, w)
    left = a.transpose(1, 0, 2).reshape(rows, inner * 16).astype(np.float64)
    right = w.transpose(0, 2, 1, 3).reshape(columns * 16, inner * 16).T.astype(np.float64)
    product = left @ right
    steps = [left[:, : 16 * k] @ right[: 16 * k] for k in range(1, inner + 1)]
    bound = TOLERANCE * 2.0**-11 * np.sqrt(inner) * np.abs(steps).max()
    assert np.abs(c.transpose(1, 0, 2).reshape(rows, columns * 16) - product).max() <= bound


def test_rows_are_independent() -> None:
    a, w = operands(25, 3, 2)
    wild = a.copy()
    wild[:, 20:] = np.float16(np.nan)
    wild[:, 17] = np.float16(np.inf)
    expected, _ = multiply(a, w)
    found, _ = multiply(wild, w)
    kept = [row for row in range(20) if row != 17]
    np.testing.assert_array_equal(found[:, kept], expected[:, kept])


def test_sums_saturate() -> None:
    a, w = np.full((2, 18, 16), 200, np.float16), np.full((1, 2, 16, 16), 200, np.float16)
    w[:, 1] = -1
    c, _ = multiply(a, w)
    # 16 * 200 * 200 is above the largest half; the second group goes on from that.
    assert np.all(c == np.float16(65504 - 16 * 200))


@pytest.mark.parametrize(
    ("first", "second"), [((50, 4, 2), (19, 2, 3)), ((18, 1, 1), (61, 3, 1)), ((800, 3, 1), (23, 3, 2))]
)
def test_a_call_does_not_depend_on_the_one_before(
    first: tuple[int, int, int], second: tuple[int, int, int]
) -> None:
    inputs, outputs, arguments, expected = [], [], [], []
    cursor = C
    for rows, inner, columns in (first, second):
        a, w = operands(rows, inner, columns, seed=rows)
        where = {"c": cursor, "w": cursor + 0x8000 * -(-(rows * columns * 32) // 0x8000)}
        where["a"] = A if rows < 800 else where["w"] + 0x8000
        cursor = where["a"] + 0x20000 if where["a"] != A else where["w"] + 0x8000
        arguments.append({**where, "rows": rows, "inner": inner, "columns": columns})
        inputs += [(where["a"], a), (where["w"], w)]
        outputs.append((where["c"], rows * columns * 32))
        expected.append(gemm.reference(a, w))
    # Both calls read the second call's A where they share its place.
    if arguments[0]["a"] == arguments[1]["a"]:
        arguments[0]["a"] += 0x10000
        inputs[0] = (arguments[0]["a"], inputs[0][1])
    outcome = call(
        twice("gemm_f16", arguments), "driver", {}, inputs, [*outputs, (0x586D8, 8), (0x58680, 96)]
    )
    for (begin, _), result in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(outcome.array(begin, result), result)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(31, 4, 3), (18, 1, 2), (200, 3, 2), (800, 3, 2)])
def test_nothing_unwritten_is_read(rows: int, inner: int, columns: int) -> None:
    """A ends at the end of memory, C was never written, and the tile faults on any byte nobody wrote."""
    a, w = operands(rows, inner, columns)
    where = {"c": C, "w": C + 0x10000 * columns, "a": TILE_END - a.nbytes}
    result = run_function(
        image_of("gemm_f16"),
        "gemm_f16",
        gemm.CONTRACT.registers(**where, rows=rows, inner=inner, columns=columns),
        {where["a"]: a, where["w"]: w},
        checks=Checks(poison=True),
    )
    np.testing.assert_array_equal(result.read(C, (columns, rows, 16), np.float16), gemm.reference(a, w))


def test_no_columns_is_no_work() -> None:
    outcome = run("gemm_f16", {"c": C, "a": A, "w": C + 0x8000, "rows": 18, "inner": 1, "columns": 0}, [], [])
    assert outcome.cycles < 40


@pytest.mark.parametrize("rows", [18, 24, 25, 29, 48, 96, 152, 153, 192, 365, 586, 729, 768, 769, 1000])
@pytest.mark.parametrize(("inner", "columns"), [(1, 1), (1, 8), (2, 1), (2, 4), (16, 1), (64, 16)])
def test_formula_keeps_the_goal(rows: int, inner: int, columns: int) -> None:
    assert gemm.cycles(rows, inner, columns) <= gemm.goal(rows, inner, columns)


def test_formula_takes_arrays() -> None:
    rows, inner, columns = np.array([18, 153, 800, 24]), np.array([1, 2, 3, 9]), np.array([4, 3, 2, 0])
    each = [gemm.cycles(int(r), int(k), int(n)) for r, k, n in zip(rows, inner, columns, strict=True)]
    assert gemm.cycles(rows, inner, columns).tolist() == each


def test_contract_refuses_what_the_code_cannot_do() -> None:
    good = {"c": C, "a": A, "w": C + 0x8000, "rows": 18, "inner": 1, "columns": 1}
    assert gemm.CONTRACT.registers(**good) == {2: C, 3: A, 4: C + 0x8000, 5: 18, 6: 1, 7: 1}
    for name, value in (("rows", 17), ("rows", gemm.MAXIMUM_ROWS + 1), ("inner", 0)):
        with pytest.raises(UnsupportedError, match=name):
            gemm.CONTRACT.registers(**good | {name: value})
    for name, value in (("c", C + 8), ("c", A), ("w", A), ("a", A + 4)):
        with pytest.raises(PlacementError, match=f"^{name} "):
            gemm.CONTRACT.registers(**good | {name: value})
    spans = {"c": (C, C + 576), "w": (C + 0x8000, C + 0x8200), "a": (C + 0x2000, C + 0x2240)}
    with pytest.raises(PlacementError, match="share"):
        gemm.CONTRACT.check_placement(spans)
    gemm.CONTRACT.check_placement(spans | {"a": (A, A + 576)})
