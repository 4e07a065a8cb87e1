"""What a run will take, now that addresses and rows are known: exact for exchange phases and kernel calls,
a sum of each step's slowest tile for the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..fabric.schedule import Schedule
from ..kernels import KERNELS
from ..lower.calls import Call
from ..lower.tile_work import Phase, TileWork, copies_of
from ..machine.timing import BARRIER_INTERNAL
from ..place.placement import Placement
from ..plan.steps import Step

PHASE = BARRIER_INTERNAL + 65
"""Cycles of a phase beside its longest row: barrier, entry and return (fitted to the simulator)."""
CALL = 6
"""Cycles of a call beside the words that load its registers (fitted to the simulator)."""
ITERATED = 22
"""Cycles to move an operand of a call to the current iteration (fitted to the simulator)."""


def predict(work: TileWork, placement: Placement, schedules: Mapping[int, Schedule]) -> list[Step]:
    """The plan's steps with the cycles they will take.

    Args:
        schedules: per step that is an exchange with traffic.
    """
    steps: list[Step] = []
    for index, (step, item) in enumerate(zip(work.plan.steps, work.work, strict=True)):
        if isinstance(item, Call):
            cycles = _call(item, work, placement)
        else:
            cycles = _copies(item, work)
            cycles += PHASE + schedules[index].horizon if index in schedules else 0
        steps.append(replace(step, cycles=float(cycles)))
    return steps


def _call(call: Call, work: TileWork, placement: Placement) -> int:
    """Cycles of the slowest tile; classes that take the same way are computed at once."""
    kernel = KERNELS[call.kernel]
    names = [operand.name for operand in kernel.contract.operands]
    ways: dict[tuple[tuple[str, bool], ...], list[int]] = {}
    for tile_class in work.classes:
        tile = tile_class.representative
        if not call.active[tile]:
            continue
        way: dict[str, bool] = {}
        if kernel.way:
            arguments = {name: int(values[tile]) for name, values in call.scalars.items()}
            for name, (buffer, offsets) in zip(names, call.operands, strict=True):
                address = 0 if buffer is None else placement.address(tile_class.index, buffer)
                arguments[name] = address + int(offsets[tile])
            way = kernel.way(arguments)
        ways.setdefault(tuple(way.items()), []).append(tile)
    longest = 0
    for flags, tiles in ways.items():
        where = np.array(tiles)
        scalars = {name: values[where] for name, values in call.scalars.items()}
        words = len(names) + sum(1 + (register[where] >= 1 << 20) for register in call.registers)
        cycles = kernel.cycles(**scalars, **dict(flags)) + words
        longest = max(longest, int(np.max(cycles)))
    return longest + CALL + ITERATED * len(call.strides)


def _copies(phase: Phase, work: TileWork) -> int:
    copy = KERNELS["copy_u64"]
    longest = 0
    for tile_class in work.classes:
        copies = copies_of(phase, tile_class.representative)
        longest = max(longest, sum(int(copy.cycles(words)) + 3 + CALL for *_, words in copies))
    return longest
