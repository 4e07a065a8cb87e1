"""Placing messages one after another, each at the earliest event that breaks no rule (compiled)."""

from __future__ import annotations

import numpy as np

from ...native.loops import compiled
from .earliest import receiver_at, sender_at
from .entering import receive, send
from .tables import CONTROL, FIRST, ITEMS, WIDE, Asked, Ints, Placed, Table, Windows


def _rank_python(values: Ints, count: int, rank: int, low: int) -> int:
    """The `rank`-th smallest (from 1) of `values[:count]`; none is below `low`."""
    high = low
    for i in range(count):
        high = max(high, values[i])
    while low < high:
        middle = (low + high) >> 1
        below = 0
        for i in range(count):
            if values[i] <= middle:
                below += 1
        if below >= rank:
            high = middle
        else:
            low = middle + 1
    return low


_rank = compiled(_rank_python, "i", "viii")


def _place_python(
    parts: Ints,
    messages: Table,
    receivers: Table,
    tiles: Table,
    wait_offsets: Ints,
    waits: Ints,
    sends: Windows,
    send_masks: Ints,
    windows: Windows,
    masks: Ints,
    leaves: Ints,
    left: Ints,
    earliest: Ints,
    over: Ints,
) -> int:
    horizon = 0
    for message in range(len(messages) - 1):
        n = messages[message, ITEMS]
        step = 2 if messages[message, CONTROL] & WIDE else 1
        remaining = messages[message + 1, FIRST] - messages[message, FIRST]
        for i in range(remaining):
            left[i] = messages[message, FIRST] + i
        for part in range(parts[message], 0, -1):
            needed = (remaining // step + part - 1) // part * step
            start = 0
            for i in range(wait_offsets[message], wait_offsets[message + 1]):
                start = max(start, over[waits[i]])
            while True:
                # The sender alone, then what each receiver alone allows from there on.
                start = sender_at(messages, tiles, sends, windows, masks, message, start)
                ready = 0
                if needed >= remaining:
                    begin = start
                    for i in range(remaining):
                        j = left[i]
                        start = receiver_at(
                            messages, receivers, tiles, sends, send_masks, windows, masks, message, j, start
                        )
                        earliest[i] = start
                    if start == begin:
                        break
                    continue
                for i in range(remaining):
                    earliest[i] = receiver_at(
                        messages, receivers, tiles, sends, send_masks, windows, masks, message, left[i], start
                    )
                    if step == 2 and i & 1:
                        earliest[i] = max(earliest[i], earliest[i - 1])
                        earliest[i - 1] = earliest[i]
                        ready += 2 if earliest[i] == start else 0
                    elif step == 1 and earliest[i] == start:
                        ready += 1
                if ready >= needed:
                    break
                start = _rank(earliest, remaining, needed, start)
            send(messages, tiles, sends, send_masks, message, start)
            horizon = max(horizon, start + n)
            kept = 0
            for i in range(remaining):
                j = left[i]
                if earliest[i] == start:
                    over[j] = receive(receivers, tiles, windows, masks, j, start, n)
                    horizon = max(horizon, over[j])
                    leaves[j] = start
                else:
                    left[kept] = j
                    kept += 1
            remaining = kept
            if kept == 0:
                break
    return int(horizon)


_place = compiled(_place_python, "i", "vmmmvvsvsvvvvv")


def place(
    parts: Ints,
    asked: Asked,
    wait_offsets: Ints,
    waits: Ints,
    placed: Placed,
    leaves: Ints,
) -> int:
    """Place messages greedily, in their order.

    `parts` tells into how many sends each may be divided, each to the receivers that are ready for it; the
    slices of sends have room for all parts and lent lanes. A message leaves after the receivers `waits` in
    its slice of `wait_offsets` have stored what they get (their messages come before it). `leaves` is filled
    with the sender event at which each receiver's items leave. Returns the latest row end.
    """
    most = int(np.diff(asked.messages[:, FIRST]).max(initial=0))
    room = np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(len(asked.receivers), np.int64)
    return int(_place(parts, *asked, wait_offsets, waits, *placed, leaves, *room))
