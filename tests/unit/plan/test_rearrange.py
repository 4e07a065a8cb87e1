"""Rearranging elements: moves and tables carried out on real elements give what the index says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_movement import carry_out, fill, index_of, layouts

from tilewright.errors import UnsupportedError
from tilewright.ipu21.plan import rearrange as rearranging
from tilewright.ipu21.plan.builder import Builder, traffic_of
from tilewright.ipu21.plan.groups import Groups
from tilewright.ipu21.plan.layout import Axis, Layout, Level, spread
from tilewright.ipu21.plan.rearrange import NOTHING, rearrange
from tilewright.ipu21.plan.steps import Compute, Exchange, Held

pytestmark = pytest.mark.unit


def carried_out(builder: Builder, sources: dict[str, list[np.ndarray]], out: str) -> list[np.ndarray]:
    """Contents of `out` after the builder's steps."""
    plan = builder.plan
    memory = dict(sources)
    for name, buffer in plan.buffers.items():
        if name not in memory:
            memory[name] = [np.full(int(size) // 2, -1) for size in buffer.layout.bytes]
    for name, tables in plan.tables.items():
        for tile, data in tables.items():
            table = np.frombuffer(data, np.uint16)
            memory[name][tile][: len(table)] = table
    for step in plan.steps:
        if isinstance(step, Exchange):
            for move in step.moves:
                carry_out(traffic_of(plan, move), memory[move.source], memory[move.destination])
            continue
        assert isinstance(step, Compute) and step.kernel == "permute_u16"
        target, staged, table = (memory[name] for name in step.operands if name is not None)
        for tile, data in enumerate(target):
            chosen = table[tile][: len(data)]
            data[:] = np.where(chosen == NOTHING, 0, staged[tile][np.minimum(chosen, len(staged[tile]) - 1)])
    return memory[out]


@given(data=st.data(), rows=st.integers(1, 12), columns=st.integers(1, 40), tiles=st.integers(1, 5))
def test_any_index(data: st.DataObject, rows: int, columns: int, tiles: int) -> None:
    builder = Builder(64, 0.0)
    sources, memory, values = [], {}, []
    for number in range(data.draw(st.integers(1, 2))):
        m, n = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 40))
        layout = data.draw(
            layouts(m, n).filter(lambda item: all(level.index is None for level in item.row.levels))
        )
        name = builder.add(f"x{number}", layout, "value", "x")
        matrix = 1 + np.arange(m * n).reshape(m, n) + 10_000 * number
        memory[name] = fill(layout, matrix)
        sources.append(Held(name, 0, n))
        values.append(matrix.reshape(-1))
    everything = np.concatenate(values)
    index = np.array(
        data.draw(
            st.lists(st.integers(-1, len(everything) - 1), min_size=rows * columns, max_size=rows * columns)
        )
    ).reshape(rows, columns)
    layout = spread(rows, columns, tiles)
    out = carried_out(builder, memory, rearrange(builder, sources, index, layout, "y", "y"))
    for tile in range(layout.tiles):
        shard = layout.shards[tile]
        for r in range(int(shard["row"]), int(shard["row"] + shard["rows"])):
            for c in range(columns):
                wanted = 0 if index[r, c] < 0 else everything[index[r, c]]
                assert out[tile][index_of("a16", shard, r, c)] == wanted


def test_padding_of_groups_is_no_element() -> None:
    builder = Builder(4, 0.0)
    groups = Groups(2, 3, 16)
    layout = spread(2, groups.columns, 2)
    matrix = np.arange(64).reshape(2, 32)
    name = builder.add("x", layout, "value", "x")
    held = Held(name, 0, groups.columns, groups)
    index = np.arange(12).reshape(2, 6)
    out = rearrange(builder, [held], index, spread(2, 6, 1), "y", "y")
    (data,) = carried_out(builder, {name: fill(layout, matrix)}, out)
    expected = matrix[:, [0, 1, 2, 16, 17, 18]]
    assert data.reshape(2, 16)[:, :6].tolist() == expected.tolist()


