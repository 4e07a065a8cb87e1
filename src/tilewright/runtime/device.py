"""What a session asks of a device, simulated or real."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tilewright.package.records import Package

INTERVAL = np.dtype([("tile", "u2"), ("context", "u1"), ("step", "u2"), ("begin", "i8"), ("end", "i8")])
"""Cycles begin..end-1 that a context of a tile (0 supervisor, 1..6 workers) spent in a profile step."""

SUPERVISOR = 0


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
