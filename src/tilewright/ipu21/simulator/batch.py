"""Run several tiles in one call of the compiled engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from . import state as at
from .compile import engine
from .engine_decode import ENTRY_COUNT, ENTRY_INTS
from .stop_table import SPECIAL, Stops
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
) -> Stops:
    """Run each tile to its next stop, independently of the others; one Stop per tile, in order.

    The engine releases the interpreter lock, so two threads may run disjoint sets of tiles.

    Args:
        budget: instructions per tile; default from the checks of the first.
        assistance: a native function for `state.ASSISTANCE` and its argument.
        assist: serves a tile that stopped because that function asked for it.
    """
    addresses = np.array([tile.state_address for tile in tiles], dtype=np.int64)
    if budget is None and tiles:
        budget = tiles[0].checks.budget
    return run_states(addresses, tiles, budget or 0, assistance, assist)


def run_states(
    addresses: NDArray[np.int64],
    tiles: Sequence[Tile],
    budget: int,
    assistance: tuple[int, int] = (0, 0),
    assist: Callable[[Tile], None] | None = None,
) -> Stops:
    """`run_tiles` where it is known already at which addresses the tiles' states lie."""
    reports = np.empty((len(addresses), len(at.REPORT)), dtype=np.int64)
    arguments = (*assistance, decoded_entries().ctypes.data)
    engine().run_tiles(addresses.ctypes.data, len(addresses), budget, *arguments, reports.ctypes.data)
    told: dict[int, Stop] = {}
    pending = np.flatnonzero(SPECIAL[reports[:, 0]])
    while len(pending):
        again = []
        for index in pending.tolist():
            if reports[index, 0] == STOP_ASSISTANCE:
                assert assist is not None
                assist(tiles[index])
                again.append(index)
                continue
            stop = tiles[index].take_stop()
            if stop is None:
                again.append(index)
            else:
                told[index] = stop
        if not again:
            break
        states, found = addresses[again], reports[again]
        # With what is left of the budget.
        engine().run_tiles(states.ctypes.data, len(states), -1, *arguments, found.ctypes.data)
        reports[again] = found
        pending = np.array(again, dtype=np.int64)[SPECIAL[found[:, 0]]]
    return Stops(reports, told)
