"""What the rows of a phase do, followed from their words: sends, what each mux lets through, where it goes.

Used by the verifier. Nothing here comes from a scheduler: only words, topology and the event model.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..machine import topology
from .items import MUX, POINTER, SEND
from .parse import ParsedRow


class Send(NamedTuple):
    """One message as it leaves: first event, words, byte address, direction bits."""

    event: int
    words: int
    address: int
    control: int


class Capture(NamedTuple):
    """Words of one message that pass a mux in one selection: the first at mux event `event`.

    `before` and `behind` count the message's words that come too early for the selection and too late.
    """

    event: int
    words: int
    source: int
    send: Send
    before: int
    behind: int


class Store(NamedTuple):
    """Words stored one behind the other: first store event, words, byte address (None: no pointer yet), and
    the tile and address that they come from. `moved` tells that a pointer write in mid-message began it."""

    event: int
    words: int
    address: int | None
    source: int
    source_address: int
    moved: bool


class Selection(NamedTuple):
    """The mux listens to `source` from event `begin` until `end` (None: never closed)."""

    begin: int
    end: int | None
    source: int
    captures: tuple[Capture, ...]


@dataclass
class TileTrace:
    """One tile's part of a phase."""

    end: int
    sends: list[Send] = field(default_factory=list)
    writes: set[int] = field(default_factory=set)
    """Events with a mux or pointer write."""
    muxes: list[tuple[int, int]] = field(default_factory=list)
    pointers: list[tuple[int, int]] = field(default_factory=list)
    selections: list[Selection] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)


def trace(parsed: dict[int, ParsedRow]) -> dict[int, TileTrace]:
    """Follow all rows of a phase; physical tile -> its trace."""
    tiles = {tile: _local(row) for tile, row in parsed.items()}
    starts = {tile: [send.event for send in it.sends] for tile, it in tiles.items()}
    for tile, it in tiles.items():
        _select(tile, it, tiles, starts)
        _store(tile, it)
    return tiles


def _local(row: ParsedRow) -> TileTrace:
    result = TileTrace(row.end)
    for event, kind, control, words, value in row.items.tolist():
        if kind == SEND:
            result.sends.append(Send(event, words, value, control))
            continue
        result.writes.add(event)
        if kind == MUX and not (result.muxes and result.muxes[-1][1] == value):
            result.muxes.append((event, value))
        elif kind == POINTER:
            result.pointers.append((event, value))
    return result


def _select(tile: int, it: TileTrace, tiles: dict[int, TileTrace], starts: dict[int, list[int]]) -> None:
    sources = np.array([value for _, value in it.muxes], dtype=np.int64)
    ids = np.full(len(sources), tile, dtype=np.int64)
    routes = topology.time_to_mux(sources, ids).tolist()
    ways = topology.direction(sources, ids).tolist()
    for i, (begin, source) in enumerate(it.muxes):
        if source == topology.MUX_NEUTRAL:
            continue
        end = it.muxes[i + 1][0] if i + 1 < len(it.muxes) else None
        captures: list[Capture] = []
        if source in tiles:
            shift = routes[i] + 1
            sends = tiles[source].sends
            k = max(bisect_right(starts[source], begin - shift) - 1, 0)
            stop = len(sends) if end is None else bisect_left(starts[source], end - shift)
            for send in sends[k:stop]:
                first, last = send.event + shift, send.event + shift + send.words
                low, high = max(first, begin), last if end is None else min(last, end)
                if send.control & ways[i] and low < high:
                    captures.append(Capture(low, high - low, source, send, low - first, last - high))
        it.selections.append(Selection(begin, end, source, tuple(captures)))


def _store(tile: int, it: TileTrace) -> None:
    delay = topology.mux_to_store(tile)
    next_write = 0
    address: int | None = None
    for selection in it.selections:
        for capture in selection.captures:
            event, left = capture.event + delay, capture.words
            source_address = capture.send.address + 4 * capture.before
            moved = False
            while left:
                while next_write < len(it.pointers) and it.pointers[next_write][0] <= event:
                    written = it.pointers[next_write]
                    moved = moved and written[0] == event and written[1] != address
                    address = written[1]
                    next_write += 1
                words = left
                if next_write < len(it.pointers):
                    words = min(left, it.pointers[next_write][0] - event)
                it.stores.append(Store(event, words, address, capture.source, source_address, moved))
                address = None if address is None else address + 4 * words
                event, left, source_address = event + words, left - words, source_address + 4 * words
                moved = True
