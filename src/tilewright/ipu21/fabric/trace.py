"""What the rows of a phase do, followed from their words: sends, what each mux lets through, where it goes.

Used by the verifier. Nothing here comes from a scheduler: only words, topology and the event model.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..machine import topology
from .items import FORMAT, MUX, MUXPAIR, POINTER, SEND
from .parse import ParsedRow


class Send(NamedTuple):
    """One message as it leaves: first event, items, byte address, direction bits."""

    event: int
    items: int
    address: int
    control: int

    @property
    def size(self) -> int:
        """Bytes per item."""
        return 8 if self.control & 4 else 4

    def __str__(self) -> str:
        what = "64-bit items" if self.control & 4 else "words"
        return f"send of {self.items} {what} from {self.address:#x} at event {self.event}"


class Capture(NamedTuple):
    """Items of one message that pass a mux in one selection: the first at mux event `event`.

    `before` and `behind` count the message's items that come too early for the selection and too late.
    """

    event: int
    items: int
    source: int
    send: Send
    before: int
    behind: int


class Store(NamedTuple):
    """Items stored one behind the other: first store event, items, byte address (None: no pointer yet), and
    the tile and address that they come from. `moved` tells that a pointer write in mid-message began it;
    `way` is the format that 64-bit items need, 0 for words."""

    event: int
    items: int
    address: int | None
    source: int
    source_address: int
    moved: bool
    way: int

    @property
    def bytes(self) -> int:
        return self.items * (8 if self.way else 4)

    def __str__(self) -> str:
        where = "nowhere" if self.address is None else f"{self.address:#x}"
        what = "64-bit items" if self.way else "words"
        return f"receive of {self.items} {what} from tile {self.source} to {where} at event {self.event}"


class Selection(NamedTuple):
    """The mux, or the pair's mux, listens to `source` from event `begin` until `end` (None: never closed)."""

    begin: int
    end: int | None
    source: int
    captures: tuple[Capture, ...]
    pair: bool


@dataclass
class TileTrace:
    """One tile's part of a phase."""

    end: int
    sends: list[Send] = field(default_factory=list)
    writes: dict[int, list[int]] = field(default_factory=dict)
    """Kinds of the register writes at each event that has any."""
    muxes: list[tuple[int, int]] = field(default_factory=list)
    pair_muxes: list[tuple[int, int]] = field(default_factory=list)
    pointers: list[tuple[int, int]] = field(default_factory=list)
    formats: list[tuple[int, int]] = field(default_factory=list)
    selections: list[Selection] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)


def trace(parsed: dict[int, ParsedRow]) -> dict[int, TileTrace]:
    """Follow all rows of a phase; physical tile -> its trace.

    At the start every mux is neutral and every format 32-bit. 64-bit items that the pair mux of one tile
    hears are stored by both tiles of the pair, if both have a row.
    """
    tiles = {tile: _local(row) for tile, row in parsed.items()}
    starts = {tile: [send.event for send in it.sends] for tile, it in tiles.items()}
    for tile, it in tiles.items():
        _select(tile, it, it.muxes, tiles, starts)
        if it.pair_muxes:
            _select(tile, it, it.pair_muxes, tiles, starts, pair=True)
    for tile, it in tiles.items():
        _store(tile, it, tiles.get(topology.partner(tile)))
    return tiles


def _local(row: ParsedRow) -> TileTrace:
    result = TileTrace(row.end)
    registers = {
        MUX: result.muxes,
        MUXPAIR: result.pair_muxes,
        POINTER: result.pointers,
        FORMAT: result.formats,
    }
    for event, kind, control, items, value in row.items.tolist():
        if kind == SEND:
            result.sends.append(Send(event, items, value, control))
            continue
        result.writes.setdefault(event, []).append(kind)
        history = registers[kind]
        if kind == POINTER or not (history and history[-1][1] == value):
            history.append((event, value))
    return result


def _select(
    tile: int,
    it: TileTrace,
    muxes: list[tuple[int, int]],
    tiles: dict[int, TileTrace],
    starts: dict[int, list[int]],
    *,
    pair: bool = False,
) -> None:
    values = np.array([value for _, value in muxes], dtype=np.int64)
    sources = np.where(values == topology.MUX_NEUTRAL, values, values ^ (tile & 2 if pair else 0))
    ids = np.full(len(sources), tile, dtype=np.int64)
    routes = topology.time_to_mux(sources, ids).tolist()
    ways = topology.direction(sources, ids).tolist()
    for i, source in enumerate(sources.tolist()):
        if source == topology.MUX_NEUTRAL:
            continue
        begin = muxes[i][0]
        end = muxes[i + 1][0] if i + 1 < len(muxes) else None
        captures: list[Capture] = []
        if source in tiles:
            shift = routes[i] + 1
            sends = tiles[source].sends
            k = max(bisect_right(starts[source], begin - shift) - 1, 0)
            stop = len(sends) if end is None else bisect_left(starts[source], end - shift)
            for send in sends[k:stop]:
                first, last = send.event + shift, send.event + shift + send.items
                low, high = max(first, begin), last if end is None else min(last, end)
                heard = send.control & ways[i] and not (pair and send.size == 4)
                if heard and low < high:
                    captures.append(Capture(low, high - low, source, send, low - first, last - high))
        it.selections.append(Selection(begin, end, source, tuple(captures), pair))


def _arrivals(tile: int, it: TileTrace, other: TileTrace | None) -> list[tuple[int, Capture, int]]:
    """(store event, capture, format needed) of everything that a tile stores."""
    delay = topology.mux_to_store(tile)
    result = []
    for of, trace_of in ((tile, it), (topology.partner(tile), other)):
        for selection in trace_of.selections if trace_of else ():
            if selection.pair or of == tile:
                for capture in selection.captures:
                    way = 0
                    if selection.pair:
                        way = int(topology.direction(np.asarray(capture.source), np.asarray(of)))
                    # The later tile of a pair sets the time: one event after the earlier one.
                    result.append((capture.event + delay + (way != 0), capture, way))
    return sorted(result, key=lambda arrival: arrival[0])


def _store(tile: int, it: TileTrace, other: TileTrace | None) -> None:
    next_write = 0
    address: int | None = None
    for event, capture, way in _arrivals(tile, it, other):
        size = 8 if way else 4
        left = capture.items
        source_address = capture.send.address + size * capture.before
        moved = False
        while left:
            while next_write < len(it.pointers) and it.pointers[next_write][0] <= event:
                written = it.pointers[next_write]
                moved = moved and written[0] == event and written[1] != address
                address = written[1]
                next_write += 1
            items = left
            if next_write < len(it.pointers):
                items = min(left, it.pointers[next_write][0] - event)
            it.stores.append(Store(event, items, address, capture.source, source_address, moved, way))
            address = None if address is None else address + size * items
            event, left, source_address = event + items, left - items, source_address + size * items
            moved = True
