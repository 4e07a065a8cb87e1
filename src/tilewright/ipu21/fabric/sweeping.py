"""Placing messages by the clock: receivers choose what they hear next (compiled)."""

from __future__ import annotations

import numpy as np

from ...native.loops import compiled
from .earliest import receiver_at, sender_at
from .entering import receive, send
from .heap import pop, push
from .tables import (
    CONTROL,
    FIRST,
    ITEMS,
    OWN,
    ROUTE,
    SOURCE,
    TILE,
    WIDE,
    WINDOWS,
    Asked,
    Ints,
    Placed,
    Table,
    Windows,
)

_CHOICE = 64
"""Messages among which a receiver chooses."""


def _sweep_python(
    limit: int,
    patience: int,
    ease: int,
    salt: int,
    owner: Ints,
    inbox: Ints,
    messages: Table,
    receivers: Table,
    tiles: Table,
    sends: Windows,
    send_masks: Ints,
    windows: Windows,
    masks: Ints,
    leaves: Ints,
    position: Ints,
    left: Ints,
    by_tile: Ints,
    heap: Ints,
) -> int:
    total = len(tiles) - 1
    waiting, to_hear, to_send, free, lane = by_tile[0], by_tile[1], by_tile[2], by_tile[3], by_tile[4]
    free[:] = 1
    for i in range(len(inbox)):
        position[inbox[i]] = i
        d = receivers[inbox[i], TILE]
        waiting[d] += 1
        to_hear[d] += messages[owner[inbox[i]], ITEMS]
        left[owner[inbox[i]]] += 1
    for m in range(len(messages) - 1):
        to_send[messages[m, SOURCE]] += messages[m, ITEMS]
    entries = 0
    for d in range(total):
        if waiting[d]:
            entries = push(heap, entries, max(1, limit - to_hear[d] - patience) << 11 | d)
    horizon = 0
    while entries:
        least = pop(heap, entries)
        entries -= 1
        now, d = least >> 11, least & 2047
        if waiting[d] == 0:
            continue
        due = max(free[d], limit - to_hear[d] - patience)
        if due > now:
            entries = push(heap, entries, due << 11 | d)
            continue
        # The message that leaves the shortest gap here; of those the one that most others still want.
        chosen, score = -1, 1 << 60
        for i in range(tiles[d, WINDOWS], tiles[d, WINDOWS] + min(waiting[d], _CHOICE)):
            j = inbox[i]
            m = owner[j]
            ready = max(lane[messages[m, SOURCE]], free[d] - receivers[j, ROUTE] - 1)
            gap = ready + receivers[j, ROUTE] + 1 - free[d]
            other = left[m] if salt == 0 else (j + salt) * 0x9E3779B1 >> 12 & 0xFFFF
            rank = (8 * gap // messages[m, ITEMS] << 20) - other
            if rank < score:
                chosen, score = j, rank
        m = owner[chosen]
        s, n, wide = messages[m, SOURCE], messages[m, ITEMS], messages[m, CONTROL] & WIDE
        first, last = messages[m, FIRST], messages[m + 1, FIRST]
        start = max(0, free[d] - receivers[chosen, ROUTE] - 1)
        # A sender that cannot afford to send again waits for all that still want it; so does one that hears
        # itself, which it could not do alone.
        together = messages[m, OWN] != 0 or max(start, lane[s]) + n + to_send[s] > limit
        while True:
            start = sender_at(messages, tiles, sends, windows, masks, m, start)
            begin = start
            for j in range(first, last):
                if leaves[j] < 0 and (
                    together or j == chosen or (wide and (j - first) ^ 1 == chosen - first)
                ):
                    start = max(
                        start,
                        receiver_at(
                            messages, receivers, tiles, sends, send_masks, windows, masks, m, j, start
                        ),
                    )
            if start == begin:
                break
        step = 2 if wide else 1
        for j in range(first, last, step):
            if leaves[j] >= 0:
                continue
            joins = True
            for k in range(j, j + step):
                to = receivers[k, TILE]
                since = max(free[to], now)
                gap = start + receivers[k, ROUTE] + 1 - since
                spare = limit - since - to_hear[to]
                if not together and chosen - j not in (0, step - 1) and 100 * gap > ease * max(spare, 0):
                    joins = False
                    break
            for k in range(j, j + step):
                if joins and not together and chosen - j not in (0, step - 1):
                    at = receiver_at(
                        messages, receivers, tiles, sends, send_masks, windows, masks, m, k, start
                    )
                    joins = at == start
            if joins:
                leaves[j : j + step] = start
        send(messages, tiles, sends, send_masks, m, start)
        lane[s] = max(lane[s], start + n)
        if wide:
            lane[s ^ 2] = max(lane[s ^ 2], start + n)
        horizon = max(horizon, start + n)
        for j in range(first, last):
            if leaves[j] == start:
                to = receivers[j, TILE]
                horizon = max(horizon, receive(receivers, tiles, windows, masks, j, start, n))
                free[to] = max(free[to], start + receivers[j, ROUTE] + 1 + n)
                to_hear[to] -= n
                left[m] -= 1
                end = tiles[to, WINDOWS] + waiting[to] - 1
                moved = inbox[end]
                inbox[position[j]], position[moved] = moved, position[j]
                waiting[to] -= 1
        if left[m] == 0:
            to_send[s] -= n
        if waiting[d]:
            entries = push(heap, entries, max(free[d], limit - to_hear[d] - patience) << 11 | d)
    return int(horizon)


_sweep = compiled(_sweep_python, "i", "iiiivvmmmsvsvvvvmv")


def sweep(
    limit: int,
    patience: int,
    ease: int,
    salt: int,
    owner: Ints,
    inbox: Ints,
    asked: Asked,
    placed: Placed,
    leaves: Ints,
) -> int:
    """Place messages by the clock: the receiver that cannot wait longer chooses the message it can begin
    first, and whoever else wants that one and is free joins in.

    `limit` is the length aimed at, and `patience` how much earlier than its last chance a receiver begins to
    choose; `ease` is the percentage of its spare time that a receiver may lose at once by joining; `salt`, if
    not 0, makes receivers choose among equals by chance. `owner` is the message of each receiver, `inbox`
    lists the receivers tile by tile (both are used up); there is room for one send per receiver; `leaves`
    must hold -1. Returns the latest row end.
    """
    total = len(asked.tiles) - 1
    position, left = np.zeros(len(inbox), np.int64), np.zeros(len(asked.messages), np.int64)
    room = position, left, np.zeros((5, total), np.int64), np.empty(total, np.int64)
    return int(_sweep(limit, patience, ease, salt, owner, inbox, *asked, *placed, leaves, *room))
