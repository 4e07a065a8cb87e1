"""Any graph verifies, prints, comes back from text and files, and computes the same there."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from support.random_graphs import STEPS, RandomGraph, random_graphs
from tilewright.graph import Loop, load_graph, parse_graph, print_graph, save_graph
from tilewright.graph.uses import captured, producers, values, walk
from tilewright.operators import operator_names

pytestmark = pytest.mark.unit


@settings(max_examples=150)
@given(random_graphs())
def test_any_graph_comes_back_from_text(example: RandomGraph) -> None:
    graph = example.graph
    graph.verify()
    text = print_graph(graph)
    again = parse_graph(text, {value.name: array for value, array in graph.constants})
    assert print_graph(again) == text
    assert [(v.id, v.name, v.type) for v in values(again)] == [(v.id, v.name, v.type) for v in values(graph)]
    results = graph.evaluate(example.inputs)
    for name, array in again.evaluate(example.inputs).items():
        np.testing.assert_array_equal(array, results[name])
    for name, value in graph.outputs:
        assert results[name].shape == value.type.shape and results[name].dtype == np.float32
        assert np.all(np.abs(results[name]) < 65504)


@settings(max_examples=40)
@given(random_graphs(max_operations=5))
def test_any_graph_comes_back_from_files(example: RandomGraph) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.graph"
        save_graph(example.graph, path)
        again = load_graph(path)
    assert print_graph(again) == print_graph(example.graph)
    expected = example.graph.evaluate(example.inputs)
    for name, array in again.evaluate(example.inputs).items():
        np.testing.assert_array_equal(array, expected[name])


@settings(max_examples=30)
@given(random_graphs(every_value_is_output=True))
def test_every_value_can_be_an_output(example: RandomGraph) -> None:
    computed = {value for operation in example.graph.operations for value in operation.results}
    assert set(example.graph.body.results) == computed


@settings(max_examples=30)
@given(random_graphs(steps=("add", "dense", "gelu"), sizes=(1, 16, 33), max_rank=3))
def test_steps_and_sizes_can_be_restricted(example: RandomGraph) -> None:
    names = {operation.name for operation in walk(example.graph.body)}
    assert names <= {"add", "matmul", "gelu"}


@settings(max_examples=40)
@given(random_graphs(steps=("repeat", "repeat", "attention", "add"), max_operations=4, sizes=(2, 4)))
def test_loops_in_loops_come_back(example: RandomGraph) -> None:
    graph = example.graph
    again = parse_graph(print_graph(graph), {value.name: array for value, array in graph.constants})
    assert print_graph(again) == print_graph(graph)
    expected = graph.evaluate(example.inputs)
    for name, array in again.evaluate(example.inputs).items():
        np.testing.assert_array_equal(array, expected[name])
    for operation in walk(graph.body):
        for value in captured(operation):
            assert value not in Loop(operation).region.arguments


def test_the_strategy_reaches_every_operator() -> None:
    seen: Counter[str] = Counter()

    def count(example: RandomGraph) -> None:
        computed = set(example.graph.inputs) | set(producers(example.graph))
        for operation in walk(example.graph.body):
            seen[operation.name] += 1
            seen["captured"] += not computed.isdisjoint(captured(operation))
            seen["nested"] += any(
                inside.regions for region in operation.regions for inside in region.operations
            )

    settings(max_examples=120, database=None)(given(random_graphs())(count))()
    loops = random_graphs(steps=("repeat", "attention"), sizes=(2, 4))
    settings(max_examples=30, database=None)(given(loops)(count))()
    assert set(seen) == {*operator_names(), "repeat", "captured", "nested"}
    assert min(seen.values()) >= 5, seen
    assert set(STEPS) >= set(operator_names()) - {"matmul"}
