"""What a phase must not do: rules whose breach faults or corrupts on the machine, checked phase by phase.

The windows are the conservative ones of the hardware-tested schedulers: a send reads from its first to its
last event, a receive owns its memory from its first store to `RECEIVE_GUARD` events after its last (known).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.ipu21.machine.memory import (
    ELEMENT_BYTES,
    FETCH_LOOKAHEAD_BYTES,
    INTERLEAVED_ELEMENT_BYTES,
    REGION1_BASE,
    TILE_BASE,
    TILE_END,
)
from tilewright.ipu21.machine.topology import RECEIVE_GUARD

from .listening import check_listening
from .traffic import PAIRED, Traffic, key

_FIRST_INTERLEAVED = REGION1_BASE // ELEMENT_BYTES


@dataclass(frozen=True)
class PhaseChecks:
    """Which rules are enforced; whether addresses lie in memory always is.

    windows: words that arrive after the row's end. unscheduled: words that reach a tile which sits the phase
    out. conflicts: memory elements. workers: workers that run while words arrive. data_count:
    INCOMING_DCOUNT 1 in every phase with traffic (its role is open). loopback: words that only their own
    sender hears, which does not work (known). listening: muxes and sends that do not mean each other (see
    `listening`), which the machine allows. unwritten: words that leave although nobody has written them,
    neither the program nor what arrived in the phase; tiles must watch for it (`Checks.poison`).
    """

    windows: bool = True
    unscheduled: bool = True
    conflicts: bool = True
    workers: bool = True
    data_count: bool = True
    loopback: bool = True
    listening: bool = False
    unwritten: bool = False


def elements(address: NDArray[np.int64]) -> NDArray[np.int64]:
    """`memory.effective_element` of every address; grows with the address."""
    low = address // ELEMENT_BYTES
    high = _FIRST_INTERLEAVED + (address - REGION1_BASE) // INTERLEAVED_ELEMENT_BYTES
    return np.where(address < REGION1_BASE, low, high)


def _element_start(element: NDArray[np.int64]) -> NDArray[np.int64]:
    low = element * ELEMENT_BYTES
    high = REGION1_BASE + (element - _FIRST_INTERLEAVED) * INTERLEAVED_ELEMENT_BYTES
    return np.where(element < _FIRST_INTERLEAVED, low, high)


def check_phase(traffic: Traffic, pieces: NDArray[np.void], checks: PhaseChecks) -> None:
    """Raises SimulationError for the first rule that the phase breaks."""
    _in_memory(traffic, pieces)
    sending = traffic.party[traffic.runs["source"]]
    receiving = traffic.party[pieces["destination"]]
    parties = traffic.parties
    active = np.array([p.active for p in parties], np.bool_)
    if checks.unscheduled:
        _unscheduled(pieces, receiving, active)
    if checks.windows:
        close = np.array([p.close if p.active else 1 << 62 for p in parties], np.int64) - traffic.release
        _windows(pieces, receiving, close)
    if checks.loopback:
        _heard_by_others(traffic, pieces)
    if checks.listening:
        check_listening(traffic, pieces)
    if checks.workers:
        _workers(pieces, receiving, np.array([p.workers for p in parties], np.int64))
    if checks.data_count:
        counts = np.array([p.data_count if p.active else 1 for p in parties], np.int64)
        for tiles, index in ((traffic.runs["source"], sending), (pieces["destination"], receiving)):
            _data_count(tiles, counts[index])
    if checks.conflicts:
        code = np.array([p.code for p in parties], np.int64).reshape(-1, 2)
        _fetch_against_send(traffic.runs, code[sending])
        _fetch_against_receive(pieces, code[receiving])
        _send_against_receive(traffic.runs, pieces)


def _in_memory(traffic: Traffic, pieces: NDArray[np.void]) -> None:
    runs = traffic.runs
    size = np.where(runs["control"] & PAIRED, 8, 4)
    end = runs["address"] + runs["items"] * size
    bad = (runs["address"] < TILE_BASE) | (end > TILE_END) | (runs["address"] % size != 0)
    if bad.any():
        run = runs[int(np.argmax(bad))]
        raise SimulationError(
            f"a send of {run['items']} items reads at {run['address']:#x}: "
            + ("not aligned" if run["address"] % 4 else "outside tile memory or not aligned"),
            tile=int(run["source"]),
            address=int(run["pc"]),
            event=int(run["event"]),
            hint="OUTGOING_BASE is added to the address in the row",
        )
    end = pieces["write_address"] + pieces["items"] * pieces["item_bytes"]
    begin = pieces["write_address"]
    bad = (begin < TILE_BASE) | (end > TILE_END) | (begin % pieces["item_bytes"] != 0)
    if bad.any():
        piece = pieces[int(np.argmax(bad))]
        raise SimulationError(
            f"{piece['items']} items from tile {piece['source']} arrive with the pointer at "
            f"{piece['write_address']:#x}: outside tile memory or not aligned",
            tile=int(piece["destination"]),
            event=int(piece["write_event"]),
            hint="INCOMING_BASE is added to the pointer in the row",
        )


def _unscheduled(pieces: NDArray[np.void], receiving: NDArray[np.int64], active: NDArray[np.bool_]) -> None:
    bad = ~active[receiving] if len(pieces) else np.zeros(0, np.bool_)
    if bad.any():
        piece = pieces[int(np.argmax(bad))]
        raise SimulationError(
            f"{piece['items']} items from tile {piece['source']} arrive at {piece['write_address']:#x} on a "
            "tile that sits the phase out, because its INCOMING_MUX still selects that tile",
            tile=int(piece["destination"]),
            event=int(piece["write_event"]),
            hint="leave INCOMING_MUX neutral (0x640)",
        )


def _heard_by_others(traffic: Traffic, pieces: NDArray[np.void]) -> None:
    """A tile hears its own words only as one of several receivers."""
    is_own = pieces["source"] == pieces["destination"]
    if not is_own.any():
        return
    own, others = pieces[is_own], pieces[~is_own]
    begin = key(others["run"], others["read_event"])
    order = np.argsort(begin)
    begin = begin[order]
    end = np.maximum.accumulate(key(others["run"], others["read_event"] + others["items"])[order])
    last = np.searchsorted(begin, key(own["run"], own["read_event"] + own["items"]), "left") - 1
    reached = end[np.maximum(last, 0)] if len(end) else np.zeros(len(own), np.int64)
    alone = (last < 0) | (reached <= key(own["run"], own["read_event"]))
    if alone.any():
        piece = own[int(np.argmax(alone))]
        run = traffic.runs[piece["run"]]
        raise SimulationError(
            f"{piece['items']} items are heard by nobody but the tile that sends them",
            tile=int(piece["source"]),
            address=int(run["pc"]),
            event=int(piece["read_event"]),
            hint="copy within the tile; a tile hears itself only beside another receiver",
        )


def _windows(pieces: NDArray[np.void], receiving: NDArray[np.int64], close: NDArray[np.int64]) -> None:
    needed = pieces["write_event"] + pieces["items"] + RECEIVE_GUARD
    late = needed > close[receiving] if len(pieces) else np.zeros(0, np.bool_)
    if late.any():
        at = int(np.argmax(late))
        piece, end = pieces[at], int(close[receiving[at]])
        raise SimulationError(
            f"the row ends at event {end}, but words from tile {piece['source']} are stored up to event "
            f"{piece['write_event'] + piece['items'] - 1}",
            tile=int(piece["destination"]),
            event=end,
            hint=f"a receiver's row must last until event {needed[at]}: the last store + 1 + {RECEIVE_GUARD}",
        )


def _workers(pieces: NDArray[np.void], receiving: NDArray[np.int64], workers: NDArray[np.int64]) -> None:
    bad = workers[receiving] > 0 if len(pieces) else np.zeros(0, np.bool_)
    if bad.any():
        at = int(np.argmax(bad))
        raise SimulationError(
            f"words from tile {pieces['source'][at]} arrive while {workers[receiving[at]]} workers run",
            tile=int(pieces["destination"][at]),
            event=int(pieces["write_event"][at]),
            hint="wait for the workers with `sync 2` before `sync 3`",
        )


def _data_count(tiles: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    bad = counts != 1
    if bad.any():
        at = int(np.argmax(bad))
        raise SimulationError(
            f"a row with traffic starts with INCOMING_DCOUNT {counts[at]}",
            tile=int(tiles[at]),
            hint="every proven program sets it to 1 before the `sync 3` of a phase",
        )


def _touches_code(
    begin: NDArray[np.int64], end: NDArray[np.int64], code: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Do bytes begin..end-1 share an effective element with the row, look-ahead included?"""
    low, high = elements(code[:, 0]), elements(code[:, 1] + FETCH_LOOKAHEAD_BYTES - 1)
    fetched = code[:, 1] > code[:, 0]
    result: NDArray[np.bool_] = fetched & (elements(begin) <= high) & (elements(end - 1) >= low)
    return result


