"""Carrying out rows item by item on tile memories: the slow, obvious meaning of a phase.

Every item is followed on its own from its send event to its store, as in the event model of the fabric. It
serves tests; it knows nothing of schedules and reports no conflicts (see `verify`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..machine import memory, topology
from .items import FORMAT, MUX, MUXPAIR, POINTER, SEND
from .parse import ParsedRow, parse_row


def execute(rows: Mapping[int, NDArray[np.uint32]], memories: Mapping[int, NDArray[np.uint8]]) -> None:
    """Run the rows of one phase on `memories` (physical tile -> TILE_BYTES bytes, index = address -
    TILE_BASE), in place.

    An item is read when it leaves and written when it arrives; both count on the clock of the tile whose
    memory it is. An item always arrives at a later event number than it left with (19 to 165 more), so event
    numbers order all accesses. When the phase starts all muxes are neutral and all formats 32-bit.

    Raises:
        ScheduleError: a row that does not parse, an item that arrives before any pointer or in another format
            than its tile is set to, 64-bit items that a mux alone hears.
    """
    tiles = {tile: _Tile(tile, parse_row(words, tile=tile)) for tile, words in rows.items()}
    for tile, it in tiles.items():
        it.partner = tiles.get(topology.partner(tile))
    leaving: dict[int, list[tuple[int, int, int]]] = {}
    for tile, it in tiles.items():
        for event, address, control, items in it.sends:
            for k in range(items):
                item = (tile, address + (8 if control & 4 else 4) * k, control)
                leaving.setdefault(event + k, []).append(item)
    sources = sorted({tile for items in leaving.values() for tile, _, _ in items})
    listeners = {source: [(it, *_route(source, tile)) for tile, it in tiles.items()] for source in sources}
    arriving: dict[int, list[tuple[_Tile, bytes, int]]] = {}
    last = max(leaving, default=-1)
    event = 0
    while event <= last or arriving:
        for it, data, way in arriving.pop(event, []):
            at = it.store(event, len(data), way) - memory.TILE_BASE
            memories[it.tile][at : at + len(data)] = np.frombuffer(data, np.uint8)
        for source, address, control in leaving.get(event, []):
            at = address - memory.TILE_BASE
            data = memories[source][at : at + (8 if control & 4 else 4)].tobytes()
            for listener, time, way in listeners[source]:
                if control & way:
                    for it, delay in listener.hears(source, event + time + 1, wide=control & 4 != 0):
                        needed = way if control & 4 else 0
                        arriving.setdefault(event + time + 1 + delay, []).append((it, data, needed))
        event += 1


class _Register:
    """The writes to one register of one tile, in order."""

    def __init__(self, items: NDArray[np.void], kind: int, initial: int) -> None:
        chosen = items[items["kind"] == kind]
        self.events: list[int] = chosen["event"].tolist()
        self.values: list[int] = chosen["value"].tolist()
        self.initial = initial

    def index_at(self, event: int) -> int:
        return bisect_right(self.events, event) - 1

    def value_at(self, event: int) -> int:
        """The register at an event: the latest write at or before it."""
        index = self.index_at(event)
        return self.values[index] if index >= 0 else self.initial


class _Tile:
    def __init__(self, tile: int, row: ParsedRow) -> None:
        self.tile = tile
        self.partner: _Tile | None = None
        sends = row.items[row.items["kind"] == SEND]
        self.sends: list[tuple[int, int, int, int]] = sends[["event", "value", "control", "words"]].tolist()
        self.mux = _Register(row.items, MUX, topology.MUX_NEUTRAL)
        self.pair_mux = _Register(row.items, MUXPAIR, topology.MUX_NEUTRAL)
        self.format = _Register(row.items, FORMAT, 0)
        self.pointer = _Register(row.items, POINTER, 0)
        self.used = -1
        """Index of the pointer write in use, through which `moved` bytes have arrived."""
        self.moved = 0

    def hears(self, source: int, event: int, *, wide: bool) -> list[tuple[_Tile, int]]:
        """Who stores an item that passes this tile's mux at `event`, and after how many events."""
        delay = topology.mux_to_store(self.tile)
        if self.mux.value_at(event) == source:
            if wide:
                raise ScheduleError(
                    f"the mux hears half of a 64-bit item of tile {source}",
                    where=f"tile {self.tile}, event {event}",
                )
            return [(self, delay)]
        if not wide or self.pair_mux.value_at(event) != source ^ (self.tile & 2):
            return []
        if self.partner is None or _route(source, self.tile)[0] > _route(source, self.partner.tile)[0]:
            raise ScheduleError(
                f"the pair mux listens to tile {source}, but this is the later tile of the pair or alone",
                where=f"tile {self.tile}, event {event}",
            )
        return [(self, delay + 1), (self.partner, delay + 1)]

    def store(self, event: int, size: int, way: int) -> int:
        """The address of `size` bytes that arrive at an event; the pointer then moves on by them."""
        where = f"tile {self.tile}, event {event}"
        index = self.pointer.index_at(event)
        if index < 0:
            raise ScheduleError("a word arrives before any pointer", where=where)
        held = self.format.value_at(event - 2 if way else event)
        if held != way:
            raise ScheduleError(f"an item that needs format {way} arrives in format {held}", where=where)
        if index != self.used:
            self.used, self.moved = index, 0
        self.moved += size
        return self.pointer.values[index] + self.moved - size


def _route(source: int, tile: int) -> tuple[int, int]:
    """Time to the mux and direction."""
    ids = np.asarray(source, dtype=np.int64), np.asarray(tile, dtype=np.int64)
    return int(topology.time_to_mux(*ids)), int(topology.direction(*ids))
