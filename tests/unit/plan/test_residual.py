"""What a matrix that is added to a product costs, by where it lies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.ipu21.plan import matmul
from tilewright.ipu21.plan.grids import Grid, Shape, result_layout
from tilewright.ipu21.plan.layout import Axis, Layout, Level, Source, spread
from tilewright.ipu21.plan.matmul import Query, judge
from tilewright.ipu21.plan.price import FREE

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


LONG = Shape(1024, 384, 384)
THROUGH = Source(result_layout(LONG, Grid((15,), 8, 12)), 0, LONG.n)
"""What a residual lies like that has come through a grid of 15 row blocks."""


def asked(beside: Source | None) -> Query:
    return replace(query(beside), shape=LONG, alone="root_f16_residual")


def test_row_blocks_of_whole_pieces_of_a_residual_leave_it_where_it_is() -> None:
    grid = Grid((30,), 8, 6)
    followed = matmul._beside(asked(THROUGH), grid)
    assert followed == replace(grid, rows=(15, 2), within=6)
    assert not THROUGH.lies_in(result_layout(LONG, grid)) and THROUGH.lies_in(result_layout(LONG, followed))
    one, other = judge(asked(THROUGH), grid).cycles, judge(asked(THROUGH), followed).cycles
    assert other["partials"] == judge(replace(asked(None), residual=False), followed).cycles["partials"]
    assert other["partials"] < one["partials"] - 200
    chosen = [item.grid for item in matmul.choose(asked(THROUGH), 1472, FREE)]
    assert followed in chosen and grid in chosen and chosen.index(followed) < chosen.index(grid)


@pytest.mark.parametrize(
    ("beside", "grid"),
    [
        (None, Grid((30,), 8, 6)),
        (THROUGH, Grid((30,), 8, 6, turned=True)),
        (THROUGH, Grid((15, 2), 8, 6)),
        # As many row blocks, more that are not made of its own, other pieces, other columns.
        (THROUGH, Grid((15,), 8, 12)),
        (THROUGH, Grid((36,), 8, 5)),
        (THROUGH, Grid((30,), 8, 4)),
        (THROUGH, Grid((30,), 4, 6)),
        (Source(spread(LONG.m, LONG.n, 1), 0, LONG.n), Grid((30,), 8, 6)),
    ],
)
def test_other_grids_do_not_follow_a_residual(beside: Source | None, grid: Grid) -> None:
    assert matmul._beside(asked(beside), grid) is None


def test_neither_turned_grids_follow_nor_any_a_batch() -> None:
    turned = Source(result_layout(LONG, Grid((16,), 8, 4, turned=True)), 0, LONG.n)
    assert matmul._beside(asked(turned), Grid((32,), 8, 2, turned=True)) is None
    # Six sequences of two rows lie like 3 blocks of 2 pieces anyway.
    shape, grid = Shape(12, 64, 64), Grid((3,), 1, 2)
    batch = Source(Layout("a16", Axis(12, 1, (), Level(6, 1)), Axis(64, 16), 6), 0, 64)
    assert batch.lies_in(result_layout(shape, grid))
    assert matmul._beside(replace(asked(batch), shape=shape), grid) is None
