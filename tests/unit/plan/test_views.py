"""What is a view of a buffer, and what has to be rearranged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler.numerics import Numerics
from tilewright.graph import Operation
from tilewright.ipu21.plan import views
from tilewright.ipu21.plan.layout import Axis, Layout, spread
from tilewright.ipu21.plan.planner import Planner, plan_graph
from tilewright.ipu21.plan.price import Prices
from tilewright.ipu21.plan.steps import Held, Plan

pytestmark = pytest.mark.unit


def plan_of(network: Any, shape: tuple[int, ...] = (4, 32)) -> Plan:
    """The plan for a function of a computed value."""
    graph = tw.trace(lambda x: network(tw.ops.gelu(x)), x=tw.TensorType(shape))
    return plan_graph(graph, tiles=2)


def columns_of(value: Any, start: int, stop: int) -> Any:
    """Some of the last axis."""
    return tw.ops.slice(value, axis=-1, start=start, stop=stop)


def places(plan: Plan) -> list[tuple[str, int, int]]:
    """Buffer, column and number of columns of every output."""
    return [(held.buffer, held.column, held.columns) for held in plan.outputs.values()]


@pytest.mark.parametrize(
    ("network", "column", "columns"),
    [
        # The same matrix.
        (lambda h: tw.ops.reshape(h, shape=(2, 2, 32)), 0, 32),
        # Whole records, and the last columns that there are.
        (lambda h: columns_of(h, 0, 16), 0, 16),
        (lambda h: columns_of(h, 16, 32), 16, 16),
        (lambda h: columns_of(h, -16, 32), 16, 16),
        (lambda h: tw.ops.reshape(columns_of(h, 16, 32), shape=(2, 2, 16)), 16, 16),
    ],
)
def test_what_stands_in_a_buffer_as_it_is(network: Any, column: int, columns: int) -> None:
    plan = plan_of(lambda h: {"h": tw.ops.gelu(h) + h, "y": network(h)})
    (_, (buffer, first, count)) = places(plan)
    assert (first, count) == (column, columns)
    assert buffer == plan.values["gelu_0"][0].buffer


def test_the_last_columns_need_not_be_whole_records() -> None:
    plan = plan_of(lambda h: {"y": columns_of(h, 16, 20)}, (4, 20))
    assert places(plan) == [(plan.values["gelu_0"][0].buffer, 16, 4)]


@pytest.mark.parametrize(
    ("network", "shape", "columns"),
    [
        (lambda h: tw.ops.reshape(h, shape=(8, 16)), (4, 32), 16),
        (lambda h: tw.ops.transpose(h, permutation=(1, 0)), (16, 16), 16),
        (lambda h: tw.ops.slice(h, axis=0, start=0, stop=16), (32, 32), 32),
        (lambda h: columns_of(h, 8, 32), (4, 32), 24),
        (lambda h: columns_of(h, 0, 8), (4, 32), 8),
        (lambda h: columns_of(h, 16, 24), (4, 32), 8),
        (lambda h: columns_of(tw.ops.transpose(h, permutation=(1, 0)), 0, 16), (32, 32), 16),
        (lambda h: tw.ops.reshape(tw.ops.transpose(h, permutation=(1, 0)), shape=(2, 16, 32)), (32, 32), 32),
    ],
)
def test_everything_else_is_rearranged(network: Any, shape: tuple[int, ...], columns: int) -> None:
    plan = plan_of(lambda h: {"y": network(h)}, shape)
    ((buffer, first, count),) = places(plan)
    assert buffer != plan.values["gelu_0"][0].buffer
    assert (first, count) == (0, columns)
    assert plan.buffers[buffer].layout.column.extent == columns


@pytest.mark.parametrize(
    "network",
    [
        lambda x: tw.ops.reshape(x, shape=(2, 2, 32)),
        lambda x: columns_of(x, 0, 16),
        lambda x: tw.ops.transpose(x, permutation=(1, 0)),
    ],
)
def test_views_of_inputs_that_have_no_place_yet(network: Any) -> None:
    graph = tw.trace(lambda x: {"y": tw.ops.gelu(network(x))}, x=tw.TensorType((4, 32)))
    plan = plan_graph(graph, tiles=2)
    assert plan.inputs["x"].columns == 32
    assert plan.outputs["y"].buffer != plan.inputs["x"].buffer


def test_columns_with_padding_between_them_are_no_window() -> None:
    w = np.ones((16, 20), np.float32)

    def network(x: Any) -> Any:
        q = x @ w
        return {"a": tw.ops.attention(q, q, q, heads=2), "y": columns_of(q, 16, 20)}

    plan = plan_graph(tw.trace(network, x=tw.TensorType((4, 16))), tiles=2)
    padded = plan.values["matmul_0"][0]
    assert padded.groups is not None and padded.columns == 32
    assert plan.outputs["y"].buffer != padded.buffer


def test_records_of_another_order_are_no_window() -> None:
    graph = tw.trace(lambda x: {"y": columns_of(x, 0, 16)}, x=tw.TensorType((16, 32)))
    (operation,) = graph.body.operations
    for order, found in (("a16", Held("x", 0, 16)), ("a16t", None)):
        planner = planner_for(graph)
        planner.builder.add("x", Layout(order, Axis(16, 16), Axis(32, 16), 1), "input", "x")
        planner._held[graph.inputs[0].id] = Held("x", 0, 32)
        assert views._window(planner, operation) == found


def planner_for(graph: Any) -> Planner:
    return Planner(graph, 2, Prices(), Numerics())


@pytest.mark.parametrize(
    ("rows", "columns", "tiles", "across"),
    [(8, 64, 8, 1), (9, 64, 8, 1), (4, 64, 8, 2), (2, 64, 7, 3), (2, 64, 100, 4), (1, 20, 100, 2)],
)
def test_few_rows_are_cut_into_columns_too(rows: int, columns: int, tiles: int, across: int) -> None:
    layout = views.spread_widely(rows, columns, tiles)
    assert layout.column.parts == across
    assert layout.row.parts == min(rows, tiles) and layout.tiles == min(rows, tiles) * across
    if across == 1:
        assert layout == spread(rows, columns, tiles)


@pytest.mark.parametrize(
    ("own", "shape"), [((1, 1, 32), (32,)), ((4, 32), (2, 4, 32)), ((32,), (4, 32)), ((1, 4, 32), (4, 32))]
)
def test_a_value_is_broadcast_from_its_last_axis(own: tuple[int, ...], shape: tuple[int, ...]) -> None:
    graph = tw.trace(lambda x: {"y": tw.ops.gelu(x)}, x=tw.TensorType(own))
    planner, (x,) = planner_for(graph), graph.inputs
    operation: Operation = graph.body.operations[0]
    derived = views._derived(planner, x, shape, operation)
    assert derived.type.shape == shape
    elements = int(np.prod(own))
    expected = np.broadcast_to(np.arange(elements).reshape(own[-min(len(own), len(shape)) :]), shape)
    if derived.id in planner._views:
        assert planner._views[derived.id].index.reshape(-1).tolist() == expected.reshape(-1).tolist()
    else:
        assert derived.type.elements == elements and planner._held[derived.id].buffer == "x"
