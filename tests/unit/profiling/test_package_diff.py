"""Differences between packages and the life of one operation, from packages whose numbers are known."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from memory_sample import memory_package
from profile_sample import HOSTILE, sample_profile
from rich.console import Console

from tilewright.cli.diff import show_diff
from tilewright.cli.explain import show_explanation
from tilewright.errors import UsageError
from tilewright.package.digest import package_digest
from tilewright.package.program_info import LoopInfo, ProgramInfo
from tilewright.package.records import EXECUTE, Package, Symbol
from tilewright.profiling.explain import explain_operation
from tilewright.profiling.loops import repetitions
from tilewright.profiling.package_diff import diff_packages

pytestmark = pytest.mark.unit


def program_of(package: Package) -> ProgramInfo:
    assert package.debug is not None and package.debug.program is not None
    return package.debug.program


def printed(show: Any, result: dict[str, Any]) -> str:
    with open("/dev/null", "w") as nowhere:
        out = Console(width=100, record=True, file=nowhere)
        show(out, result)
        return out.export_text()


def test_a_package_does_not_differ_from_itself() -> None:
    result = diff_packages(memory_package(), memory_package())
    assert result["same"] and result["same_debug"] and result["changes"] == 0
    assert printed(show_diff, result).strip() == "The packages do the same, byte for byte."


def test_every_kind_of_change_is_named() -> None:
    before, after = memory_package(), memory_package()
    before.symbols = after.symbols = [Symbol("start", 0x4C014), Symbol("gemm", 0x4C100)]
    after.blobs = [bytes(300) + b"!" + bytes(99)]
    program = program_of(after)
    program.steps[2] = dataclasses.replace(program.steps[2], cycles=150.0)
    program.loops = [LoopInfo(2, 2, 3)]
    program.buffers[2].layout = "b16"
    program.operations[0].plan[0] = "grid 2 x 1 x 1"
    program.classes[0].buffers["size"][2] += 32
    result = diff_packages(before, after)
    assert not result["same"]
    assert result["operations"] == [{"name": "mm", "one": 100, "other": 450}]
    totals = {entry["name"]: (entry["one"], entry["other"]) for entry in result["totals"]}
    assert totals["predicted cycles"] == (100, 450) and totals["steps of a run"] == (4, 6)
    peak = totals["peak bytes of the fullest tile"]
    assert peak[1] - peak[0] == 32
    assert [entry["name"] for entry in result["kernels"]] == ["gemm"]
    assert [entry["name"] for entry in result["layouts"]] == ["y"]
    assert [entry["name"] for entry in result["plans"]] == ["mm"]
    text = printed(show_diff, result)
    assert "+350 (+350.0%)" in text and "grid 2 x 1 x 1" in text


def test_code_is_compared_where_it_lies() -> None:
    package = memory_package()
    assert any(part.flags & EXECUTE for part in package.images[0].segments)
    assert repetitions(package) == [1, 1, 1, 1]
    package.debug = None
    result = diff_packages(package, memory_package())
    assert result["operations"] == [{"name": "mm", "one": None, "other": 100}]


def test_an_operation_from_its_operands_to_its_cycles() -> None:
    result = explain_operation(memory_package(), "mm")
    assert result["expression"].startswith("%mm = matmul(%x, %w)")
    assert result["predicted_cycles"] == 100 and result["simulated_cycles"] is None
    assert [item["buffer"] for item in result["operands"]] == ["w"]
    assert [(step["name"], step["kernel"], step["times"]) for step in result["steps"]] == [
        ("mm.multiply", "gemm_f16", 1)
    ]
    asked = {item["name"]: (item["bytes"], item["tiles"]) for item in result["buffers"]}
    assert asked == {"w": (1000, 3), "y": (96, 2)}
    assert "grid 1 x 1 x 2" in printed(show_explanation, result)


def test_cycles_as_simulated_come_from_a_profile_of_the_same_package() -> None:
    package = memory_package()
    with pytest.raises(UsageError, match="another package"):
        explain_operation(package, "mm", sample_profile(1))
    profile = dataclasses.replace(sample_profile(2), digest=package_digest(package))
    result = explain_operation(package, "mm", profile)
    # In the sample, mm is the exchange and the first compute step. The path is theirs from 16, when the tile
    # that all wait for begins the exchange, to 210.
    assert result["simulated_cycles"] == 194
    assert result["steps"][0]["simulated_cycles"] == 78, "the slowest tile of step 2, from 132 to 210"
    assert "critical" in printed(show_explanation, result)


def test_unknown_operations_and_silent_packages_are_refused() -> None:
    with pytest.raises(UsageError, match=r"no operation 'mn'.*there are mm"):
        explain_operation(memory_package(), "mn")
    package = memory_package()
    package.debug = None
    with pytest.raises(UsageError, match="compile the model again"):
        explain_operation(package, "mm")


def test_hostile_names_stay_text() -> None:
    package = memory_package(names=(HOSTILE[0], "[red]x[/red]", HOSTILE[2]))
    program_of(package).operations[0].plan = ["[bold]plan[/bold]", HOSTILE[4]]
    assert "[bold]plan[/bold]" in printed(show_explanation, explain_operation(package, "mm"))
    assert "[red]x[/red]" in printed(show_diff, diff_packages(memory_package(), package))
