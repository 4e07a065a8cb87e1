"""What becomes one task, what must not, and in which order tasks stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph import Graph, Operation
from tilewright.ipu21.plan.tasks import Product, Task, is_row, tasks_of

pytestmark = pytest.mark.unit

W, V = np.ones((8, 8), np.float32), np.full((8, 8), 2, np.float32)
ROW, OTHER_ROW = np.ones(8, np.float32), np.full(8, 3, np.float32)


def traced(network: Callable[..., Any], **shapes: tuple[int, ...]) -> Graph:
    shapes = shapes or {"x": (4, 8)}
    return tw.trace(network, **{name: tw.TensorType(shape) for name, shape in shapes.items()})


def tasks(network: Callable[..., Any], **shapes: tuple[int, ...]) -> list[Task]:
    graph = traced(network, **shapes)
    constants = {value.id for value, _ in graph.constants}
    found = tasks_of(graph.body, constants, constants, set())
    assert in_order(graph, found)
    return found


def in_order(graph: Graph, found: list[Task]) -> bool:
    """Every task's operands are there before it, and every result is left once."""
    there = {value.id for value in graph.inputs} | {value.id for value, _ in graph.constants}
    for task in found:
        if isinstance(task, Product):
            operands = [task.left, *task.rights, *(b for b in task.biases if b), task.residual]
            results = task.results
        else:
            operands, results = list(task.operands), task.results
        if any(value is not None and value.id not in there for value in operands):
            return False
        if any(value.id in there for value in results):
            return False
        there |= {value.id for value in results}
    return all(value.id in there for value in graph.body.results)


def described(task: Task) -> str:
    if isinstance(task, Operation):
        return task.name
    parts = ["product" if len(task.results) == 1 else f"{len(task.results)} products"]
    parts += ["bias"] * any(task.biases) + [task.activation] * bool(task.activation)
    return " ".join(parts + ["residual"] * (task.residual is not None))


def names(network: Callable[..., Any], **shapes: tuple[int, ...]) -> list[str]:
    return [described(task) for task in tasks(network, **shapes)]


def test_a_product_takes_its_bias_activation_and_residual() -> None:
    assert names(lambda x: tw.ops.gelu(x @ W + ROW, approximate="tanh") + x) == ["product bias tanh residual"]
    assert names(lambda x: tw.ops.gelu(ROW + x @ W, approximate="none")) == ["product bias exact"]


def test_a_value_with_other_uses_is_left_as_it_is() -> None:
    def hidden_is_output(x: Any) -> Any:
        hidden = x @ W
        return {"hidden": hidden, "y": tw.ops.gelu(hidden)}

    def hidden_is_used_twice(x: Any) -> Any:
        hidden = x @ W
        return tw.ops.gelu(hidden) + hidden

    assert names(hidden_is_output) == ["product", "gelu"]
    assert names(hidden_is_used_twice) == ["product", "gelu", "add"]
    assert names(lambda x: (lambda h: h + h)(x @ W)) == ["product", "add"]


def test_after_an_activation_no_bias_and_after_a_residual_nothing() -> None:
    assert names(lambda x: tw.ops.gelu(x @ W) + ROW) == ["product tanh", "add"]
    assert names(lambda x: tw.ops.gelu(tw.ops.gelu(x @ W))) == ["product tanh", "gelu"]
    assert names(lambda x: tw.ops.gelu(x @ W + x)) == ["product residual", "gelu"]
    assert names(lambda x: x @ W + x + ROW) == ["product residual", "add"]
    assert names(lambda x: x @ W + ROW + OTHER_ROW) == ["product bias", "add"]


def test_residuals_of_another_shape_and_other_constants_stay_outside() -> None:
    assert names(lambda x, r: x @ W + r, x=(4, 8), r=(8,)) == ["product", "add"]
    assert names(lambda x, r: x @ W + r, x=(4, 8), r=(2, 4, 8)) == ["product", "add"]
    assert names(lambda x: x @ W + np.ones((4, 1), np.float32)) == ["product", "add"]
    assert names(lambda x: x @ W + np.ones((4, 8), np.float32)) == ["product", "add"]
    assert names(lambda x: x @ W + np.ones(1, np.float32)) == ["product", "add"]


