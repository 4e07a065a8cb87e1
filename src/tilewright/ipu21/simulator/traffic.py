"""What the tiles of one exchange phase did on their event clocks: sends, and changes of mux, pointer, format.

A phase is put together from the item logs of its tiles. Times are *events*: cycles since the exit of the
phase's barrier, the same instant on every tile (assumed; the real skew is part of the route times).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError

from .exchange_log import FORMAT, MUX, MUXPAIR, POINTER, SEND, joined

DIRECTIONS = 3
"""Bits of a send's control that drive the spine; with none set no word leaves and memory is not read."""
PAIRED = 4
"""Bit of a send's control: 64-bit items, using the partner's lane too."""

BEFORE = -(1 << 19)
"""An event earlier than any of a phase: state that was there when the phase began."""
NEVER = 1 << 35
"""An event later than any of a phase."""

RUN = np.dtype(
    [
        ("source", "<i8"),
        ("event", "<i8"),
        ("items", "<i8"),
        ("address", "<i8"),
        ("control", "<i8"),
        ("pc", "<i8"),
    ]
)
"""Items that leave `source` one per event from `event` on, read from consecutive addresses. Sorted by
(source, event). 4 bytes per item, or 8 if `control` has PAIRED."""

CHANGE = np.dtype([("tile", "<i8"), ("event", "<i8"), ("value", "<i8"), ("pc", "<i8")])
"""A register of `tile` holds `value` from `event` on. Sorted by (tile, event)."""


@dataclass(frozen=True)
class Party:
    """Tiles that go through a phase alike: the members of one class, or the bystanders of one.

    Attributes:
        members: physical ids.
        log: items since the barrier exit; fields kind, clock, count, value, control, pc.
        mux, mux_pair, format: register values at event 0.
        active: False for tiles that sit the phase out; their `log` is empty.
        close: global cycle at which the supervisor leaves the exchange window.
        code: bytes [begin, end) of the row, without look-ahead.
        data_count: INCOMING_DCOUNT at event 0.
        workers: how many workers run at event 0.
    """

    members: NDArray[np.int64]
    log: NDArray[np.void]
    mux: int
    mux_pair: int = 0x640
    format: int = 0
    active: bool = True
    close: int = 0
    code: tuple[int, int] = (0, 0)
    data_count: int = 1
    workers: int = 0


@dataclass
class Traffic:
    """All items of one phase, by kind, and the parties they come from.

    `party` maps a physical id to the index of its party, -1 for tiles that are in none.
    """

    release: int
    parties: Sequence[Party]
    party: NDArray[np.int64]
    runs: NDArray[np.void]
    mux: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, CHANGE))
    mux_pair: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, CHANGE))
    pointer: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, CHANGE))
    format: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, CHANGE))


IDS = 2048
"""Size of tables indexed by a physical id (11 bits)."""


def key(tile: NDArray[np.int64], event: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort key of (tile, event) pairs; events between BEFORE and NEVER keep their tile's place."""
    return (tile << 37) + (np.clip(event, BEFORE - 1, NEVER) - BEFORE)


def collect(parties: Sequence[Party], release: int) -> Traffic:
    """Gathers the logs of a phase that began at global cycle `release`, one row per member and item."""
    party = np.full(IDS, -1, np.int64)
    logs, tiles = [], []
    for index, group in enumerate(parties):
        party[group.members] = index
        if len(group.log):
            logs += [group.log] * len(group.members)
            tiles.append(np.repeat(group.members, len(group.log)))
    if not logs:
        return Traffic(release, parties, party, np.zeros(0, RUN))
    log, tile = joined(logs), np.concatenate(tiles)
    # One array per field: half of the time, against strides through records.
    columns = {name: log[name].astype(np.int64) for name in log.dtype.names or ()}
    columns["event"] = columns["clock"] - release
    runs = _runs(columns, tile)
    traffic = Traffic(release, parties, party, runs)
    if len(runs):
        traffic.mux = _changes(columns, tile, MUX, parties, [p.mux for p in parties])
        traffic.mux_pair = _changes(columns, tile, MUXPAIR, parties, [p.mux_pair for p in parties])
        traffic.format = _changes(columns, tile, FORMAT, parties, [p.format for p in parties])
    traffic.pointer = _changes(columns, tile, POINTER, [], [])
    return traffic


Columns = dict[str, NDArray[np.int64]]
"""Logs field by field; `event` is the clock relative to event 0."""


def _changes(
    log: Columns, tile: NDArray[np.int64], kind: int, parties: Sequence[Party], initial: Sequence[int]
) -> NDArray[np.void]:
    """The changes of one register, with a first one BEFORE the phase per member of `parties`."""
    chosen = np.flatnonzero(log["kind"] == kind)
    first = sum(len(p.members) for p in parties)
    tiles, events, values = (np.empty(first + len(chosen), np.int64) for _ in range(3))
    if parties:
        tiles[:first] = np.concatenate([p.members for p in parties])
        values[:first] = np.repeat(np.asarray(initial, np.int64), [len(p.members) for p in parties])
        events[:first] = BEFORE
    tiles[first:], events[first:], values[first:] = tile[chosen], log["event"][chosen], log["value"][chosen]
    order = np.argsort(key(tiles, events), kind="stable")
    changes = np.zeros(len(tiles), CHANGE)
    changes["tile"], changes["event"], changes["value"] = tiles[order], events[order], values[order]
    changes["pc"] = np.concatenate([np.zeros(first, np.int64), log["pc"][chosen]])[order]
    return changes


def _runs(log: Columns, tile: NDArray[np.int64]) -> NDArray[np.void]:
    """Sends that drive a direction, with continuations joined to the send they continue."""
    driven = np.flatnonzero((log["kind"] == SEND) & ((log["control"] & DIRECTIONS) != 0))
    if not len(driven):
        return np.zeros(0, RUN)
    driven = driven[np.argsort(key(tile[driven], log["event"][driven]), kind="stable")]
    source, event, items = tile[driven], log["event"][driven], log["count"][driven]
    address, control, pc = log["value"][driven], log["control"][driven], log["pc"][driven]
    end = event + items
    same = source[1:] == source[:-1]
    clash = same & (event[1:] < end[:-1])
    if clash.any():
        at = int(np.argmax(clash)) + 1
        raise SimulationError(
            "two sends of one tile overlap in time",
            tile=int(source[at]),
            address=int(pc[at]),
            event=int(event[at]),
        )
    size = np.where(control & PAIRED, 8, 4)
    continues = same & (event[1:] == end[:-1]) & (control[1:] == control[:-1])
    continues &= address[1:] == address[:-1] + items[:-1] * size[:-1]
    first = np.flatnonzero(np.concatenate([[True], ~continues]))
    runs = np.zeros(len(first), RUN)
    runs["source"], runs["event"], runs["address"] = source[first], event[first], address[first]
    runs["control"], runs["pc"] = control[first], pc[first]
    runs["items"] = np.add.reduceat(items, first)
    return runs
