"""What a run will take, now that addresses and rows are known: exact for exchange phases and kernel calls,
a sum of each step's slowest tile for the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    steps: list[Step] = []
    routines = _routine_cycles(programs)
    for index, (step, item) in enumerate(zip(work.plan.steps, work.work, strict=True)):
        own = np.array([program.cycles.get(index, 0) for program in programs.classes], dtype=np.int64)
        if isinstance(item, Call):
            cycles = _call(item, work, placement, own)
        else:
            cycles = max(program.copying.get(index, 0) for program in programs.classes)
            if index in schedules:
                cycles += PHASE + _phase(index, schedules[index], programs, own, routines)
        steps.append(replace(step, cycles=float(cycles)))
    return steps


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
            fastest = _longest(item, work, nothing, [({}, _active(item, work))])
            total += times * (_call(item, work, placement, nothing) - fastest)
    return total


def _active(call: Call, work: TileWork) -> list[TileClass]:
    return [tile_class for tile_class in work.classes if call.active[tile_class.representative]]


def _call(call: Call, work: TileWork, placement: Placement, own: NDArray[np.int64]) -> int:
    """Cycles of the slowest tile; classes that take the same way are computed at once.

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
    return _longest(call, work, own, [(dict(flags), classes) for flags, classes in ways.items()])


def _longest(call: Call, work: TileWork, own: NDArray[np.int64], ways: Iterable[_Way]) -> int:
    """Cycles of the slowest tile, from the way that each class takes; without one it is the fastest."""
    longest = 0
    for flags, classes in ways:
        if not classes:
            continue
        where = np.array([tile_class.representative for tile_class in classes])
        scalars = {name: values[where] for name, values in call.scalars.items()}
        cycles = KERNELS[call.kernel].cycles(**scalars, **flags)
        longest = max(longest, int(np.max(cycles + own[[tile_class.index for tile_class in classes]])))
    return longest
