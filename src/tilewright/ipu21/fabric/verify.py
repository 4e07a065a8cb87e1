"""Judging rows: every way in which the rows of one phase break a rule of the fabric.

Independent of the scheduler: it reads encoded rows, their addresses, and optionally the transfers that were
asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..machine import memory, topology
from .conflict import Conflict
from .deliveries import deliveries, out_of_order
from .items import FORMAT, KIND_NAMES, MUXPAIR
from .parse import ParsedRow, parse_row
from .trace import Selection, Send, Store, TileTrace, trace


def verify(
    rows: Mapping[int, NDArray[np.uint32]],
    row_addresses: Mapping[int, int],
    transfers: NDArray[np.void] | None = None,
    destinations: NDArray[np.void] | None = None,
) -> list[Conflict]:
    """All conflicts of a phase, sorted by tile and event; empty if it is sound.

    Args:
        rows: words by physical tile.
        row_addresses: byte address of each row's first word; tiles left out are not checked for conflicts
            between instruction fetch and messages.
        transfers, destinations: what the phase must deliver, word for word, and nothing else.

    A receiver that leaves a message before its end is reported (`cut`).
    """
    found: list[Conflict] = []
    parsed: dict[int, ParsedRow] = {}
    for tile, words in rows.items():
        try:
            parsed[tile] = parse_row(words, tile=tile)
        except ScheduleError as error:
            found.append(Conflict("row", tile, 0, None, (str(error), "the form of a row")))
    tiles = trace(parsed)
    for tile, it in tiles.items():
        found += _controls(tile, it)
        found += _lanes(tile, it, tiles.get(topology.partner(tile)))
        found += _selections(tile, it, tiles)
        found += _stores(tile, it)
        found += _formats(tile, it)
        found += _elements(tile, it)
        if tile in row_addresses:
            found += _fetch(tile, it, row_addresses[tile], len(rows[tile]))
    found += _alone(tiles)
    if transfers is not None and destinations is not None:
        for tile, it in tiles.items():
            found += out_of_order(tile, it)
        found += deliveries(tiles, transfers, destinations)
    return sorted(
        found, key=lambda conflict: (conflict.tile, conflict.event, conflict.kind, conflict.parties)
    )


def _outside(address: int, size: int) -> bool:
    return address < memory.TILE_BASE or address + size > memory.TILE_END


def _controls(tile: int, it: TileTrace) -> Iterator[Conflict]:
    stop = 0
    for send in it.sends:
        for event in (send.event, send.event + 1):
            if event in it.writes:
                yield Conflict("control", tile, event, None, ("register write", str(send)))
        if send.event < stop:
            yield Conflict("control", tile, send.event, None, (str(send), "the send before it"))
        if _outside(send.address, send.size * send.items) or send.address % send.size:
            yield Conflict("address", tile, send.event, None, (str(send), "alignment or end of tile memory"))
        stop = send.event + send.items
    for event, kinds in it.writes.items():
        if len(kinds) > 1 and (FORMAT in kinds or MUXPAIR in kinds):
            one, two = (KIND_NAMES[kind] for kind in kinds[:2])
            parties = (f"write of the {one}", f"write of the {two} at the same event")
            yield Conflict("control", tile, event, None, parties)


def _lanes(tile: int, it: TileTrace, other: TileTrace | None) -> Iterator[Conflict]:
    """64-bit sends while the partner, whose lane they use too, sends."""
    sends = other.sends if other else []
    starts = [send.event for send in sends]
    for send in it.sends:
        if send.size == 4:
            continue
        for lent in sends[max(bisect_right(starts, send.event) - 1, 0) :]:
            if lent.event >= send.event + send.items:
                break
            if lent.event + lent.items > send.event:
                event = max(send.event, lent.event)
                parties = (str(send), f"{lent} of its partner, tile {topology.partner(tile)}")
                yield Conflict("lane", tile, event, None, parties)


def _selections(tile: int, it: TileTrace, tiles: dict[int, TileTrace]) -> Iterator[Conflict]:
    for selection in it.selections:
        begin, source = selection.begin, selection.source
        name = "pair mux" if selection.pair else "mux"
        listens = f"{name} on tile {source} from event {begin}"
        if selection.end is None:
            yield Conflict(
                "neutral", tile, begin, None, (listens, "the end of the row: never set to neutral")
            )
        if source not in tiles:
            yield Conflict("source", tile, begin, None, (listens, "a source without a row"))
            continue
        if selection.pair:
            yield from _pair(tile, selection, listens, tiles)
        if not selection.captures:
            yield Conflict("silent", tile, begin, None, (listens, "silence: nothing passes in that time"))
        for capture in selection.captures:
            text = f"message of {capture.send.items} words that left tile {source} at {capture.send.event}"
            if capture.send.size == 8:
                text = text.replace("words", "64-bit items")
                if not selection.pair:
                    yield Conflict("pair", tile, begin, None, (listens, f"{text}: needs the pair mux"))
            if capture.before:
                missed = f"{text}: its first {capture.before} pass before"
                yield Conflict("cut", tile, begin, None, (listens, missed))
            if capture.behind:
                missed = f"{text}: its last {capture.behind} pass after"
                closes = f"{name} closed to tile {source} at event {selection.end}"
                yield Conflict("cut", tile, selection.end or begin, None, (closes, missed))


def _pair(tile: int, selection: Selection, listens: str, tiles: dict[int, TileTrace]) -> Iterator[Conflict]:
    other = topology.partner(tile)
    ids = np.array([tile, other])
    here, there = topology.time_to_mux(np.full(2, selection.source), ids).tolist()
    if here > there:
        early = f"the other tile of the pair, {other}, which words reach first"
        yield Conflict("pair", tile, selection.begin, None, (listens, early))
    if other not in tiles:
        yield Conflict(
            "pair", tile, selection.begin, None, (listens, f"a partner, tile {other}, without a row")
        )


def _alone(tiles: dict[int, TileTrace]) -> Iterator[Conflict]:
    """Messages that only their sender hears: they do not arrive (known)."""
    for tile, it in tiles.items():
        for selection in it.selections:
            if selection.source != tile or selection.pair:
                continue
            for capture in selection.captures:
                begin = capture.send.event + capture.before
                if not _heard(tile, begin, begin + capture.items, tiles):
                    parties = (str(capture.send), "silence: no other tile hears it")
                    yield Conflict("alone", tile, selection.begin, None, parties)


def _heard(source: int, begin: int, end: int, tiles: dict[int, TileTrace]) -> bool:
    """True if another tile hears any word that `source` sends at events begin..end-1."""
    for tile, it in tiles.items():
        if tile == source:
            continue
        for selection in it.selections:
            for capture in selection.captures if selection.source == source else ():
                first = capture.send.event + capture.before
                if first < end and first + capture.items > begin:
                    return True
    return False


def _stores(tile: int, it: TileTrace) -> Iterator[Conflict]:
    last: Store | None = None
    for store in it.stores:
        text = str(store)
        if store.address is None:
            yield Conflict("pointer", tile, store.event, None, (text, "no pointer write before it"))
        elif _outside(store.address, store.bytes) or (store.way and store.address % 8):
            parties = (text, "alignment or end of tile memory")
            yield Conflict("address", tile, store.event, None, parties)
        if store.moved:
            yield Conflict("pointer", tile, store.event, None, ("pointer write", text))
        if last and last.event + last.items > store.event:
            yield Conflict("overlap", tile, store.event, None, (text, str(last)))
        done = store.event + store.items + topology.RECEIVE_GUARD
        if it.end < done:
            yield Conflict(
                "guard", tile, it.end, None, (f"row end at event {it.end}", f"{text}, done at {done}")
            )
        last = store


_SWITCH = 2
"""The format acts on items that are stored two events later (derived from published rows)."""


def _formats(tile: int, it: TileTrace) -> Iterator[Conflict]:
    """Items stored while the incoming format is another."""
    if not it.formats and not any(store.way for store in it.stores):
        return
    events = [event for event, _ in it.formats]
    values = [0, *(value for _, value in it.formats)]
    for store in it.stores:
        begin = store.event - (_SWITCH if store.way else 0)
        for at in range(bisect_right(events, begin), bisect_left(events, begin + store.items) + 1):
            if values[at] != store.way:
                event = max(begin, events[at - 1]) if at else begin
                parties = (f"incoming format {values[at]}", f"{store}, which needs format {store.way}")
                yield Conflict("format", tile, event, None, parties)
                break


def _reads(send: Send) -> range:
    return memory.effective_elements(send.address, send.address + send.size * send.items)


def _writes(store: Store) -> range:
    if store.address is None:
        return range(0)
    return memory.effective_elements(store.address, store.address + store.bytes)


def _common(one: range, other: range) -> int | None:
    """The first effective element of both ranges."""
    low, high = max(one.start, other.start), min(one.stop, other.stop)
    return low if low < high and len(one) and len(other) else None


def _elements(tile: int, it: TileTrace) -> Iterator[Conflict]:
    """Sends that read an element while a receive writes it."""
    active: list[Store] = []
    waiting = 0
    for send in it.sends:
        stop = send.event + send.items
        while waiting < len(it.stores) and it.stores[waiting].event < stop:
            active.append(it.stores[waiting])
            waiting += 1
        active = [s for s in active if s.event + s.items + topology.RECEIVE_GUARD > send.event]
        reads = _reads(send)
        for store in active:
            element = _common(reads, _writes(store))
            if element is not None:
                event = max(send.event, store.event)
                yield Conflict("element", tile, event, element, (str(send), str(store)))


def _fetch(tile: int, it: TileTrace, address: int, words: int) -> Iterator[Conflict]:
    """Messages in the element that the row is fetched from, and rows where none can be."""
    row = f"row at {address:#x}"
    end = address + 4 * words
    if address % 8:
        yield Conflict("row", tile, 0, None, (row, "alignment to 8 bytes"))
    if not (memory.is_executable(address) and memory.is_executable(end - 1)):
        yield Conflict("row", tile, 0, None, (row, "the executable part of tile memory"))
        return
    fetched = memory.effective_elements(address, end + memory.FETCH_LOOKAHEAD_BYTES)
    for send in it.sends:
        element = _common(fetched, _reads(send))
        if element is not None:
            yield Conflict("fetch", tile, send.event, element, (row, str(send)))
    for store in it.stores:
        element = _common(fetched, _writes(store))
        if element is not None:
            yield Conflict("fetch", tile, store.event, element, (row, str(store)))
