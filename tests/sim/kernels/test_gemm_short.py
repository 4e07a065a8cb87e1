"""The form of the float16 matrix kernels for workers whose accumulators do not survive their exit."""

from __future__ import annotations

import numpy as np
import pytest
from short_runs import Family
from test_gemm_kernel import SHAPES, Case

from tilewright.ipu21.kernels import gemm, gemm_source
from tilewright.ipu21.kernels.gemm_frame import ADD, CHUNK_ROWS, FEW_ROWS, MODES, NEAR_ROWS

pytestmark = pytest.mark.sim

FAMILY = Family(gemm_source.source, gemm.cycles_of, "f16v4hihov4amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P0")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", range(1, 41))
def test_result_is_exact(mode: str, rows: int) -> None:
    for inner, columns in SHAPES:
        FAMILY.check(Case(rows, inner, columns, mode))
        if mode == ADD:
            FAMILY.check(Case(rows, inner, columns, mode, in_place=True))
    FAMILY.check(Case(rows, 2, 2, mode, standard=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [NEAR_ROWS, NEAR_ROWS + 1, CHUNK_ROWS, CHUNK_ROWS + FEW_ROWS, 1000])
def test_large_row_counts_are_exact(mode: str, rows: int) -> None:
    for inner, columns in ((1, 2), (2, 1), (3, 2)):
        FAMILY.check(Case(rows, inner, columns, mode))


def test_the_usual_form_needs_its_accumulators() -> None:
    """Otherwise the tests above would not show anything."""
    case = Case(24, 3, 2)
    found, _ = FAMILY.found(case, survive=True, scrambled=True)
    assert not np.array_equal(found, case.expected)


def test_a_panel_takes_little_more_than_the_published_one() -> None:
    """Four cycles per row and 162; the published kernel is fitted by 235."""
    for rows in (18, 60, 120):
        more = gemm.cycles_of("zero", rows, 9, 1, survive=False) - gemm.cycles_of(
            "zero", rows, 8, 1, survive=False
        )
        assert more == 4 * rows + 162
