"""Whether senders and receivers of a phase mean each other: optional, because the machine does not mind.

A word that nobody listens to vanishes, a mux may select a silent tile, and it may stay as it is behind the
row (known). In rows that a scheduler made, each of these is a mistake of an event or of a tile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.ipu21.machine.topology import MUX_HOST_BASE, MUX_NEUTRAL, mux_to_store

from .traffic import BEFORE, NEVER, Traffic, key


def check_listening(traffic: Traffic, pieces: NDArray[np.void]) -> None:
    """Raises SimulationError for a selection that hears nothing, an unheard word, or a mux left open."""
    _silence(traffic, pieces)
    _unheard(traffic, pieces)
    _left_open(traffic)


def _silence(traffic: Traffic, pieces: NDArray[np.void]) -> None:
    tile, event, value, end = _selections(traffic)
    passing = key(
        pieces["destination"], pieces["write_event"] - np.asarray(mux_to_store(pieces["destination"]))
    )
    passing.sort()
    heard = np.searchsorted(passing, key(tile, end)) - np.searchsorted(passing, key(tile, event))
    silent = (value < MUX_HOST_BASE) & (event > BEFORE) & (heard == 0)
    if silent.any():
        at = int(np.argmax(silent))
        raise SimulationError(
            f"the tile listens to tile {value[at]} from this event on and hears nothing",
            tile=int(tile[at]),
            event=int(event[at]),
            hint="the mux, the send or the source is wrong",
        )


def _unheard(traffic: Traffic, pieces: NDArray[np.void]) -> None:
    runs = traffic.runs
    start = np.cumsum(runs["items"]) - runs["items"]
    begin = start[pieces["run"]] + pieces["read_event"] - runs["event"][pieces["run"]]
    change = np.zeros(int(runs["items"].sum()) + 1, np.int64)
    np.add.at(change, begin, 1)
    np.add.at(change, begin + pieces["items"], -1)
    unheard = np.cumsum(change)[:-1] == 0
    if unheard.any():
        item = int(np.argmax(unheard))
        run = runs[int(np.searchsorted(start, item, "right")) - 1]
        raise SimulationError(
            "nobody listens to the item that the tile sends in this event",
            tile=int(run["source"]),
            address=int(run["pc"]),
            event=int(run["event"]) + item - int(start[np.searchsorted(start, item, "right") - 1]),
            hint="a mux opens too late or closes too early, or the send is at the wrong event",
        )


def _left_open(traffic: Traffic) -> None:
    tile, event, value, end = _selections(traffic)
    opened = (end == NEVER) & (event > BEFORE) & (value != MUX_NEUTRAL)
    if opened.any():
        at = int(np.argmax(opened))
        raise SimulationError(
            f"INCOMING_MUX still selects {value[at]:#x} at the end of the row",
            tile=int(tile[at]),
            event=int(event[at]),
            hint=f"write neutral ({MUX_NEUTRAL:#x}) behind the last word",
        )


def _selections(
    traffic: Traffic,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Tile, first event, value and end of each time that a mux keeps its value."""
    mux = traffic.mux
    same = mux["tile"][1:] == mux["tile"][:-1]
    kept = np.ones(len(mux), np.bool_)
    kept[1:] = ~(same & (mux["value"][1:] == mux["value"][:-1]))
    mux = mux[kept]
    end = np.full(len(mux), NEVER, np.int64)
    same = mux["tile"][1:] == mux["tile"][:-1]
    end[:-1][same] = mux["event"][1:][same]
    return mux["tile"], mux["event"], mux["value"], end
