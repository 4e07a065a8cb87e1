"""A repeat computes what its unrolled body computes, and refuses what it cannot mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import ops
from tilewright.errors import GraphError, ShapeError, TilewrightError
from tilewright.graph import Graph, Loop, print_graph, trace
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

GENERATOR = np.random.default_rng(11)
X = TensorType((3, 4))
WEIGHTS = GENERATOR.standard_normal((5, 4, 4)).astype(np.float32) / 2
BIASES = GENERATOR.standard_normal((5, 4)).astype(np.float32)
TABLE = GENERATOR.standard_normal((3, 4)).astype(np.float32)


def layer(x: Any, w: Any, b: Any) -> Any:
    return ops.gelu(x @ w + b)


def stack(x: Any) -> Any:
    return ops.repeat(layer, 5, x, (WEIGHTS, BIASES))


def only_loop(graph: Graph) -> Loop:
    (operation,) = [operation for operation in graph.operations if operation.name == "repeat"]
    return Loop(operation)


def unrolled(x: np.ndarray) -> np.ndarray:
    for w, b in zip(WEIGHTS, BIASES, strict=True):
        inner = x @ w + b
        x = 0.5 * inner * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
    return x


def test_layers_become_one_loop() -> None:
    graph = trace(stack, x=X)
    (operation,) = graph.operations
    loop = Loop(operation)
    assert (operation.name, loop.count, len(operation.results)) == ("repeat", 5, 1)
    assert [value.name for value in loop.region.arguments] == ["x_1", "w", "b"]
    assert [value.type.shape for value in loop.region.arguments] == [(3, 4), (4, 4), (4,)]
    assert [inside.name for inside in loop.region.operations] == ["matmul", "add", "gelu"]
    assert [value.name for value in loop.iterated] == ["WEIGHTS", "BIASES"]
    x = GENERATOR.standard_normal((3, 4)).astype(np.float32)
    expected = unrolled(x.astype(np.float64))
    np.testing.assert_allclose(graph.evaluate({"x": x})["output"], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(graph.evaluate({"x": x})["output"], stack(x))


def test_ids_count_up_through_regions() -> None:
    graph = trace(lambda x: ops.gelu(stack(x + TABLE)), x=X)
    loop = only_loop(graph)
    order = [
        *graph.inputs,
        *(value for value, _ in graph.constants),
        graph.operations[0].result,
        *loop.region.arguments,
        *(value for inside in loop.region.operations for value in inside.results),
        *loop.results,
        graph.operations[2].result,
    ]
    assert [value.id for value in order] == list(range(len(order)))


def test_several_carried_values_and_captured_ones() -> None:
    def network(x: Any, s: Any) -> Any:
        shifted = x + TABLE

        def body(a: Any, b: Any, w: Any) -> Any:
            return a @ w + shifted, a + b

        a, b = ops.repeat(body, 5, (x, s), WEIGHTS)
        return {"a": a, "b": b}

    graph = trace(network, x=X, s=X)
    x, s = (GENERATOR.standard_normal((3, 4)).astype(np.float32) for _ in range(2))
    a, b = x.astype(np.float64), s.astype(np.float64)
    for w in WEIGHTS:
        a, b = a @ w + (x + TABLE), a + b
    found = graph.evaluate({"x": x, "s": s})
    np.testing.assert_allclose(found["a"], a, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["b"], b, rtol=1e-4, atol=1e-5)
    direct = network(x, s)
    np.testing.assert_array_equal(found["b"], direct["b"])


def test_iterated_values_by_keyword_and_computed_ones() -> None:
    layers = {"weight": WEIGHTS, "bias": BIASES}

    def network(x: Any, c: Any) -> Any:
        def body(y: Any, **parts: Any) -> Any:
            return layer(y, parts["weight"], parts["bias"]) + parts["extra"]

        return ops.repeat(body, 5, x, {**layers, "extra": c + c})

    graph = trace(network, x=X, c=TensorType((5, 4)))
    assert [value.name for value in only_loop(graph).region.arguments] == ["y", "weight", "bias", "extra"]
    assert [value.name for value, _ in graph.constants] == ["layers.weight", "layers.bias"]
    x, c = np.ones((3, 4), np.float32), GENERATOR.standard_normal((5, 4)).astype(np.float32)
    np.testing.assert_array_equal(graph.evaluate({"x": x, "c": c})["output"], network(x, c))


def test_loops_nest() -> None:
    def network(x: Any) -> Any:
        def outer(y: Any, w: Any) -> Any:
            return ops.repeat(lambda z: z @ w + y, 3, y)

        return ops.repeat(outer, 5, x, WEIGHTS)

    graph = trace(network, x=X)
    inner = Loop(only_loop(graph).region.operations[0])
    assert (inner.count, len(inner.iterated)) == (3, 0)
    x = GENERATOR.standard_normal((3, 4))
    expected = x
    for w in WEIGHTS:
        z = expected
        for _ in range(3):
            z = z @ w + expected
        expected = z
    x32 = x.astype(np.float32)
    np.testing.assert_allclose(graph.evaluate({"x": x32})["output"], expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(graph.evaluate({"x": x32})["output"], network(x32))


def test_slices_of_a_vector_are_scalars() -> None:
    steps = np.arange(1, 5, dtype=np.float32)

    def network(x: Any) -> Any:
        return ops.repeat(lambda y, step: y + step, 4, x, steps)

    graph = trace(network, x=X)
    assert only_loop(graph).slices[0].type == TensorType(())
    np.testing.assert_array_equal(graph.evaluate({"x": np.zeros((3, 4))})["output"], np.full((3, 4), 10))
    np.testing.assert_array_equal(network(np.zeros((3, 4))), np.full((3, 4), 10))


def test_what_nobody_needs_is_not_carried() -> None:
    def network(x: Any) -> Any:
        def body(a: Any, b: Any, c: Any, w: Any, bias: Any) -> Any:
            _unused = a @ w
            return a + c, b @ w, c + bias

        first, _, _ = ops.repeat(body, 5, (x, x + 1.0, x + 2.0), (WEIGHTS, BIASES))
        return first

    graph = trace(network, x=X)
    loop = only_loop(graph)
    # a is asked for and needs c, c needs the biases; b and the weights serve nothing.
    assert [value.name for value in loop.entering] == ["a", "c"]
    assert [value.name for value in loop.iterated] == ["BIASES"]
    assert [inside.name for inside in loop.region.operations] == ["add", "add"]
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(graph.evaluate({"x": x})["output"], network(x))


def test_operations_inside_know_the_users_line() -> None:
    def network(x: Any) -> Any:
        return ops.repeat(
            lambda y: ops.gelu(y),
            2,
            x,
        )

    first = inspect.getsourcelines(network)[1]
    loop = only_loop(trace(network, x=X))
    assert loop.operation.location == f"test_repeat.py:{first + 1}"
    assert loop.region.operations[0].location == f"test_repeat.py:{first + 2}"


def leaking(x: Any) -> Any:
    kept = []

    def body(y: Any) -> Any:
        kept.append(y + 1.0)
        return ops.gelu(y)

    return ops.repeat(body, 2, x) + kept[0]


REFUSED: list[tuple[Callable[[Any], Any], type[TilewrightError], str]] = [
    (lambda x: ops.repeat(layer, 4, x, (WEIGHTS, BIASES)), ShapeError, r"iterated value 0 is float32\[5, 4"),
    (lambda x: ops.repeat(layer, 0, x, ()), GraphError, "repeat: count=0 should be at least 1"),
    (lambda x: ops.repeat(layer, 2.0, x, ()), GraphError, r"repeat: count=2\.0 should be a whole number"),
    (lambda x: ops.repeat(lambda: (), 2, (), x), GraphError, "nothing is carried"),
    (lambda x: ops.repeat(lambda y: y @ np.ones((4, 2)), 2, x), ShapeError, r"as float32\[3, 4\] and leaves"),
    (
        lambda x: ops.repeat(lambda y: (y + 1.0, y), 2, x),
        GraphError,
        "1 values are carried, the body gives 2",
    ),
    (lambda x: ops.repeat(lambda y: None, 2, x), GraphError, "NoneType as carried value 0"),
    (lambda x: ops.repeat(lambda y: y, 2, x), GraphError, "'y', not computed by the body"),
    (lambda x: ops.repeat(lambda y: x, 2, x), GraphError, "'x', not computed by the body"),
    (lambda x: ops.repeat(lambda y: x + 1.0, 2, x), GraphError, "never uses the carried value 'y'"),
    (lambda x: ops.repeat(lambda y, z: [y + z] * 2, 2, (x, x))[0], GraphError, "become the same value"),
    (lambda x: ops.repeat(lambda y: y @ np.ones((3, 3)), 2, x), ShapeError, "inner extents"),
    (lambda x: ops.repeat(lambda y: 1 // 0, 2, x), GraphError, "ZeroDivisionError"),
    (lambda x: ops.repeat(lambda y: y + x, 2, np.zeros((3, 4))), GraphError, "none is carried or iterated"),
    (leaking, GraphError, "'add_0' is used outside the repeat that computes it"),
]


@pytest.mark.parametrize(("function", "kind", "message"), REFUSED)
def test_refusals_name_the_line(
    function: Callable[[Any], Any], kind: type[TilewrightError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        trace(function, x=X)
    assert caught.value.where is not None and "test_repeat.py:" in caught.value.where
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("function", "kind", "message"), REFUSED[:5])
def test_arrays_are_refused_alike(
    function: Callable[[Any], Any], kind: type[TilewrightError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        function(np.ones((3, 4), np.float32))
    assert caught.value.where is not None and "test_repeat.py:" in caught.value.where


def test_a_trace_goes_on_after_a_refused_loop() -> None:
    def network(x: Any) -> Any:
        with pytest.raises(ShapeError):
            ops.repeat(lambda y: y @ np.ones((9, 9)), 2, x)
        return x + 1.0

    assert [operation.name for operation in trace(network, x=X).operations] == ["add"]


def test_the_same_function_gives_the_same_text() -> None:
    assert print_graph(trace(stack, x=X)) == print_graph(trace(stack, x=X))
