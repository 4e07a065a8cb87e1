"""The life of one operation: its line in the graph, layouts in and out, plan, steps, cycles."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

from tilewright.errors import UsageError
from tilewright.package.digest import package_digest
from tilewright.package.program_info import ProgramInfo
from tilewright.package.records import Package

from .loops import repetitions
from .query import pieces_of, query
from .records import Profile

_NAMES = re.compile(r"%([A-Za-z_][A-Za-z0-9_.]*)")
_SUGGESTIONS = 6


def explain_operation(package: Package, name: str, profile: Profile | None = None) -> dict[str, Any]:
    """What is known of an operation (named by its result), as plain data.

    Args:
        profile: of a run of the same package, for cycles as simulated.

    Raises UsageError for a package without debug information, an unknown name, or another package's profile.
    """
    program = package.program
    if program is None or package.debug is None:
        raise UsageError(
            "the package does not say how its program came about", hint="compile the model again"
        )
    if profile is not None and profile.digest != package_digest(package):
        raise UsageError("the profile is of another package", hint="profile a run of this one")
    operation = next((item for item in program.operations if item.name == name), None)
    if operation is None:
        known = [item.name for item in program.operations]
        close = get_close_matches(name, known, _SUGGESTIONS, 0.3) or known[:_SUGGESTIONS]
        raise UsageError(f"there is no operation {name!r}", hint=f"there are {', '.join(close)}, ...")
    expression = _expression(package.debug.graph, name)
    operands = [value for value in _NAMES.findall(expression.partition("=")[2]) if value != name]
    # What is fused has no steps of its own.
    doing = program.doing(name)
    numbers = [number for number, step in enumerate(program.steps) if step.operation == doing]
    times = repetitions(package)
    return {
        "operation": name,
        "part_of": "" if doing == name else doing,
        "expression": expression,
        "operands": [item for value in dict.fromkeys(operands) for item in _places(program, value, doing)],
        "result": _places(program, name, None),
        "plan": operation.plan or next((o.plan for o in program.operations if o.name == doing), []),
        "partial_sums": program.splits()[name],
        "buffers": _buffers(program, doing),
        "steps": _steps(package, program, numbers, times, profile),
        "predicted_cycles": round(sum(program.steps[number].cycles * times[number] for number in numbers)),
        "simulated_cycles": None if profile is None else _simulated(profile, doing),
    }


def _expression(graph: str, name: str) -> str:
    """The operation's line in the graph's text."""
    for line in graph.splitlines():
        defined, separator, _ = line.partition(" = ")
        if separator and name in _NAMES.findall(defined):
            return " ".join(line.split()).removesuffix(" {")
    return ""


def _places(program: ProgramInfo, value: str, operation: str | None) -> list[dict[str, Any]]:
    """Where a value lies: where it is made, and the copy made for the operation."""
    found = []
    for item in program.values:
        if item.binding.name != value or (item.copy and item.owner != operation):
            continue
        buffer = program.buffers[item.buffer]
        found.append(
            {
                "value": value,
                "buffer": buffer.name,
                "layout": buffer.layout,
                "copy": item.copy,
                "shape": list(item.binding.shape),
                "type": item.binding.device_dtype,
                "tiles": len(set(item.binding.slices["tile"].tolist())),
            }
        )
    bindings = {constant.binding for constant in program.constants if constant.constant == value}
    for buffer in program.buffers:
        if buffer.role == "weight" and buffer.name in bindings and buffer.owner == operation:
            found.append(
                {
                    "value": value,
                    "buffer": buffer.name,
                    "layout": buffer.layout,
                    "copy": False,
                    "constant": True,
                }
            )
    return found


def _buffers(program: ProgramInfo, name: str) -> list[dict[str, Any]]:
    """What the operation asked for: bytes on the tile that has most of it, lifetime, tiles."""
    found = []
    for number, buffer in enumerate(program.buffers):
        if buffer.owner != name:
            continue
        rows = [
            (int(row["size"]), int(row["first"]), int(row["last"]), len(group.tiles))
            for group in program.classes
            for row in group.buffers[group.buffers["buffer"] == number]
        ]
        found.append(
            {
                "name": buffer.name,
                "role": buffer.role,
                "layout": buffer.layout,
                "bytes": max((row[0] for row in rows), default=0),
                "first_step": min((row[1] for row in rows), default=0),
                "last_step": max((row[2] for row in rows), default=0),
                "tiles": sum(row[3] for row in rows),
            }
        )
    return found


def _steps(
    package: Package, program: ProgramInfo, numbers: list[int], times: list[int], profile: Profile | None
) -> list[dict[str, Any]]:
    measured = {}
    if profile is not None:
        pieces = pieces_of(profile)
        measured = {group.name: group for group in query(profile, "step", pieces=pieces).groups}
    found = []
    for number in numbers:
        step, name = program.steps[number], package.profile.steps[number].name
        entry: dict[str, Any] = {
            "step": number,
            "name": name,
            "kind": package.profile.steps[number].kind,
            "kernel": step.kernel,
            "detail": step.detail,
            "times": times[number],
            "predicted_cycles": round(step.cycles * times[number]),
        }
        if profile is not None:
            group = measured.get(f"{number} {name}")
            runs = len(profile.runs)
            entry["simulated_cycles"] = round(group.phase / runs) if group is not None else 0
            entry["critical_cycles"] = round(group.critical / runs) if group is not None else 0
        found.append(entry)
    return found


def _simulated(profile: Profile, name: str) -> int:
    """Cycles of the critical path of one run that belong to the operation."""
    group = next((g for g in query(profile, "operation").groups if g.name == name), None)
    return round(group.critical / len(profile.runs)) if group is not None else 0
