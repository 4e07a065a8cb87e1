"""All tiles of a chip as one, for what is done with each of them between two runs.

`crowd` does it for tiles of the compiled engine in one native call. `TileByTile` does it for any tiles, and
says by that what each operation means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..isa.csrs import INCOMING_DCOUNT
from .classes import BEGUN
from .engine import Engine
from .noted import Noted, noted
from .stop_table import Stops
from .stops import Stop

Integers = NDArray[np.int64]

COUNT_MASK = (1 << 17) - 1
"""INCOMING_DCOUNT has 17 bits."""


class Together(Protocol):
    """Some tiles, in an order that stays.

    `chosen` are places in that order, rising. What the fabric does names tiles by their ids, one tile each.
    """

    def run(self, chosen: Integers, budget: int) -> Stops:
        """Run chosen tiles to their next stops, or for `budget` instructions each."""

    def begun(self) -> Integers:
        """The registers `BEGUN` of each tile, [tiles, registers]."""

    def excused(self) -> Integers:
        """Barriers each tile is still excused from, and the cycle of its latest `sans`, [2, tiles]."""

    def doubtful(self, chosen: Integers) -> bool:
        """Whether a worker of a chosen tile has asked for a rounding mode the machine may not have."""

    def pcs_and_workers(self) -> Integers:
        """Address of the supervisor's next instruction and number of active workers, [2, tiles]."""

    def resume(self, chosen: Integers, clock: int) -> None:
        """The `sync` that chosen tiles stopped at is satisfied: they go on at `clock`."""

    def take_marks(self, chosen: Integers) -> Noted:
        """Marks of chosen tiles since the last call."""

    def take_logs(self, chosen: Integers) -> Noted:
        """Exchange items of chosen tiles, likewise."""

    def count_down(self, tiles: Integers, words: Integers) -> None:
        """Tiles, each once, have received so many words."""

    def invalidate(self, tiles: Integers, address: Integers, size: Integers) -> None:
        """The fabric has written these bytes of these tiles."""

    def unwritten(self, places: Integers, address: Integers, size: Integers) -> tuple[int, int] | None:
        """The first of these ranges of bytes, each of the tile at a place, with one that nobody has written,
        and the address of that byte; None if all are written, or if these tiles do not watch for it.
        """


class TileByTile:
    """Tiles that are asked one after another."""

    def __init__(
        self, tiles: Sequence[Engine], run: Callable[[Sequence[Engine], int], Sequence[Stop]]
    ) -> None:
        """`run`: that of the engines that made the tiles."""
        self._tiles = tiles
        self._run = run
        self._by_id = {tile.physical: tile for tile in tiles}

    def run(self, chosen: Integers, budget: int) -> Stops:
        return Stops.of(self._run([self._tiles[place] for place in chosen.tolist()], budget))

    def begun(self) -> Integers:
        return np.array([[tile.csr(number) for number in BEGUN] for tile in self._tiles], np.int64)

    def excused(self) -> Integers:
        return np.array([[tile.sans for tile in self._tiles], [tile.sans_clock for tile in self._tiles]])

    def doubtful(self, chosen: Integers) -> bool:
        return any(self._tiles[place].doubts for place in chosen.tolist())

    def pcs_and_workers(self) -> Integers:
        return np.array([[tile.pc for tile in self._tiles], [tile.active_workers for tile in self._tiles]])

    def resume(self, chosen: Integers, clock: int) -> None:
        for place in chosen.tolist():
            self._tiles[place].resume(clock)

    def take_marks(self, chosen: Integers) -> Noted:
        return noted(chosen, [self._tiles[place].take_marks() for place in chosen.tolist()])

    def take_logs(self, chosen: Integers) -> Noted:
        return noted(chosen, [self._tiles[place].take_log() for place in chosen.tolist()])

    def count_down(self, tiles: Integers, words: Integers) -> None:
        for physical, count in zip(tiles.tolist(), words.tolist(), strict=True):
            tile = self._by_id[physical]
            tile.set_csr(INCOMING_DCOUNT, (tile.csr(INCOMING_DCOUNT) - count) & COUNT_MASK)

    def invalidate(self, tiles: Integers, address: Integers, size: Integers) -> None:
        for physical, begin, count in zip(tiles.tolist(), address.tolist(), size.tolist(), strict=True):
            self._by_id[physical].invalidate(begin, count)

    def unwritten(self, places: Integers, address: Integers, size: Integers) -> tuple[int, int] | None:
        ranges = zip(places.tolist(), address.tolist(), size.tolist(), strict=True)
        for index, (place, begin, count) in enumerate(ranges):
            missing = self._tiles[place].first_unwritten(begin, count)
            if missing is not None:
                return index, missing
        return None
