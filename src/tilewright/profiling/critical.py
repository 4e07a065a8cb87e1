"""The critical path of a run: at every cycle, the tile and step that everything else waited for.

Followed backwards. It starts on the tile whose device steps took longest, at their end. While a tile works,
the path stays on it; where a barrier released it, the path goes on at the tile that was the last to be ready,
at the moment it was ready. The cycles from there to the release are synchronisation. So the path has exactly
one piece for every device cycle, and the lengths of its pieces add up to `Run.cycles`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ProfileError

from .records import HOST, IDLE, SUPERVISOR, SYNCHRONISATION, Profile, Run

PIECE = np.dtype(
    [
        ("run", "<u4"),
        ("tile", "<u2"),
        ("kind", "u1"),
        ("step", "<u2"),
        ("instance", "<u4"),
        ("begin", "<i8"),
        ("end", "<i8"),
    ]
)
"""Cycles [begin, end) of a run's critical path, spent on `tile`."""


def host_steps(profile: Profile) -> NDArray[np.bool_]:
    """Per step whether it is a host step."""
    return np.array([step.kind == "host" for step in profile.steps], np.bool_)


def run_window(run: Run, host: NDArray[np.bool_]) -> tuple[int, int, int]:
    """The tile that `Run.cycles` is about, and the cycles [begin, end) it is the length of.

    `host` says per step whether it is a host step. Of several such tiles the lowest. Raises ProfileError for
    a run without device steps.
    """
    mine = run.intervals["context"] == SUPERVISOR
    rows = run.intervals[mine][~host[run.intervals["step"][mine]]]
    if not len(rows):
        raise ProfileError("a run without any device step")
    # Sorted by tile and begin, and free of overlap: the first and last row of each tile bound it.
    first = np.flatnonzero(np.concatenate([[True], rows["tile"][1:] != rows["tile"][:-1]]))
    last = np.concatenate([first[1:], [len(rows)]]) - 1
    begin, end = rows["begin"][first], rows["end"][last]
    chosen = int(np.argmax(end - begin))
    return int(rows["tile"][first[chosen]]), int(begin[chosen]), int(end[chosen])


def critical_path(profile: Profile) -> NDArray[np.void]:
    """PIECE rows of all runs in time order."""
    host = host_steps(profile)
    parts = [_run_path(run, number, host) for number, run in enumerate(profile.runs)]
    return np.concatenate(parts) if parts else np.zeros(0, PIECE)


def _run_path(run: Run, number: int, host: NDArray[np.bool_]) -> NDArray[np.void]:
    tile, low, now = run_window(run, host)
    rows = run.intervals[run.intervals["context"] == SUPERVISOR]
    starts = np.searchsorted(rows["tile"], np.arange(int(rows["tile"].max()) + 2))
    barriers = {int(row["release"]): row for row in run.barriers}
    pieces: list[tuple[int, int, int, int, int, int, int]] = []
    host_step = int(np.argmax(host)) if host.any() else 0
    while now > low:
        begin, end = (int(starts[tile]), int(starts[tile + 1])) if tile + 1 < len(starts) else (0, 0)
        at = begin + int(np.searchsorted(rows["begin"][begin:end], now, "left")) - 1
        row = rows[at] if begin <= at < end else None
        if row is None or int(row["end"]) < now:
            # Nothing is known of the tile here; before its first step it serves the host.
            until = low if row is None else max(int(row["end"]), low)
            pieces.append((number, tile, HOST, host_step, 0, until, now))
            now = until
            continue
        place = number, tile, int(row["kind"]), int(row["step"]), int(row["instance"])
        barrier = (
            barriers.get(now) if place[2] in (SYNCHRONISATION, IDLE) and now == int(row["end"]) else None
        )
        if barrier is not None and low < int(barrier["last"]) < now:
            pieces.append((number, tile, SYNCHRONISATION, *place[3:], int(barrier["last"]), now))
            now, tile = int(barrier["last"]), int(barrier["tile"])
            continue
        until = max(int(row["begin"]), low)
        pieces.append((*place, until, now))
        now = until
    return np.array(pieces[::-1], PIECE)
