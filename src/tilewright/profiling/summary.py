"""A profile in a few numbers, as plain data for `--json` and for a person."""

from __future__ import annotations

from typing import Any

from .query import Group, pieces_of, query
from .records import CONTEXTS, Profile


def summarize(profile: Profile) -> dict[str, Any]:
    """What a profile holds, its totals, and its cycles by kind and by step."""
    pieces = pieces_of(profile)
    by_kind = query(profile, "kind", pieces=pieces)
    by_step = query(profile, "step", sort="first", pieces=pieces)
    total = by_kind.total
    counts = [int((pieces.rows["context"] == context).sum()) for context in range(CONTEXTS)]
    return {
        "format": "profile",
        "package": profile.package,
        "package_digest": profile.digest,
        "compiler": profile.compiler,
        "device": profile.device,
        "clock_hz": profile.clock_hz,
        "exact": profile.exact,
        "tiles": len(profile.tiles),
        "steps": len(profile.steps),
        "runs": [run.cycles for run in profile.runs],
        "device_cycles": profile.cycles,
        "work_cycles": total.work,
        "busy_cycles": total.busy,
        "worker_cycles": total.workers,
        "intervals": sum(counts),
        "supervisor_intervals": counts[0],
        "worker_intervals": sum(counts[1:]),
        "barriers": sum(len(run.barriers) for run in profile.runs),
        "by_kind": [group_data(group) for group in by_kind.groups],
        "by_step": [group_data(group) for group in by_step.groups],
    }


def group_data(group: Group) -> dict[str, Any]:
    """A group of a query under the names that `--json` prints."""
    return {
        "name": group.name,
        "critical_cycles": group.critical,
        "share": round(group.share, 6),
        "phase_cycles": group.phase,
        "work_cycles": group.work,
        "busy_cycles": group.busy,
        "worker_cycles": group.workers,
        "utilisation": round(group.utilisation, 6),
        "worker_utilisation": round(group.worker_utilisation, 6),
        "multiply_adds": group.multiply_adds,
        "peak_share": round(group.peak, 6),
        "intervals": group.intervals,
        "instances": group.instances,
        "tiles": group.tiles,
        "first_cycle": group.first,
    }
