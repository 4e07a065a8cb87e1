"""Lifetimes of buffers, with loops: what an iteration reads before it writes lives through the whole loop."""

from __future__ import annotations

import pytest

from tilewright.ipu21.plan.layout import spread
from tilewright.ipu21.plan.steps import Buffer, Compute, Exchange, Held, Loop, Plan, Retile, Role

pytestmark = pytest.mark.unit

LAYOUT = spread(4, 16, 2)


def plan(*steps: Compute | Exchange, loop: tuple[int, int] | None = None, **roles: Role) -> Plan:
    """A plan of these steps; buffers are values unless another role is given."""
    result = Plan(2, steps=list(steps))
    names = {name for step in steps for name in _names(step)} | set(roles)
    for name in sorted(names):
        result.buffers[name] = Buffer(name, LAYOUT, roles.get(name, "value"), name)
    if loop is not None:
        result.loops.append(Loop(*loop, 3))
    return result


def _names(step: Compute | Exchange) -> list[str]:
    if isinstance(step, Compute):
        return [name for name in step.operands if name is not None]
    return [name for move in step.moves for name in (move.source, move.destination)]


def makes(target: str, *sources: str | None) -> Compute:
    return Compute(target, "scale_f16", (target, *sources), (target,), 1.0)


def moves(source: str, destination: str) -> Exchange:
    return Exchange("move", (Retile(source, destination),), 1.0)


def test_from_the_first_touch_to_the_last() -> None:
    found = plan(makes("a", "x"), moves("a", "b"), makes("c", "b"), makes("d", "a"), x="input").lifetimes()
    assert found == {"x": (-1, 0), "a": (0, 3), "b": (1, 2), "c": (2, 2), "d": (3, 3)}


def test_what_is_loaded_and_what_leaves_live_to_the_end() -> None:
    made = plan(makes("a", "w"), makes("b", "a"), makes("c", "t"), w="weight", t="table")
    made.outputs["y"] = Held("a", 0, 16)
    found = made.lifetimes()
    assert found["w"] == found["t"] == (-1, 3)
    assert found["a"] == (0, 3)
    assert found["b"] == (1, 1)


def test_a_buffer_nobody_touches_ends_where_it_begins() -> None:
    assert plan(makes("a"), b="value").lifetimes()["b"] == (1, 1)


def test_a_buffer_nobody_touches_still_is_an_input() -> None:
    assert plan(makes("a"), x="input").lifetimes()["x"] == (-1, -1)


def test_what_an_iteration_makes_and_uses_up_lives_only_then() -> None:
    found = plan(makes("a", "x"), makes("b", "a"), makes("c", "b"), makes("d", "x"), loop=(0, 4)).lifetimes()
    assert found["a"] == (0, 1)
    assert found["b"] == (1, 2)


def test_a_carried_value_lives_through_the_loop() -> None:
    # Entered before, read by step 1, written for the next iteration by step 2.
    found = plan(makes("c", "x"), makes("a", "c"), makes("c", "a"), makes("b", "a"), loop=(1, 4)).lifetimes()
    assert found["c"] == (0, 3)
    assert found["a"] == (1, 3)


def test_a_value_of_the_iteration_before_lives_through_the_loop() -> None:
    # Nothing outside touches it, but step 1 of the next iteration reads what step 2 wrote.
    found = plan(makes("x"), makes("a", "c"), makes("c", "x"), makes("b", "a"), loop=(1, 4)).lifetimes()
    assert found["c"] == (1, 3)


def test_written_in_place_is_read_first() -> None:
    found = plan(makes("x"), makes("c", "c"), makes("b", "x"), loop=(1, 3)).lifetimes()
    assert found["c"] == (1, 2)


def test_a_captured_value_lives_until_the_last_iteration_is_over() -> None:
    found = plan(makes("k", "x"), makes("a", "k"), makes("b", "a"), makes("d", "b"), loop=(1, 4)).lifetimes()
    assert found["k"] == (0, 3)


def test_a_captured_input_lives_until_the_last_iteration_is_over() -> None:
    found = plan(makes("a", "x"), makes("b", "a"), makes("d", "b"), loop=(0, 3), x="input").lifetimes()
    assert found["x"] == (-1, 2)


def test_what_is_used_after_the_loop_is_kept_from_its_beginning() -> None:
    # An earlier iteration must not have its memory taken by what the same iteration uses before.
    found = plan(makes("a", "x"), makes("b", "a"), makes("c", "b"), makes("d", "b"), loop=(0, 3)).lifetimes()
    assert found["b"] == (0, 3)


def test_parts_that_a_loop_walks_through_stay() -> None:
    made = plan(makes("a", "w"), makes("b", "a"), loop=(0, 2), w="weight")
    assert made.lifetimes()["w"] == (-1, 2)
    assert made.times() == [3, 3]


def test_only_its_own_loop_prolongs_a_life() -> None:
    made = plan(makes("a", "c"), makes("c", "a"), makes("b", "a"), makes("e", "b"), loop=(0, 2))
    made.loops.append(Loop(2, 4, 2))
    found = made.lifetimes()
    assert found["c"] == (0, 1)
    assert found["b"] == (2, 3)
    assert found["a"] == (0, 3)
