"""Tiles on the compiled engine, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import cast

from .batch import run_tiles
from .checks import Checks
from .compile import engine
from .crowd import Crowd
from .engine import Engine
from .stops import Stop
from .tile import Tile
from .together import TileByTile, Together

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


def in_threads(tiles: Sequence[Tile], run: Callable[[Sequence[Tile]], list[Stop]]) -> list[Stop]:
    """Run tiles chunk by chunk, in threads where there are enough; one stop per tile, in order.

    Tiles do not see one another while they run, so the order never shows.
    """
    if len(tiles) < _FEW or threads() == 1:
        return run(tiles)
    size = min(_CHUNK, -(-len(tiles) // threads()))
    chunks = [tiles[begin : begin + size] for begin in range(0, len(tiles), size)]
    return [stop for stops in _pool().map(run, chunks) for stop in stops]


class CompiledTiles:
    """Makes tiles of the compiled engine, without native code; runs them in threads."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    def make(self, physical: int) -> Engine:
        return Tile(physical, checks=self._checks)

    def run(self, tiles: Sequence[Engine], budget: int) -> list[Stop]:
        self._compile()
        return in_threads(cast("Sequence[Tile]", tiles), lambda chunk: self._run_chunk(chunk, budget))

    def together(self, tiles: Sequence[Engine]) -> Together:
        watching = self._checks.poison or self._checks.races
        return TileByTile(tiles) if watching else Crowd(cast("Sequence[Tile]", tiles))

    def _compile(self) -> None:
        """What tiles run on is compiled here, once, before any thread asks for it."""
        engine()

    def _run_chunk(self, tiles: Sequence[Tile], budget: int) -> list[Stop]:
        return run_tiles(tiles, budget=budget)
