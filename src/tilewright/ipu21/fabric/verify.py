"""Judging rows: every way in which the rows of one phase break a rule of the fabric.

Independent of the scheduler: it reads encoded rows, their addresses, and optionally the transfers that were
asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..machine import memory, topology
from .parse import ParsedRow, parse_row
from .trace import Store, TileTrace, trace
from .transfers import DESTINATION, TRANSFER


@dataclass(frozen=True)
class Conflict:
    """One broken rule.

    Attributes:
        kind: `row`, `fetch`, `element`, `control`, `cut`, `silent`, `source`, `neutral`, `pointer`,
            `address`, `guard` or `delivery`.
        tile: physical tile at which it happens.
        event: event of that tile's clock.
        element: the effective element concerned, or None.
        parties: the two things in conflict, in words.
    """

    kind: str
    tile: int
    event: int
    element: int | None
    parties: tuple[str, str]

    def __str__(self) -> str:
        element = "" if self.element is None else f", element {self.element}"
        return f"tile {self.tile}, event {self.event}{element}: {self.parties[0]} against {self.parties[1]}"


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

    Limits: 32-bit messages. A receiver that leaves a message before its end is reported (`cut`).
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
        found += _selections(tile, it, tiles)
        found += _stores(tile, it)
        found += _elements(tile, it)
        if tile in row_addresses:
            found += _fetch(tile, it, row_addresses[tile], len(rows[tile]))
    if transfers is not None and destinations is not None:
        found += _deliveries(tiles, transfers, destinations)
    return sorted(
        found, key=lambda conflict: (conflict.tile, conflict.event, conflict.kind, conflict.parties)
    )


def _send_text(event: int, words: int, address: int) -> str:
    return f"send of {words} words from {address:#x} at event {event}"


def _store_text(store: Store) -> str:
    where = "nowhere" if store.address is None else f"{store.address:#x}"
    return f"receive of {store.words} words from tile {store.source} to {where} at event {store.event}"


def _outside(address: int, words: int) -> bool:
    return address < memory.TILE_BASE or address + 4 * words > memory.TILE_END


def _controls(tile: int, it: TileTrace) -> Iterator[Conflict]:
    stop = 0
    for send in it.sends:
        text = _send_text(send.event, send.words, send.address)
        for event in (send.event, send.event + 1):
            if event in it.writes:
                yield Conflict("control", tile, event, None, ("mux or pointer write", text))
        if send.event < stop:
            yield Conflict("control", tile, send.event, None, (text, "the send before it"))
        if _outside(send.address, send.words):
            yield Conflict("address", tile, send.event, None, (text, "the end of tile memory"))
        stop = send.event + send.words


def _selections(tile: int, it: TileTrace, tiles: dict[int, TileTrace]) -> Iterator[Conflict]:
    for selection in it.selections:
        begin, source = selection.begin, selection.source
        listens = f"mux on tile {source} from event {begin}"
        if selection.end is None:
            yield Conflict(
                "neutral", tile, begin, None, (listens, "the end of the row: never set to neutral")
            )
        if source not in tiles:
            yield Conflict("source", tile, begin, None, (listens, "a source without a row"))
            continue
        if not selection.captures:
            yield Conflict("silent", tile, begin, None, (listens, "silence: no word passes in that time"))
        for capture in selection.captures:
            text = f"message of {capture.send.words} words that left tile {source} at {capture.send.event}"
            if capture.before:
                missed = f"{text}: its first {capture.before} words pass before"
                yield Conflict("cut", tile, begin, None, (listens, missed))
            if capture.behind:
                missed = f"{text}: its last {capture.behind} words pass after"
                closes = f"mux closed to tile {source} at event {selection.end}"
                yield Conflict("cut", tile, selection.end or begin, None, (closes, missed))


def _stores(tile: int, it: TileTrace) -> Iterator[Conflict]:
    for store in it.stores:
        text = _store_text(store)
        if store.address is None:
            yield Conflict("pointer", tile, store.event, None, (text, "no pointer write before it"))
        elif _outside(store.address, store.words):
            yield Conflict("address", tile, store.event, None, (text, "the end of tile memory"))
        if store.moved:
            yield Conflict("pointer", tile, store.event, None, ("pointer write", text))
        done = store.event + store.words + topology.RECEIVE_GUARD
        if it.end < done:
            yield Conflict(
                "guard", tile, it.end, None, (f"row end at event {it.end}", f"{text}, done at {done}")
            )


def _touched(address: int | None, words: int) -> range:
    if address is None:
        return range(0)
    return memory.effective_elements(address, address + 4 * words)


def _common(one: range, other: range) -> int | None:
    """The first effective element of both ranges."""
    low, high = max(one.start, other.start), min(one.stop, other.stop)
    return low if low < high and len(one) and len(other) else None


def _elements(tile: int, it: TileTrace) -> Iterator[Conflict]:
    """Sends that read an element while a receive writes it."""
    active: list[Store] = []
    waiting = 0
    for send in it.sends:
        stop = send.event + send.words
        while waiting < len(it.stores) and it.stores[waiting].event < stop:
            active.append(it.stores[waiting])
            waiting += 1
        active = [s for s in active if s.event + s.words + topology.RECEIVE_GUARD > send.event]
        reads = _touched(send.address, send.words)
        for store in active:
            element = _common(reads, _touched(store.address, store.words))
            if element is not None and store.event < stop:
                text = _send_text(send.event, send.words, send.address)
                event = max(send.event, store.event)
                yield Conflict("element", tile, event, element, (text, _store_text(store)))


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
        element = _common(fetched, _touched(send.address, send.words))
        if element is not None:
            text = _send_text(send.event, send.words, send.address)
            yield Conflict("fetch", tile, send.event, element, (row, text))
    for store in it.stores:
        element = _common(fetched, _touched(store.address, store.words))
        if element is not None:
            yield Conflict("fetch", tile, store.event, element, (row, _store_text(store)))


_BASE = np.int64(1) << 20
_PLACED = np.dtype([("at", "<i8"), ("from", "<i8"), ("event", "<i8")])
"""One word: tile and address it goes to, tile and address it comes from (tile << 20 | address), and event."""


def _expand(
    at: NDArray[np.int64], origin: NDArray[np.int64], event: NDArray[np.int64], words: NDArray[np.int64]
) -> NDArray[np.void]:
    """One _PLACED record per word of runs, sorted by place."""
    starts = np.concatenate([[0], np.cumsum(words)])
    step = np.arange(starts[-1]) - np.repeat(starts[:-1], words)
    result = np.zeros(int(starts[-1]), dtype=_PLACED)
    result["at"] = np.repeat(at, words) + 4 * step
    result["from"] = np.repeat(origin, words) + 4 * step
    result["event"] = np.repeat(event, words) + step
    return result[np.argsort(result["at"], kind="stable")]


def _deliveries(
    tiles: dict[int, TileTrace], transfers: NDArray[np.void], destinations: NDArray[np.void]
) -> Iterator[Conflict]:
    """Words that do not arrive, arrive from elsewhere, or were not asked for; one conflict per run."""
    if transfers.dtype != TRANSFER or destinations.dtype != DESTINATION:
        raise ScheduleError("transfers and destinations must be arrays of TRANSFER and DESTINATION records")
    runs = [
        (
            tile * (1 << 20) + store.address,
            store.source * (1 << 20) + store.source_address,
            store.event,
            store.words,
        )
        for tile, it in tiles.items()
        for store in it.stores
        if store.address is not None
    ]
    actual = _expand(*np.array(runs, dtype=np.int64).reshape(-1, 4).T)
    wanted_runs = [
        (
            int(destination["tile"]) * (1 << 20) + int(destination["address"]),
            int(transfer["source"]) * (1 << 20) + int(transfer["address"]),
            0,
            int(transfer["words"]),
        )
        for transfer in transfers
        for destination in destinations[
            int(transfer["first"]) : int(transfer["first"]) + int(transfer["count"])
        ]
    ]
    wanted = _expand(*np.array(wanted_runs, dtype=np.int64).reshape(-1, 4).T)
    place = np.searchsorted(actual["at"], wanted["at"])
    safe = np.minimum(place, max(len(actual) - 1, 0))
    arrived = actual["at"][safe] == wanted["at"] if len(actual) else np.zeros(len(wanted), dtype=bool)
    for run in _runs(wanted[~arrived]):
        yield _delivery(run, f"{len(run)} words asked for", "no word arriving", _sent_event(tiles, run[0]))
    if len(actual):
        wrong = arrived & (actual["from"][safe] != wanted["from"])
        for run in _runs(wanted[wrong]):
            got = actual[np.searchsorted(actual["at"], run["at"][0])]
            asked = f"{len(run)} words asked for"
            yield _delivery(run, asked, f"words from {_origin(got['from'])} arriving", int(got["event"]))
    extra = np.ones(len(actual), dtype=bool)
    if len(wanted):
        back = np.minimum(np.searchsorted(wanted["at"], actual["at"]), len(wanted) - 1)
        extra = wanted["at"][back] != actual["at"]
    twice = np.concatenate([[False], actual["at"][1:] == actual["at"][:-1]])
    for run in _runs(actual[extra]):
        yield _delivery(
            run, f"{len(run)} words arriving", "no transfer asking for them", int(run["event"][0])
        )
    for run in _runs(actual[twice]):
        yield _delivery(
            run, f"{len(run)} words arriving", "words that arrived there before", int(run["event"][0])
        )


def _origin(value: np.int64) -> str:
    return f"tile {int(value >> 20)} address {int(value & (_BASE - 1)):#x}"


def _delivery(run: NDArray[np.void], one: str, other: str, event: int) -> Conflict:
    to = int(run["at"][0])
    text = f"{one} from {_origin(run['from'][0])} to {to & (1 << 20) - 1:#x}"
    return Conflict("delivery", to >> 20, event, None, (text, other))


def _runs(words: NDArray[np.void]) -> list[NDArray[np.void]]:
    """Cut sorted words where place or origin is not continued."""
    if not len(words):
        return []
    jump = (np.diff(words["at"]) != 4) | (np.diff(words["from"]) != 4)
    return np.split(words, np.flatnonzero(jump) + 1)


def _sent_event(tiles: dict[int, TileTrace], word: NDArray[np.void]) -> int:
    """Event at which the receiver would store a word, if its source sends it; otherwise 0."""
    tile, source, address = int(word["at"] >> 20), int(word["from"] >> 20), int(word["from"] & (_BASE - 1))
    for send in tiles[source].sends if source in tiles else ():
        if send.address <= address < send.address + 4 * send.words:
            route = int(topology.time_to_mux(np.asarray(source), np.asarray(tile)))
            return send.event + (address - send.address) // 4 + route + 1 + topology.mux_to_store(tile)
    return 0
