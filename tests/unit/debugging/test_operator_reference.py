"""A run followed from the outside expects what the graph evaluates to, loops and fusion included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import ops
from tilewright.debugging.reference import OperatorReference
from tilewright.graph import Graph, Loop, TensorType, trace

pytestmark = pytest.mark.unit

generator = np.random.default_rng(3)
WEIGHTS = generator.normal(0, 0.3, (3, 8, 8)).astype(np.float32)
BIASES = generator.normal(0, 0.3, (3, 8)).astype(np.float32)


def layers() -> Graph:
    def network(x: Any) -> Any:
        before = ops.gelu(x, approximate="tanh")
        after = ops.repeat(
            lambda h, w, b: ops.add(ops.gelu(ops.add(h @ w, b), approximate="tanh"), h),
            3,
            before,
            (WEIGHTS, BIASES),
        )
        return ops.add(after, before)

    return trace(network, x=TensorType((4, 8)))


Values = dict[str, NDArray[np.float32]]


def follow(
    graph: Graph, x: NDArray[np.float32], kept: set[str] | None = None
) -> dict[str, NDArray[np.float32]]:
    """Values expected and noted in the order of a program; those not `kept` are left to what follows."""
    reference = OperatorReference(graph, {}, set())
    reference.begin()
    reference.note("x", x)
    last: Values = {}

    def made(name: str, iteration: int) -> None:
        if kept is not None and name not in kept:
            return
        expected = reference.expect(name, iteration)
        assert expected is not None, name
        reference.note(name, expected.array)
        last[name] = expected.array

    for operation in graph.operations:
        if operation.name != "repeat":
            made(operation.result.name, 0)
            continue
        loop = Loop(operation)
        for iteration in range(loop.count):
            for inner in loop.region.operations:
                reference.enter(iteration, inner.result.name)
                made(inner.result.name, iteration)
    return last


def test_loops_carry_and_slice_as_the_evaluation_does() -> None:
    graph = layers()
    x = generator.normal(0, 1, (4, 8)).astype(np.float32)
    ((name, value),) = graph.outputs
    assert np.array_equal(follow(graph, x)[value.name], graph.evaluate({"x": x})[name])


def test_what_is_not_kept_is_computed_on_the_way_and_widens_the_bound() -> None:
    graph = layers()
    x = generator.normal(0, 1, (4, 8)).astype(np.float32)
    ((name, value),) = graph.outputs
    loop = next(Loop(operation) for operation in graph.operations if operation.name == "repeat")
    first = graph.operations[0].result.name
    kept = {first, value.name, loop.leaving[0].name}
    assert np.allclose(follow(graph, x, kept)[value.name], graph.evaluate({"x": x})[name], atol=1e-6)
    narrow, wide = OperatorReference(graph, {}, set()), OperatorReference(graph, {}, set())
    for reference in (narrow, wide):
        reference.note("x", x)
    one = narrow.expect(first, 0)
    assert one is not None
    narrow.note(first, one.array)
    added = graph.operations[-1]
    other = loop.leaving[0].name
    for reference in (narrow, wide):
        reference.note(other, np.zeros((4, 8), np.float32))
        reference.note(loop.results[0].name, np.zeros((4, 8), np.float32))
    exact, fused = narrow.expect(added.result.name, 0), wide.expect(added.result.name, 0)
    assert exact is not None and fused is not None
    assert np.all(np.asarray(fused.bound) > np.asarray(exact.bound))


def test_unknown_constants_make_their_users_unknown() -> None:
    weights = np.ones((8, 4), np.float32)
    graph = trace(lambda x: ops.gelu(x @ weights, approximate="tanh"), x=TensorType((2, 8)))
    reference = OperatorReference(graph, {}, {value.name for value, _ in graph.constants})
    reference.note("x", np.ones((2, 8), np.float32))
    product, activation = (operation.result.name for operation in graph.operations)
    assert reference.expect(product, 0) is None
    reference.note(product, np.ones((2, 4), np.float32))
    assert reference.expect(activation, 0) is not None
