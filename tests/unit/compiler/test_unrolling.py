"""Unrolled loops compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler.folding import fold_constants
from tilewright.compiler.unrolling import unroll_loops
from tilewright.graph import Graph
from tilewright.graph.uses import walk

pytestmark = pytest.mark.unit

GENERATOR = np.random.default_rng(8)


def normal(*shape: int) -> np.ndarray:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def unrolled(graph: Graph, **inputs: np.ndarray) -> Graph:
    result = unroll_loops(graph)
    result.verify()
    expected, found = graph.evaluate(inputs), result.evaluate(inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    return result


def names(graph: Graph) -> list[str]:
    return [operation.name for operation in walk(graph.body)]


def test_a_loop_of_loops_is_one_loop() -> None:
    stacks = {"w": normal(3, 2, 4, 4)}

    def layer(y: Any, w: Any) -> Any:
        return y @ w

    def block(y: Any, w: Any) -> Any:
        return tw.ops.gelu(tw.ops.repeat(layer, 2, y, {"w": w}))

    graph = tw.trace(lambda x: {"y": tw.ops.repeat(block, 3, x, stacks)}, x=tw.TensorType((3, 4)))
    result = unrolled(graph, x=normal(3, 4))
    assert names(result).count("repeat") == 1
    # The slices of slices are constants of the outer loop.
    assert names(fold_constants(result)) == ["repeat", "matmul", "matmul", "gelu"]


def test_what_is_computed_is_walked_through_in_a_line() -> None:
    def body(y: Any, z: Any, part: Any) -> Any:
        return z + part, tw.ops.gelu(y)

    def network(x: Any, y: Any) -> Any:
        first, second = tw.ops.repeat(body, 3, (y, y), {"part": tw.ops.gelu(x)})
        return {"first": first, "second": second}

    graph = tw.trace(network, x=tw.TensorType((3, 5, 4)), y=tw.TensorType((5, 4)))
    result = unrolled(graph, x=normal(3, 5, 4), y=normal(5, 4))
    assert "repeat" not in names(result)
    assert names(result).count("slice") == 3


def test_loops_that_a_program_can_have_stay() -> None:
    stacks = {"w": normal(3, 4, 4)}
    graph = tw.trace(
        lambda x: {"y": tw.ops.repeat(lambda y, w: y @ w, 3, x, stacks)}, x=tw.TensorType((3, 4))
    )
    assert names(unrolled(graph, x=normal(3, 4))) == ["repeat", "matmul"]
