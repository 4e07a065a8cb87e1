"""What the chip needs from a simulated tile. `tile.Tile` is the implementation; tests bring a second one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .stops import Stop


class Engine(Protocol):
    """One tile, or one of several that nothing has told apart yet.

    Attributes:
        memory: bytes of tile memory; index 0 is its first address.
        clock: cycle at which the supervisor can issue its next instruction. pc: address of that instruction.
        sans, sans_clock: barriers the tile is still excused from; cycle of the latest `sans`.
    """

    memory: NDArray[np.uint8]
    sans: int

    @property
    def clock(self) -> int: ...

    @property
    def pc(self) -> int: ...

    @property
    def sans_clock(self) -> int: ...

    @property
    def running_workers(self) -> int: ...

    def load(self, address: int, data: bytes, memory_size: int) -> None: ...

    def copy(self, physical: int) -> Engine:
        """A tile in the same state that knows its id."""

    def identify(self, physical: int) -> None:
        """Ends sharing: from now on this is that tile alone."""

    def csr(self, number: int, context: int = 0) -> int: ...

    def set_csr(self, number: int, value: int, context: int = 0) -> None: ...

    def memory_changed(self, address: int, size: int) -> None:
        """Somebody else wrote these bytes of `memory`."""

    def run(self, *, budget: int) -> Stop: ...

    def resume(self, clock: int) -> None:
        """The `sync` it stopped at is satisfied: the next instruction issues at `clock`."""

    def take_log(self) -> NDArray[np.void]:
        """Exchange items (kind, clock, count, value, control, pc) since the last call."""

    def set_watch(self, marks: Mapping[int, int]) -> None:
        """Addresses whose issue by the supervisor is to be noted, and the step that begins there."""

    def take_marks(self) -> NDArray[np.void]:
        """Noted issues (step, clock) since the last call."""


MakeTile = Callable[[int, bool], Engine]
"""Makes the tile with a physical id; the flag says that it stands for others too."""
