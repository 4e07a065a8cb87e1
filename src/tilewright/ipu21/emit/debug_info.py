"""What the passes decided, in the form that memory reports and debuggers read from a package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...graph import Graph, Operation, Region, Value
from ...package.limits import MAX_TEXT
from ...package.orders import ORDERS
from ...package.program_info import (
    PLACED,
    AreaInfo,
    BufferInfo,
    ClassInfo,
    ConstantInfo,
    LoopInfo,
    OperationInfo,
    ProgramInfo,
    StepInfo,
    ValueInfo,
)
from ..lower.calls import Call
from ..lower.tile_work import Phase, TileWork
from ..machine.topology import to_physical
from ..place.placement import Placement
from ..plan.steps import Exchange, Held, Plan, Retile
from .bindings import make_binding
from .memory_map import PROGRAM, STACKS, STAGING, STAGING_BYTES
from .steps_profile import INITIALIZE, INPUT, ProfileIndex

AREAS = (
    AreaInfo("staging of host data", STAGING, STAGING_BYTES),
    AreaInfo("stacks", STACKS, PROGRAM - STACKS),
)


def program_info(graph: Graph, work: TileWork, placement: Placement, profile: ProfileIndex) -> ProgramInfo:
    """The record for a package. What has no form that a package knows is left out, never guessed."""
    return _Describer(graph, work, placement, profile).record()


@dataclass(frozen=True)
class _Held:
    """A value of the graph in a buffer from the end of a plan step on; -1: from the arrival of the inputs."""

    value: str
    held: Held
    step: int
    copy: bool = False


class _Describer:
    def __init__(self, graph: Graph, work: TileWork, placement: Placement, profile: ProfileIndex) -> None:
        self.graph = graph
        self.work = work
        self.plan = work.plan
        self.placement = placement
        self.profile = profile
        self.numbers = {name: number for number, name in enumerate(self.plan.buffers)}
        self.operations = list(_operations(graph.body))
        self.begins, self.ends = self._profile_steps()
        names = {value.name for operation in self.operations for value in operation.results}
        self.owners = [_owner(step, names) for step in self.plan.steps]

    def record(self) -> ProgramInfo:
        return ProgramInfo(
            buffers=[
                BufferInfo(name, buffer.role, buffer.owner, bounded(buffer.layout.describe()))
                for name, buffer in self.plan.buffers.items()
            ],
            classes=self._classes(),
            steps=self._steps(),
            operations=[self._operation(operation) for operation in self.operations],
            values=self._values(),
            constants=self._constants(),
            loops=self._loops(),
            areas=list(AREAS),
        )

    def _profile_steps(self) -> tuple[list[int], list[int]]:
        """First and last profile step of each plan step; one without any counts as part of what follows."""
        begins, ends = [], []
        for index in range(len(self.plan.steps)):
            own = [steps[index] for steps in (self.profile.copies, self.profile.step) if index in steps]
            begins.append(min(own, default=-1))
            ends.append(max(own, default=-1))
        following = self.profile.output
        for index in reversed(range(len(begins))):
            if begins[index] < 0:
                begins[index] = ends[index] = following
            following = begins[index]
        return begins, ends

    def _classes(self) -> list[ClassInfo]:
        classes = []
        last = len(self.plan.steps)
        for tile_class, placed in zip(self.work.classes, self.placement.classes, strict=True):
            rows = np.zeros(len(placed), PLACED)
            for row, (name, item) in zip(rows, placed.items(), strict=True):
                request, size = item.request, tile_class.bytes[name]
                role = self.plan.buffers[name].role
                begin = self.begins[request.first] if 0 <= request.first < last else self.profile.output
                end = self.ends[request.last] if 0 <= request.last < last else self.profile.output
                if request.first < 0:
                    begin = INITIALIZE if role in ("weight", "table") else INPUT
                if request.last < 0:
                    end = INPUT
                row["buffer"], row["address"], row["size"] = self.numbers[name], item.address, size
                row["tail"] = max(item.end - item.address - size, 0)
                row["first"], row["last"] = begin, max(begin, end)
            classes.append(ClassInfo(to_physical(tile_class.tiles).astype(np.uint16), rows))
        return classes

    def _steps(self) -> list[StepInfo]:
        steps = [StepInfo() for _ in self.profile.steps]
        for index, (step, item) in enumerate(zip(self.plan.steps, self.work.work, strict=True)):
            if index in self.profile.copies:
                steps[self.profile.copies[index]] = StepInfo(self.owners[index], "copy_u64")
            if index in self.profile.step:
                kernel = item.kernel if isinstance(item, Call) else "exchange"
                steps[self.profile.step[index]] = StepInfo(
                    self.owners[index], kernel, float(step.cycles), bounded(_detail(step, item))
                )
        return steps

    def _operation(self, operation: Operation) -> OperationInfo:
        name = operation.results[0].name
        lines = [report.chosen for report in self.plan.reports if name in report.operation.split(", ")]
        splits = 1
        for index, step in enumerate(self.plan.steps):
            if self.owners[index] != name:
                continue
            lines.append(f"{step.name}: {_detail(step, self.work.work[index])}")
            if isinstance(step, Exchange):
                splits = max([splits, *(int(getattr(move, "parts", 1)) for move in step.moves)])
        return OperationInfo(name, [bounded(line) for line in lines], splits)

    def _values(self) -> list[ValueInfo]:
        types = {value.name: value.type for value in _values_of(self.graph)}
        found = []
        for item in held_values(self.plan, types):
            buffer, type_ = self.plan.buffers[item.held.buffer], types[item.value]
            if buffer.layout.order not in ORDERS or buffer.slots != 1:
                continue
            binding = make_binding(
                item.value, item.held, type_.shape, type_.dtype, self.work, self.placement, replicas=True
            )
            step = INPUT if item.step < 0 else self.ends[item.step]
            owner = self.owners[item.step] if item.step >= 0 else ""
            found.append(ValueInfo(binding, step, self.numbers[item.held.buffer], owner, item.copy))
        return found

    def _constants(self) -> list[ConstantInfo]:
        """Weights that are one constant of the graph as it stands there."""
        shapes = {value.name: value.type.shape for value, _ in self.graph.constants}
        found = []
        for name, use in self.plan.weights.items():
            padded = use.row_groups or any(use.column_groups)
            plain = not (use.stacked or use.transposed or padded or use.iterations > 1)
            if plain and len(use.constants) == 1 and use.constants[0] in shapes and name in self.numbers:
                found.append(ConstantInfo(name, use.constants[0], shapes[use.constants[0]]))
        return found

    def _loops(self) -> list[LoopInfo]:
        return [
            LoopInfo(self.begins[loop.first], self.ends[loop.end - 1], loop.count) for loop in self.plan.loops
        ]


def held_values(plan: Plan, types: Mapping[str, Any]) -> list[_Held]:
    """Where values of the graph lie: as inputs, as results, and as copies that exchanges make of either."""
    made = [_Held(name, held, -1) for name, held in plan.inputs.items() if name in types]
    made += [_Held(name, held, step) for name, (held, step) in plan.values.items() if name in types]
    found = sorted(made, key=lambda item: item.step)
    for index, step in enumerate(plan.steps):
        if not isinstance(step, Exchange):
            continue
        for move in step.moves:
            if not isinstance(move, Retile):
                continue
            for item in reversed(found):
                held = item.held
                whole = plan.buffers[move.destination].layout.column.extent == held.columns
                if held.buffer == move.source and held.column == move.column and item.step < index and whole:
                    copied = Held(move.destination, 0, held.columns, held.groups)
                    found.append(_Held(item.value, copied, index, copy=True))
                    found.sort(key=lambda item: item.step)
                    break
    return found


def bounded(text: str) -> str:
    """Text that a package may hold: printable and not too long."""
    text = "".join(character if character.isprintable() else " " for character in text)
    while len(text.encode()) > MAX_TEXT:
        text = f"{text[: len(text) // 2]}..."
    return text


def _detail(step: Any, item: Phase | Call) -> str:
    """What a plan step does, for people."""
    predicted = f"{step.cycles:,.0f} cycles predicted"
    if isinstance(item, Call):
        tiles = int(np.count_nonzero(item.active))
        inputs = ", ".join(name for name in step.operands[1:] if name is not None)
        return f"{item.kernel}({inputs}) -> {step.output} on {tiles:,} tiles, {predicted}"
    moves = ", ".join(f"{source} -> {destination}" for source, destination, _ in item.moves)
    copies = sum(len(traffic.copies) for _, _, traffic in item.moves)
    tiles = int(np.count_nonzero(item.active))
    return f"{moves}: {item.words:,} words and {copies:,} local copies among {tiles:,} tiles, {predicted}"


def _owner(step: Any, names: set[str]) -> str:
    """The operation whose name, followed by a dot, a step's name begins with; the longest, if several do."""
    parts = step.name.split(".")
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        if name in names:
            return name
    return ""


def _operations(region: Region) -> Iterator[Operation]:
    """All operations, those of a loop after it."""
    for operation in region.operations:
        yield operation
        for inner in operation.regions:
            yield from _operations(inner)


def _values_of(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for operation in _operations(graph.body):
        yield from operation.results
        for region in operation.regions:
            yield from region.arguments
