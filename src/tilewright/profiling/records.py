"""What a profile holds: every interval of every tile of every run, and what its steps are called.

Plain records; nothing here checks anything. Tile numbers are physical ids. Cycles are global tile clocks
since loading. On the simulator every interval is exact, and recording them changed none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .products import METADATA

SUPERVISOR = 0
"""Context of the intervals that divide a tile's time without gap or overlap; 1..6 are the workers'."""
CONTEXTS = 7

INTERVAL = np.dtype(
    [
        ("tile", "<u2"),
        ("context", "u1"),
        ("kind", "u1"),
        ("step", "<u2"),
        ("instance", "<u4"),
        ("begin", "<i8"),
        ("end", "<i8"),
    ]
)
"""Cycles [begin, end) of one context of one tile, in the `instance`-th occurrence (from 0, per run and
tile) of profile step `step`. Sorted by run, tile, context, begin."""

BARRIER = np.dtype([("group", "<u2"), ("tile", "<u2"), ("last", "<i8"), ("release", "<i8")])
"""A barrier of a zone group: `tile` was the last to be ready, at cycle `last`; `release` freed everybody."""

KINDS = (
    "compute",
    "copy",
    "control",
    "exchange.send",
    "exchange.receive",
    "exchange.both",
    "exchange.idle",
    "exchange",
    "synchronisation",
    "idle",
    "host",
)
"""Kinds of intervals, by number:

compute, copy        at least one worker runs in a step of that kind
control              the supervisor alone: it launches, waits for results, drains workers, calls
exchange.send ...    in an exchange row: words leave, are stored, both, or neither
exchange             in an exchange step whose parts were not recorded
synchronisation      waits in a barrier that it takes part in, or for its release
idle                 sits out an exchange phase
host                 in a host step, whatever it does there; no device cycles
"""
(
    COMPUTE,
    COPY,
    CONTROL,
    SEND,
    RECEIVE,
    BOTH,
    ROW_IDLE,
    EXCHANGE,
    SYNCHRONISATION,
    IDLE,
    HOST,
) = range(len(KINDS))

BUSY = np.array(
    [kind in (COMPUTE, COPY, CONTROL, SEND, RECEIVE, BOTH, EXCHANGE) for kind in range(len(KINDS))]
)
"""Kinds in which a tile does something rather than waits, indexed by kind."""


@dataclass(frozen=True)
class Step:
    """A step of the program.

    Attributes:
        name: as the package names it. kind: `host`, `exchange`, `compute` or `copy`.
        operation: the graph's operation that it belongs to, or empty.
        kernel: what runs in it: symbols that its code calls, else its kind.
        metadata: further names and values.
    """

    name: str
    kind: str
    operation: str = ""
    kernel: str = ""
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of all tiles in one instance, as the metadata say; 0 if they do not."""
        text = dict(self.metadata).get(METADATA, "").replace(",", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


@dataclass(frozen=True, eq=False)
class Run:
    """One run.

    Attributes:
        cycles: its device cycles: on each tile from the begin of its first step that is no host step to the
            end of its last such step, the largest over all tiles.
        intervals: INTERVAL rows. barriers: BARRIER rows in time order, empty if not recorded.
    """

    cycles: int
    intervals: NDArray[np.void]
    barriers: NDArray[np.void]


@dataclass(frozen=True, eq=False)
class Profile:
    """Runs of one package on one device.

    Attributes:
        digest: SHA-256 digest of the package, 64 hexadecimal digits. package: its name.
        compiler: version that made it. device: name of the device.
        clock_hz: cycles per second.
        exact: intervals have all their parts (simulator); else steps are undivided.
    """

    digest: str
    package: str
    compiler: str
    device: str
    clock_hz: int
    exact: bool
    steps: list[Step]
    runs: list[Run] = field(default_factory=list)

    @property
    def cycles(self) -> int:
        """Device cycles of all runs together."""
        return sum(run.cycles for run in self.runs)

    @property
    def tiles(self) -> NDArray[np.uint16]:
        """Physical ids of all tiles with intervals, rising."""
        parts = [np.unique(run.intervals["tile"]) for run in self.runs]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.uint16)
