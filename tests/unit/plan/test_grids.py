"""Layouts of a product's grid: what is stored once is stored once, and what is read is all there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.plan import grids
from tilewright.ipu21.plan.grids import Grid, Shape
from tilewright.ipu21.plan.layout import Layout

pytestmark = pytest.mark.unit


@st.composite
def problems(draw: st.DrawFn) -> tuple[Shape, Grid]:
    shape = Shape(draw(st.integers(1, 60)), draw(st.integers(1, 200)), draw(st.integers(1, 200)))
    k_groups, n_groups = -(-shape.k // 16), -(-shape.n // 16)
    k = draw(st.integers(1, min(k_groups, 4)))
    across = draw(st.sampled_from([part for part in range(1, k + 1) if k % part == 0]))
    grid = Grid(
        (*draw(st.sampled_from([(), (2,)])), draw(st.integers(1, min(shape.m, 6)))),
        draw(st.integers(1, min(n_groups, 5))),
        k,
        across=across,
        within=draw(st.sampled_from([1, k // across])),
        streamed=draw(st.booleans()),
        chunks=draw(st.integers(1, -(-k_groups // k))),
    )
    return shape, grid


def holders(layout: Layout) -> np.ndarray:
    """How many tiles hold each element."""
    counts = np.zeros(layout.view, dtype=int)
    for piece in layout.pieces:
        r, c = int(piece["row"]), int(piece["column"])
        counts[r : r + int(piece["rows"]), c : c + int(piece["columns"])] += 1
    return counts


@given(problems())
def test_every_element_is_stored_once(problem: tuple[Shape, Grid]) -> None:
    shape, grid = problem
    for layout in (
        grids.stored_left_layout(shape, grid, dealt=False),
        grids.stored_left_layout(shape, grid, dealt=True),
        grids.stored_weight_layout(shape, grid),
        grids.result_layout(shape, grid),
    ):
        assert (holders(layout) == 1).all()


@given(problems())
def test_who_shares_a_block_of_weights_has_as_many_panels_as_the_others(problem: tuple[Shape, Grid]) -> None:
    shape, grid = problem
    whole, stored = grids.weight_layout(shape, grid), grids.stored_weight_layout(shape, grid)
    for block in range(grid.c * grid.k):
        sharers = block + grid.c * grid.k * np.arange(grid.r)
        assert stored.bytes[sharers].sum() == whole.bytes[block]
        assert np.ptp(stored.bytes[sharers]) <= stored.record_bytes


@given(problems())
def test_chunks_are_the_whole_operand(problem: tuple[Shape, Grid]) -> None:
    shape, grid = problem
    left = sum(holders(grids.left_layout(shape, grid, chunk)) for chunk in range(grid.chunks))
    weights = sum(holders(grids.weight_layout(shape, grid, chunk)) for chunk in range(grid.chunks))
    assert (left == grid.c).all()
    assert (weights == grid.r).all()


@given(problems())
def test_result_pieces_lie_where_their_partial_sums_are_computed(problem: tuple[Shape, Grid]) -> None:
    shape, grid = problem
    partial, result = grids.partial_layout(shape, grid).shards, grids.result_layout(shape, grid).shards
    held = result["rows"] > 0
    for axis in ("row", "column"):
        begin, end = result[axis], result[axis] + result[f"{axis}s"]
        assert (begin >= partial[axis])[held].all()
        assert (end <= partial[axis] + partial[f"{axis}s"])[held].all()
