"""Placing messages of queues side by side, each by what can arrive first (compiled)."""

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
    NEVER,
    ROUTE,
    SOURCE,
    TILE,
    WIDE,
    Asked,
    Ints,
    Placed,
    Table,
    Windows,
)

_PATIENCE = 32
"""Events later than would be possible at best within which a candidate's place is sought first."""


def _fits_python(
    messages: Table,
    receivers: Table,
    tiles: Table,
    sends: Windows,
    send_masks: Ints,
    windows: Windows,
    masks: Ints,
    message: int,
    limit: int,
    looks: Ints,
) -> int:
    """The first event at which a message can leave to all its receivers, if that is before `limit`; else some
    event from `limit` on. `looks` counts the receivers asked."""
    start = 0
    while True:
        begin = start = sender_at(messages, tiles, sends, windows, masks, message, start)
        for j in range(messages[message, FIRST], messages[message + 1, FIRST]):
            start = receiver_at(
                messages, receivers, tiles, sends, send_masks, windows, masks, message, j, start
            )
            looks[0] += 1
            if start >= limit:
                return int(start)
        if start == begin:
            return int(start)


_fits = compiled(_fits_python, "i", "mmmsvsviiv")


def _next_python(least: Ints, pressing: Ints, count: int) -> int:
    """Of `count` candidates the one that may arrive first, of equals the most pressing; -1: none is left."""
    best = -1
    for i in range(count):
        if least[i] < NEVER and (
            best < 0 or least[i] < least[best] or (least[i] == least[best] and pressing[i] > pressing[best])
        ):
            best = i
    return best


_next = compiled(_next_python, "i", "vvi")


def _choose_python(
    choice: int,
    known: int,
    most: int,
    queues: Ints,
    layers: Ints,
    order: Ints,
    messages: Table,
    receivers: Table,
    tiles: Table,
    sends: Windows,
    send_masks: Ints,
    windows: Windows,
    masks: Ints,
    leaves: Ints,
    looks: Ints,
    by_tile: Ints,
    head: Ints,
    near: Ints,
    heap: Ints,
) -> int:
    free, lane, left = by_tile[0], by_tile[1], by_tile[2]
    least, way, possible, pressing = near[0], near[1], near[2], near[3]
    entries = 0
    for i in range(len(messages) - 1):
        left[messages[i, SOURCE]] += messages[i, ITEMS]
    for i in range(len(queues) - 1):
        if queues[i] < queues[i + 1]:
            entries = push(heap, entries, layers[i] << 48 | i)
    horizon = 0
    while entries and horizon < known and looks[0] < most:
        entry = pop(heap, entries)
        entries -= 1
        q = entry & 0xFFFF
        m = order[head[q]]
        due = 0
        for j in range(messages[m, FIRST], messages[m + 1, FIRST]):
            due = max(due, free[receivers[j, TILE]])
        if due > entry >> 16 & 0xFFFFFFFF:
            entries = push(heap, entries, layers[q] << 48 | due << 16 | q)
            continue
        # When each candidate can arrive at the earliest, on average, if only lanes and free muxes matter.
        count = min(choice, queues[q + 1] - head[q])
        for i in range(count):
            m = order[head[q] + i]
            s = messages[m, SOURCE]
            start, way[i] = int(lane[s]), 0
            for j in range(messages[m, FIRST], messages[m + 1, FIRST]):
                start = max(start, free[receivers[j, TILE]] - receivers[j, ROUTE] - 1)
                way[i] += receivers[j, ROUTE]
            way[i] //= messages[m + 1, FIRST] - messages[m, FIRST]
            possible[i], pressing[i] = start + way[i], left[s]
        chosen, best, patience = -1, 0, _PATIENCE
        while chosen < 0:
            for i in range(count):
                least[i] = possible[i]
            arrives = possible[_next(least, pressing, count)] + patience
            while True:
                i = _next(least, pressing, count)
                if i < 0 or least[i] >= arrives:
                    break
                least[i] = NEVER
                m = order[head[q] + i]
                limit = arrives - way[i]
                start = _fits(messages, receivers, tiles, sends, send_masks, windows, masks, m, limit, looks)
                if start + way[i] < arrives:
                    chosen, best, arrives = head[q] + i, start, start + way[i]
            patience *= 8
        m = order[chosen]
        for i in range(chosen, head[q], -1):
            order[i] = order[i - 1]
        head[q] += 1
        n, s = messages[m, ITEMS], messages[m, SOURCE]
        send(messages, tiles, sends, send_masks, m, best)
        left[s] -= n
        lane[s] = max(lane[s], best + n)
        if messages[m, CONTROL] & WIDE:
            lane[s ^ 2] = max(lane[s ^ 2], best + n)
        horizon = max(horizon, best + n)
        due = 0
        for j in range(messages[m, FIRST], messages[m + 1, FIRST]):
            to = receivers[j, TILE]
            horizon = max(horizon, receive(receivers, tiles, windows, masks, j, best, n))
            free[to] = max(free[to], best + receivers[j, ROUTE] + 1 + n)
            due = max(due, free[to])
            leaves[j] = best
        if head[q] < queues[q + 1]:
            entries = push(heap, entries, layers[q] << 48 | due << 16 | q)
    return int(horizon) if entries == 0 else NEVER


_choose = compiled(_choose_python, "i", "iiivvvmmmsvsvvvmvmv")


def choose(
    choice: int,
    known: int,
    most: int,
    queues: Ints,
    layers: Ints,
    order: Ints,
    asked: Asked,
    placed: Placed,
    leaves: Ints,
    looks: Ints,
) -> int:
    """Place messages of queues side by side: of the lowest layer the queue whose next receivers are free
    first goes on, with the one of its first `choice` messages that arrives first; of equals the one whose
    sender has most left to send.

    `order` lists messages queue by queue (it is used up), `queues` where each queue begins in it and one
    more, `layers` has the layer of each. `leaves` is filled with the sender
    event at which each receiver's items leave; `looks`, one number, becomes how often a receiver was asked
    when it could take a message. Returns the latest row end, or NEVER if that is not before `known` or takes
    `most` looks.
    """
    by_tile, near = np.zeros((3, len(asked.tiles) - 1), np.int64), np.zeros((4, choice), np.int64)
    room = by_tile, queues.copy(), near, np.empty(len(queues), np.int64)
    return int(_choose(choice, known, most, queues, layers, order, *asked, *placed, leaves, looks, *room))
