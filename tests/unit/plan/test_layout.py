"""Layouts: every element has exactly one owner, parts are balanced, finer cuts nest inside coarser ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.plan.layout import Axis, Layout, Level, Line, Source, spread

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


@given(extent=st.integers(1, 400), block=st.sampled_from([1, 16]), o=parts, p=parts, w=parts)
def test_parts_of_whole_pieces_are_made_of_them(extent: int, block: int, o: int, p: int, w: int) -> None:
    tiles = np.arange(o * p * w)
    outer = Level(o, p * w)
    coarse = Axis(extent, block, (outer, Level(p, w, within=w)))
    start, length, allocated = coarse.resolve(tiles)
    pieces = [
        column.reshape(-1, w) for column in Axis(extent, block, (outer, Level(p * w, 1))).resolve(tiles)
    ]
    for index in range(w):
        assert (length.reshape(-1, w)[:, index] == pieces[1].sum(axis=1)).all()
        assert (allocated.reshape(-1, w)[:, index] == pieces[2].sum(axis=1)).all()
        held = pieces[1][:, 0] > 0
        assert (start.reshape(-1, w)[held, index] == pieces[0][held, 0]).all()
    assert coarse.largest() == allocated.max()
    assert (coarse.smallest() == 0) == (length.min() == 0)
    if extent % block == 0:
        assert coarse.smallest() * block == length.min()


@given(extent=st.integers(1, 400), block=st.sampled_from([1, 16]), o=parts, p=st.integers(2, 7))
def test_the_last_part_may_be_as_large_as_all_others(extent: int, block: int, o: int, p: int) -> None:
    axis = Axis(extent, block, (Level(o, p), Level(p, 1, half=True)))
    start, length, allocated = (column.reshape(o, p) for column in axis.resolve(np.arange(o * p)))
    assert (start[:, 1:] == start[:, :-1] + allocated[:, :-1])[allocated[:, 1:] > 0].all()
    assert length.sum() == extent and allocated.max() == axis.largest()
    assert (axis.smallest() == 0) == (allocated.min() == 0)
    # The first shares have the blocks that are left over.
    others, last = allocated[:, :-1].sum(axis=1), allocated[:, -1]
    assert (others >= last).all() and (others - last <= (p - 1) * block).all()
    assert (allocated[:, 0] - allocated[:, -2] <= block).all()


@pytest.mark.parametrize("blocks", range(1, 12))
def test_smallest_and_largest_part_beside_one_that_is_half(blocks: int) -> None:
    _, length, _ = Axis(blocks, 1, (Level(4, 1, half=True),)).resolve(np.arange(4))
    level = Level(4, 1, half=True)
    assert (level.smallest(blocks), level.largest(blocks)) == (length.min(), length.max())


def test_the_tile_whose_partner_is_in_another_group_has_the_last_part() -> None:
    level = Level(5, 1, mirrored=True)
    groups = level.part_of(np.arange(20)).reshape(4, 5)
    assert groups.tolist() == [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]] * 2
    lone = np.flatnonzero(groups.reshape(-1) == 4)
    assert (lone // 5 != (lone ^ 1) // 5).all()


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


def test_segments_are_equal_and_a_cut_into_one_part_is_none() -> None:
    assert Axis(12, 1, (Level(1, 3), Level(2, 1)), Level(1, 7)) == Axis(12, 1, (Level(2, 1),))
    assert Axis(12, 1, (), Level(4, 1)).segment == 3
    with pytest.raises(AssertionError, match="10 elements do not make 4 equal segments"):
        Axis(10, 1, (), Level(4, 1))


def test_turns_deal_out_what_is_left() -> None:
    # Five sequences of three rows, two at a time: of the last turn only one tile has one.
    for first, starts, lengths in ((0, [0, 3], [3, 3]), (2, [6, 9], [3, 3]), (4, [12, 12], [3, 0])):
        start, length, allocated = Axis(15, 1, (), Level(5, 1, first=first)).resolve(np.arange(2))
        assert start.tolist() == starts and length.tolist() == lengths == allocated.tolist()


def test_a_tile_without_rows_or_without_columns_owns_nothing() -> None:
    # Three parts of two rows, or of two column blocks.
    for row, column in ((Axis(2, 1, (Level(3, 1),)), Axis(16, 16)), (Axis(2), Axis(32, 16, (Level(3, 1),)))):
        layout = Layout("a16", row, column, 3)
        for field in ("rows", "padded_rows", "columns", "padded_columns"):
            assert (layout.shards[field] > 0).tolist() == [True, True, False]
        assert (layout.bytes > 0).tolist() == [True, True, False]


ROWS = Layout("a16", Axis(4, 1, (Level(2, 1),)), Axis(32, 16), 2)


@pytest.mark.parametrize(
    "other",
    [
        replace(ROWS, order="row16"),
        replace(ROWS, tiles=4),
        replace(ROWS, row=Axis(4, 1, (Level(2, 1, 0),))),
        Layout("a16", Axis(4), Axis(32, 16, (Level(2, 1),)), 2),
    ],
)
def test_layouts_that_differ(other: Layout) -> None:
    assert not ROWS.same_shards(other) and not other.same_shards(ROWS)


def test_layouts_that_say_the_same_in_other_words() -> None:
    assert ROWS.same_shards(replace(ROWS, row=Axis(4, 1, (), Level(2, 1))))


def test_a_window_of_one_extent_is_not_all_of_another() -> None:
    """Of four rows the first two, or two rows: the shards are equal, the matrices are not."""
    window = replace(ROWS, row=Axis(4, 1, (Level(2, 1, 0),)))
    whole = replace(ROWS, row=Axis(2))
    assert np.array_equal(window.shards, whole.shards)
    assert not window.same_shards(whole)


@pytest.mark.parametrize("of", ["row", "column"])
@pytest.mark.parametrize(
    ("levels", "segments", "complete"),
    [
        ((), None, True),
        ((Level(2, 1),), Level(2, 2), True),
        ((Level(2, 1, 1),), None, False),
        ((Level(2, 1),), Level(2, 2, 0), False),
        ((Level(2, 1),), Level(2, 2, first=0), False),
    ],
)
def test_windows_and_turns_are_not_complete(
    of: str, levels: tuple[Level, ...], segments: Level | None, complete: bool
) -> None:
    layout = replace(ROWS, **{of: Axis(64, 1, levels, segments)})
    assert layout.complete == complete


def test_a_layout_in_words() -> None:
    row = Axis(12, 1, (Level(3, 1), Level(2, 3)), Level(2, 6))
    layout = Layout("a16", row, Axis(32, 16), 12)
    assert layout.describe() == "a16 [rows 12 / 2 x 3 x 2, columns 32] on 12 tiles"
    assert replace(layout, row=Axis(12)).describe() == "a16 [rows 12, columns 32] on 12 tiles"


@pytest.mark.parametrize(
    ("source", "whole"),
    [(Source(ROWS, 0, 32), True), (Source(ROWS, 0, 16), False), (Source(ROWS, 16, 16), False)],
)
def test_only_all_columns_lie_where_they_are(source: Source, whole: bool) -> None:
    assert source.whole == whole
    assert source.lies_in(ROWS) == whole
    assert not source.lies_in(replace(ROWS, order="row16"))


def test_columns_from_the_second_on_are_never_all() -> None:
    assert not Source(ROWS, 16, 32).whole


@given(
    blocks=st.integers(1, 6),
    rows=st.integers(1, 20),
    inner=st.lists(st.integers(0, 120), max_size=8),
    groups=st.integers(1, 3),
)
def test_runs_of_a_line_hold_every_row_of_every_block_once(
    blocks: int, rows: int, inner: list[int], groups: int
) -> None:
    width = 16
    cuts = (0, *sorted(cut for cut in inner if cut < blocks * rows), blocks * rows)
    line = Line(blocks, rows, cuts)
    tiles = np.arange(groups * line.parts)
    owners = np.zeros((groups * rows, blocks), dtype=int)
    run_of = np.full((groups, blocks), -1)
    runs = line.most_blocks()
    for residue in range(runs):
        cut = replace(line, runs=runs, residue=residue)
        layout = Layout(
            "a16",
            Axis(groups * rows, 1, segments=Level(groups, line.parts), line=cut),
            Axis(blocks * width, width, line=replace(cut, across=True)),
            len(tiles),
        )
        assert not layout.complete
        assert layout.row.largest() == layout.shards["rows"].max()
        assert layout.column.largest() == layout.shards["columns"].max()
        assert bool(layout.row.smallest()) == bool((layout.shards["rows"] > 0).all())
        for tile, shard in zip(tiles, layout.shards, strict=True):
            if not shard["rows"]:
                assert not shard["columns"]
                continue
            assert shard["columns"] == width and shard["column"] % width == 0
            block, group = shard["column"] // width, tile // line.parts
            assert shard["row"] // rows == group == (shard["row"] + shard["rows"] - 1) // rows
            assert run_of[group, block] in (-1, residue), "a block is in one run on all of its tiles"
            run_of[group, block] = residue
            owners[shard["row"] : shard["row"] + shard["rows"], block] += 1
    assert (owners == 1).all()


def test_a_line_is_described() -> None:
    axis = Axis(12, 1, segments=Level(2, 3), line=Line(2, 6, (0, 5, 9, 12)))
    assert axis.parts == 6
    layout = Layout("a16", axis, Axis(32, 16, line=Line(2, 6, (0, 5, 9, 12), across=True)), 6)
    assert layout.describe() == "a16 [rows 12 / 2 x a line of 3, columns 32 / a line of 3] on 6 tiles"
