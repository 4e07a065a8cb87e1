"""Fragments between layouts: executing them on real bytes fills every destination with the right elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilewright.ipu21.plan.layout import Axis, Layout, Level
from tilewright.ipu21.plan.movement import Traffic, gather, retile

pytestmark = pytest.mark.unit


def a16(shard: np.void, row: int, column: int) -> int:
    """Flat index of an element in A16 order, written out from its definition."""
    r, c = row - int(shard["row"]), column - int(shard["column"])
    return (c // 16) * int(shard["padded_rows"]) * 16 + r * 16 + c % 16


def fill(layout: Layout, matrix: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    memory = []
    for tile in range(layout.tiles):
        shard = layout.shards[tile]
        data = np.full(int(layout.bytes[tile]) // 2, -1)
        for row in range(int(shard["row"]), int(shard["row"] + shard["rows"])):
            for column in range(int(shard["column"]), int(shard["column"] + shard["columns"])):
                data[a16(shard, row, column)] = matrix[row, column]
        memory.append(data)
    return memory


def carry_out(
    traffic: Traffic, source: list[NDArray[np.int64]], destination: list[NDArray[np.int64]]
) -> None:
    for fragment in traffic.fragments:
        first, count = int(fragment["first"]), int(fragment["count"])
        begin, to, size = (
            int(fragment["source_offset"]) // 2,
            int(fragment["destination_offset"]) // 2,
            int(fragment["words"]) * 2,
        )
        for tile in traffic.tiles[first : first + count]:
            destination[int(tile)][to : to + size] = source[int(fragment["source"])][begin : begin + size]
    for copy in traffic.copies:
        begin, to = int(copy["source_offset"]) // 2, int(copy["destination_offset"]) // 2
        tile, size = int(copy["tile"]), int(copy["words"]) * 4
        destination[tile][to : to + size] = source[tile][begin : begin + size]


@st.composite
def layouts(draw: st.DrawFn, rows: int, columns: int) -> Layout:
    r, c, k = (draw(st.integers(1, 4)) for _ in range(3))
    kind = draw(st.sampled_from(["operand", "stored", "result", "by columns"]))
    if kind == "operand":
        minimum = draw(st.sampled_from([0, 18]))
        return Layout(
            "a16", Axis(rows, 1, (Level(r, c * k),), minimum), Axis(columns, 16, (Level(k, c),)), r * c * k
        )
    if kind == "stored":
        return Layout(
            "a16", Axis(rows, 1, (Level(r, c * k), Level(c, 1))), Axis(columns, 16, (Level(k, c),)), r * c * k
        )
    if kind == "result":
        return Layout(
            "a16", Axis(rows, 1, (Level(r, c * k), Level(k, c))), Axis(columns, 16, (Level(c, 1),)), r * c * k
        )
    return Layout(
        "a16", Axis(rows, 1, (Level(r, c * k),)), Axis(columns, 16, (Level(c, 1), Level(k, c))), r * c * k
    )


@given(data=st.data(), rows=st.integers(1, 50), columns=st.integers(1, 90))
def test_retile_fills_every_destination(data: st.DataObject, rows: int, columns: int) -> None:
    source, destination = data.draw(layouts(rows, columns)), data.draw(layouts(rows, columns))
    matrix = np.arange(rows * columns).reshape(rows, columns)
    held = fill(source, matrix)
    got = [np.full(int(size) // 2, -1) for size in destination.bytes]
    traffic = retile(source, destination)
    carry_out(traffic, held, got)
    for tile in range(destination.tiles):
        shard = destination.shards[tile]
        for row in range(int(shard["row"]), int(shard["row"] + shard["rows"])):
            for column in range(int(shard["column"]), int(shard["column"] + shard["columns"])):
                assert got[tile][a16(shard, row, column)] == matrix[row, column]


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
    k=st.integers(2, 4),
    by_columns=st.booleans(),
)
def test_gather_brings_every_other_partial_to_the_root(
    rows: int, columns: int, r: int, c: int, k: int, by_columns: bool
) -> None:
    row, column, piece = (Level(r, k * c),), (Level(c, 1),), Level(k, c)
    partial = Layout("a16", Axis(rows, 1, row, 18), Axis(columns, 16, column), r * c * k)
    result = Layout(
        "a16",
        Axis(rows, 1, row if by_columns else (*row, piece)),
        Axis(columns, 16, (*column, piece) if by_columns else column),
        r * c * k,
    )
    # Element value says which tile computed the partial sum and which element it is.
    held = []
    for tile in range(partial.tiles):
        (data,) = [fill(partial, 1000 * np.arange(rows)[:, None] + np.arange(columns) + 10**6 * tile)[tile]]
        held.append(data)
    got = [np.full(int(size) // 2 * (k - 1), -1) for size in result.bytes]
    traffic = gather(partial, result, k, c)
    carry_out(traffic, held, got)
    for root in range(result.tiles):
        shard = result.shards[root]
        group = [root + (index - (root // c) % k) * c for index in range(k)]
        others = [tile for tile in group if tile != root]
        size = int(result.bytes[root]) // 2
        for slot, sender in enumerate(others):
            for y in range(int(shard["row"]), int(shard["row"] + shard["rows"])):
                for x in range(int(shard["column"]), int(shard["column"] + shard["columns"])):
                    assert got[root][slot * size + a16(shard, y, x)] == 10**6 * sender + 1000 * y + x
