"""Carrying out rows word by word on tile memories: the slow, obvious meaning of a phase.

Every word is followed on its own from its send event to its store, as in the event model of the fabric. It
serves tests; it knows nothing of schedules and reports no conflicts (see `verify`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..machine import memory, topology
from .items import MUX, POINTER, SEND
from .parse import parse_row


def execute(rows: Mapping[int, NDArray[np.uint32]], memories: Mapping[int, NDArray[np.uint8]]) -> None:
    """Run the rows of one phase on `memories` (physical tile -> TILE_BYTES bytes, index = address -
    TILE_BASE), in place.

    A word is read when it leaves and written when it arrives; both count on the clock of the tile whose
    memory it is. A word always arrives at a later event number than it left with (19 to 165
    more), so event numbers order all accesses. 32-bit messages only.

    Raises:
        ScheduleError: a row that does not parse, a 64-bit item, a word that arrives before any pointer.
    """
    parsed = {tile: parse_row(words, tile=tile).items for tile, words in rows.items()}
    leaving: dict[int, list[tuple[int, int, int]]] = {}
    for tile, items in parsed.items():
        for event, kind, control, words, value in items.tolist():
            if kind == SEND:
                if control & 4:
                    raise ScheduleError(
                        "64-bit messages are not executed", where=f"tile {tile}, event {event}"
                    )
                for k in range(words):
                    leaving.setdefault(event + k, []).append((tile, value + 4 * k, control))
    muxes = {tile: _writes(items, MUX) for tile, items in parsed.items()}
    pointers = {tile: _writes(items, POINTER) for tile, items in parsed.items()}
    routes = {
        source: {
            tile: (
                int(topology.time_to_mux(*_pair(source, tile))),
                int(topology.direction(*_pair(source, tile))),
            )
            for tile in parsed
        }
        for source in {tile for senders in leaving.values() for tile, _, _ in senders}
    }
    arriving: dict[int, list[tuple[int, int]]] = {}
    last = max(leaving, default=-1)
    event = 0
    while event <= last or arriving:
        for tile, word in arriving.pop(event, []):
            address = pointers[tile].address_at(event, tile)
            at = address - memory.TILE_BASE
            memories[tile][at : at + 4].view("<u4")[0] = word
        for source, address, control in leaving.get(event, []):
            at = address - memory.TILE_BASE
            word = int(memories[source][at : at + 4].view("<u4")[0])
            for tile in parsed:
                time, way = routes[source][tile]
                if control & way and muxes[tile].value_at(event + time + 1) == source:
                    arriving.setdefault(event + time + 1 + topology.mux_to_store(tile), []).append(
                        (tile, word)
                    )
        event += 1


class _Writes:
    """The writes to one register of one tile, in order."""

    def __init__(self, events: list[int], values: list[int]) -> None:
        self.events = np.array(events, dtype=np.int64)
        self.values = values
        self.arrived = 0
        self.current = -1

    def index_at(self, event: int) -> int:
        return int(np.searchsorted(self.events, event, side="right")) - 1

    def value_at(self, event: int) -> int:
        """The register at an event: the latest write at or before it."""
        index = self.index_at(event)
        return self.values[index] if index >= 0 else topology.MUX_NEUTRAL

    def address_at(self, event: int, tile: int) -> int:
        """The pointer for a word that arrives at an event; it then moves on by one word."""
        index = self.index_at(event)
        if index < 0:
            raise ScheduleError("a word arrives before any pointer", where=f"tile {tile}, event {event}")
        if index != self.current:
            self.current, self.arrived = index, 0
        self.arrived += 1
        return self.values[index] + 4 * (self.arrived - 1)


def _writes(items: NDArray[np.void], kind: int) -> _Writes:
    chosen = items[items["kind"] == kind]
    return _Writes(chosen["event"].tolist(), chosen["value"].tolist())


def _pair(source: int, tile: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.asarray(source, dtype=np.int64), np.asarray(tile, dtype=np.int64)
