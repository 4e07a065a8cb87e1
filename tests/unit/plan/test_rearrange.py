"""Rearranging elements: moves and tables carried out on real elements give what the index says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_movement import carry_out, fill, index_of, layouts

from tilewright.ipu21.plan.builder import Builder, traffic_of
from tilewright.ipu21.plan.groups import Groups
from tilewright.ipu21.plan.layout import spread
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
