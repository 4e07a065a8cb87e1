"""What a phase delivers against what it was asked to deliver, word by word."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..machine import topology
from .conflict import Conflict
from .trace import TileTrace
from .transfers import DESTINATION, TRANSFER

_BASE = np.int64(1) << 20
_PLACED = np.dtype([("at", "<i8"), ("from", "<i8"), ("event", "<i8")])
"""One word: tile and address it goes to, tile and address it comes from (tile << 20 | address), and event."""


def _expand(
    at: NDArray[np.int64],
    origin: NDArray[np.int64],
    event: NDArray[np.int64],
    words: NDArray[np.int64],
    per_item: NDArray[np.int64],
) -> NDArray[np.void]:
    """One _PLACED record per word of runs, sorted by place. An item of several words has one event."""
    starts = np.concatenate([[0], np.cumsum(words)])
    step = np.arange(starts[-1]) - np.repeat(starts[:-1], words)
    result = np.zeros(int(starts[-1]), dtype=_PLACED)
    result["at"] = np.repeat(at, words) + 4 * step
    result["from"] = np.repeat(origin, words) + 4 * step
    result["event"] = np.repeat(event, words) + step // np.repeat(per_item, words)
    return result[np.argsort(result["at"], kind="stable")]


def deliveries(
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
            store.bytes // 4,
            2 if store.way else 1,
        )
        for tile, it in tiles.items()
        for store in it.stores
        if store.address is not None
    ]
    actual = _expand(*np.array(runs, dtype=np.int64).reshape(-1, 5).T)
    wanted_runs = [
        (
            int(destination["tile"]) * (1 << 20) + int(destination["address"]),
            int(transfer["source"]) * (1 << 20) + int(transfer["address"]),
            0,
            int(transfer["words"]),
            1,
        )
        for transfer in transfers
        for destination in destinations[
            int(transfer["first"]) : int(transfer["first"]) + int(transfer["count"])
        ]
    ]
    wanted = _expand(*np.array(wanted_runs, dtype=np.int64).reshape(-1, 5).T)
    place = np.searchsorted(actual["at"], wanted["at"])
    safe = np.minimum(place, len(actual) - 1)
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
    twice = np.zeros(len(actual), dtype=bool)
    twice[1:] = actual["at"][1:] == actual["at"][:-1]
    for run in _runs(actual[extra]):
        yield _delivery(
            run, f"{len(run)} words arriving", "no transfer asking for them", int(run["event"][0])
        )
    for run in _runs(actual[twice]):
        yield _delivery(
            run, f"{len(run)} words arriving", "words that arrived there before", int(run["event"][0])
        )


def out_of_order(tile: int, it: TileTrace) -> Iterator[Conflict]:
    """Sends that read what the tile receives in the same phase before it is there."""
    for send in it.sends:
        stop = send.address + send.size * send.items
        for store in it.stores:
            if store.address is None or store.address >= stop or store.address + store.bytes <= send.address:
                continue
            step = store.bytes // store.items
            low, high = max(send.address, store.address), min(stop, store.address + store.bytes) - 4
            for at in (low, high):
                read = send.event + (at - send.address) // send.size
                stored = store.event + (at - store.address) // step
                if read <= stored + topology.RECEIVE_GUARD:
                    yield Conflict("order", tile, read, None, (str(send), f"{store}, which it forwards"))
                    break


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
        if send.address <= address < send.address + send.size * send.items:
            route = int(topology.time_to_mux(np.asarray(source), np.asarray(tile)))
            passed = (address - send.address) // send.size
            return send.event + passed + route + 1 + topology.mux_to_store(tile)
    return 0
