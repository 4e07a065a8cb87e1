"""Planted faults are found, and named: the operator, the tile, the first wrong element."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from planted_faults import (
    IMAGES,
    TILES,
    graph,
    images,
    known_program,
    package,
    parameters,
    step_of,
    swapped_in_row,
    wrong_kernel,
)
from typer.testing import CliRunner

import tilewright as tw
from tilewright import ops
from tilewright.cli.main import app
from tilewright.compiler.pipeline import compile_graph
from tilewright.debugging.operator_check import check_operators
from tilewright.debugging.step_order import StepOrder
from tilewright.errors import MismatchError, SimulationError, UsageError
from tilewright.ipu21 import fit
from tilewright.ipu21.lower.tile_work import TileWork
from tilewright.ipu21.place.placement import Placement, place_work
from tilewright.ipu21.place.request import Placed
from tilewright.package import Package, save_package
from tilewright.package.program_info import ValueInfo
from tilewright.runtime import Session, open_device

pytestmark = pytest.mark.sim

WORDS = re.compile(r"element \[(\d+), (\d+)\] of (\S+) is (\S+), (\S+) was expected, .* on ([\d,]+) tiles")


def fault_of(planted: Package) -> MismatchError:
    with pytest.raises(MismatchError) as caught:
        check_operators(planted, {"x": images()})
    return caught.value


def test_every_value_of_a_right_program_is_compared_and_nothing_changes() -> None:
    x = images()
    report = check_operators(package(), {"x": x})
    made = [item.value for item in report.checked if not item.copy]
    operations = [operation.result.name for operation in graph().operations]
    kept = [name for name in operations if name not in report.unkept]
    assert made == ["x", *kept] and not report.skipped and operations[-1] in kept
    assert all(known_program().doing(name) in kept for name in report.unkept)
    assert all(item.worst <= 1 for item in report.checked)
    assert all(item.worst == 0 for item in report.checked if item.copy)
    assert any(item.worst > 0.01 for item in report.checked), "float16 leaves traces"
    with open_device("sim") as device, Session(device, package()) as session:
        plain = session.run({"x": x})
        before = session.last_run
    assert np.array_equal(report.outputs["logits"], plain["logits"])
    assert before is not None and before.cycles is not None


def test_a_copy_that_is_made_in_two_steps_is_looked_at_when_it_is_whole() -> None:
    """Of queries that lone tiles store, these copy their part behind the exchange."""
    shapes = {"q": (256, 48), "k": (144, 48), "v": (144, 48)}
    types = {name: tw.TensorType(shape) for name, shape in shapes.items()}
    made = compile_graph(tw.trace(lambda q, k, v: ops.attention(q, k, v, heads=2), **types), tiles=10)
    random = np.random.default_rng(5)
    inputs = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    report = check_operators(made, inputs)
    (copied,) = [item for item in report.checked if item.copy and item.value == "q"]
    assert copied.worst == 0
    steps = [step.name for step in made.profile.steps]
    (value,) = [item for item in made.debug.program.values if item.copy and item.binding.name == "q"]
    assert [name.split(".", 1)[1] for name in steps[2:4]] == ["receive", "own.copy"] and value.step == 3


def test_holding_tiles_changes_no_cycle() -> None:
    from tilewright.debugging.operator_check import OperatorChecker, paused_device

    x = images()
    with open_device("sim") as device, Session(device, package()) as session:
        session.run({"x": x})
        assert session.last_run is not None
        plain = session.last_run.cycles, session.last_run.intervals
    device, engines = paused_device()
    with device, Session(device, package()) as session:
        checker = OperatorChecker(package(), device, engines)
        for _ in range(2):
            checker.begin({"x": x})
            session.run({"x": x})
        assert session.last_run is not None
        assert session.last_run.cycles == plain[0]
        relative = [rows[["begin", "end"]].copy() for rows in (plain[1], session.last_run.intervals)]
        assert len(relative[0]) == len(relative[1])
    assert len(checker.report.checked) == 2 * len(
        {(c.value, c.owner, c.copy) for c in checker.report.checked}
    )


def test_a_wrong_instruction_in_a_kernel() -> None:
    gelu = known_program().doing("gelu_0")
    kernel = known_program().steps[step_of(gelu, "root")].kernel
    error = fault_of(wrong_kernel(kernel))
    found = WORDS.search(error.what)
    assert error.what.startswith(f"operator {gelu}: ") and found is not None
    assert found[3] == gelu and int(found[1]) < IMAGES and float(found[4]) != float(found[5])
    assert error.where is not None and re.match(rf"step {gelu}\.\w+, tile \d+, 0x[0-9a-f]+$", error.where)


def copied_input() -> ValueInfo:
    """The copy of x that the first exchange makes."""
    return next(v for v in known_program().values if v.copy and v.binding.name == "x")


def test_a_swapped_source_address_is_a_wrong_copy_of_the_value_it_carries() -> None:
    """Of the first layer's result, of which tiles send several pieces to the second."""
    copy = next(v for v in known_program().values if v.copy and v.binding.name == "gelu_0")
    step = package().profile.steps[copy.step].name
    planted = swapped_in_row(
        step,
        lambda i: (i.operands[0], i.operands[2]) if i.form.mnemonic == "send" else None,
        lambda i: i.operands[1],
    )
    error = fault_of(planted)
    found = WORDS.search(error.what)
    assert error.what.startswith(f"copy of gelu_0 for {copy.owner}: ") and found is not None
    row, column = int(found[1]), int(found[2])
    before = images()[row] @ parameters().weights[0][:, column] + parameters().biases[0][column]
    hidden = before / 2 * (1 + math.erf(before / math.sqrt(2)))
    assert float(found[5]) == pytest.approx(hidden, abs=0.01)
    assert "a copy is exact" in error.what and step in str(error.where)


