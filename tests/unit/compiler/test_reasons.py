"""What an error says of memory that is short, and changes that would help: each of them really does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ops
from tilewright.errors import PlacementError
from tilewright.graph import Graph
from tilewright.ipu21 import reasons
from tilewright.ipu21.machine.memory import LOADABLE_END, REGION1_BASE
from tilewright.ipu21.place.request import NoRoomError, Request
from tilewright.ipu21.plan.steps import Plan

pytestmark = pytest.mark.unit

generator = np.random.default_rng(1)


def looped(rows: int) -> Graph:
    weights = generator.normal(0, 1, (3, 8, 8)).astype(np.float32)
    last = np.ones((8, 4), np.float32)

    def network(x: Any) -> Any:
        h = ops.repeat(lambda h, w: ops.gelu(h @ w, approximate="tanh"), 3, x, weights)
        return {"y": h @ last}

    return tw.trace(network, x=tw.TensorType((rows, 8)))


def shortage(sizes: dict[str, int]) -> NoRoomError:
    requests = [
        Request(name, size, interleaved=False, first=0, last=number, owner="mm")
        for number, (name, size) in enumerate(sizes.items())
    ]
    return NoRoomError(requests[0], requests, 0x64000, 4096, True)


def test_the_ten_largest_and_the_rest_together() -> None:
    sizes = {f"b{number}": 100_000 - number for number in range(14)}
    lines = reasons.largest_buffers(Plan(tiles=4), shortage(sizes))
    assert len(lines) == 11
    assert lines[0] == "b0 100,000 bytes for mm, output to output"
    assert lines[-1] == f"4 more, {sum(100_000 - n for n in range(10, 14)):,} bytes together"


def test_the_error_has_everything() -> None:
    error = shortage({"w": 900_000, "x": 5_000})
    graph = looped(16)
    place = "tile class 0 (2 tiles)"
    made = reasons.does_not_fit(graph, 2, Plan(tiles=2), error, place, lambda g, t: t >= 40)
    text = str(made)
    assert isinstance(made, PlacementError)
    room = REGION1_BASE - 0x64000 + LOADABLE_END - REGION1_BASE
    assert f"{905_000 - room:,} bytes over" in text and "900,000 bytes for mm" in text
    assert place in text and "40 tiles would do" in text
    others = {"float16 instead of float32": lambda g, t: t == 2, "nothing": lambda g, t: False}
    told = str(reasons.does_not_fit(graph, 2, Plan(tiles=2), error, place, lambda g, t: False, others))
    assert told.endswith("even 1,472 tiles would not do; or float16 instead of float32)")
    none = reasons.does_not_fit(graph, 2, Plan(tiles=2), error, "class", lambda g, t: False)
    assert "even 1,472 tiles would not do" in str(none)


@pytest.mark.parametrize("needed", [3, 5, 100, 1472])
def test_tile_counts_are_tried(needed: int) -> None:
    tried: list[int] = []

    def fits(graph: Graph, tiles: int) -> bool:
        tried.append(tiles)
        return tiles >= needed

    found = reasons.enough_tiles(looped(4), 2, fits)
    assert found in tried and found is not None and needed <= found <= needed + max(1, needed // 16)
    assert reasons.enough_tiles(looped(4), 2, lambda g, t: False) is None
    assert reasons.enough_tiles(looped(4), 1472, fits) is None


def test_smaller_batches_are_the_same_computation() -> None:
    graph = looped(16)
    smaller = reasons.resized(graph, 0, 5)
    assert smaller is not None
    x = generator.normal(0, 1, (16, 8)).astype(np.float32)
    whole, part = graph.evaluate({"x": x})["y"], smaller.evaluate({"x": x[:5]})["y"]
    assert part.shape == (5, 4) and np.allclose(part, whole[:5], atol=1e-6)


def test_the_largest_batch_that_fits_is_named() -> None:
    def fits(graph: Graph, tiles: int) -> bool:
        return tiles == 2 and graph.inputs[0].type.shape[0] <= 21

    tiles, text = reasons.smallest_changes(looped(64), 2, fits)
    assert tiles == "even 1,472 tiles would not do"
    # Half of 64 is too much, a quarter fits; one trial is left for what is between.
    assert text == "a batch of 16 instead of 64"


def test_sequences_and_batches_are_kept_apart() -> None:
    w = np.ones((8, 4), np.float32)
    graph = tw.trace(lambda x: x @ w, x=tw.TensorType((4, 32, 8)))

    def fits(graph: Graph, tiles: int) -> bool:
        batch, sequence, _ = graph.inputs[0].type.shape
        return tiles == 2 and (batch <= 1 or sequence <= 8)

    assert reasons.smallest_changes(graph, 2, fits)[1:] == [
        "a batch of 1 instead of 4",
        "a sequence of 8 instead of 32",
    ]


def test_extents_that_the_operators_need_are_left_alone() -> None:
    bias = np.ones((16, 8), np.float32)
    graph = tw.trace(lambda x: ops.add(x, bias), x=tw.TensorType((16, 8)))
    assert reasons.resized(graph, 0, 8) is None
    assert reasons.smallest_changes(graph, 2, lambda g, t: g is not graph)[1:] == []
    two = tw.trace(lambda a, b: a @ b, a=tw.TensorType((4, 8)), b=tw.TensorType((8, 2)))
    assert reasons.smallest_changes(two, 2, lambda g, t: g is not two)[1:] == []
