"""Which words of a phase reach whom, when and where: the exchange fabric as one calculation.

Nothing arbitrates. A word that leaves tile s at event e passes the mux of tile d at event e + T(s, d) + 1;
if d's mux selects s then, and s drove the way towards d, it is stored 52 + 2 * row(d) events later at d's
pointer, which moves on. The calculation works on runs of words, all tiles at once; what it yields equals
the word-by-word definition (held together by tests). Evidence: derived from hardware-tested rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.ipu21.machine.topology import MUX_HOST_BASE, direction, mux_to_store, partner, time_to_mux

from .traffic import BEFORE, IDS, NEVER, PAIRED, Traffic, key

PIECE = np.dtype(
    [
        ("source", "<i8"),
        ("destination", "<i8"),
        ("read_event", "<i8"),
        ("write_event", "<i8"),
        ("items", "<i8"),
        ("item_bytes", "<i8"),
        ("read_address", "<i8"),
        ("write_address", "<i8"),
        ("run", "<i8"),
    ]
)
"""Words that move together: read one item per event from consecutive addresses, stored likewise. `run` is the
index of the send. Sorted by (destination, write_event)."""

PAIRED_DELAY = 1
"""Events by which a 64-bit item is stored after its early half alone would be (derived)."""


@dataclass
class Resolution:
    """Outcome of a phase: what moves, and the pointers it leaves (`pointer_tile`, `pointer_value`)."""

    pieces: NDArray[np.void]
    pointer_tile: NDArray[np.int64]
    pointer_value: NDArray[np.int64]


def resolve(traffic: Traffic, pointers: NDArray[np.int64]) -> Resolution:
    """Finds every word of the phase that is stored.

    Args:
        traffic: the items of all tiles.
        pointers: byte address of each tile's pointer at event 0, indexed by physical id.

    Raises:
        SimulationError: traffic for which no outcome is known, such as a format changed under words.
    """
    pieces = np.concatenate([_single(traffic), _double(traffic)])
    order = np.argsort(key(pieces["destination"], pieces["write_event"]), kind="stable")
    pieces = pieces[order]
    _one_word_at_a_time(traffic, pieces)
    return _store(traffic, pieces, pointers)


def _heard(
    traffic: Traffic, changes: NDArray[np.void], source: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.void]]:
    """Parts of the sends that pass a mux while it selects them.

    `changes` are those of one mux register, `source` the tile that each of them selects (-1: none), `wanted`
    marks the sends in question. Returns the index of the change and the piece, without addresses.
    """
    runs = traffic.runs
    index = np.flatnonzero(wanted)
    sends = np.zeros(IDS, np.bool_)
    sends[runs["source"][index]] = True
    tile = changes["tile"]
    until = np.full(len(changes), NEVER, np.int64)
    same = tile[1:] == tile[:-1]
    until[:-1][same] = changes["event"][1:][same]
    chosen = np.flatnonzero((source >= 0) & sends[np.maximum(source, 0)] & (until > changes["event"]))
    source, tile = source[chosen], tile[chosen]
    delay = time_to_mux(source, tile) + 1
    begin, end = changes["event"][chosen] - delay, until[chosen] - delay
    run_begin = runs["event"][index]
    run_end = run_begin + runs["items"][index]
    low = np.searchsorted(key(runs["source"][index], run_end), key(source, begin), "right")
    high = np.searchsorted(key(runs["source"][index], run_begin), key(source, end), "left")
    count = np.maximum(high - low, 0)
    window = np.repeat(np.arange(len(chosen)), count)
    offset = np.arange(len(window)) - np.repeat(np.cumsum(count) - count, count)
    run = low[window] + offset
    first = np.maximum(run_begin[run], begin[window])
    last = np.minimum(run_end[run], end[window])
    pieces = np.zeros(len(window), PIECE)
    pieces["run"] = index[run]
    pieces["source"], pieces["destination"] = source[window], tile[window]
    pieces["read_event"], pieces["items"] = first, last - first
    pieces["write_event"] = first + delay[window] + mux_to_store(tile[window])
    towards = direction(pieces["source"], pieces["destination"])
    kept = (runs["control"][pieces["run"]] & towards) != 0
    return chosen[window][kept], pieces[kept]


def _addresses(traffic: Traffic, pieces: NDArray[np.void], item_bytes: int) -> None:
    run = traffic.runs[pieces["run"]]
    pieces["item_bytes"] = item_bytes
    pieces["read_address"] = run["address"] + item_bytes * (pieces["read_event"] - run["event"])


def _single(traffic: Traffic) -> NDArray[np.void]:
    """Words that pass the ordinary mux of one tile."""
    runs = traffic.runs
    if not len(runs):
        return np.zeros(0, PIECE)
    value = traffic.mux["value"]
    source = np.where(value < MUX_HOST_BASE, value, -1)
    _, pieces = _heard(traffic, traffic.mux, source, np.ones(len(runs), np.bool_))
    _addresses(traffic, pieces, 4)
    _whole(traffic, pieces)
    _format_is(traffic, pieces, pieces["destination"], pieces["write_event"], np.zeros(len(pieces), np.int64))
    return pieces


def _whole(traffic: Traffic, pieces: NDArray[np.void]) -> None:
    """An ordinary mux that hears half of a 64-bit send: nobody knows what it stores."""
    half = (traffic.runs["control"][pieces["run"]] & PAIRED) != 0
    if half.any():
        piece = pieces[int(np.argmax(half))]
        raise SimulationError(
            f"INCOMING_MUX selects tile {piece['source']} during a 64-bit send",
            category="fact unknown",
            tile=int(piece["destination"]),
            event=int(piece["write_event"]),
            hint="select 64-bit sends through INCOMING_MUXPAIR",
        )


def _double(traffic: Traffic) -> NDArray[np.void]:
    """64-bit items: heard through the pair mux of the early partner, stored by both."""
    wanted = (traffic.runs["control"] & PAIRED) != 0
    if not wanted.any():
        return np.zeros(0, PIECE)
    _lanes_are_free(traffic, wanted)
    changes = traffic.mux_pair
    source = np.where(changes["value"] < MUX_HOST_BASE, changes["value"] ^ (changes["tile"] & 2), -1)
    change, early = _heard(traffic, changes, source, wanted)
    _addresses(traffic, early, 8)
    # A pair whose format is 32-bit hears no 64-bit item, whatever its pair mux selects: nobody ever sets that
    # register neutral, and it starts as 0, a tile.
    here, other = early["destination"], partner(early["destination"])
    listening = np.zeros(len(early), np.bool_)
    for member in (here, other):
        value, constant = _format(traffic, early, member, early["write_event"] - 1)
        listening |= (value != 0) | ~constant
    late = time_to_mux(early["source"], here) > time_to_mux(early["source"], other)
    untried = listening & late & (changes["event"][change] > BEFORE)
    if untried.any():
        at = int(np.argmax(untried))
        raise SimulationError(
            f"INCOMING_MUXPAIR selects tile {early['source'][at]} on the later tile of the pair",
            category="fact unknown",
            tile=int(here[at]),
            address=int(changes["pc"][change[at]]) or None,
            event=int(changes["event"][change[at]]),
            hint=f"select it on tile {other[at]}",
        )
    early = early[listening & ~late]
    here, other = early["destination"], partner(early["destination"])
    way = direction(early["source"], here)
    for member in (here, other):
        _format_is(traffic, early, member, early["write_event"] - 1, way)
    early["write_event"] += PAIRED_DELAY
    both = np.concatenate([early, early])
    both["destination"][len(early) :] = other
    return both


def _lanes_are_free(traffic: Traffic, wanted: NDArray[np.bool_]) -> None:
    """A 64-bit send uses the partner's lane: the partner must not send meanwhile."""
    runs = traffic.runs
    double = runs[wanted]
    other = partner(double["source"])
    end = key(runs["source"], runs["event"] + runs["items"])
    begin = key(runs["source"], runs["event"])
    low = np.searchsorted(end, key(other, double["event"]), "right")
    high = np.searchsorted(begin, key(other, double["event"] + double["items"]), "left")
    clash = high > low
    if clash.any():
        at = int(np.argmax(clash))
        raise SimulationError(
            f"a 64-bit send borrows the lane of tile {other[at]}, which sends at the same time",
            tile=int(double["source"][at]),
            address=int(double["pc"][at]),
            event=int(double["event"][at]),
        )


