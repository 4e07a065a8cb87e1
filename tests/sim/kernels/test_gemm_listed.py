"""The float16 matrix kernels that find their weight panels by a list, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import image_of, run
from listed_cases import ListedCase

from tilewright.errors import PlacementError
from tilewright.ipu21.kernels import KERNELS, gemm, link_kernels
from tilewright.ipu21.kernels.gemm_frame import CHUNK_ROWS, MODES, NEAR_ROWS
from tilewright.ipu21.kernels.gemm_source import LISTED
from tilewright.ipu21.kernels.gemm_tables import straight_of
from tilewright.ipu21.machine.memory import REGION1_BASE
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import run_function

pytestmark = pytest.mark.sim

SHAPES = [(1, 1), (1, 2), (1, 5), (2, 1), (2, 3), (3, 2), (5, 4)]


def check(case: ListedCase, *, straight: bool = False) -> None:
    """Result and cycles on a tile that faults on bytes nobody wrote."""
    names = [case.symbol]
    if straight:
        panel = straight_of(case.shape["rows"])
        assert panel is not None
        names.append(panel)
    result = run_function(
        link_kernels(names, {}) if straight else image_of(case.symbol),
        case.symbol,
        KERNELS[case.symbol].contract.registers(**case.arguments),
        dict(case.inputs),
        checks=Checks.thorough(),
    )
    expected = case.expected
    np.testing.assert_array_equal(result.read(REGION1_BASE, expected.shape, np.float16), expected)
    cycles = KERNELS[case.symbol].cycles(**case.shape, wide=case.wide, straight=straight)
    assert result.cycles == cycles


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [1, 5, 6, 12, 13, 18, 19, 30, 31, 60, NEAR_ROWS, NEAR_ROWS + 1])
def test_panels_are_found_wherever_they_lie(rows: int, mode: str) -> None:
    for inner, columns in SHAPES:
        check(ListedCase(rows, inner, columns, mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [CHUNK_ROWS, CHUNK_ROWS + 1, 2 * CHUNK_ROWS + 13])
def test_each_chunk_of_rows_begins_with_the_first_panel(rows: int, mode: str) -> None:
    for inner, columns in ((1, 2), (2, 1), (3, 1)):
        check(ListedCase(rows, inner, columns, mode))


@pytest.mark.parametrize("standard", [("own",), ("others",), ("own", "others")])
@pytest.mark.parametrize("rows", [4, 18, 31])
def test_panels_outside_interleaved_memory_take_longer(rows: int, standard: tuple[str, ...]) -> None:
    for inner, columns in ((1, 1), (1, 2), (3, 2)):
        case = ListedCase(rows, inner, columns, standard=standard)
        check(case)
        assert case.cycles >= ListedCase(rows, inner, columns).cycles + 32 * inner * columns
        assert gemm.way(case.arguments) == {"wide": False}
    assert gemm.way(ListedCase(rows, 1, 1).arguments) == {"wide": True}


@pytest.mark.parametrize("rows", [24, NEAR_ROWS + 1, 243])
def test_straight_middle_panels_are_used(rows: int) -> None:
    for inner, columns in ((3, 1), (4, 3)):
        check(ListedCase(rows, inner, columns), straight=True)


@pytest.mark.parametrize("mode", MODES)
def test_no_columns_or_rows_is_no_work(mode: str) -> None:
    for rows, columns in ((0, 1), (18, 0), (0, 0)):
        case = ListedCase(18, 1, 1, mode)
        case.shape |= {"rows": rows, "columns": columns}
        assert run(case.symbol, case.arguments, [], []).cycles == case.cycles < 60


@pytest.mark.parametrize("mode", MODES)
def test_arrays_of_panels_are_aligned(mode: str) -> None:
    contract = KERNELS[LISTED[mode]].contract
    case = ListedCase(18, 2, 1, mode)
    contract.registers(**case.arguments)
    for name, step in (("own", 8), ("others", 8), ("w", 4)):
        with pytest.raises(PlacementError, match=f"{name} at"):
            contract.registers(**case.arguments | {name: case.where[name] + step})
