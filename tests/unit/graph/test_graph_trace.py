"""A traced function becomes the graph it describes; what cannot be traced is refused at the user's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tilewright import ops
from tilewright.errors import GraphError, ShapeError, TilewrightError, UnsupportedError
from tilewright.graph import Graph, trace, trace_function
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

X = TensorType((3, 4))
GENERATOR = np.random.default_rng(5)
WEIGHT = GENERATOR.standard_normal((4, 8)).astype(np.float32)
BIAS = GENERATOR.standard_normal(8).astype(np.float32)


@dataclass
class Layer:
    weight: np.ndarray = field(default_factory=lambda: np.full((4, 4), 0.5, np.float32))


def same_as_arrays(function: Callable[..., Any], graph: Graph) -> None:
    x = np.random.default_rng(1).standard_normal(X.shape).astype(np.float32)
    expected = function(x=x)
    np.testing.assert_array_equal(graph.evaluate({"x": x})["output"], expected)


def names(graph: Graph) -> list[str]:
    return [value.name for value, _ in graph.constants]


def test_the_graph_computes_what_the_function_computes() -> None:
    def network(x: Any) -> Any:
        hidden = ops.gelu(ops.add(ops.matmul(x, WEIGHT), BIAS))
        return hidden @ WEIGHT.T + 1.5 + x

    graph = trace(network, x=X)
    same_as_arrays(network, graph)
    assert [operation.name for operation in graph.operations] == [
        *("matmul", "add", "gelu", "matmul", "add", "add")
    ]
    assert graph.name == "network"
    assert names(graph) == ["WEIGHT", "BIAS", "constant_0", "constant_1"]


def test_arrays_on_the_left_are_taken() -> None:
    square = np.eye(3, dtype=np.float32)

    def network(x: Any) -> Any:
        return square @ x + (x + np.add(2.0, np.matmul(square, x)))

    graph = trace(network, x=X)
    same_as_arrays(network, graph)
    assert names(graph) == ["square", "constant_0"]


def test_ids_follow_the_order_of_definition() -> None:
    graph = trace(lambda x, y: {"sum": x + y + BIAS[:4], "product": x @ WEIGHT}, x=X, y=X)
    values = [
        *graph.inputs,
        *(value for value, _ in graph.constants),
        *(operation.result for operation in graph.operations),
    ]
    assert [value.id for value in values] == list(range(len(values)))
    assert [name for name, _ in graph.outputs] == ["sum", "product"]


def test_constants_are_named_after_what_holds_them() -> None:
    layers = {"first": Layer()}
    stack = [np.full((4, 4), float(n + 1), np.float32) for n in range(2)]

    def network(x: Any) -> Any:
        for matrix in stack:
            x = x @ matrix
        return x @ layers["first"].weight

    assert names(trace(network, x=X)) == ["matrix", "matrix_1", "layers.first.weight"]


def test_equal_arrays_are_one_constant() -> None:
    def network(x: Any) -> Any:
        return (x @ WEIGHT + BIAS) + (x @ WEIGHT.copy() + BIAS.astype(np.float64))

    graph = trace(network, x=X)
    assert names(graph) == ["WEIGHT", "BIAS"]
    # Equal bytes of another shape are another constant.
    graph = trace(lambda x: x + np.zeros((3, 4)) + np.zeros(4), x=X)
    assert len(graph.constants) == 2


def test_later_changes_to_an_array_do_not_reach_the_graph() -> None:
    bias = np.zeros(4, np.float32)

    def network(x: Any) -> Any:
        first = x + bias
        bias[:] = 7
        return first + bias

    graph = trace(network, x=X)
    bias[:] = 9
    assert [array[0] for _, array in graph.constants] == [0, 7]
    assert not any(array.flags.writeable for _, array in graph.constants)


def test_what_no_output_needs_is_dropped() -> None:
    def network(x: Any) -> Any:
        _unused = x @ WEIGHT
        return x + 1.0

    graph = trace(network, x=X)
    assert len(graph.operations) == 1
    assert len(graph.constants) == 1


def test_operations_know_the_users_line() -> None:
    def network(x: Any) -> Any:
        return ops.gelu(x)

    line = inspect.getsourcelines(network)[1] + 1
    assert trace(network, x=X).operations[0].location == f"test_graph_trace.py:{line}"


def test_tuples_and_declared_names() -> None:
    def network(x: Any) -> Any:
        return x + 1.0, ops.gelu(x)

    assert trace(network, x=X).output_names == ["output_0", "output_1"]
    assert trace_function(network, {"x": X}, outputs=("a", "b")).output_names == ["a", "b"]
    swapped = trace_function(lambda x: {"b": x + 1.0, "a": ops.gelu(x)}, {"x": X}, outputs=("a", "b"))
    assert [(name, value.name) for name, value in swapped.outputs] == [("a", "gelu_0"), ("b", "add_0")]


def test_an_input_may_be_called_like_a_generated_name() -> None:
    graph = trace(lambda add_0: add_0 + 1.0, add_0=X)
    assert [graph.inputs[0].name, graph.operations[0].result.name] == ["add_0", "add_1"]


REFUSED: list[tuple[Callable[[Any], Any], type[TilewrightError], str]] = [
    (lambda x: x - 1, UnsupportedError, "`-`"),
    (lambda x: -x, UnsupportedError, "`-`"),
    (lambda x: 2 * x, UnsupportedError, r"`\*`"),
    (lambda x: np.ones(4) / x, UnsupportedError, r"numpy\.divide"),
    (lambda x: x == 0, UnsupportedError, "`==`"),
    (lambda x: np.tanh(x), UnsupportedError, r"numpy\.tanh"),
    (lambda x: np.add.reduce(x), UnsupportedError, r"numpy\.add\.reduce"),
    (lambda x: np.concatenate([x, x]), UnsupportedError, r"numpy\.concatenate .* \(use ops\.concat\)"),
    (lambda x: np.sort(x), UnsupportedError, r"numpy\.sort .* \(use an operator of tilewright\.ops\)"),
    (lambda x: x.T, UnsupportedError, r"\.T .* \(use ops\.transpose\)"),
    (lambda x: x.detach(), UnsupportedError, r"\.detach .* \(it has shape"),
    (lambda x: x + 1 if x else x, UnsupportedError, "truth value"),
    (lambda x: x[0], UnsupportedError, r"indexing .* \(use ops\.slice\)"),
    (lambda x: list(x), UnsupportedError, "iteration"),
    (lambda x: float(x), UnsupportedError, r"float\(\)"),
    (lambda x: np.asarray(x), UnsupportedError, "array"),
    (lambda x: x.reshape(12), UnsupportedError, r"\.reshape .* \(use ops\.reshape\)"),
    (lambda x: x @ np.ones((3, 3)), ShapeError, r"matmul: inner extents 4 and 3 differ: a = float32\[3, 4\]"),
    (lambda x: x + np.ones(3), ShapeError, r"extents 4 and 3 of axis -1"),
    (lambda x: x + np.array(["a"]), ShapeError, "not an array of real numbers"),
    (lambda x: x + 1j, ShapeError, "not an array of real numbers"),
    (lambda x: ops.gelu(x, approximate="sigmoid"), GraphError, "approximate='sigmoid' means nothing"),
    (lambda x: 1 // 0, GraphError, "ZeroDivisionError"),
    (lambda x: None, GraphError, "None, not a traced value"),
    (lambda x: [], GraphError, "no output"),
    (lambda x: x, GraphError, "which no operation of the graph computes"),
    (lambda x: [x + 1.0] * 2, GraphError, "same value"),
    (lambda x: {"not a name": x + 1.0}, GraphError, "not legal"),
    (lambda y: y, GraphError, "unexpected keyword"),
]


@pytest.mark.parametrize(("function", "kind", "message"), REFUSED)
def test_refusals_name_the_line(
    function: Callable[[Any], Any], kind: type[TilewrightError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        trace(function, x=X)
    line = function.__code__.co_firstlineno
    assert caught.value.where is not None
    assert f"test_graph_trace.py:{line}" in caught.value.where
    assert "\n" not in str(caught.value)


def test_a_refusal_in_a_helper_names_the_helpers_line() -> None:
    def helper(value: Any) -> Any:
        return ops.matmul(value, np.ones((9, 9)))

    line = inspect.getsourcelines(helper)[1] + 1
    with pytest.raises(ShapeError, match=rf"test_graph_trace\.py:{line}: `return ops\.matmul"):
        trace(lambda x: helper(x), x=X)


def test_unused_inputs_are_refused() -> None:
    with pytest.raises(GraphError, match="input 'y' is never used"):
        trace(lambda x, y: x + 1.0, x=X, y=X)


def test_traced_values_do_not_leave_their_trace() -> None:
    kept: list[Any] = []

    def keeper(x: Any) -> Any:
        kept.append(x)
        return x + 1.0

    trace(keeper, x=X)
    with pytest.raises(GraphError, match="after its function has returned"):
        ops.gelu(kept[0])
    with pytest.raises(GraphError, match="another trace"):
        trace(lambda x: x + kept[0], x=X)


def test_inputs_need_types() -> None:
    with pytest.raises(GraphError, match="no inputs"):
        trace(lambda: 1)
    with pytest.raises(GraphError, match="not a TensorType"):
        trace(lambda x: x, x=(3, 4))  # type: ignore[arg-type]  # what a user would try


def test_endless_recursion_is_one_line() -> None:
    def again(x: Any) -> Any:
        return again(x)

    with pytest.raises(GraphError, match="recurses without end"):
        trace(again, x=X)


def test_hasattr_still_works() -> None:
    def network(x: Any) -> Any:
        assert not hasattr(x, "detach")
        assert (x.shape, x.dtype, x.ndim, len(x)) == ((3, 4), "float32", 2, 3)
        return x + 1.0

    trace(network, x=X)