def _format_is(
    traffic: Traffic,
    pieces: NDArray[np.void],
    tile: NDArray[np.int64],
    event: NDArray[np.int64],
    wanted: NDArray[np.int64],
) -> None:
    """INCOMING_FORMAT of `tile` must be `wanted` from `event` on for as long as the piece lasts."""
    if not len(pieces) or not (traffic.format["value"].any() or wanted.any()):
        return
    value, constant = _format(traffic, pieces, tile, event)
    wrong = (value != wanted) | ~constant
    if wrong.any():
        at = int(np.argmax(wrong))
        raise SimulationError(
            f"words of tile {pieces['source'][at]} need INCOMING_FORMAT {wanted[at]}"
            + (f", it is {value[at]}" if constant[at] else ", which changes under them"),
            tile=int(tile[at]),
            event=int(event[at]),
        )


def _format(
    traffic: Traffic, pieces: NDArray[np.void], tile: NDArray[np.int64], event: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """INCOMING_FORMAT of `tile` at `event`, and whether it stays that for as long as the piece lasts."""
    changes = traffic.format
    keys = key(changes["tile"], changes["event"])
    low = np.searchsorted(keys, key(tile, event), "right") - 1
    high = np.searchsorted(keys, key(tile, event + pieces["items"]), "left") - 1
    present = (low >= 0) & (changes["tile"][np.maximum(low, 0)] == tile)
    return np.where(present, changes["value"][np.maximum(low, 0)], 0), low == high


def _one_word_at_a_time(traffic: Traffic, pieces: NDArray[np.void]) -> None:
    end = pieces["write_event"] + pieces["items"]
    same = pieces["destination"][1:] == pieces["destination"][:-1]
    clash = same & (pieces["write_event"][1:] < end[:-1])
    if clash.any():
        at = int(np.argmax(clash)) + 1
        piece = pieces[at]
        raise SimulationError(
            f"words of tiles {pieces['source'][at - 1]} and {piece['source']} arrive in the same event",
            tile=int(piece["destination"]),
            event=int(piece["write_event"]),
        )


def _store(traffic: Traffic, pieces: NDArray[np.void], pointers: NDArray[np.int64]) -> Resolution:
    """Cuts the pieces where a pointer is written under them, and gives each its address."""
    tile, event, value = _with_initial(traffic, pieces, pointers)
    keys = key(tile, event)
    begin, end = pieces["write_event"], pieces["write_event"] + pieces["items"]
    low = np.searchsorted(keys, key(pieces["destination"], begin), "right")
    high = np.searchsorted(keys, key(pieces["destination"], end), "left")
    parts = high - low + 1
    whole = np.repeat(np.arange(len(pieces)), parts)
    part = np.arange(len(whole)) - np.repeat(np.cumsum(parts) - parts, parts)
    first = np.where(part == 0, begin[whole], event[np.maximum(low[whole] + part - 1, 0)])
    is_last = part == parts[whole] - 1
    last = np.where(is_last, end[whole], event[np.minimum(low[whole] + part, len(event) - 1)])
    cut = pieces[whole]
    cut["write_event"] = first
    cut["items"] = last - first
    cut["read_event"] += first - begin[whole]
    cut["read_address"] += (first - begin[whole]) * cut["item_bytes"]
    cut = cut[cut["items"] > 0]
    group = np.searchsorted(keys, key(cut["destination"], cut["write_event"]), "right") - 1
    size = cut["items"] * cut["item_bytes"]
    before = np.cumsum(size) - size
    cut["write_address"] = value[group] + before - before[np.searchsorted(group, group, "left")]
    moved = np.bincount(group, weights=size, minlength=len(tile)).astype(np.int64)
    final = np.concatenate([tile[1:] != tile[:-1], [True]]) if len(tile) else np.zeros(0, np.bool_)
    return Resolution(cut, tile[final], (value + moved)[final])


def _with_initial(
    traffic: Traffic, pieces: NDArray[np.void], pointers: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The pointer writes as (tile, event, value), each receiver's initial pointer first."""
    receivers = np.unique(pieces["destination"])
    writes = traffic.pointer
    tile = np.concatenate([receivers, writes["tile"]])
    event = np.concatenate([np.full(len(receivers), BEFORE, np.int64), writes["event"]])
    value = np.concatenate([pointers[receivers], writes["value"]])
    order = np.argsort(key(tile, event), kind="stable")
    return tile[order], event[order], value[order]
