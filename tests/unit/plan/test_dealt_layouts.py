"""Layouts whose rectangles are dealt: the tiles that need the same one own a run of its records each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.plan.grids import Grid, Shape, left_layout, stored_left_layout, stored_weight_layout
from tilewright.ipu21.plan.layout import Layout

pytestmark = pytest.mark.unit

SMALL = st.integers(1, 70)
PARTS = st.integers(1, 4)


def check(layout: Layout) -> None:
    """Every element lies in one piece, padding belongs to it, and pieces follow each other on their tile."""
    pieces = layout.pieces
    owners = np.zeros((layout.row.extent, layout.column.extent), dtype=int)
    for piece in pieces:
        row, column = int(piece["row"]), int(piece["column"])
        assert 0 <= piece["rows"] <= piece["padded_rows"] and 0 <= piece["columns"] <= piece["padded_columns"]
        assert row + piece["rows"] <= layout.row.extent and column + piece["columns"] <= layout.column.extent
        owners[row : row + int(piece["rows"]), column : column + int(piece["columns"])] += 1
    assert (owners == 1).all()
    size = (pieces["padded_rows"] * pieces["padded_columns"]).astype(np.int64) * layout.element_bytes
    assert np.bincount(pieces["tile"], size, layout.tiles).tolist() == layout.bytes.tolist()
    for tile in range(layout.tiles):
        mine = pieces["tile"] == tile
        assert pieces["offset"][mine].tolist() == (np.cumsum(size[mine]) - size[mine]).tolist()
        assert len(pieces[mine]) <= 3
    first, count = layout.runs
    holders = layout.shards["rows"] > 0
    for corner in {(int(s["row"]), int(s["column"])) for s in layout.shards[holders]}:
        same = holders & (layout.shards["row"] == corner[0]) & (layout.shards["column"] == corner[1])
        begin = np.cumsum(count[same]) - count[same]
        assert first[same].tolist() == begin.tolist()
        blocks = count[same] * layout.units.rows // layout.row.block
        assert blocks.max() - blocks.min() <= 1


@given(m=SMALL, n=SMALL, k=SMALL, r=PARTS, c=PARTS, inner=PARTS)
def test_weights(m: int, n: int, k: int, r: int, c: int, inner: int) -> None:
    check(stored_weight_layout(Shape(m, n, k), Grid((r,), c, inner, streamed=True)))


@given(m=SMALL, n=SMALL, k=SMALL, r=PARTS, c=PARTS, inner=PARTS)
def test_left_operands(m: int, n: int, k: int, r: int, c: int, inner: int) -> None:
    check(stored_left_layout(Shape(m, n, k), Grid((r,), c, inner), dealt=True))


def test_what_is_dealt_is_not_the_same_as_replicas() -> None:
    whole = left_layout(Shape(40, 40, 40), Grid((2,), 2, 1))
    dealt = replace(whole, dealt=True)
    assert whole.same_shards(replace(whole)) and not whole.same_shards(dealt)
    assert whole.complete and not dealt.complete
