"""What a matrix that is added to a product costs, by where it lies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.ipu21.plan.grids import Grid, Shape, result_layout
from tilewright.ipu21.plan.layout import Source, spread
from tilewright.ipu21.plan.matmul import Query, judge

pytestmark = pytest.mark.unit

SHAPE = Shape(128, 384, 384)
GRID, OTHER = Grid((5,), 24, 12), Grid((12,), 24, 5)


def query(beside: Source | None, residual: bool = True) -> Query:
    return Query(SHAPE, None, "root_f16_bias_residual", "", "", True, residual, 1, False, beside)


def partials(beside: Source | None, residual: bool = True) -> float:
    return judge(query(beside, residual), GRID).cycles["partials"]


def test_a_matrix_in_place_costs_nothing() -> None:
    here = Source(result_layout(SHAPE, GRID), 0, SHAPE.n)
    assert partials(here) == partials(None, residual=False)


def test_a_matrix_elsewhere_costs_its_words_and_its_copies() -> None:
    free = partials(None, residual=False)
    there = Source(result_layout(SHAPE, OTHER), 0, SHAPE.n)
    assert partials(there) > free + 20
    rows = Source(spread(SHAPE.m, SHAPE.n, 128), 0, SHAPE.n)
    assert free < partials(rows)


def test_columns_of_a_wider_matrix_are_brought_too() -> None:
    wide = result_layout(replace(SHAPE, n=768), GRID)
    assert partials(Source(wide, 384, SHAPE.n)) > partials(None, residual=False)
