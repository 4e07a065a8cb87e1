"""Run several tiles in one call of the compiled engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from . import state as at
from .compile import engine
from .engine_decode import ENTRY_COUNT, ENTRY_INTS
from .stops import STOP_ASSISTANCE, Stop
from .tile import Tile

_LOCAL = threading.local()


def decoded_entries() -> NDArray[np.int64]:
    """This thread's decoded instructions: they outlive a run, for programs are run again and again."""
    entries: NDArray[np.int64] | None = getattr(_LOCAL, "entries", None)
    if entries is None:
        entries = _LOCAL.entries = np.zeros(ENTRY_COUNT * ENTRY_INTS, dtype=np.int64)
    return entries


def run_tiles(
    tiles: Sequence[Tile],
    *,
    budget: int | None = None,
    assistance: tuple[int, int] = (0, 0),
    assist: Callable[[Tile], None] | None = None,
) -> list[Stop]:
    """Run each tile to its next stop, independently of the others; one Stop per tile, in order.

    The engine releases the interpreter lock, so two threads may run disjoint sets of tiles.

    Args:
        budget: instructions per tile; default from the checks of the first.
        assistance: a native function for `state.ASSISTANCE` and its argument.
        assist: serves a tile that stopped because that function asked for it.
    """
    if not tiles:
        return []
    run = engine().run_tiles
    entries = decoded_entries().ctypes.data
    stops: list[Stop | None] = [None] * len(tiles)
    allowed = tiles[0].checks.budget if budget is None else budget
    pending = list(range(len(tiles)))
    while pending:
        addresses = np.array([tiles[index].state_address for index in pending], dtype=np.int64)
        reports = np.empty((len(pending), len(at.REPORT)), dtype=np.int64)
        run(addresses.ctypes.data, len(pending), allowed, *assistance, entries, reports.ctypes.data)
        allowed = -1
        for index, report in zip(pending, reports.tolist(), strict=True):
            if report[0] == STOP_ASSISTANCE:
                assert assist is not None
                assist(tiles[index])
            else:
                stops[index] = tiles[index].stop_of(report)
        pending = [index for index in pending if stops[index] is None]
    return [stop for stop in stops if stop is not None]