def _fetch_against_send(runs: NDArray[np.void], code: NDArray[np.int64]) -> None:
    size = np.where(runs["control"] & PAIRED, 8, 4)
    clash = _touches_code(runs["address"], runs["address"] + runs["items"] * size, code)
    if clash.any():
        at = int(np.argmax(clash))
        run = runs[at]
        raise SimulationError(
            f"a send of {run['items']} items from {run['address']:#x} reads the memory element from which "
            f"the row ({code[at, 0]:#x}..{code[at, 1]:#x}) is fetched",
            tile=int(run["source"]),
            address=int(run["pc"]),
            event=int(run["event"]),
            hint="keep rows, with 64 bytes behind them, in an element that no message of the phase touches",
        )


def _fetch_against_receive(pieces: NDArray[np.void], code: NDArray[np.int64]) -> None:
    begin = pieces["write_address"]
    clash = _touches_code(begin, begin + pieces["items"] * pieces["item_bytes"], code)
    if clash.any():
        at = int(np.argmax(clash))
        piece = pieces[at]
        raise SimulationError(
            f"{piece['items']} items from tile {piece['source']} are stored at {piece['write_address']:#x}, "
            f"in the memory element from which the row ({code[at, 0]:#x}..{code[at, 1]:#x}) is fetched",
            tile=int(piece["destination"]),
            event=int(piece["write_event"]),
            hint="keep rows, with 64 bytes behind them, in an element that no message of the phase touches",
        )


