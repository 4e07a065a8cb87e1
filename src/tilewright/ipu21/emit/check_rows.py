"""The compile-time check of exchange phases: rows as emitted, at their addresses, judged by the verifier."""

from __future__ import annotations

from ...errors import ScheduleError
from ..fabric.verify import verify
from ..lower.tile_work import Phase, TileWork
from ..place.placement import Placement
from .phase_transfers import phase_transfers
from .tile_programs import Programs

SHOWN = 10


def check_rows(work: TileWork, placement: Placement, programs: Programs) -> None:
    """Raise ScheduleError naming every phase with conflicts, and the first conflicts of each."""
    faults: list[str] = []
    for step, item in enumerate(work.work):
        if not isinstance(item, Phase) or not item.words:
            continue
        rows, addresses = {}, {}
        for tile, placed in programs.rows.items():
            for row in placed:
                if row.step == step:
                    rows[tile], addresses[tile] = row.words, row.address
        conflicts = verify(rows, addresses, *phase_transfers(item, work, placement))
        if conflicts:
            shown = "".join(f"\n    {conflict}" for conflict in conflicts[:SHOWN])
            faults.append(f"\n  {work.plan.steps[step].name}: {len(conflicts)} conflicts{shown}")
    if faults:
        raise ScheduleError(f"{len(faults)} exchange phases break a rule of the fabric:{''.join(faults)}")
