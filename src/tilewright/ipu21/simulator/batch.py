"""Run several tiles in one call of the compiled engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .compile import engine
from .stops import Stop
from .tile import Tile


def run_tiles(tiles: Sequence[Tile], *, budget: int | None = None) -> list[Stop]:
    """Run each tile to its next stop, independently of the others; one Stop per tile, in order.

    The engine releases the interpreter lock, so two threads may run disjoint sets of tiles.
    """
    run = engine().run_tiles
    stops: list[Stop | None] = [None] * len(tiles)
    for tile in tiles:
        tile.set_budget(tile.checks.budget if budget is None else budget)
    pending = list(range(len(tiles)))
    while pending:
        addresses = np.array([tiles[index].state_address for index in pending], dtype=np.int64)
        run(int(addresses.ctypes.data), len(addresses))
        for index in pending:
            stops[index] = tiles[index].take_stop()
        pending = [index for index in pending if stops[index] is None]
    return [stop for stop in stops if stop is not None]
