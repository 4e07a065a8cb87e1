"""Entering sends and receives where they have been placed (compiled)."""

from __future__ import annotations

from ...native.loops import compiled
from ..machine.topology import MUX_TO_POINTER_BASE, RECEIVE_GUARD
from .tables import (
    CONTROL,
    HEARD,
    ITEMS,
    KIND,
    LENT,
    READS,
    ROUTE,
    SENDS,
    SENT,
    SOURCE,
    TILE,
    WIDE,
    WINDOWS,
    WRITES,
    Ints,
    Table,
    Windows,
)


def _insert_python(
    windows: Windows, masks: Ints, low: int, high: int, at: int, size: int, mask: int, kind: int
) -> None:
    i = high
    while i > low and windows[i - 1, 0] > at:
        for column in range(3):
            windows[i, column] = windows[i - 1, column]
        masks[i] = masks[i - 1]
        i -= 1
    windows[i, 0] = at
    windows[i, 1] = at + size
    windows[i, 2] = kind
    masks[i] = mask


insert = compiled(_insert_python, "-", "sviiiiii")


def _send_python(
    messages: Table, tiles: Table, sends: Windows, send_masks: Ints, message: int, start: int
) -> None:
    """Enter a send."""
    s, n = messages[message, SOURCE], messages[message, ITEMS]
    low = tiles[s, SENDS]
    insert(sends, send_masks, low, low + tiles[s, SENT], start, n, messages[message, READS], 0)
    tiles[s, SENT] += 1
    if messages[message, CONTROL] & WIDE:
        low = tiles[s ^ 2, SENDS]
        insert(sends, send_masks, low, low + tiles[s ^ 2, SENT], start, n, 0, LENT)
        tiles[s ^ 2, SENT] += 1


send = compiled(_send_python, "-", "mmsvii")


def _receive_python(
    receivers: Table, tiles: Table, windows: Windows, masks: Ints, receiver: int, start: int, size: int
) -> int:
    """Enter a receive; the event at which it is over."""
    d = receivers[receiver, TILE]
    at, low = start + receivers[receiver, ROUTE] + 1, tiles[d, WINDOWS]
    mask, kind = receivers[receiver, WRITES], receivers[receiver, KIND]
    insert(windows, masks, low, low + tiles[d, HEARD], at, size, mask, kind)
    tiles[d, HEARD] += 1
    return int(at + MUX_TO_POINTER_BASE + 2 * (d >> 6) + size + RECEIVE_GUARD)


receive = compiled(_receive_python, "i", "mmsviii")
