"""Lock-step, lists of vertices, random numbers and sparse accesses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import vendor_programs
from vendor_programs import bench

from tilewright.errors import SimulationError
from tilewright.tile import TileBench
from tilewright.tile.program import STACK_TOP

pytestmark = pytest.mark.sim


def histogram_bench(races: bool) -> tuple[TileBench, np.ndarray]:
    data = np.random.default_rng(1).integers(0, 16, 6 * 40).astype(np.uint8)
    tile = bench("histogram", replace(vendor_programs.ALL, races=races))
    tile.put("data", data)
    tile.reserve("tables", "u32", (6, 16))
    tile.reserve("out", "u32", 16)
    return tile, data


def test_a_histogram_that_depends_on_lock_step() -> None:
    tile, data = histogram_bench(races=False)
    tile.run_vertex("histogram", tile.vertex_state("data", 40, "tables", "out"), workers=6)
    np.testing.assert_array_equal(tile.array("out"), np.bincount(data, minlength=16))


def test_the_race_check_sees_what_it_depends_on() -> None:
    tile, _ = histogram_bench(races=True)
    with pytest.raises(SimulationError, match="touch one word") as caught:
        tile.run_vertex("histogram", tile.vertex_state("data", 40, "tables", "out"), workers=6)
    assert caught.value.context == "worker 0" and "worker 1" in str(caught.value)


@pytest.mark.parametrize("count", [0, 1, 6, 8, 13])
def test_a_list_of_vertices(count: int) -> None:
    rng = np.random.default_rng(count)
    tile = bench("vertices")
    entries, expected = [], {}
    for index in range(count):
        kernel, kind, operation = (
            ("add_float", np.float32, np.add),
            ("mul_float", np.float32, np.multiply),
            ("max_half", np.float16, np.maximum),
        )[index % 3]
        pairs = 1 + index % 4
        length = pairs * (2 if kind is np.float32 else 4)
        # One pair more than is used, and each operand in an element of its own.
        a, b = (rng.normal(0, 1, length + 4).astype(kind) for _ in range(2))
        address = 0x80000 + 0x100 * index
        tile.put(f"a{index}", a, at=address)
        tile.put(f"b{index}", b, at=address + 0x8000)
        tile.put(f"out{index}", np.zeros(length, kind), at=address + 0x10000)
        state = tile.vertex_state(
            f"out{index}", f"a{index}", f"b{index}", ("u16", pairs - 1), ("u16", 0xFFFF)
        )
        entries += [tile.value(kernel), state.address]
        expected[f"out{index}"] = operation(a[:length], b[:length])
    tile.put("list", np.array([*entries, 0], np.uint32), region=0)
    words = rng.integers(0, 1000, (6, 5)).astype(np.uint32)
    tile.put("words", words)
    states = [[tile.value("words") + 20 * worker, 5, worker + 1, 0] for worker in range(6)]
    tile.put("states", np.array(states, np.uint32), region=0)
    result = tile.call("run_vertices", {"m2": "list", "m3": count, "m7": "states", "m8": 0})
    for name, value in expected.items():
        np.testing.assert_array_equal(result.array(name), value)
    np.testing.assert_array_equal(result.array("words"), words * np.arange(1, 7, dtype=np.uint32)[:, None])
    assert result.m[0, 8] == 1 and result.m[0, 11] == STACK_TOP


MASK = 2**64 - 1


def turned(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & MASK


def draws(seed: int, skip: int, count: int) -> np.ndarray:
    """xoroshiro128aox as published, from a seeded state."""
    s0 = seed | (seed ^ 0xFFFFFFFF) << 32
    s1 = turned(s0, 13)
    values = []
    for _ in range(skip + count):
        mixed, both = s0 ^ s1, s0 & s1
        values.append(mixed ^ (turned(both, 1) | turned(both, 2)))
        s0, s1 = turned(s0, 55) ^ mixed ^ (mixed << 14 & MASK), turned(mixed, 36)
    return np.array(values[skip:], np.uint64).view(np.uint16).reshape(count, 4)


@pytest.mark.parametrize("keep", [0x2000, 0x8000, 0x10000])
def test_dropout(keep: int) -> None:
    groups = 60
    rng = np.random.default_rng(keep)
    x = rng.normal(0, 1, (6, groups, 4)).astype(np.float16)
    seeds = rng.integers(0, 2**32, 6, dtype=np.uint64).astype(np.uint32)
    tile = bench("random")
    tile.put("x", x)
    tile.put("seeds", seeds, region=0)
    tile.reserve("out", "f16", x.shape)
    tile.call("seed_workers", {"m2": "seeds"})
    tile.run_vertex("dropout", tile.vertex_state("x", "out", groups, keep), workers=6)
    kept = np.stack([draws(int(seed), 15, groups) < min(keep, 0xFFFF) for seed in seeds])
    if keep >> 16:
        kept[...] = True
    np.testing.assert_array_equal(tile.array("out"), np.where(kept, x, 0))
    assert abs(kept.mean() - min(keep, 65536) / 65536) < 4.5 * 0.5 / np.sqrt(kept.size)


@pytest.mark.parametrize(
    ("kernel", "kind", "out"),
    [("gather16", np.uint16, "u32"), ("gather32", np.uint32, "u32"), ("gather64", np.uint64, "u64")],
)
def test_gather(kernel: str, kind: type[np.unsignedinteger], out: str) -> None:
    rng = np.random.default_rng(1)
    table = rng.integers(0, np.iinfo(kind).max, 100, dtype=np.uint64).astype(kind)
    index = rng.integers(0, 100, 37)
    tile = bench("gather")
    tile.put("table", table)
    tile.put("offsets", np.append(index * table.itemsize, 0).astype(np.uint16))
    tile.reserve("out", out, 37)
    tile.run_vertex(kernel, tile.vertex_state("table", "offsets", "out", 37), workers=1)
    expected = table[index].astype(np.uint32) * 0x10001 if kind is np.uint16 else table[index]
    np.testing.assert_array_equal(tile.array("out"), expected)


def test_gather_through_pairs_of_offsets() -> None:
    """The upper half of each pair is the offset."""
    rng = np.random.default_rng(2)
    table = rng.integers(0, 2**32, 50, dtype=np.uint64).astype(np.uint32)
    index = rng.integers(0, 50, 20)
    tile = bench("gather")
    tile.put("table", table)
    tile.put("offsets", np.append(index * 4 << 16 | 0x1234, 0).astype(np.uint32))
    tile.reserve("out", "u32", 20)
    tile.run_vertex("gather_pairs", tile.vertex_state("table", "offsets", "out", 20), workers=1)
    np.testing.assert_array_equal(tile.array("out"), table[index])


def test_sparse_dot() -> None:
    rng = np.random.default_rng(3)
    table = rng.integers(-9, 9, 64).astype(np.float32)
    index, values = rng.integers(0, 64, 31), rng.integers(-9, 9, 31).astype(np.float32)
    tile = bench("gather")
    tile.put("table", table)
    tile.put("offsets", np.append(index * 4, 0).astype(np.uint16))
    tile.put("values", values)
    tile.reserve("out", "f32", 1)
    tile.run_vertex("sparse_dot", tile.vertex_state("table", "offsets", "out", 31, "values"), workers=1)
    np.testing.assert_array_equal(tile.array("out"), [table[index] @ values])
