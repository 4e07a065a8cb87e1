"""The compile-time check of exchange phases: rows as they run, at their addresses, judged by the verifier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..fabric.verify import verify
from ..lower.tile_work import Phase, TileWork
from ..place.placement import Placement
from .lines import words_of
from .phase_transfers import phase_transfers
from .ready_row import ready_row
from .steps_profile import index_steps
from .tile_programs import PlacedRow, Programs

SHOWN = 10


def check_rows(work: TileWork, placement: Placement, programs: Programs) -> None:
    """Raise ScheduleError naming every phase with conflicts, and the first conflicts of each."""
    faults: list[str] = []
    numbers = index_steps(work).step
    for step, item in enumerate(work.work):
        if not isinstance(item, Phase) or not item.words:
            continue
        rows, addresses = {}, {}
        for tile, placed in programs.rows.items():
            for row in placed:
                if row.step == step:
                    rows[tile], addresses[tile] = _as_run(programs, tile, row, numbers[step]), row.address
        conflicts = verify(rows, addresses, *phase_transfers(item, work, placement))
        if conflicts:
            shown = "".join(f"\n    {conflict}" for conflict in conflicts[:SHOWN])
            faults.append(f"\n  {work.plan.steps[step].name}: {len(conflicts)} conflicts{shown}")
    if faults:
        raise ScheduleError(f"{len(faults)} exchange phases break a rule of the fabric:{''.join(faults)}")


def _as_run(programs: Programs, tile: int, row: PlacedRow, profile_step: int) -> NDArray[np.uint32]:
    """A row with what the tile's program puts in before it runs."""
    index = programs.class_of[tile]
    if not row.rewritten and not programs.uses[index][row.step].bases:
        return row.words
    code = programs.classes[index]
    pieces = [
        (programs.steps_address, code.words),
        *((one.address, words_of(one.lines)) for one in programs.routines[tile]),
    ]

    def read(address: int) -> int:
        for begin, words in pieces:
            if begin <= address < begin + 4 * len(words):
                return words[(address - begin) // 4]
        raise ScheduleError("the program of a step leaves its code", where=f"tile {tile}, {address:#x}")

    begin = next(offset for offset, step in code.marks if step == profile_step)
    ready = ready_row(read, programs.steps_address + begin)
    if ready.row != row.address:
        raise ScheduleError(
            f"the program runs a row at {ready.row:#x}, not the one at {row.address:#x}",
            where=f"tile {tile}",
        )
    return ready.row_words(row.words)
