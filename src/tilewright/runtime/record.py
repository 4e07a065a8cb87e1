"""What one run cost, from the intervals the device recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.package.records import ProfileStep

from .device import SUPERVISOR


@dataclass(frozen=True, eq=False)
class RunRecord:
    """Measurements of one `Session.run`, or of all runs of one `Session.run_many`.

    `cycles_each` are the device cycles of each run: on each tile, from the begin of its first step that is no
    host transfer to the end of its last; the largest over all tiles. None when the package has no profile
    plan. `intervals` are the device's `INTERVAL` rows; `activity` its `ACTIVITY` rows, None unless the
    session asked for them and the device can tell. `interval_counts` and `activity_counts` say how many rows
    belong to each run. Bytes are those moved, padding and copies for several tiles included; `seconds` is
    wall time of the call.
    """

    cycles_each: tuple[int | None, ...]
    intervals: NDArray[np.void]
    bytes_in: int
    bytes_out: int
    seconds: float
    activity: NDArray[np.void] | None = None
    interval_counts: tuple[int, ...] = ()
    activity_counts: tuple[int, ...] = ()

    @property
    def cycles(self) -> int | None:
        """Device cycles of all runs together; what the host does in between is not counted."""
        known = [cycles for cycles in self.cycles_each if cycles is not None]
        return sum(known) if len(known) == len(self.cycles_each) else None

    def each_run(self) -> Iterator[tuple[int | None, NDArray[np.void], NDArray[np.void] | None]]:
        """Device cycles, intervals and activity of each run in turn."""
        intervals = activity = 0
        for number, cycles in enumerate(self.cycles_each):
            count = self.interval_counts[number] if self.interval_counts else len(self.intervals)
            rows = self.intervals[intervals : intervals + count]
            intervals += count
            if self.activity is None:
                yield cycles, rows, None
                continue
            count = self.activity_counts[number] if self.activity_counts else len(self.activity)
            yield cycles, rows, self.activity[activity : activity + count]
            activity += count

    @property
    def host_bytes(self) -> int:
        """Bytes moved between host and device in both directions."""
        return self.bytes_in + self.bytes_out


def device_cycles(intervals: NDArray[np.void], steps: Sequence[ProfileStep]) -> int | None:
    """Device cycles as `RunRecord` defines them, or None without any interval of a device step."""
    device_step = np.array([step.kind != "host" for step in steps], np.bool_)
    known = intervals[intervals["step"] < len(steps)]
    rows = known[device_step[known["step"]] & (known["context"] == SUPERVISOR)]
    if not len(rows):
        return None
    tiles, place = np.unique(rows["tile"], return_inverse=True)
    first = np.full(len(tiles), np.iinfo(np.int64).max)
    last = np.full(len(tiles), np.iinfo(np.int64).min)
    np.minimum.at(first, place, rows["begin"])
    np.maximum.at(last, place, rows["end"])
    return int((last - first).max())
