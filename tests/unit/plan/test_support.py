"""What no plan can do is refused by name, all at once; what one can is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ops
from tilewright.compiler.numerics import Numerics
from tilewright.errors import UnsupportedError
from tilewright.graph import Graph
from tilewright.ipu21.plan.support import check_supported
from tilewright.ipu21.plan.turns import MOST_TURNS, check_turns

pytestmark = pytest.mark.unit

OPERATORS = {"matmul", "add", "gelu", "softmax", "layer_norm", "repeat"}
W = np.ones((8, 8), np.float32)
ROW = np.ones(8, np.float32)


def traced(network: Callable[..., Any], **shapes: tuple[int, ...]) -> Graph:
    shapes = shapes or {"x": (4, 8)}
    return tw.trace(network, **{name: tw.TensorType(shape) for name, shape in shapes.items()})


def faults(graph: Graph, precision: str = "float16", operators: set[str] = OPERATORS) -> list[str]:
    """What is wrong with a graph, an entry for each thing."""
    try:
        check_supported(graph, operators, Numerics(precision))
    except UnsupportedError as error:
        head, *lines = str(error).splitlines()
        assert head.startswith(f"{len(lines)} thing(s) ")
        return lines
    return []


@pytest.mark.parametrize(
    "network",
    [
        lambda x: x @ W + ROW,
        lambda x: x + x,
        lambda x: ops.gelu(x, approximate="tanh"),
        lambda x: ops.repeat(lambda y, w: y @ w, 3, x, np.ones((3, 8, 8), np.float32)),
    ],
)
def test_what_there_is_a_plan_for_passes_in_either_precision(network: Callable[..., Any]) -> None:
    for precision in ("float16", "float32"):
        assert faults(traced(network), precision) == []


@pytest.mark.parametrize(
    ("network", "shapes", "reason"),
    [
        (lambda x: ops.softmax(x), {"x": (4, 8)}, "no plan for this operator in float32"),
        (lambda x: ops.gelu(x, approximate="none"), {"x": (4, 8)}, "exact GeLU"),
        (lambda x, y: ops.matmul(x, y), {"x": (2, 4, 8), "y": (2, 8, 4)}, "products of computed operands"),
        (lambda x, y: x + y, {"x": (4, 8), "y": (8,)}, "broadcasting of computed values"),
    ],
)
def test_what_only_float16_can_do_is_refused_in_float32(
    network: Callable[..., Any], shapes: dict[str, tuple[int, ...]], reason: str
) -> None:
    graph = traced(network, **shapes)
    assert faults(graph) == []
    (found,) = faults(graph, "float32")
    assert reason in found


def test_all_faults_are_listed_at_once() -> None:
    def network(x: Any, gain: Any) -> Any:
        y = ops.layer_norm(x, gain, ROW, epsilon=1e-5)
        y = ops.repeat(lambda z: ops.softmax(z), 4, y)
        return ops.gelu(y)

    first, second = faults(traced(network, x=(4, 8), gain=(8,)), operators=OPERATORS - {"gelu", "softmax"})
    assert "softmax" in first and first.endswith("no plan for this operator")
    assert "gelu" in second and second.endswith("no plan for this operator")


def test_what_a_loop_walks_through_broadcasts_in_float32_as_a_constant_does() -> None:
    biases = np.ones((3, 8), np.float32)
    assert faults(traced(lambda x: ops.repeat(lambda y, b: y + b, 3, x, biases)), "float32") == []


def test_a_batch_takes_so_many_turns_and_no_more() -> None:
    graph = traced(lambda x: ops.matmul(x, x), x=(4, 8, 8))
    (operation,) = graph.operations
    check_turns(operation, 5 * MOST_TURNS, 5)
    with pytest.raises(UnsupportedError, match="use at least 6 tiles"):
        check_turns(operation, 5 * MOST_TURNS + 1, 5)
