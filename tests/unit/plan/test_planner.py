"""What the planner knows of values, and how a loop's results come to where the next iteration wants them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tilewright as tw
from tilewright import TensorType, ops
from tilewright.compiler.numerics import Numerics
from tilewright.graph import Graph
from tilewright.ipu21.plan import planner as planning
from tilewright.ipu21.plan.groups import Groups
from tilewright.ipu21.plan.layout import spread
from tilewright.ipu21.plan.planner import Planner, plan_graph
from tilewright.ipu21.plan.price import Prices
from tilewright.ipu21.plan.steps import Compute, Exchange, Held, Retile

pytestmark = pytest.mark.unit

LAYOUT = spread(4, 16, 2)
NAMES = ("entry", "held", "other", "x")


def graph_of_two() -> Graph:
    """An input x [4, 20], a = x + x, b = a + x."""

    def model(x: Any) -> Any:
        return (x + x) + x

    return tw.trace(model, x=TensorType((4, 20)))


def planner(graph: Graph | None = None) -> Planner:
    return Planner(graph or graph_of_two(), 2, Prices(), Numerics())


def makes(target: str, *sources: str, kernel: str = "scale_f16") -> Compute:
    return Compute(target, kernel, (target, *sources), (target,), 1.0)


def moves(source: str, destination: str) -> Exchange:
    return Exchange("move", (Retile(source, destination),), 1.0)


# ---- a loop's result and the place where the next iteration expects it


def loop(*body: Compute | Exchange, before: tuple[Compute | Exchange, ...] = ()) -> Planner:
    """A planner with buffers NAMES, some steps, and the body of a loop behind them."""
    made = planner()
    for name in NAMES:
        made.builder.add(name, LAYOUT, "value", name)
    made.builder.plan.steps += [*before, *body]
    made._held = {1: Held("held", 0, 16), 2: Held("x", 0, 16)}
    made.builder.plan.values["y"] = (Held("held", 0, 16), 1)
    return made


BODY = (makes("other", "x"), makes("x", "entry"), makes("held", "other"))
"""The result is made from other things than `entry`, which nobody reads from then on."""


ENTRY = Held("entry", 0, 16)


def unified(made: Planner, first: int = 0, column: int = 0) -> bool:
    return made._unify(Held("held", column, 16), ENTRY, first)


def test_a_result_takes_the_place_of_what_it_was_made_of() -> None:
    made = loop(*BODY)
    assert unified(made)
    plan = made.builder.plan
    assert "held" not in plan.buffers and "entry" in plan.buffers
    assert plan.steps == [*BODY[:2], replace(makes("entry", "other"), name="held")]
    assert made._held == {1: ENTRY, 2: Held("x", 0, 16)}
    assert plan.values["y"] == (ENTRY, 1)


def test_a_result_that_lies_there_already_stays() -> None:
    made = loop(*BODY)
    assert made._unify(ENTRY, ENTRY, 0)
    assert set(made.builder.plan.buffers) == set(NAMES) and made.builder.plan.steps == list(BODY)


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ((*BODY, makes("x", "entry")), ()),  # what was there is read later
        ((BODY[0], makes("held", "entry")), ()),  # by the step itself, at other places
        ((BODY[0], moves("entry", "held")), ()),
        ((BODY[0],), ()),  # the body does not make it
        (BODY, (makes("held", "x"),)),  # it has contents before the loop
        (BODY, (makes("x", "held"),)),
    ],
    ids=["read later", "read there", "moved", "not made", "made before", "read before"],
)
def test_a_result_stays_apart_from_what_is_still_needed(
    body: tuple[Compute | Exchange, ...], before: tuple[Compute | Exchange, ...]
) -> None:
    made = loop(*body, before=before)
    assert not unified(made, len(before))
    assert set(made.builder.plan.buffers) == set(NAMES)


def test_a_normalisation_writes_where_it_has_read() -> None:
    made = loop(BODY[0], makes("held", "entry", kernel="normalise_f16"))
    assert unified(made)


def test_columns_of_something_wider_and_other_layouts_stay() -> None:
    assert not unified(loop(*BODY), column=16)
    made = loop(*BODY)
    buffers = made.builder.plan.buffers
    buffers["held"] = replace(buffers["held"], layout=spread(4, 32, 2))
    assert not unified(made)


@pytest.mark.parametrize("one", ["held", "entry"])
def test_the_joint_buffer_is_what_both_ask_for(one: str) -> None:
    made = loop(*BODY)
    buffers = made.builder.plan.buffers
    buffers[one] = replace(buffers[one], memory="interleaved", tail=24)
    assert unified(made)
    assert (buffers["entry"].memory, buffers["entry"].tail) == ("interleaved", 24)


def in_place_loop() -> Graph:
    return tw.trace(lambda x: ops.repeat(lambda z: ops.gelu(z), 3, x), x=TensorType((4, 16)))


def test_a_loop_in_place_moves_nothing_and_is_planned_until_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forks = []
    fork = Planner._fork

    def counted(self: Planner) -> Planner:
        forks.append(1)
        return fork(self)

    monkeypatch.setattr(Planner, "_fork", counted)
    plan = plan_graph(in_place_loop(), tiles=2)
    assert not [step.name for step in plan.steps if step.name.endswith(".next")]
    assert len(forks) == 2 < planning.TRIALS


# ---- what may be overwritten, and until when values are needed


def holding(last: int) -> Planner:
    """Value 1, of this region, in buffer a; value 2, from outside, in buffer b; `last` task that needs 1."""
    made = planner()
    for name, role in (("a", "value"), ("b", "value"), ("w", "weight")):
        made.builder.add(name, LAYOUT, role, name)  # type: ignore[arg-type]
    made._held = {1: Held("a", 0, 16), 2: Held("b", 0, 16)}
    made._inside, made._last, made._position = {1}, {1: last, 2: 0}, 3
    return made


def test_a_buffer_is_overwritten_when_nobody_needs_it() -> None:
    assert holding(3)._may_overwrite("a")
    assert not holding(4)._may_overwrite("a")


def test_what_comes_from_outside_or_is_constant_is_not_overwritten() -> None:
    assert not holding(3)._may_overwrite("b")
    assert not holding(3)._may_overwrite("w")


@pytest.mark.parametrize(("base", "view"), [(5, 2), (2, 5), (2, -1), (-1, 2)])
def test_what_a_view_shows_lives_as_long_as_either(base: int, view: int) -> None:
    graph = graph_of_two()
    made = planner(graph)
    one, other = (operation.results[0] for operation in graph.body.operations)
    made._last = {value.id: last for value, last in ((one, base), (other, view)) if last >= 0}
    made.keep(one, other)
    assert made._last[one.id] == max(base, view)


def test_a_value_lies_nowhere_before_it_is_computed() -> None:
    graph = graph_of_two()
    made = planner(graph)
    assert made.lies(graph.inputs[0]) is None
    with pytest.raises(AssertionError, match="used before it is computed"):
        made.lies(graph.body.operations[0].results[0])


@pytest.mark.parametrize("asked", [None, Groups(1, 20, 48)])
def test_a_free_input_is_stored_as_asked_or_else_as_its_consumers_want(asked: Groups | None) -> None:
    graph = graph_of_two()
    made = planner(graph)
    wanted = Groups(1, 20, 32)
    made._wanted = {graph.inputs[0].id: wanted}
    held = made.needed(graph.inputs[0], asked)
    assert held.groups == (asked or wanted)
    assert made.builder.layout(held.buffer).column.extent == (asked or wanted).columns


def test_only_what_a_loop_walks_through_counts_as_iterated(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    def tasks_of(region: Any, constants: Any, rights: Any, iterated: set[int]) -> list[Any]:
        seen.append(iterated)
        return []

    monkeypatch.setattr(planning, "tasks_of", tasks_of)
    graph = graph_of_two()
    made = planner(graph)
    made._constants = {101: ("a", 1), 102: ("b", 3)}
    made.region(graph.body)
    assert seen == [{102}]
