"""The register writes by which tiles receive placed messages (compiled)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...native.loops import compiled
from ..machine.topology import MUX_NEUTRAL, MUX_TO_POINTER_BASE, RECEIVE_GUARD
from . import routes
from .items import CONTINUE, FORMAT, MUX, MUXPAIR, POINTER
from .messages import FORMAT_LEAD, Ints, Messages
from .pairing import early
from .transfers import TILE_IDS

TILE, EVENT, ITEMS, SENDER, TARGET, WORDS, WIDE, WAY, EARLY = range(9)
"""Columns of receives: EVENT is that of the mux; WAY is 1 or 2, the direction that items come from."""


def _enter_python(into: NDArray[np.int64], count: int, event: int, kind: int, value: int, items: int) -> int:
    """Enter a write into the sorted `into[:count]`; the new count."""
    i = count
    while i > 0 and (into[i - 1, 0] > event or (into[i - 1, 0] == event and into[i - 1, 1] > kind)):
        for column in range(4):
            into[i, column] = into[i - 1, column]
        i -= 1
    into[i, 0], into[i, 1], into[i, 2], into[i, 3] = event, kind, value, items
    return count + 1


_enter = compiled(_enter_python, "i", "miiiii")


def _all_writes_python(
    receives: NDArray[np.int64],
    sends: Ints,
    send_offsets: Ints,
    controls: NDArray[np.int64],
    offsets: Ints,
    ends: Ints,
    muxes: Ints,
    stores: Ints,
) -> int:
    """Fill controls, their offsets by tile id, and the events at which rows may end; the number of controls.

    `receives` is sorted by tile and event; `sends` are the events at which sends begin, sorted within the
    slice of each tile. `muxes` and `stores` have room for the writes of a tile of either kind.
    """
    total = len(receives)
    count, first = 0, 0
    for tile in range(len(ends)):
        offsets[tile] = count
        stop = first
        while stop < total and receives[stop, 0] == tile:
            stop += 1
        m, p = 0, 0
        delay = MUX_TO_POINTER_BASE + 2 * (tile >> 6)
        for i in range(first, stop):
            event, n, sender = receives[i, 1], receives[i, 2], receives[i, 3]
            target, wide, way = receives[i, 4], receives[i, 6], receives[i, 7]
            form, before = way if wide else 0, 0
            held, carried = False, False
            if i > first:
                alike = wide == receives[i - 1, 6]
                held = alike and receives[i - 1, 1] + receives[i - 1, 2] == event
                held = held and receives[i - 1, 3] == sender
                before = receives[i - 1, 7] if receives[i - 1, 6] else 0
                carried = form == before and receives[i - 1, 4] + 4 * receives[i - 1, 5] == target
            followed = i + 1 < stop and wide == receives[i + 1, 6] and event + n == receives[i + 1, 1]
            if wide == 0:
                if not held:
                    m = _enter(muxes, m, event, MUX, sender, 0)
                if not followed:
                    m = _enter(muxes, m, event + n, MUX, MUX_NEUTRAL, 0)
            else:
                if receives[i, 8] and not held:
                    m = _enter(muxes, m, event - 1, MUXPAIR, sender ^ (tile & 2), 0)
                if receives[i, 8] and not followed:
                    m = _enter(muxes, m, event + n - 1, MUXPAIR, MUX_NEUTRAL, 0)
            if form != before:
                p = _enter(stores, p, event + delay - FORMAT_LEAD, FORMAT, form, 0)
            kind = CONTINUE if carried else POINTER
            p = _enter(stores, p, event + delay, kind, target, -n if wide else n)
            ends[tile] = max(ends[tile], event + delay + n + RECEIVE_GUARD)
            if form and i + 1 == stop:
                back = event + delay + n - FORMAT_LEAD
                for j in range(send_offsets[tile], send_offsets[tile + 1]):
                    if sends[j] <= back <= sends[j] + 1:
                        back = sends[j] + 2
                p = _enter(stores, p, back, FORMAT, 0, 0)
                ends[tile] = max(ends[tile], back + FORMAT_LEAD + RECEIVE_GUARD)
        i, j = 0, 0
        while i < m or j < p:
            earlier = j == p or (
                i < m
                and (
                    muxes[i, 0] < stores[j, 0] or (muxes[i, 0] == stores[j, 0] and muxes[i, 1] < stores[j, 1])
                )
            )
            for column in range(4):
                controls[count, column] = muxes[i, column] if earlier else stores[j, column]
            i, j = (i + 1, j) if earlier else (i, j + 1)
            count += 1
        first = stop
    offsets[len(ends)] = count
    return count


_all_writes = compiled(_all_writes_python, "i", "mvvmvvmm")


def register_writes(messages: Messages, starts: Ints) -> tuple[Ints, Ints, Ints]:
    """Controls of all receivers, from the events at which the messages leave.

    Returns:
        Rows (event, kind of ROW_ITEM, value, items; negative for 64-bit items) sorted by tile and event; by
        tile id the first row of each tile, and one more; and by tile id the event at which its row may end (0
        if it receives nothing).
    """
    owner, tile = messages.owner, messages.tile
    event = starts[owner] + messages.route + 1
    order = np.argsort(tile << 40 | event, kind="stable")
    owner, tile = owner[order], tile[order]
    sender, wide = messages.source[owner], messages.wide[owner]
    receives = np.empty((len(order), 9), dtype=np.int64)
    columns = (
        (TILE, tile),
        (EVENT, event[order]),
        (ITEMS, messages.items[owner]),
        (SENDER, sender),
        (TARGET, messages.target[order]),
        (WORDS, messages.words[owner]),
        (WIDE, wide),
        (WAY, routes.direction(sender, tile)),
        (EARLY, early(sender, tile) if wide.any() else wide),
    )
    for column, values in columns:
        receives[:, column] = values
    controls = np.empty((5 * len(order), 4), dtype=np.int64)
    offsets, ends = np.zeros(TILE_IDS + 1, dtype=np.int64), np.zeros(TILE_IDS, dtype=np.int64)
    begins = np.argsort(messages.source << 40 | starts, kind="stable")
    sends, senders = starts[begins], messages.source[begins]
    send_offsets = np.searchsorted(senders, np.arange(TILE_IDS + 1))
    # A tile has at most two mux writes and three others per receive.
    most = int(np.bincount(tile, minlength=1).max())
    room = np.empty((2 * most, 4), dtype=np.int64), np.empty((3 * most, 4), dtype=np.int64)
    count = _all_writes(receives, sends, send_offsets, controls, offsets, ends, *room)
    return controls[:count], offsets, ends
