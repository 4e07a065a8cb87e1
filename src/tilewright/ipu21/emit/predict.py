"""What a run will take, now that addresses and rows are known: exact for exchange phases and kernel calls,
a sum of each step's slowest tile for the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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
    kernel = KERNELS[call.kernel]
    names = [operand.name for operand in kernel.contract.operands]
    longest = 0
    for tile_class in work.classes:
        tile = tile_class.representative
        if not call.active[tile]:
            continue
        addresses = [
            0 if name is None else placement.address(tile_class.index, name) + int(offsets[tile])
            for name, offsets in call.operands
        ]
        scalars = {name: int(values[tile]) for name, values in call.scalars.items()}
        way = kernel.way({**dict(zip(names, addresses, strict=True)), **scalars}) if kernel.way else {}
        words = sum(1 + (int(register[tile]) >= 1 << 20) for register in call.registers) + len(names)
        cycles = int(kernel.cycles(**scalars, **way)) + words + CALL + ITERATED * len(call.strides)
        longest = max(longest, cycles)
    return longest


def _copies(phase: Phase, work: TileWork) -> int:
    copy = KERNELS["copy_u64"]
    longest = 0
    for tile_class in work.classes:
        copies = copies_of(phase, tile_class.representative)
        longest = max(longest, sum(int(copy.cycles(words)) + 3 + CALL for *_, words in copies))
    return longest