def _by_element(
    tile: NDArray[np.int64],
    event: NDArray[np.int64],
    items: NDArray[np.int64],
    address: NDArray[np.int64],
    size: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cuts accesses at element borders: (index, tile and element as one number, first event, end event)."""
    low, high = elements(address), elements(address + items * size - 1)
    count = high - low + 1
    index = np.repeat(np.arange(len(tile)), count)
    element = low[index] + np.arange(len(index)) - np.repeat(np.cumsum(count) - count, count)
    skipped = np.maximum(_element_start(element) - address[index], 0) // size[index]
    ended = np.minimum(-(-(_element_start(element + 1) - address[index]) // size[index]), items[index])
    return index, (tile[index] << 6) + element, event[index] + skipped, event[index] + ended


def _send_against_receive(runs: NDArray[np.void], pieces: NDArray[np.void]) -> None:
    """A send's reads and a receive's writes in one element at one time, tile by tile."""
    both = np.intersect1d(runs["source"], pieces["destination"])
    if not len(both):
        return
    run_index = np.flatnonzero(np.isin(runs["source"], both))
    piece_index = np.flatnonzero(np.isin(pieces["destination"], both))
    run, piece = runs[run_index], pieces[piece_index]
    size = np.where(run["control"] & PAIRED, 8, 4)
    sent, place, begin, end = _by_element(run["source"], run["event"], run["items"], run["address"], size)
    shift = 1 << 37
    base = int(min(run["event"].min(), piece["write_event"].min()))
    begins = place * shift + begin - base
    order = np.argsort(begins)
    begins, ends, sent = begins[order], (place * shift + end - base)[order], sent[order]
    stored, place, begin, end = _by_element(
        piece["destination"],
        piece["write_event"],
        piece["items"],
        piece["write_address"],
        piece["item_bytes"],
    )
    last = np.searchsorted(begins, place * shift + end + RECEIVE_GUARD - base, "left") - 1
    clash = (last >= 0) & (ends[np.maximum(last, 0)] > place * shift + begin - base)
    if clash.any():
        at = int(np.argmax(clash))
        receive, send = piece[stored[at]], run[sent[last[at]]]
        raise SimulationError(
            f"a send of {send['items']} items from {send['address']:#x} (events {send['event']}.."
            f"{send['event'] + send['items'] - 1}) and words from tile {receive['source']} stored at "
            f"{receive['write_address']:#x} (events {receive['write_event']}.."
            f"{receive['write_event'] + receive['items'] - 1} and {RECEIVE_GUARD} of guard) meet in one "
            "memory element",
            tile=int(send["source"]),
            address=int(send["pc"]),
            event=int(send["event"]),
            hint="move one of the buffers to another element, or the messages apart in time",
        )
