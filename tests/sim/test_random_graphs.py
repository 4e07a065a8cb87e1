"""Random graphs of all operators, awkward shapes, random tile counts; reading unwritten memory is an error.

In one half every value is an output, so each operator is judged on its own: its reference gets the operands
the chip really had, and the chip's result must lie within the operator's tolerance. In the other half values
are overwritten once nobody needs them, and the whole graph is held to what noise does to it.

By default some 200 graphs, the same at every run. Thousands, others at every run:

    pytest tests/sim/test_random_graphs.py --hypothesis-profile=campaign --hypothesis-seed=random -x
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tilewright as tw
from support.judging import judge, judge_whole
from support.random_graphs import RandomGraph, random_graphs
from tilewright.graph import Graph

pytestmark = pytest.mark.sim

Array = NDArray[np.float32]

SIZES = st.sampled_from(
    [1, 2, 3, 5, 7, 13, 15, 16, 17, 18, 19, 29, 31, 32, 33, 48, 53, 64, 97, 101, 127, 160]
)
TILES = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 13, 16, 29, 64, 97])
WIDE = (1, 3, 8, 15, 16, 17, 31, 32, 33, 48, 64)


def examples(count: int) -> settings:
    """So many graphs, and as many times more as the profile in force has more than usual."""
    return settings(max_examples=max(1, count * settings().max_examples // 100))


def run(graph: Graph, inputs: Mapping[str, Array], tiles: int) -> dict[str, Array]:
    """Results of two runs of one session, which must be the same."""
    package = tw.compile(graph, tiles=tiles)
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        first = session.run(inputs)
        second = session.run(inputs)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
    return first


@examples(80)
@given(example=random_graphs(max_operations=6, every_value_is_output=True), tiles=st.integers(1, 40))
def test_every_operation_of_a_random_graph(example: RandomGraph, tiles: int) -> None:
    results = run(example.graph, example.inputs, tiles)
    judge(example.graph, example.inputs, results, splits=tiles)


@examples(60)
@given(example=random_graphs(max_operations=8), tiles=st.integers(1, 40))
def test_random_graphs_whose_values_are_overwritten(example: RandomGraph, tiles: int) -> None:
    results = run(example.graph, example.inputs, tiles)
    judge_whole(example.graph, example.inputs, results, splits=tiles)


@examples(12)
@given(
    example=random_graphs(max_operations=4, sizes=WIDE, max_elements=16384, every_value_is_output=True),
    tiles=st.integers(1, 100),
)
def test_random_graphs_of_wider_values(example: RandomGraph, tiles: int) -> None:
    results = run(example.graph, example.inputs, tiles)
    judge(example.graph, example.inputs, results, splits=tiles)


@examples(25)
@given(m=SIZES, k=SIZES, n=SIZES, tiles=TILES, seed=st.integers(0, 2**32 - 1))
def test_products_of_awkward_shapes(m: int, k: int, n: int, tiles: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((m, k)).astype(np.float32)
    w = (generator.standard_normal((k, n)) / np.sqrt(k)).astype(np.float32)
    graph = tw.trace(lambda x: {"y": x @ w}, x=tw.TensorType((m, k)))
    judge(graph, {"x": x}, run(graph, {"x": x}, tiles), splits=tiles)


def _bias(x: Any, w: Array, extra: dict[str, Array]) -> dict[str, Any]:
    h = x @ w
    s = h + extra["row"]
    return {"h": h, "s": s, "y": tw.ops.gelu(s)}


def _residual(x: Any, w: Array, extra: dict[str, Array]) -> dict[str, Any]:
    h = x @ w
    g = tw.ops.gelu(h)
    return {"h": h, "g": g, "y": g + h}


def _broadcasts(x: Any, w: Array, extra: dict[str, Array]) -> dict[str, Any]:
    h = x @ w
    s = h + extra["column"]
    t = extra["full"] + s
    u = t + extra["scalar"]
    return {"h": h, "s": s, "t": t, "u": u}


def _two_products(x: Any, w: Array, extra: dict[str, Array]) -> dict[str, Any]:
    h = x @ w
    g = tw.ops.gelu(h)
    return {"h": h, "g": g, "y": g @ extra["second"]}


def _shared_operand(x: Any, w: Array, extra: dict[str, Array]) -> dict[str, Any]:
    a = x @ w
    b = x @ extra["other"]
    return {"a": a, "b": b, "y": a + b}


@examples(25)
@given(
    build=st.sampled_from([_bias, _residual, _broadcasts, _two_products, _shared_operand]),
    m=SIZES,
    k=SIZES,
    n=SIZES,
    p=SIZES,
    tiles=TILES,
    seed=st.integers(0, 2**32 - 1),
)
def test_small_networks(
    build: Callable[[Any, Array, dict[str, Array]], dict[str, Any]],
    m: int,
    k: int,
    n: int,
    p: int,
    tiles: int,
    seed: int,
) -> None:
    generator = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        return generator.standard_normal(shape).astype(np.float32)

    x, w = normal(m, k), normal(k, n) / np.float32(np.sqrt(k))
    extra = {
        "row": normal(n),
        "column": normal(m, 1),
        "full": normal(m, n),
        "scalar": normal(1),
        "second": normal(n, p) / np.float32(np.sqrt(n)),
        "other": normal(k, n) / np.float32(np.sqrt(k)),
    }
    graph = tw.trace(lambda x: build(x, w, extra), x=tw.TensorType((m, k)))
    judge(graph, {"x": x}, run(graph, {"x": x}, tiles), splits=tiles)


def test_higher_ranks_are_matrices() -> None:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((3, 5, 24)).astype(np.float32)
    w = generator.standard_normal((24, 20)).astype(np.float32)
    graph = tw.trace(lambda x: {"y": x @ w}, x=tw.TensorType((3, 5, 24)))
    results = run(graph, {"x": x}, 6)
    assert results["y"].shape == (3, 5, 20)
    judge(graph, {"x": x}, results, splits=6)
