"""What a session asks of a device, simulated or real."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tilewright.package.records import INTERVAL as INTERVAL
from tilewright.package.records import Package

SUPERVISOR = 0

ACTIVITY = np.dtype([("kind", "u1"), ("tile", "<u2"), ("detail", "<u2"), ("begin", "<i8"), ("end", "<i8")])
"""What a tile did in cycles begin..end-1, finer than its profile steps; of these kinds:"""
BARRIER_WAIT, HOST_WAIT, WORDS_WAIT, ABSENT = 0, 1, 2, 3
"""In a barrier between tiles; in one with the host; for words of the host; sitting barriers out."""
ROW = 4
"""In an exchange row, from the release of its barrier."""
SENDING, RECEIVING = 5, 6
"""Words leave, or are stored, one item per cycle."""
WORKER = 7
"""Worker `detail` (1..6) ran."""
BARRIER = 8
"""A barrier of zone group `detail`: `tile` completed it at `begin`, all were released at `end`."""
STEP = 9
"""`tile` was in profile step `detail` when the intervals were last cleared, at `begin`."""


@runtime_checkable
class Device(Protocol):
    """One chip under one owner. Every method may raise a TilewrightError; after one, load again or close."""

    name: str
    """How the user names it: `sim`, `ipu:0`."""

    def load(self, package: Package) -> None:
        """Reset the chip and fill every tile's memory; the programs run up to the session start."""

    def attach(self, index: int, buffer: NDArray[np.uint8]) -> None:
        """Give the device a host page. Device addresses follow the order of the calls. The device reads and
        writes the buffer until `detach_all`; its owner keeps it alive."""

    def detach_all(self) -> None:
        """Take all host pages back. Allowed at any time."""

    def write_mark(self, register: str, value: int) -> None:
        """Write a host mark, `gs1` or `gs2`: credit for that many host barriers."""

    def read_mark(self, register: str) -> int:
        """Credits not yet used. A simulated chip advances here until it waits for the host."""

    def supervisor_states(self) -> NDArray[np.uint8]:
        """State of every tile's supervisor: 0 inactive or waiting, 1 running, 2 stopped, 3 faulted."""

    def intervals(self) -> NDArray[np.void]:
        """`INTERVAL` rows since loading or the last `clear_intervals`."""

    def clear_intervals(self) -> None:
        """Forget the intervals recorded so far."""

    def close(self) -> None:
        """Give the chip back. Closing twice is allowed."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


@runtime_checkable
class RecordsActivity(Protocol):
    """A device that can also tell what its tiles do inside their steps. The simulator can, a card cannot."""

    def record_activity(self, wanted: bool) -> None:
        """Whether to note it, from now on and after every load. Cycles and results stay as they are."""

    def activity(self) -> NDArray[np.void]:
        """`ACTIVITY` rows since loading or the last `clear_intervals`."""
