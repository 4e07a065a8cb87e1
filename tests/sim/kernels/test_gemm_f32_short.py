"""The form of the float32 matrix kernels for workers whose accumulators do not survive their exit."""

from __future__ import annotations

import numpy as np
import pytest
from short_runs import Family
from test_gemm_f32 import SHAPES, Case

from tilewright.ipu21.kernels import gemm_f32, gemm_f32_source
from tilewright.ipu21.kernels.gemm_frame import ADD, CHUNK_ROWS, MODES

pytestmark = pytest.mark.sim

FAMILY = Family(gemm_f32_source.source, gemm_f32.cycles_of, "f32sisov2amp $a0:1, $a6, $a4:5, TAMP_F32_E4_P0")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [*range(1, 8), 12, *range(17, 20), 24, 25, 40])
def test_result_is_exact(mode: str, rows: int) -> None:
    for inner, columns in SHAPES:
        FAMILY.check(Case(rows, inner, columns, mode))
    FAMILY.check(Case(rows, 2, 2, mode, standard=True))
    if mode == ADD:
        FAMILY.check(Case(rows, 4, 2, mode, in_place=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [152, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_large_row_counts_are_exact(mode: str, rows: int) -> None:
    FAMILY.check(Case(rows, 2, 2, mode))


def test_the_usual_form_needs_its_accumulators() -> None:
    """Otherwise the tests above would not show anything."""
    for rows in (7, 24):
        case = Case(rows, 4, 2)
        found, _ = FAMILY.found(case, survive=True, scrambled=True)
        assert not np.array_equal(found, case.expected)


def test_a_panel_takes_eight_cycles_per_row_and_228() -> None:
    for rows in (18, 60, 120):
        more, less = (gemm_f32.cycles_of("zero", rows, inner, 1, survive=False) for inner in (8, 6))
        assert more - less == 2 * (8 * rows + 228)
