"""What tiles did inside their profile steps: waits, exchange rows, words on the wires, running workers.

Recorded by the chip while `Chip.recording` is set, from events that it handles anyway; nothing about the
simulation changes. All cycles are global and exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .barrier import HOST, Completion, Standing
from .class_table import ClassTable
from .classes import TileClass
from .stops import StopKind

ACTIVITY = np.dtype([("kind", "u1"), ("tile", "<u2"), ("detail", "<u2"), ("begin", "<i8"), ("end", "<i8")])
"""One activity of physical tile `tile`, cycles [begin, end). Kinds, with the meaning of `detail`:

BARRIER_WAIT     in `sync 3`, from its issue to event 0 of the row.
HOST_WAIT        in `sync 7` or `sync 15`.
WORDS_WAIT       in `sync 0`, for words of the host.
ABSENT           in `sync 1`, while it sits out barriers.
ROW              in the exchange window: from event 0 to the supervisor's leaving it.
SENDING          one item leaves per cycle. Sends that follow one another without a gap are one row.
RECEIVING        one item is stored per cycle.
WORKER           a worker ran, from its first issue turn to the end of its last; `detail` is its context.
BARRIER          a barrier of group `detail`: `tile` made it complete at `begin`, it released at `end`.
STEP             when the intervals were last cleared, at `begin`, the tile was in profile step `detail`.
"""

(
    BARRIER_WAIT,
    HOST_WAIT,
    WORDS_WAIT,
    ABSENT,
    ROW,
    SENDING,
    RECEIVING,
    WORKER,
    BARRIER,
    STEP,
) = range(10)

_WAITS = {0: WORDS_WAIT, 1: ABSENT, 3: BARRIER_WAIT}


@dataclass
class ActivityLog:
    """What does not belong to a class of tiles: words of exchange phases, and barriers."""

    parts: list[NDArray[np.void]] = field(default_factory=list)

    def exchange(self, runs: NDArray[np.void], pieces: NDArray[np.void], release: int) -> None:
        """Sends and stored words of the phase whose event 0 is cycle `release`."""
        begin = runs["event"] + release
        self.parts.append(_rows(SENDING, runs["source"], begin, begin + runs["items"]))
        begin = pieces["write_event"] + release
        self.parts.append(_rows(RECEIVING, pieces["destination"], begin, begin + pieces["items"]))

    def barrier(self, done: Completion, standings: Iterable[Standing]) -> None:
        """A barrier that completes now. Of several last tiles the lowest is named."""
        times = [
            (standing.since if standing.zone is not None else standing.count_since, int(standing.tiles.min()))
            for standing in standings
        ]
        _, tile = max(times, key=lambda entry: (entry[0], -entry[1]))
        self.parts.append(np.array([(BARRIER, tile, done.group, done.last, done.release)], ACTIVITY))

    def clear(self, table: ClassTable) -> None:
        """Forget everything but the steps that go on."""
        self.parts.clear()
        for place, marks in table.marks.of_all(len(table.classes)).each():
            group = table.classes[place]
            if len(marks):
                latest = marks[-1]
                begin = max(int(latest["clock"]), group.tile.clock)
                group.activity = [(STEP, int(latest["step"]), begin, begin)]
            else:
                group.activity = [entry for entry in group.activity if entry[0] == STEP]
            group.spans.clear()

    def table(self, classes: Iterable[TileClass]) -> NDArray[np.void]:
        """All of it as ACTIVITY rows by kind, tile and begin."""
        parts = list(self.parts)
        for group in classes:
            own = [np.array([(kind, 0, *rest) for kind, *rest in group.activity], ACTIVITY)]
            for span in group.spans:
                rows = _rows(WORKER, 0, span["begin"], span["end"])
                rows["detail"] = span["context"]
                own.append(rows)
            rows = np.concatenate(own)
            many = np.tile(rows, len(group.members))
            many["tile"] = np.repeat(group.members, len(rows))
            parts.append(many)
        if not parts:
            return np.zeros(0, ACTIVITY)
        table = np.concatenate(parts)
        return table[np.lexsort((table["begin"], table["tile"], table["kind"]))]


def note_stop(group: TileClass, kind: StopKind, clock: int, release: int | None) -> None:
    """What a class leaves behind at a stop: worker runs, and an exchange row that has ended."""
    spans = group.tile.take_spans()
    if len(spans):
        group.spans.append(spans)
    if kind is StopKind.WINDOW_CLOSED and release is not None:
        group.activity.append((ROW, 0, release, clock))


def note_release(group: TileClass, clock: int) -> None:
    """A class goes on at `clock` after a `sync`."""
    kind = _WAITS.get(group.zone, HOST_WAIT if group.zone % 8 == HOST else BARRIER_WAIT)
    group.activity.append((kind, 0, group.since, clock))


def _rows(
    kind: int, tile: NDArray[np.int64] | int, begin: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.void]:
    """Rows in the given order (by tile, then begin); those that touch are joined."""
    rows = np.zeros(len(begin), ACTIVITY)
    rows["kind"], rows["tile"], rows["begin"], rows["end"] = kind, tile, begin, end
    if kind == WORKER or len(rows) < 2:
        return rows
    joined = (rows["tile"][1:] == rows["tile"][:-1]) & (rows["begin"][1:] == rows["end"][:-1])
    first = np.flatnonzero(np.concatenate([[True], ~joined]))
    last = np.concatenate([first[1:], [len(rows)]]) - 1
    merged = rows[first]
    merged["end"] = rows["end"][last]
    return merged
