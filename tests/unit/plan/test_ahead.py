"""What comes after a product, as the planner sees it."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from tilewright import TensorType, ops
from tilewright.graph import Graph, Value
from tilewright.ipu21.plan.ahead import Consumer, consumer_of
from tilewright.ipu21.plan.tasks import Product, Task, tasks_of


def tasks_in(graph: Graph, carried: bool = False) -> tuple[list[Task], dict[int, Value]]:
    """The tasks of a graph, or of its loop's body with what its results come back as."""
    constants = {value.id for value, _ in graph.constants}
    region = graph.body
    back = {}
    if carried:
        (region,) = next(operation for operation in graph.body.operations if operation.regions).regions
        constants |= {value.id for value in region.arguments[1:]}
        back = {
            result.id: argument for result, argument in zip(region.results, region.arguments, strict=False)
        }
    return tasks_of(region, constants, constants, set()), back


def weights(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def follower(tasks: list[Task], position: int, back: dict[int, Value]) -> Consumer | None:
    task = tasks[position]
    assert isinstance(task, Product)
    return consumer_of(tasks, position, task.results[0], back)


def test_the_next_product_and_the_norms_before_it() -> None:
    one, zero = np.ones(32, np.float32), np.zeros(32, np.float32)
    u, v, w = weights(32, 32), weights(32, 32), weights(32, 32)

    def model(x: Any) -> Any:
        y = ops.layer_norm(ops.gelu(x @ u), one, zero, epsilon=1e-5)
        return (y @ v) @ w

    tasks, _ = tasks_in(tw.trace(model, x=TensorType((8, 32))))
    products = [index for index, task in enumerate(tasks) if isinstance(task, Product)]
    first, second, last = products
    found = follower(tasks, first, {})
    assert found is not None and found.product is tasks[second]
    assert [norm.name for norm in found.norms] == ["layer_norm"]
    found = follower(tasks, second, {})
    assert found is not None and found.product is tasks[last] and not found.norms
    assert follower(tasks, last, {}) is None


def test_around_a_loop() -> None:
    graph = tw.trace(
        lambda x: ops.repeat(lambda x, u, v: (x @ u) @ v, 3, x, (weights(3, 32, 32), weights(3, 32, 32))),
        x=TensorType((8, 32)),
    )
    tasks, back = tasks_in(graph, carried=True)
    assert len(tasks) == 2
    found = follower(tasks, 1, back)
    assert found is not None and found.product is tasks[0]
    assert follower(tasks, 1, {}) is None


def test_no_product_takes_it() -> None:
    tasks, _ = tasks_in(tw.trace(lambda x: ops.softmax(x @ weights(32, 32)), x=TensorType((8, 32))))
    assert follower(tasks, 0, {}) is None
