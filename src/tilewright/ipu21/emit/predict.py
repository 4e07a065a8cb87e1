"""What a run will take, now that addresses and rows are known: exact for exchange phases and kernel calls;
for the whole, the sum of what takes the slowest tiles from one meeting to the next.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..fabric.schedule import Schedule
from ..kernels import KERNELS
from ..lower.calls import Call
from ..lower.tile_work import TileClass, TileWork
from ..machine.timing import BARRIER_INTERNAL, SUPERVISOR_BRANCH
from ..place.placement import Placement
from ..plan.steps import Step
from .lines import last_issue
from .tile_programs import Programs

PHASE = BARRIER_INTERNAL + 12
"""Cycles of a phase beside its longest row and the way to the barrier (fitted to the simulator)."""


def predict(
    work: TileWork, placement: Placement, schedules: Mapping[int, Schedule], programs: Programs
) -> list[Step]:
    """The plan's steps with the cycles they will take.

    Args:
        schedules: per step that is an exchange with traffic.
    """
    routines = _routine_cycles(programs)
    taken: list[NDArray[np.int64]] = []
    phases: dict[int, int] = {}
    for index, item in enumerate(work.work):
        own = np.array([program.cycles.get(index, 0) for program in programs.classes], dtype=np.int64)
        if isinstance(item, Call):
            taken.append(_call(item, work, placement, own))
            continue
        taken.append(np.array([program.copying.get(index, 0) for program in programs.classes]))
        if index in schedules:
            phases[index] = PHASE + _phase(index, schedules[index], programs, own, routines)
    borders = {border for loop in work.plan.loops for border in (loop.first, loop.end)}
    cycles = shared(taken, phases, borders)
    return [
        replace(step, cycles=float(cycles[index] + phases.get(index, 0)))
        for index, step in enumerate(work.plan.steps)
    ]


def shared(taken: Sequence[NDArray[np.int64]], phases: Container[int], borders: Container[int]) -> list[int]:
    """Cycles of each step on the class that is last when all meet again: its time is that of all.

    Args:
        taken: cycles of each step, per class; of a phase those before tiles meet.
        phases: steps that are exchanges.
        borders: steps across which no time is made up: loops begin there, or have ended.
    """
    cycles: list[int] = []
    first = 0
    for end in range(1, len(taken) + 1):
        if end == len(taken) or end in borders or end - 1 in phases:
            last = int(np.argmax(np.sum(taken[first:end], axis=0)))
            cycles += [int(step[last]) for step in taken[first:end]]
            first = end
    return cycles


def _routine_cycles(programs: Programs) -> dict[tuple[int, int], int]:
    """(class, routine) -> cycles of it on the class's slowest tile."""
    found: dict[tuple[int, int], int] = {}
    for tile, routines in programs.routines.items():
        for routine in routines:
            key = (programs.class_of[tile], routine.address)
            cycles = last_issue(routine.lines) + SUPERVISOR_BRANCH
            found[key] = max(found.get(key, 0), cycles)
    return found


def _phase(
    step: int,
    schedule: Schedule,
    programs: Programs,
    own: NDArray[np.int64],
    routines: Mapping[tuple[int, int], int],
) -> int:
    """Cycles before and behind the barrier: of the last tile to come, and of the last one to be done.

    Args:
        own: per class, cycles until it meets the others, without its tiles' routines.
        routines: what those take.
    """
    before, longest = int(own.max()), schedule.horizon
    behind = {}
    for index, uses in enumerate(programs.uses):
        use = uses[step]
        if use.patch is not None:
            before = max(before, int(own[index]) + routines[index, use.patch])
        if use.bases:
            behind[index] = len(use.bases)
    if behind:
        longest = max(
            longest,
            *(
                schedule.length(tile) + behind[index]
                for tile, index in programs.class_of.items()
                if index in behind
            ),
        )
    return before + longest


_Way = tuple[dict[str, bool], list[TileClass]]
"""A way that a kernel takes, and who takes it."""


def slowed(work: TileWork, placement: Placement) -> int:
    """Cycles of a run that kernel calls take more than the plan says, as their operands do not lie where
    kernels are fastest.
    """
    nothing = np.zeros(len(work.classes), dtype=np.int64)
    total = 0
    for item, times in zip(work.work, work.plan.times(), strict=True):
        if isinstance(item, Call) and KERNELS[item.kernel].way:
            fastest = _by_class(item, work, nothing, [({}, _active(item, work))])
            total += times * int(_call(item, work, placement, nothing).max() - fastest.max())
    return total


def _active(call: Call, work: TileWork) -> list[TileClass]:
    return [tile_class for tile_class in work.classes if call.active[tile_class.representative]]


def _call(call: Call, work: TileWork, placement: Placement, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cycles of each class; those that take the same way are computed at once.

    Args:
        own: per class, cycles beside the kernel's formula.
    """
    kernel = KERNELS[call.kernel]
    names = [operand.name for operand in kernel.contract.operands]
    ways: dict[tuple[tuple[str, bool], ...], list[TileClass]] = {}
    for tile_class in _active(call, work):
        tile = tile_class.representative
        way: dict[str, bool] = {}
        if kernel.way:
            arguments = {name: int(values[tile]) for name, values in call.scalars.items()}
            for name, (buffer, offsets) in zip(names, call.operands, strict=True):
                address = 0 if buffer is None else placement.address(tile_class.index, buffer)
                arguments[name] = address + int(offsets[tile])
            way = kernel.way(arguments)
        ways.setdefault(tuple(way.items()), []).append(tile_class)
    return _by_class(call, work, own, [(dict(flags), classes) for flags, classes in ways.items()])


def _by_class(call: Call, work: TileWork, own: NDArray[np.int64], ways: Iterable[_Way]) -> NDArray[np.int64]:
    """Cycles of each class from the way that it takes, without one the fastest; 0 where it has no part."""
    taken = np.zeros(len(work.classes), dtype=np.int64)
    for flags, classes in ways:
        if not classes:
            continue
        where = np.array([tile_class.representative for tile_class in classes])
        indices = [tile_class.index for tile_class in classes]
        scalars = {name: values[where] for name, values in call.scalars.items()}
        taken[indices] = KERNELS[call.kernel].cycles(**scalars, **flags) + own[indices]
    return taken
