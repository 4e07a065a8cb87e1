"""Layouts: every element has exactly one owner, parts are balanced, finer cuts nest inside coarser ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.plan.layout import Axis, Layout, Level, spread

pytestmark = pytest.mark.unit

parts = st.integers(1, 7)


@given(
    extent=st.integers(1, 400),
    block=st.sampled_from([1, 2, 16]),
    p=parts,
    q=parts,
    segments=st.integers(1, 4),
)
def test_axis_covers_every_element_once(extent: int, block: int, p: int, q: int, segments: int) -> None:
    extent *= segments
    axis = Axis(extent, block, (Level(p, q), Level(q, 1)), Level(segments, p * q))
    start, length, allocated = axis.resolve(np.arange(p * q * segments))
    owners = np.zeros(extent, dtype=int)
    for begin, size in zip(start, length, strict=True):
        owners[begin : begin + size] += 1
    assert (owners == 1).all()
    assert (allocated >= length).all()
    assert ((allocated == 0) == (length == 0)).all()
    assert allocated.max() == axis.largest()


@given(blocks=st.integers(1, 200), p=parts)
def test_one_level_follows_the_published_formula(blocks: int, p: int) -> None:
    # start_j = j*(b div p) + min(j, b mod p); the first b mod p parts get one block more.
    start, length, _ = Axis(blocks, 1, (Level(p, 1),)).resolve(np.arange(p))
    for j in range(p):
        assert start[j] == j * (blocks // p) + min(j, blocks % p)
        assert length[j] == blocks // p + (j < blocks % p)


@given(extent=st.integers(1, 300), p=parts, q=parts)
def test_second_level_nests_in_first(extent: int, p: int, q: int) -> None:
    tiles = np.arange(p * q)
    coarse, coarse_length, _ = Axis(extent, 1, (Level(p, q),)).resolve(tiles)
    fine, fine_length, _ = Axis(extent, 1, (Level(p, q), Level(q, 1))).resolve(tiles)
    assert (fine >= coarse).all()
    assert (fine + fine_length <= coarse + coarse_length).all()


@given(rows=st.integers(1, 90), columns=st.integers(1, 90), r=parts, c=parts, k=parts)
def test_a_grid_without_replicas_partitions_the_matrix(
    rows: int, columns: int, r: int, c: int, k: int
) -> None:
    layout = Layout(
        "a16", Axis(rows, 1, (Level(r, k * c), Level(k, c))), Axis(columns, 16, (Level(c, 1),)), r * c * k
    )
    seen = np.zeros((rows, columns), dtype=int)
    for shard in layout.shards:
        row, column = int(shard["row"]), int(shard["column"])
        seen[row : row + int(shard["rows"]), column : column + int(shard["columns"])] += 1
    assert (seen == 1).all()
    assert (layout.bytes == layout.shards["padded_rows"] * layout.shards["padded_columns"] * 2).all()
    assert (layout.shards["padded_columns"] % 16 == 0).all()


def test_spread_uses_no_more_tiles_than_rows() -> None:
    assert spread(3, 10, 64).tiles == 3
    assert spread(100, 10, 64).tiles == 64


@given(extent=st.integers(1, 200), p=parts, windows=st.integers(1, 5))
def test_windows_of_a_part_cover_it_once(extent: int, p: int, windows: int) -> None:
    tiles = np.arange(p)
    start, length, _ = Axis(extent, 16, (Level(p, 1),)).resolve(tiles)
    covered = np.zeros(extent, dtype=int)
    for index in range(windows):
        begin, size, _ = Axis(extent, 16, (Level(p, 1), Level(windows, 1, index))).resolve(tiles)
        for b, n in zip(begin, size, strict=True):
            covered[b : b + n] += 1
        inside = (begin >= start) & (begin + size <= start + length)
        assert (inside | (size == 0)).all()
    assert (covered == 1).all()