def test_swapped_source_tiles_are_found_by_one_check_or_the_other() -> None:
    def alike(instruction: object) -> object:
        form, operands = instruction.form, instruction.operands  # type: ignore[attr-defined]
        listening = form.mnemonic == "delayxpic" and operands[2] not in (0, 1600)
        return operands[:2] if listening else None

    step = package().profile.steps[copied_input().step].name
    planted = swapped_in_row(step, alike, lambda i: i.operands[2])
    with pytest.raises((MismatchError, SimulationError)) as caught:
        check_operators(planted, {"x": images()}, check=True)
    assert "tile" in str(caught.value)


def overlapping(one: str, other: str) -> Package:
    """The network with a buffer placed where another one lies."""

    def wrong(work: TileWork, *rest: int, **named: int) -> Placement:
        right = place_work(work, *rest, **named)
        for placed in right.classes:
            if one in placed and other in placed:
                placed[one] = Placed(placed[one].request, placed[other].address)
        return right

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "place_work", wrong)
        return compile_graph(graph(), tiles=TILES)


def test_an_overlap_of_two_buffers_is_found_where_it_first_shows() -> None:
    # The bias of the second layer lies in the first layer's result: it is overwritten long before its use.
    first, second = (known_program().doing(name) for name in ("matmul_0", "add_1"))
    error = fault_of(overlapping("b1", first))
    assert error.what.startswith(f"operator {second}: ")


def broken() -> Package:
    return wrong_kernel(known_program().steps[step_of(known_program().doing("gelu_0"), "root")].kernel)


def test_the_command_prints_what_it_compared_or_names_the_fault(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", images())
    for name, content in (("good", package()), ("bad", broken())):
        save_package(content, tmp_path / f"{name}.ipuexe")
    options = ["--input", f"x={tmp_path / 'x.npy'}", "--output", f"logits={tmp_path / 'y.npy'}"]
    runner = CliRunner()
    good = runner.invoke(
        app, ["run", str(tmp_path / "good.ipuexe"), *options, "--check-operators", "--json", "--quiet"]
    )
    assert good.exit_code == 0, good.output
    shown = json.loads(good.stdout)
    assert {item["value"] for item in shown["checked"]} >= {"x", known_program().doing("add_2")}
    assert (tmp_path / "y.npy").exists()
    (tmp_path / "y.npy").unlink()
    bad = runner.invoke(app, ["run", str(tmp_path / "bad.ipuexe"), *options, "--check-operators"])
    assert bad.exit_code == 2 and "operator gelu_0: element" in bad.output and "Traceback" not in bad.output
    assert not (tmp_path / "y.npy").exists()
    refused = runner.invoke(
        app, ["run", str(tmp_path / "bad.ipuexe"), *options, "--check-operators", "--repeat", "2"]
    )
    assert refused.exit_code == 2 and "one run" in refused.output


def test_a_package_that_says_nothing_is_refused() -> None:
    import copy

    plain = copy.copy(package())
    plain.debug = None
    with pytest.raises(UsageError, match="compile the model again"):
        check_operators(plain, {"x": images()})
    assert StepOrder(plain).sequence == list(range(1, len(plain.profile.steps)))
