"""Folding leaves the function as it is, and no operation on constants alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler.folding import fold_constants
from tilewright.graph import Graph
from tilewright.graph.uses import walk

pytestmark = pytest.mark.unit

GENERATOR = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def names(graph: Graph) -> list[str]:
    return [operation.name for operation in walk(graph.body)]


def folded(graph: Graph, **inputs: np.ndarray) -> Graph:
    result = fold_constants(graph)
    result.verify()
    expected, found = graph.evaluate(inputs), result.evaluate(inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    return result


def traced_constants(count: int) -> Graph:
    """A loop that transposes its own weights, and one captured weight, in every iteration."""
    captured, stacks = normal(5, 4), {"w": normal(count, 4, 5)}

    def body(y: Any, w: Any) -> Any:
        weight = tw.ops.transpose(w, permutation=[1, 0])
        return tw.ops.gelu(tw.ops.matmul(tw.ops.matmul(y, weight, transpose_b=True), captured))

    return tw.trace(lambda x: {"y": tw.ops.repeat(body, count, x, stacks)}, x=tw.TensorType((3, 4)))


@pytest.mark.parametrize("count", [1, 3])
def test_slices_of_a_loop_are_folded_for_every_iteration(count: int) -> None:
    result = folded(traced_constants(count), x=normal(3, 4))
    assert "transpose" not in names(result)
    (loop,) = result.operations
    assert len(loop.operands) == 2  # the stack as it was is not walked through any more
    assert [value.type.shape for value, _ in result.constants if len(value.type.shape) == 3] == [
        (count, 5, 4)
    ]


def test_what_a_region_gives_back_stays_an_operation() -> None:
    stacks = {"w": normal(2, 3, 4)}

    def network(x: Any) -> Any:
        first, second = tw.ops.repeat(lambda y, z, w: (tw.ops.gelu(w), y + z), 2, (x, x), stacks)
        return {"y": first + x, "z": second + x}

    graph = tw.trace(network, x=tw.TensorType((3, 4)))
    assert names(folded(graph, x=normal(3, 4))) == ["repeat", "gelu", "add", "add", "add"]


def test_parameters_of_a_norm_walk_together() -> None:
    beta, stacks = normal(4), {"g": normal(2, 4)}

    def body(y: Any, g: Any) -> Any:
        return tw.ops.layer_norm(y, g, beta)

    graph = tw.trace(lambda x: {"y": tw.ops.repeat(body, 2, x, stacks)}, x=tw.TensorType((3, 4)))
    result = folded(graph, x=normal(3, 4))
    (loop,) = result.operations
    assert [value.type.shape for value in loop.operands] == [(3, 4), (2, 4), (2, 4)]
