"""A transformer encoder as a loop of layers: every value of every iteration is compared, and can be shown."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ops
from tilewright.debugging import Debugger, check_operators
from tilewright.errors import MismatchError
from tilewright.graph import Graph
from tilewright.package import Package
from tilewright.profiling import ProfileBuilder, query, read_profile, write_profile
from tilewright.profiling.page import render
from tilewright.runtime import Session, open_device

pytestmark = pytest.mark.sim

LAYERS, TOKENS, WIDTH, HEADS, INNER = 3, 12, 32, 2, 64


def layer(x: Any, **w: Any) -> Any:
    attended = ops.attention(x @ w["q"], x @ w["k"], x @ w["v"], heads=HEADS)
    x = ops.layer_norm(x + attended @ w["o"], w["g1"], w["b1"])
    inner = ops.gelu(x @ w["up"] + w["bias"], approximate="tanh")
    return ops.layer_norm(x + inner @ w["down"], w["g2"], w["b2"])


@cache
def graph() -> Graph:
    generator = np.random.default_rng(8)

    def draw(*shape: int) -> np.ndarray:
        return (generator.normal(0, 1, shape) / np.sqrt(shape[-2])).astype(np.float32)

    square = {name: draw(LAYERS, WIDTH, WIDTH) for name in "qkvo"}
    rows = {name: draw(LAYERS, WIDTH) for name in ("g1", "b1", "g2", "b2")}
    weights = square | rows | {"up": draw(LAYERS, WIDTH, INNER), "bias": draw(LAYERS, INNER)}
    weights["down"] = draw(LAYERS, INNER, WIDTH)
    return tw.trace(lambda x: {"y": ops.repeat(layer, LAYERS, x, weights)}, x=tw.TensorType((TOKENS, WIDTH)))


@cache
def package() -> Package:
    return tw.compile(graph(), tiles=8)


def tokens() -> np.ndarray:
    return np.random.default_rng(9).normal(0, 1, (TOKENS, WIDTH)).astype(np.float32)


def test_every_iteration_is_compared() -> None:
    report = check_operators(package(), {"x": tokens()})
    assert not report.skipped, "all constants are found in the package, in whatever pieces"
    (loop,) = [operation for operation in graph().operations if operation.name == "repeat"]
    inside = {operation.result.name for operation in loop.regions[0].operations} - set(report.unkept)
    for name in inside:
        made = [item for item in report.checked if item.value == name and not item.copy]
        assert [item.instance for item in made] == list(range(LAYERS)), name
    assert all(item.worst <= 1 for item in report.checked)
    with_graph = check_operators(package(), {"x": tokens()}, graph=graph())
    assert len(with_graph.checked) == len(report.checked) and not with_graph.skipped


def test_a_weight_of_one_iteration_is_wrong_there_and_not_before() -> None:
    right = graph()
    constants = []
    for value, data in right.constants:
        changed = data.copy()
        if value.type.shape == (LAYERS, WIDTH, INNER):
            changed[1] += 0.5
        constants.append((value, changed))
    wrong = Graph(right.name, right.body, constants, right.output_names)
    with pytest.raises(MismatchError, match=r"time 2, tile"):
        check_operators(package(), {"x": tokens()}, graph=wrong)


def test_the_debugger_stops_in_every_iteration() -> None:
    program = package().debug
    assert program is not None and program.program is not None
    name = next(s.operation for s in program.program.steps if s.kernel.startswith("softmax"))
    with Debugger(package(), {"x": tokens()}) as debugger:
        debugger.break_at("operator", name)
        cycles = []
        while (stopped := debugger.resume()) is not None:
            cycles.append(stopped.cycle)
            value = next(v for v in debugger.values() if v.startswith("matmul"))
            shown = debugger.tensor(value)
            assert shown.state or shown.difference is None, (value, shown.difference)
        assert len(cycles) == LAYERS and cycles == sorted(set(cycles))


def test_a_profile_has_every_repetition() -> None:
    with open_device("sim") as device, Session(device, package(), activity=True) as session:
        session.run({"x": tokens()})
        builder = ProfileBuilder(package(), name="encoder", device="sim")
        builder.add(session.last_run)
    profile = read_profile(write_profile(builder.profile()))
    phases = query(profile, "phase", sort="first")
    debug = package().debug
    assert debug is not None and debug.program is not None
    (loop,) = debug.program.loops
    for number in range(loop.first, loop.last + 1):
        step = f"{number} {profile.steps[number].name}"
        instances = {group.name for group in phases.groups if group.name.split(" (")[0] == step}
        assert len(instances) in (0, LAYERS), step
    assert sum(group.critical for group in phases.groups) == profile.cycles
    # A product counts once per iteration.
    total = query(profile, "kind").total.multiply_adds
    one = TOKENS * WIDTH * (4 * WIDTH + 2 * INNER) + 2 * TOKENS * TOKENS * WIDTH
    assert total == LAYERS * one
    assert len(render(profile)) > 10_000