def test_whole_records_travel_without_a_kernel() -> None:
    builder = Builder(8, 0.0)
    layout = spread(8, 32, 8)
    name = builder.add("x", layout, "value", "x")
    matrix = np.arange(256).reshape(8, 32)
    index = matrix.reshape(8, 2, 16).transpose(1, 0, 2).reshape(16, 16)
    out = rearrange(builder, [Held(name, 0, 32)], index, spread(16, 16, 4), "y", "y")
    assert [type(step) for step in builder.plan.steps] == [Exchange]
    memory = carried_out(builder, {name: fill(layout, matrix)}, out)
    assert np.concatenate(memory).reshape(16, 16).tolist() == index.tolist()


def reversed_columns(tiles: int, rows: int) -> tuple[Builder, str]:
    """A builder that rearranges [rows, 16] from last column to first, and the buffer of the result."""
    builder = Builder(tiles, 0.0)
    name = builder.add("x", spread(rows, 16, tiles), "value", "x")
    index = np.arange(16 * rows).reshape(rows, 16)[:, ::-1]
    return builder, rearrange(builder, [Held(name, 0, 16)], index, spread(rows, 16, tiles), "y", "y")


def test_what_a_table_cannot_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rearranging, "STAGED_ELEMENTS", 32)
    reversed_columns(1, 2)
    with pytest.raises(UnsupportedError, match=r"y: a tile would need 96 bytes of others.*at most 64 can be"):
        reversed_columns(1, 3)


def test_tiles_without_a_part_have_no_table_and_sources_without_a_use_no_move() -> None:
    builder = Builder(2, 0.0)
    names = [builder.add(name, spread(2, 16, 2), "value", name) for name in ("x", "unused")]
    index = np.arange(16)[None, ::-1]
    layout = spread(1, 16, 2)
    wide = Layout(layout.order, Axis(1, 1, (Level(2, 1),)), layout.column, 2)
    rearrange(builder, [Held(name, 0, 16) for name in names], index, wide, "y", "y")
    (tables,) = builder.plan.tables.values()
    assert list(tables) == [0]
    fetch = builder.plan.steps[0]
    assert isinstance(fetch, Exchange) and [move.source for move in fetch.moves] == ["x"]


def test_nothing_but_zeros_needs_nobody() -> None:
    builder = Builder(1, 0.0)
    name = builder.add("x", spread(1, 16, 1), "value", "x")
    out = rearrange(builder, [Held(name, 0, 16)], np.full((1, 16), -1), spread(1, 16, 1), "y", "y")
    assert [type(step) for step in builder.plan.steps] == [Compute]
    (data,) = carried_out(builder, {name: [np.arange(16)]}, out)
    assert not data.any()


RECORDS = np.arange(32).reshape(2, 16)


def origin(**changed: tuple[int, int]) -> rearranging._Origin:
    """Two records: of one source, on tiles 0 and 1, at the beginning; `changed` gives (element, value)."""
    columns = {
        "source": np.zeros(32, np.int64),
        "tile": np.repeat([0, 1], 16),
        "offset": np.tile(np.arange(16), 2),
    }
    for name, (element, value) in changed.items():
        columns[name][element] = value
    return rearranging._Origin(**columns)


def test_records_are_kept_where_all_elements_stay_side_by_side() -> None:
    keeps = rearranging._keeps_records
    assert keeps(RECORDS, origin())
    assert keeps(RECORDS[::-1], origin())
    # The last element stands in for a padding that is -1: it would lie where the padding is.
    assert not keeps(np.where(RECORDS == 31, -1, RECORDS), origin())
    assert not keeps(RECORDS, origin(source=(5, 1)))
    assert not keeps(RECORDS, origin(tile=(5, 3)))
    assert not keeps(RECORDS, origin(offset=(5, 7)))
    late = origin()
    late.offset[16:] += 8
    assert not keeps(RECORDS, late)
