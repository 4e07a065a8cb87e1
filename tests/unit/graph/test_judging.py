"""The judge of device results accepts float16 and sees one wrong element, row, or missing iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from support.judging import emulate, judge
from support.random_graphs import RandomGraph, normal, random_graphs
from tilewright import ops
from tilewright.graph import trace
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit


@settings(max_examples=150)
@given(random_graphs(every_value_is_output=True))
def test_float16_is_accepted_on_any_graph(example: RandomGraph) -> None:
    judge(example.graph, example.inputs, emulate(example.graph, example.inputs))


def layers(count: int, generator: np.random.Generator) -> Any:
    w = normal(generator, (count, 16, 16), 0.25)
    gamma, beta = np.ones(16, np.float32), np.zeros(16, np.float32)

    def network(x: Any) -> dict[str, Any]:
        def body(y: Any, w: Any) -> Any:
            return ops.layer_norm(ops.gelu(y @ w) + y, gamma, beta)

        return {"y": ops.repeat(body, count, x, w)}

    return trace(network, x=TensorType((8, 16)))


@pytest.mark.parametrize("count", [1, 4])
def test_a_wrong_loop_is_seen(count: int) -> None:
    generator = np.random.default_rng(count)
    graph = layers(count, generator)
    x = normal(generator, (8, 16))
    results = emulate(graph, {"x": x})
    judge(graph, {"x": x}, results)
    for damage in ("element", "rows", "iteration"):
        y = results["y"].copy()
        if damage == "element":
            y[2, 3] += 0.3
        elif damage == "rows":
            y = y[::-1]
        else:
            longer = layers(count + 1, np.random.default_rng(count))
            y = emulate(longer, {"x": x})["y"]
        with pytest.raises(AssertionError, match=r"repeat_0 = repeat\(.*outside the tolerance"):
            judge(graph, {"x": x}, {"y": y})
