"""Which steps and buffers operations become, where a simpler plan would be wrong or slower."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph import Value
from tilewright.ipu21.plan import planner, product
from tilewright.ipu21.plan.planner import Planner, plan_graph
from tilewright.ipu21.plan.steps import Compute, Exchange, Plan
from tilewright.ipu21.plan.tasks import Product

pytestmark = pytest.mark.unit


def plan_of(network: Any, shape: tuple[int, ...] = (4, 16), *, tiles: int = 1) -> Plan:
    return plan_graph(tw.trace(network, x=tw.TensorType(shape)), tiles=tiles)


def weight(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def calls(plan: Plan) -> list[Compute]:
    return [step for step in plan.steps if isinstance(step, Compute)]


# --- products ---


def test_joined_results_begin_with_records() -> None:
    w, v = weight(16, 20), weight(16, 24)
    plan = plan_of(lambda x: {"a": x @ w, "b": x @ v})
    held = [plan.outputs[name] for name in "ab"]
    assert held[0].buffer == held[1].buffer
    assert [(part.column, part.columns) for part in held] == [(0, 32), (32, 32)]
    # Alone it needs no padding between columns.
    assert plan_of(lambda x: {"y": x @ w}).outputs["y"].columns == 20


def test_a_bias_of_one_of_several_results_is_zeros_for_the_others() -> None:
    w, v, row = weight(16, 16), weight(16, 32), weight(32)
    plan = plan_of(lambda x: {"a": x @ w, "b": x @ v + row})
    (bias,) = (use for use in plan.weights.values() if use.shape[0] == 1)
    assert bias.constants[0] == "" and bias.constants[1] and bias.widths == (16, 32)


def test_an_activation_behind_a_whole_sum_is_computed_in_place() -> None:
    w = weight(16, 16)
    plan = plan_of(lambda x: {"y": tw.ops.gelu(x @ w)})
    multiply, root = calls(plan)
    assert root.operands[0] == root.operands[1] == multiply.operands[0]
    assert plan.outputs["y"].buffer == root.output


@pytest.mark.parametrize(
    ("bias", "activation", "residual", "kernel"),
    [
        (False, "", False, "root_f16"),
        (True, "", False, "root_f16_residual"),
        (True, "tanh", False, "root_f16_addend_tanh"),
        (False, "exact", False, "root_f16_exact"),
        # A residual is not transposed.
        (True, "tanh", True, ""),
    ],
)
def test_what_finishes_transposed_sums(bias: bool, activation: str, residual: bool, kernel: str) -> None:
    value = Value(1, tw.TensorType((16, 16)), "v")
    task = Product(
        (value,), value, (value,), (value if bias else None,), activation, value if residual else None
    )
    assert product._turned_kernel(task) == kernel


# --- other operations ---


def test_a_constant_row_is_kept_as_a_row() -> None:
    row = weight(16)
    plan = plan_of(lambda x: x + row)
    (call,) = calls(plan)
    assert call.kernel == "root_f16_bias"
    assert [use.shape for use in plan.weights.values()] == [(1, 16)]
    other = plan_of(lambda x: x + weight(4, 16))
    assert [call.kernel for call in calls(other)] == ["root_f16_residual"]
    assert [use.shape for use in other.weights.values()] == [(4, 16)]


@pytest.mark.parametrize(("epsilon", "bound"), [(0.5, 0.5), (1e-12, 2.0**-15)])
def test_lengths_are_bounded_as_asked_or_as_half_precision_can_tell(epsilon: float, bound: float) -> None:
    plan = plan_of(lambda x: tw.ops.l2_normalize(x, epsilon=epsilon))
    given = [call.parameters["epsilon"] for call in calls(plan) if "epsilon" in call.parameters]
    assert given == [bound]


# --- loops ---


def test_an_iteration_that_leaves_its_value_in_place_moves_nothing() -> None:
    walked, fixed = weight(3, 16, 16), weight(16, 16)
    plan = plan_of(
        lambda x: {"y": tw.ops.repeat(lambda y, w: tw.ops.gelu(y @ w) @ fixed, 3, x, {"w": walked})}
    )
    entry = plan.outputs["y"].buffer
    (loop,) = plan.loops
    assert [step.name for step in plan.steps if isinstance(step, Exchange)] == [f"{entry}.enter"]
    inside = plan.steps[loop.first : loop.end]
    assert len(inside) == 3 and isinstance(inside[-1], Compute) and inside[-1].written == (entry,)


def test_products_with_weights_of_an_iteration_and_of_all_are_not_joined() -> None:
    walked, fixed = weight(3, 16, 16), weight(16, 16)

    def body(y: Any, w: Any) -> Any:
        return tw.ops.gelu(y @ w) + tw.ops.gelu(y @ fixed)

    plan = plan_of(lambda x: tw.ops.repeat(body, 3, x, {"w": walked}))
    assert sorted((len(use.constants), use.iterations) for use in plan.weights.values()) == [(1, 1), (1, 3)]


WALKED, FIXED, ONE = weight(3, 256, 256), weight(256, 256), weight(256)


def normalised_loop(x: Any) -> tuple[Any, Any]:
    """What enters the loop, and what leaves it."""
    norm = tw.ops.layer_norm(x, ONE, ONE)

    def body(y: Any, w: Any) -> Any:
        return tw.ops.layer_norm(tw.ops.gelu(y @ w) @ FIXED, ONE, ONE)

    return norm, tw.ops.repeat(body, 3, norm, {"w": WALKED})


def enters(plan: Plan) -> list[str]:
    return [step.name for step in plan.steps if isinstance(step, Exchange) and step.name.endswith(".enter")]


def test_an_input_that_a_loop_takes_normalised_is_stored_as_the_loop_wants_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def network(x: Any) -> Any:
        return {"y": normalised_loop(x)[1]}

    plan = plan_of(network, (24, 256), tiles=24)
    (loop,) = plan.loops
    assert enters(plan) == []
    # The loop goes on in the buffer in which the value has been normalised.
    before = plan.steps[loop.first - 1]
    assert isinstance(before, Compute) and before.written == (plan.outputs["y"].buffer,)
    monkeypatch.setattr(Planner, "would_gain", lambda _: False)
    other = plan_of(network, (24, 256), tiles=24)
    assert len(enters(other)) == 1
    assert plan.cycles() < other.cycles()


def test_a_value_that_is_needed_behind_a_loop_is_not_overwritten_there() -> None:
    def network(x: Any) -> Any:
        norm, left = normalised_loop(x)
        return {"norm": norm, "y": left}

    plan = plan_of(network, (24, 256), tiles=24)
    assert len(enters(plan)) == 1
    assert plan.outputs["norm"].buffer != plan.outputs["y"].buffer


def test_two_values_of_a_loop_do_not_share_the_buffer_that_they_come_from() -> None:
    def network(x: Any) -> Any:
        start = tw.ops.gelu(x @ FIXED)

        def body(y: Any, z: Any, w: Any) -> Any:
            return tw.ops.gelu(y @ w), tw.ops.gelu(z @ FIXED)

        return dict(zip("yz", tw.ops.repeat(body, 3, (start, start), {"w": WALKED}), strict=True))

    plan = plan_of(network, (24, 256), tiles=4)
    one, other = (plan.outputs[name].buffer for name in "yz")
    # The first goes on where both lie; the other one is brought to where it begins.
    assert plan.values["gelu_0"][0].buffer == one != other
    (enter,) = (step for step in plan.steps if step.name.endswith(".enter"))
    assert isinstance(enter, Exchange)
    assert [(move.source, move.destination) for move in enter.moves] == [(one, other)]


def test_nothing_is_planned_again_for_what_does_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(planner, "Planner", lambda *given: made.append(given) or Planner(*given))
    plan_of(lambda x: {"y": normalised_loop(x)[1]}, (24, 256), tiles=24)
    assert len(made) == 2
    made.clear()
    # Larger pieces of rows take longer to normalise, and without that nothing is known of an input.
    plan_of(lambda x: {"y": normalised_loop(x)[1]}, (48, 256), tiles=48)
    plan_of(lambda x: {"y": tw.ops.repeat(lambda y, w: y @ w, 3, x, {"w": WALKED})}, (24, 256), tiles=24)
    assert len(made) == 2


def test_inputs_are_not_stored_as_loops_want_them_if_that_costs_one_more_than_another_gains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def network(x: Any, z: Any) -> Any:
        return {"y": normalised_loop(x)[1], "w": normalised_loop(z)[1]}

    made: list[Planner] = []

    def recorded(*given: Any) -> Planner:
        made.append(Planner(*given))
        return made[-1]

    monkeypatch.setattr(planner, "Planner", recorded)
    graph = tw.trace(network, x=tw.TensorType((12, 256)), z=tw.TensorType((48, 256)))
    plan = plan_graph(graph, tiles=48)
    first, other = (each.builder.plan for each in made)
    assert plan is first and len(enters(first)) == 2
    assert enters(other) == [] and other.cycles() > first.cycles()
