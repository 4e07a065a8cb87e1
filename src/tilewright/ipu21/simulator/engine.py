"""What the chip needs from simulated tiles. `tiles.CompiledTiles` provides it; tests bring another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from .stops import Stop

if TYPE_CHECKING:
    from .together import Together


class Engine(Protocol):
    """One tile, or one of several that nothing has told apart yet.

    Attributes:
        memory: bytes of tile memory; index 0 is its first address.
        physical: its id. shared: it stands for several tiles, and stops before it reads its id.
        clock: cycle at which the supervisor can issue its next instruction. pc: address of that instruction.
        sans, sans_clock: barriers the tile is still excused from; cycle of the latest `sans`.
        active_workers: how many workers have not exited.
        doubts: whether a worker has asked for a rounding mode that the machine may not have.
    """

    memory: NDArray[np.uint8]
    physical: int
    shared: bool
    pc: int
    sans: int

    @property
    def clock(self) -> int: ...

    @property
    def sans_clock(self) -> int: ...

    @property
    def active_workers(self) -> int: ...

    @property
    def doubts(self) -> bool: ...

    def load(self, address: int, data: bytes, memory_size: int) -> None: ...

    def allow_rewriting(self, address: int, size: int) -> None:
        """The program may store over the code in these bytes."""

    def copy(self, physical: int) -> Engine:
        """A tile in the same state with another id."""

    def csr(self, number: int, context: int = 0) -> int: ...

    def set_csr(self, number: int, value: int, context: int = 0) -> None: ...

    def invalidate(self, address: int, size: int) -> None:
        """Somebody else wrote these bytes of `memory`."""

    def first_unwritten(self, address: int, size: int) -> int | None:
        """The first of these bytes that nobody has written, if the tile watches for that."""

    def resume(self, clock: int) -> None:
        """The `sync` it stopped at is satisfied: the next instruction issues at `clock`."""

    def take_log(self) -> NDArray[np.void]:
        """Exchange items (kind, clock, count, value, control, pc) since the last call."""

    def set_watch(self, addresses: NDArray[np.int64], steps: NDArray[np.int64]) -> None:
        """Addresses whose issue by the supervisor is to be noted, and the steps that begin there."""

    def take_marks(self) -> NDArray[np.void]:
        """Noted issues (step, clock) since the last call."""

    def note_spans(self, wanted: bool) -> None:
        """Whether runs of workers are to be noted."""

    def take_spans(self) -> NDArray[np.void]:
        """Noted runs of workers (context, begin, end) that ended since the last call."""


class Engines(Protocol):
    """Makes tiles and runs them."""

    def make(self, physical: int) -> Engine:
        """A tile as the loader leaves it, with empty memory and program counter 0."""

    def run(self, tiles: Sequence[Engine], budget: int) -> Sequence[Stop]:
        """Runs each tile to its next stop, or for `budget` instructions; one stop per tile, in order."""

    def together(self, tiles: Sequence[Engine]) -> Together:
        """What is done with all of these tiles between two runs."""
