"""Tiles on the compiled engine, on all cores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from .batch import run_tiles
from .checks import Checks
from .compile import engine
from .engine import Engine
from .stops import Stop
from .tile import Tile

_FEW = 16
"""Below this many tiles a second thread costs more than it brings."""
_CHUNK = 32
"""Tiles per call of the engine and thread, so that an interrupt is noticed in between."""


class CompiledTiles:
    """Makes tiles of the compiled engine; runs them in threads, which the engine lets go in parallel.

    Tiles do not see one another while they run, so the order never shows.
    """

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._threads = min(len(os.sched_getaffinity(0)), 8) if hasattr(os, "sched_getaffinity") else 1

    def make(self, physical: int) -> Engine:
        return Tile(physical, checks=self._checks)

    def run(self, tiles: Sequence[Engine], budget: int) -> list[Stop]:
        mine = cast("Sequence[Tile]", tiles)
        # Compiled here, once, before any thread asks for it.
        engine()
        if len(mine) < _FEW or self._threads == 1:
            return run_tiles(mine, budget=budget)
        chunks = [mine[begin : begin + _CHUNK] for begin in range(0, len(mine), _CHUNK)]
        with ThreadPoolExecutor(self._threads) as pool:
            done = list(pool.map(lambda chunk: run_tiles(chunk, budget=budget), chunks))
        return [stop for stops in done for stop in stops]
