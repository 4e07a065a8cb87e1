"""Uses, producers and captured values, on a graph with nested loops that is small enough to list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import ops
from tilewright.graph import Graph, Loop, Value, trace
from tilewright.graph.uses import captured, dependencies, producers, uses, values, walk
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

WEIGHTS = np.ones((2, 4, 4), np.float32)
BIAS = np.ones(4, np.float32)


def network(x: Any) -> Any:
    shifted = x + BIAS

    def body(y: Any, w: Any) -> Any:
        product = y @ w
        return ops.repeat(lambda z: z + product + shifted, 3, product)

    return ops.gelu(ops.repeat(body, 2, x, WEIGHTS)) + shifted


def graph() -> Graph:
    return trace(network, x=TensorType((3, 4)))


def names(found: list[Value]) -> list[str]:
    return [value.name for value in found]


def test_operations_are_walked_in_order() -> None:
    assert [operation.name for operation in walk(graph().body)] == [
        *("add", "repeat", "matmul", "repeat", "add", "add", "gelu", "add")
    ]


def test_values_are_in_order_of_id() -> None:
    g = graph()
    assert [value.id for value in values(g)] == list(range(14))
    assert names(values(g))[:4] == ["x", "BIAS", "WEIGHTS", "add_0"]


def test_captured_values_and_dependencies() -> None:
    g = graph()
    outer = g.operations[1]
    inner = Loop(outer).region.operations[1]
    assert names(captured(outer)) == ["add_0"]
    assert names(captured(inner)) == ["matmul_0", "add_0"]
    assert names(dependencies(outer)) == ["x", "WEIGHTS", "add_0"]
    assert names(dependencies(inner)) == ["matmul_0", "add_0"]
    assert captured(g.operations[0]) == []


def test_uses_say_who_where_and_which_operand() -> None:
    g = graph()
    found = {value.name: of for value, of in uses(g).items()}
    outer = Loop(g.operations[1])
    inner = Loop(outer.region.operations[1])
    shifted = [(use.user.name if use.user else None, use.position) for use in found["add_0"]]
    assert shifted == [("add", 1), ("add", 1)]
    assert {id(use.region) for use in found["add_0"]} == {id(g.body), id(inner.region)}
    assert [use.user for use in found["matmul_0"]] == [inner.operation, inner.region.operations[0]]
    (leaving,) = found[inner.leaving[0].name]
    assert (leaving.user, leaving.position, leaving.region) == (None, 0, inner.region)
    (output,) = found[g.body.results[0].name]
    assert (output.user, output.region) == (None, g.body)


def test_producers_are_the_definitions() -> None:
    g = graph()
    found = producers(g)
    assert all(value in operation.results for value, operation in found.items())
    assert names([value for value in values(g) if value not in found]) == [
        *("x", "BIAS", "WEIGHTS", "y", "w", "z")
    ]
