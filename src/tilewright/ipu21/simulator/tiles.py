"""Tiles on the compiled engine, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from .batch import run_states
from .checks import Checks
from .compile import engine
from .crowd import Crowd
from .engine import Engine
from .stop_table import Stops
from .tile import Tile
from .together import Together

_FEW = 16
"""Below this many tiles a second thread costs more than it brings."""
_CHUNK = 128
"""Tiles per call of the engine and thread, so that threads end together and an interrupt is noticed."""


def threads() -> int:
    """How many threads run tiles: one per CPU that this process may use, 8 at most."""
    return min(len(os.sched_getaffinity(0)), 8) if hasattr(os, "sched_getaffinity") else 1


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Kept from call to call: a device runs tiles thousands of times."""
    return ThreadPoolExecutor(threads(), thread_name_prefix="tiles")


if hasattr(os, "register_at_fork"):
    # A forked child has none of the threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_threads(count: int, run: Callable[[int, int], Stops]) -> Stops:
    """Run `count` tiles chunk by chunk, in threads where there are enough; one stop per tile, in order.

    Tiles do not see one another while they run, so the order never shows.

    Args:
        run: runs the tiles from one place to another.
    """
    if count < _FEW or threads() == 1:
        return run(0, count)
    size = min(_CHUNK, -(-count // threads()))
    begins = range(0, count, size)
    return Stops.joined(list(_pool().map(run, begins, [min(begin + size, count) for begin in begins])))


class CompiledTiles:
    """Makes tiles of the compiled engine, without native code; runs them in threads."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    def make(self, physical: int) -> Engine:
        return Tile(physical, checks=self._checks)

    def run(self, tiles: Sequence[Engine], budget: int) -> Stops:
        mine = cast("Sequence[Tile]", tiles)
        return self.run_states(np.array([tile.state_address for tile in mine], np.int64), mine, budget)

    def run_states(self, addresses: NDArray[np.int64], tiles: Sequence[Tile], budget: int) -> Stops:
        """`run` where it is known already at which addresses the tiles' states lie."""
        self._compile()
        return in_threads(
            len(tiles), lambda begin, end: self._run_chunk(addresses[begin:end], tiles[begin:end], budget)
        )

    def together(self, tiles: Sequence[Engine]) -> Together:
        return Crowd(cast("Sequence[Tile]", tiles), self.run_states)

    def _compile(self) -> None:
        """What tiles run on is compiled here, once, before any thread asks for it."""
        engine()

    def _run_chunk(self, addresses: NDArray[np.int64], tiles: Sequence[Tile], budget: int) -> Stops:
        return run_states(addresses, tiles, budget)