def test_the_sum_of_two_products_is_the_root_of_one() -> None:
    (first, second) = tasks(lambda x: (x @ W + ROW) + (x @ V + ROW))
    assert [described(first), described(second)] == ["product bias", "product bias residual"]


def test_a_residual_computed_later_is_waited_for() -> None:
    def network(x: Any) -> Any:
        product = x @ W
        return product + tw.ops.softmax(tw.ops.softmax(x))

    assert names(network) == ["softmax", "softmax", "product residual"]


def test_products_of_one_operand_become_one() -> None:
    def network(x: Any) -> Any:
        return {"q": x @ W + ROW, "k": x @ V, "v": x @ np.ones((8, 24), np.float32)}

    (task,) = tasks(network)
    assert isinstance(task, Product)
    assert [value.type.shape[-1] for value in task.results] == [8, 8, 24]
    assert [bias is not None for bias in task.biases] == [True, False, False]


def test_products_that_differ_in_more_than_weights_do_not() -> None:
    def activation(x: Any) -> Any:
        return {"a": tw.ops.gelu(x @ W), "b": x @ V}

    def transposed(x: Any) -> Any:
        return {"a": tw.ops.matmul(x, W, transpose_b=True), "b": x @ V}

    def residual(x: Any) -> Any:
        return {"a": x @ W + x, "b": x @ V}

    def left(x: Any, y: Any) -> Any:
        return {"a": x @ W, "b": y @ V}

    assert names(activation) == ["product tanh", "product"]
    assert names(transposed) == ["product", "product"]
    assert names(residual) == ["product residual", "product"]
    assert names(left, x=(4, 8), y=(4, 8)) == ["product", "product"]


def test_a_product_of_two_computed_values_is_no_product_with_weights() -> None:
    assert names(lambda x: tw.ops.matmul(x, x, transpose_b=True)) == ["matmul"]
    assert names(lambda x: x @ np.ones((3, 8, 8), np.float32), x=(3, 4, 8)) == ["matmul"]


def test_weights_that_walk_through_iterations_are_not_joined_with_others() -> None:
    stacks = {"w": np.ones((2, 8, 8), np.float32), "b": np.ones((2, 8), np.float32)}

    def body(y: Any, w: Any, b: Any) -> Any:
        return tw.ops.softmax(y @ w) + (tw.ops.softmax(y @ V + b) + tw.ops.softmax(y @ V + ROW))

    graph = traced(lambda x: tw.ops.repeat(body, 2, x, stacks))
    (loop,) = graph.operations
    (region,) = loop.regions
    iterated = {value.id for value in region.arguments[1:]}
    constants = {value.id for value, _ in graph.constants} | iterated
    found = [described(task) for task in tasks_of(region, constants, constants, iterated)]
    assert found.count("product") == 1 and found.count("product bias") == 2
    same = [described(task) for task in tasks_of(region, constants, constants, set())]
    assert same.count("3 products bias") == 1


def test_what_a_row_is() -> None:
    assert is_row((8,), (4, 8)) and is_row((1, 8), (4, 8))
    assert not is_row((), (4, 8)) and not is_row((1,), (4, 8)) and not is_row((4, 8), (4, 8))


def test_a_product_has_a_left_operand_that_is_computed() -> None:
    graph = traced(lambda x: tw.ops.matmul(W, x), x=(8, 8))
    constants = {value.id for value, _ in graph.constants}
    weights = constants | {value.id for value in graph.inputs}
    assert [described(task) for task in tasks_of(graph.body, constants, weights, set())] == ["matmul"]


def test_a_sum_with_more_axes_is_left_as_it_is() -> None:
    assert names(lambda x: x @ W + ROW.reshape(1, 1, 8)) == ["product", "add"]
