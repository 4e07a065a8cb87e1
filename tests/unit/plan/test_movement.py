"""Fragments between layouts: executing them on real bytes fills every destination with the right elements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilewright.ipu21.plan.layout import Axis, Layout, Level
from tilewright.ipu21.plan.movement import Traffic, gather, retile

pytestmark = pytest.mark.unit


def index_of(order: str, shard: np.void, row: int, column: int) -> int:
    """Flat index of an element in a shard, written out from the definition of each order."""
    r, c = row - int(shard["row"]), column - int(shard["column"])
    rows, columns = int(shard["padded_rows"]), int(shard["padded_columns"])
    if order == "a16":
        return (c // 16) * rows * 16 + r * 16 + c % 16
    if order == "a16t":
        return (r // 16) * columns * 16 + c * 16 + r % 16
    if order == "b8":
        return ((c // 16) * (rows // 8) + r // 8) * 128 + c % 16 * 8 + r % 8
    if order == "b16":
        return ((c // 16) * (rows // 16) + r // 16) * 256 + c % 16 * 16 + r % 16
    return c * rows + r


def fill(layout: Layout, matrix: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    memory = []
    for tile in range(layout.tiles):
        shard = layout.shards[tile]
        data = np.full(int(layout.bytes[tile]) // layout.element_bytes, -1)
        for row in range(int(shard["row"]), int(shard["row"] + shard["rows"])):
            for column in range(int(shard["column"]), int(shard["column"] + shard["columns"])):
                data[index_of(layout.order, shard, row, column)] = matrix[row, column]
        memory.append(data)
    return memory


def carry_out(
    traffic: Traffic,
    source: list[NDArray[np.int64]],
    destination: list[NDArray[np.int64]],
    element: int = 2,
) -> None:
    for fragment in traffic.fragments:
        first, count = int(fragment["first"]), int(fragment["count"])
        begin, to, size = (
            int(fragment["source_offset"]) // element,
            int(fragment["destination_offset"]) // element,
            int(fragment["words"]) * 4 // element,
        )
        for tile in traffic.tiles[first : first + count]:
            destination[int(tile)][to : to + size] = source[int(fragment["source"])][begin : begin + size]
    for copy in traffic.copies:
        begin, to = int(copy["source_offset"]) // element, int(copy["destination_offset"]) // element
        tile, size = int(copy["tile"]), int(copy["words"]) * 8 // element
        destination[tile][to : to + size] = source[tile][begin : begin + size]


DEALT = st.sampled_from([("a16", 1), ("a16", 16), ("b16", 16), ("b8", 16)])
"""Orders whose records are dealt, and rows that stay together."""
BLOCKS = {"a16": (1, 16), "a16t": (16, 1), "b16": (16, 16), "plain": (1, 1)}


@st.composite
def layouts(draw: st.DrawFn, rows: int, columns: int, order: str = "a16", segments: int = 1) -> Layout:
    """Cuts as plans make them: operand, stored once, result by rows or columns, in segments of the rows."""
    r, c, k = (draw(st.integers(1, 4)) for _ in range(3))
    kind = draw(st.sampled_from(["operand", "stored", "result", "by columns", "window"]))
    i, j, inner = Level(r, c * k), Level(c, 1), Level(k, c)
    cuts: dict[str, tuple[tuple[Level, ...], tuple[Level, ...]]] = {
        "operand": ((i,), (inner,)),
        "stored": ((i, j), (inner,)),
        "result": ((i, inner), (j,)),
        "by columns": ((i,), (j, inner)),
        "window": ((i, Level(2, 1, draw(st.integers(0, 1)))), (j,)),
    }
    row, column = cuts[kind]
    block = BLOCKS[order]
    cut = Level(segments, r * c * k)
    return Layout(
        order,
        Axis(rows, block[0], row, cut),
        Axis(columns, block[1], column),
        r * c * k * segments,
        8 if order == "plain" else 2,
    )


@given(
    data=st.data(),
    order=st.sampled_from(sorted(BLOCKS)),
    segments=st.integers(1, 3),
    rows=st.integers(1, 40),
    columns=st.integers(1, 70),
)
def test_retile_fills_every_destination(
    data: st.DataObject, order: str, segments: int, rows: int, columns: int
) -> None:
    if order != "a16":
        segments = 1  # blocks of several rows would straddle segments on one side only
    rows *= segments
    source = data.draw(layouts(rows, columns, order, segments).filter(_covers))
    destination = data.draw(layouts(rows, columns, order, segments))
    matrix = np.arange(rows * columns).reshape(rows, columns)
    held = fill(source, matrix)
    got = [np.full(int(size) // destination.element_bytes, -1) for size in destination.bytes]
    carry_out(retile(source, destination), held, got, destination.element_bytes)
    for tile in range(destination.tiles):
        shard = destination.shards[tile]
        for row in range(int(shard["row"]), int(shard["row"] + shard["rows"])):
            for column in range(int(shard["column"]), int(shard["column"] + shard["columns"])):
                assert got[tile][index_of(order, shard, row, column)] == matrix[row, column]


@given(
    kind=DEALT,
    rows=st.integers(1, 90),
    columns=st.integers(1, 90),
    sharers=st.integers(1, 9),
    cuts=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    window=st.booleans(),
)
def test_records_that_are_dealt_are_brought_to_all_who_share_them(
    kind: tuple[str, int], rows: int, columns: int, sharers: int, cuts: tuple[int, int], window: bool
) -> None:
    """To the same places by hearing oneself and copying, and with what stays left out."""
    (order, block), (r, c) = kind, cuts
    whole = Layout(
        order,
        Axis(rows, block, (Level(r, c),)),
        Axis(columns, 16, (Level(c, 1),)),
        r * c * sharers,
    )
    part = whole
    if window:
        part = replace(whole, row=replace(whole.row, levels=(*whole.row.levels, Level(2, 1, index=1))))
    dealt = replace(whole, dealt=True)
    matrix = np.arange(rows * columns).reshape(rows, columns)
    filled = fill(whole, matrix)
    first, count = dealt.runs
    size = dealt.record_bytes // 2
    held = [
        data[size * int(first[tile]) : size * int(first[tile] + count[tile])]
        for tile, data in enumerate(filled)
    ]
    assert [len(data) for data in held] == (dealt.bytes // 2).tolist()
    expected = fill(part, matrix)
    everything = retile(dealt, part)
    got = [np.full(len(data), -1) for data in expected]
    carry_out(everything, held, got)
    for mine, wanted in zip(got, expected, strict=True):
        np.testing.assert_array_equal(mine[wanted >= 0], wanted[wanted >= 0])
    others = retile(dealt, part, hearing="none")
    got = [np.full(len(data), -1) for data in expected]
    carry_out(others.sent, held, got)
    own = [np.full(len(data), -1) for data in expected]
    carry_out(others.kept, held, own)
    for one, other, wanted in zip(got, own, expected, strict=True):
        assert ((one < 0) | (other < 0)).all()
        np.testing.assert_array_equal(np.maximum(one, other)[wanted >= 0], wanted[wanted >= 0])
    assert all(
        int(fragment["source"]) not in others.tiles[fragment["first"] :][: fragment["count"]]
        for fragment in others.fragments
    )


@given(
    rows=st.integers(1, 90),
    columns=st.integers(1, 90),
    sharers=st.integers(1, 9),
    kind=DEALT,
)
def test_pieces_are_what_tiles_hold(rows: int, columns: int, sharers: int, kind: tuple[str, int]) -> None:
    order, block = kind
    whole = Layout(order, Axis(rows, block), Axis(columns, 16), sharers)
    dealt = replace(whole, dealt=True)
    matrix = np.arange(rows * columns).reshape(rows, columns)
    together = fill(replace(whole, tiles=1), matrix)[0]
    for layout in (whole, dealt):
        held = [np.full(int(size) // 2, -2) for size in layout.bytes]
        for piece in layout.pieces:
            begin = int(piece["offset"]) // 2
            place = held[int(piece["tile"])][begin:]
            end = int(piece["padded_rows"] * piece["padded_columns"])
            assert piece["rows"] > 0 and piece["columns"] > 0 and (place[:end] == -2).all()
            place[:end] = -1
            for row in range(int(piece["row"]), int(piece["row"] + piece["rows"])):
                for column in range(int(piece["column"]), int(piece["column"] + piece["columns"])):
                    place[index_of(order, piece, row, column)] = matrix[row, column]
        if layout.dealt:
            np.testing.assert_array_equal(np.concatenate(held), together)
        else:
            assert all(np.array_equal(data, together) for data in held)


@given(rows=st.integers(1, 90), columns=st.integers(1, 40), groups=st.integers(1, 4))
def test_what_travels_and_what_stays_fill_every_destination_together(
    rows: int, columns: int, groups: int
) -> None:
    """Of three tiles that want the same, two are partners; the lone one copies what it holds."""
    segments = Level(groups, 3)
    source = Layout(
        "a16",
        Axis(groups * rows, 1, (Level(3, 1, half=True, mirrored=True),), segments),
        Axis(columns, 16),
        3 * groups,
    )
    destination = Layout("a16", Axis(groups * rows, 1, (), segments), Axis(columns, 16), 3 * groups)
    traffic = retile(source, destination, hearing="paired")
    matrix = np.arange(groups * rows * columns).reshape(-1, columns)
    held = fill(source, matrix)
    got = [np.full(int(size) // 2, -1) for size in destination.bytes]
    carry_out(traffic.sent, held, got)
    lone = np.array([tile for tile in range(3 * groups) if tile // 3 != (tile ^ 1) // 3])
    for tile in lone:
        shard = source.shards[tile]
        first = int(shard["row"]) - int(destination.shards[tile]["row"])
        own = got[tile].reshape(-1, rows, 16)[:, first : first + int(shard["rows"])]
        assert (own == -1).all()
    carry_out(traffic.kept, held, got)
    for mine, wanted in zip(got, fill(destination, matrix), strict=True):
        np.testing.assert_array_equal(mine, wanted)
    # Only lone tiles copy, and no tile hears and copies the same.
    assert set(traffic.copies["tile"].tolist()) <= set(lone.tolist())
    received = np.bincount(
        traffic.tiles, np.repeat(traffic.fragments["words"], traffic.fragments["count"]), 3 * groups
    )
    received += np.bincount(traffic.copies["tile"], 2 * traffic.copies["words"], 3 * groups)
    assert (4 * received == destination.bytes).all()


def _covers(layout: Layout) -> bool:
    """True for a layout that holds every element: no window."""
    return all(level.index is None for level in layout.row.levels)


@given(data=st.data(), rows=st.integers(1, 30), first=st.integers(0, 3), columns=st.integers(1, 60))
def test_retile_of_some_columns(data: st.DataObject, rows: int, first: int, columns: int) -> None:
    source = data.draw(layouts(rows, 16 * first + columns + 9).filter(_covers))
    destination = data.draw(layouts(rows, columns))
    matrix = np.arange(rows * (16 * first + columns + 9)).reshape(rows, -1)
    got = [np.full(int(size) // 2, -1) for size in destination.bytes]
    carry_out(retile(source, destination, 16 * first), fill(source, matrix), got)
    for tile in range(destination.tiles):
        shard = destination.shards[tile]
        for row in range(int(shard["row"]), int(shard["row"] + shard["rows"])):
            for column in range(int(shard["column"]), int(shard["column"] + shard["columns"])):
                assert got[tile][index_of("a16", shard, row, column)] == matrix[row, column + 16 * first]


@given(data=st.data(), rows=st.integers(1, 50), columns=st.integers(1, 90))
def test_no_message_from_a_tile_to_itself_alone(data: st.DataObject, rows: int, columns: int) -> None:
    traffic = retile(data.draw(layouts(rows, columns)), data.draw(layouts(rows, columns)))
    for fragment in traffic.fragments:
        receivers = traffic.tiles[int(fragment["first"]) : int(fragment["first"] + fragment["count"])]
        assert len(set(receivers.tolist())) == len(receivers)
        if int(fragment["source"]) in receivers:
            assert len(receivers) >= 3


@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 90),
    r=st.integers(1, 3),
    c=st.integers(1, 3),
    down=st.integers(1, 4),
    across=st.integers(1, 3),
    own=st.booleans(),
)
def test_gather_brings_every_other_partial_to_the_root(
    rows: int, columns: int, r: int, c: int, down: int, across: int, own: bool
) -> None:
    k = down * across
    row, column = (Level(r, k * c),), (Level(c, 1),)
    partial = Layout("a16", Axis(rows, 1, row), Axis(columns, 16, column), r * c * k)
    result = Layout(
        "a16",
        Axis(rows, 1, (*row, Level(down, across * c))),
        Axis(columns, 16, (*column, Level(across, c))),
        r * c * k,
    )
    # Element value says which tile computed the partial sum and which element it is.
    held = []
    for tile in range(partial.tiles):
        (data,) = [fill(partial, 1000 * np.arange(rows)[:, None] + np.arange(columns) + 10**6 * tile)[tile]]
        held.append(data)
    got = [np.full(int(size) // 2 * (k - 1 + own), -1) for size in result.bytes]
    traffic = gather(partial, result, k, c, own)
    carry_out(traffic, held, got)
    for root in range(result.tiles):
        shard = result.shards[root]
        group = [root + (index - (root // c) % k) * c for index in range(k)]
        others = [tile for tile in group if tile != root or own]
        size = int(result.bytes[root]) // 2
        for slot, sender in enumerate(others):
            for y in range(int(shard["row"]), int(shard["row"] + shard["rows"])):
                for x in range(int(shard["column"]), int(shard["column"] + shard["columns"])):
                    expected = 10**6 * sender + 1000 * y + x
                    assert got[root][slot * size + index_of("a16", shard, y, x)] == expected


def test_who_holds_a_part_does_not_hear_it_from_another() -> None:
    """Of four tiles that want a row, two hold it: one sends it, to itself too, and the other one copies."""

    def everywhere(tiles: int) -> Layout:
        return Layout("a16", Axis(1), Axis(16, 16), tiles)

    traffic = retile(everywhere(2), everywhere(4))
    assert traffic.fragments["source"].tolist() == [0]
    assert sorted(traffic.tiles.tolist()) == [0, 2, 3]
    assert traffic.copies["tile"].tolist() == [1]


def test_a_root_without_a_piece_hears_nothing() -> None:
    partial = Layout("a16", Axis(2), Axis(32, 16), 4)
    result = Layout("a16", Axis(2, 1, (Level(4, 1),)), Axis(32, 16), 4)
    traffic = gather(partial, result, 4, 1)
    assert sorted(traffic.tiles.tolist()) == [0] * 6 + [1] * 6
    assert traffic.fragments["words"].tolist() == [8] * 12
