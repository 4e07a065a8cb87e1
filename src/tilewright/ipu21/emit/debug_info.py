"""What the passes decided, in the form that memory reports and debuggers read from a package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...errors import PackageError
from ...graph import Graph, Operation
from ...graph import Loop as GraphLoop
from ...graph.uses import values, walk
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
from ...package.rules.bindings import check_slices, check_type
from ..lower.calls import Call
from ..lower.tile_work import Phase, TileWork
from ..machine.topology import to_physical
from ..place.placement import Placement
from ..plan.steps import Exchange, Held, Loop, Plan, Retile, WeightUse, results
from .bindings import make_binding
from .memory_map import PROGRAM, STACKS, STAGING, STAGING_BYTES
from .steps_profile import INITIALIZE, INPUT, ProfileIndex

AREAS = (
    AreaInfo("staging of host data", STAGING, STAGING_BYTES),
    AreaInfo("stacks", STACKS, PROGRAM - STACKS),
)


def program_info(
    graph: Graph,
    work: TileWork,
    placement: Placement,
    profile: ProfileIndex,
    copiers: Mapping[int, str],
) -> ProgramInfo:
    """The record for a package. What has no form that a package knows is left out, never guessed.

    Args:
        copiers: plan step -> what makes its local copies.
    """
    return _Describer(graph, work, placement, profile, copiers).record()


@dataclass(frozen=True)
class _Held:
    """A value of the graph in a buffer from the end of a plan step on; -1: from the arrival of the inputs."""

    value: str
    held: Held
    step: int
    copy: bool = False


class _Describer:
    def __init__(
        self,
        graph: Graph,
        work: TileWork,
        placement: Placement,
        profile: ProfileIndex,
        copiers: Mapping[int, str],
    ) -> None:
        self.copiers = copiers
        self.graph = graph
        self.work = work
        self.plan = work.plan
        self.placement = placement
        self.profile = profile
        self.numbers = {name: number for number, name in enumerate(self.plan.buffers)}
        self.operations = list(walk(graph.body))
        self.first_user = {value: user for user in reversed(self.operations) for value in user.operands}
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
                steps[self.profile.copies[index]] = self._copy_step(index, step, item)
            if index in self.profile.step:
                kernel = item.kernel if isinstance(item, Call) else "exchange"
                steps[self.profile.step[index]] = StepInfo(
                    self.owners[index], kernel, float(step.cycles), bounded(_detail(step, item))
                )
        return steps

    def _copy_step(self, index: int, step: Any, item: Phase | Call) -> StepInfo:
        """Local copies; where no exchange follows, they are all that was predicted of the plan step."""
        if index in self.profile.step:
            return StepInfo(self.owners[index], self.copiers[index])
        detail = bounded(_detail(step, item))
        return StepInfo(self.owners[index], self.copiers[index], float(step.cycles), detail)

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
        return OperationInfo(name, [bounded(line) for line in lines], splits, self._part_of(operation))

    def _part_of(self, operation: Operation) -> str:
        """The operation whose steps do this one: whose step makes its value, or its first user with any."""
        own = operation.results[0].name
        if own in self.plan.values and own not in self.owners and not operation.regions:
            return self.owners[self.plan.values[own][1]]
        found: Operation | None = operation
        while found is not None and found.results[0].name not in self.owners:
            found = self.first_user.get(found.results[0])
        name = found.results[0].name if found is not None else ""
        return "" if name == own else name

    def _values(self) -> list[ValueInfo]:
        types = {value.name: value.type for value in values(self.graph)}
        found = []
        carried = _carried(self.plan, self.operations)
        for item in held_values(self.plan, types, carried):
            buffer, type_ = self.plan.buffers[item.held.buffer], types[item.value]
            if buffer.layout.order not in ORDERS or buffer.slots != 1:
                continue
            binding = make_binding(
                item.value, item.held, type_.shape, type_.dtype, self.work, self.placement, replicas=True
            )
            try:
                check_type(binding, item.value)
                check_slices(binding, item.value, once=False)
            except PackageError:
                # Tiles hold a part of it only, or in a form that no package can state.
                continue
            step = INPUT if item.step < 0 else self.ends[item.step]
            owner = self.owners[item.step] if item.step >= 0 else ""
            found.append(ValueInfo(binding, step, self.numbers[item.held.buffer], owner, item.copy))
        return found

    def _constants(self) -> list[ConstantInfo]:
        """Where each constant is in the matrices that operations wanted of it."""
        shapes = {value.name: value.type.shape for value, _ in self.graph.constants}
        found = []
        for name, use in self.plan.weights.items():
            if name in self.numbers:
                found += [item for item in _constant_places(name, use, shapes) if item.constant in shapes]
        return found

    def _loops(self) -> list[LoopInfo]:
        return [
            LoopInfo(self.begins[loop.first], self.ends[loop.end - 1], loop.count) for loop in self.plan.loops
        ]


def _constant_places(
    binding: str, use: WeightUse, shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[ConstantInfo]:
    """The constants of a weight, in the order in which they stand beside or below each other."""
    height = 1 if use.stacked else use.shape[0]
    groups = use.column_groups or (None,) * len(use.constants)
    column = 0
    for position, name in enumerate(use.constants):
        own = groups[0] if use.stacked else groups[position]
        elements = prod(use.broadcast or shapes.get(name, (0,))[(use.iterations > 1) :])
        width = elements // height if name else use.widths[position]
        columns = (own.count, own.width, own.padded) if own else (1, width, width)
        inner = (use.row_groups.count, use.row_groups.width, use.row_groups.padded) if use.row_groups else ()
        rows = (position, 1, 1, 1) if use.stacked else (0, *(inner or (1, height, height)))
        leading = (use.iterations,) if use.broadcast and use.iterations > 1 else ()
        across = (0 if use.stacked else column, *columns)
        if name:
            yield ConstantInfo(
                binding,
                name,
                shapes.get(name, ()),
                use.iterations,
                across if use.turned else rows,
                rows if use.turned else across,
                use.transposed != use.turned,
                (*leading, *use.broadcast),
            )
        column += columns[0] * columns[2]


def _carried(plan: Plan, operations: list[Operation]) -> list[tuple[Loop, dict[str, str]]]:
    """Loops of the plan, each with what values before it are called inside, where it carries them."""
    repeats = [GraphLoop(operation) for operation in operations if operation.regions]
    if len(repeats) != len(plan.loops):
        return [(loop, {}) for loop in plan.loops]
    return [
        (loop, {a.name: b.name for a, b in zip(repeat.initial, repeat.entering, strict=True)})
        for loop, repeat in zip(plan.loops, repeats, strict=True)
    ]


def _called(item: _Held, plan: Plan, index: int, carried: list[tuple[Loop, dict[str, str]]]) -> str | None:
    """What a value made before a step is called there; None if an iteration may have put another in place."""
    for loop, names in carried:
        if not loop.first <= index < loop.end or item.step >= loop.first:
            continue
        written = {name for step in plan.steps[loop.first : loop.end] for name in results(step)}
        if item.held.buffer in written:
            return names.get(item.value)
    return item.value


def held_values(
    plan: Plan, types: Mapping[str, Any], carried: list[tuple[Loop, dict[str, str]]]
) -> list[_Held]:
    """Where values of the graph lie: as inputs, as results, and as copies that exchanges make of either."""
    made = [_Held(name, held, -1) for name, held in plan.inputs.items() if name in types]
    made += [_Held(name, held, step) for name, (held, step) in plan.values.items() if name in types]
    found = sorted(made, key=lambda item: item.step)
    for index, step in enumerate(plan.steps):
        if not isinstance(step, Exchange):
            continue
        for move in step.moves:
            # Of two steps only the second makes it whole; what others bring never does.
            if not isinstance(move, Retile) or move.part in ("sent", "others"):
                continue
            layout = plan.buffers[move.destination].layout
            for item in reversed(found):
                held = item.held
                whole = layout.column.extent == held.columns and layout.complete
                if held.buffer == move.source and held.column == move.column and item.step < index and whole:
                    copied = Held(move.destination, 0, held.columns, held.groups)
                    name = _called(item, plan, index, carried)
                    if name is not None and name in types:
                        found.append(_Held(name, copied, index, copy=True))
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
