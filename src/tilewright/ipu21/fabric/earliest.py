"""The earliest event at which a message can leave, as its sender and each receiver see it (compiled).

A message of n items that leaves at event S of its sender occupies the sender's lane for [S, S+n), and the
partner's too if it is wide. Each receiver stores its items at [P, P+n) with P = S + route + 53 + 2 row; that
is [X, X+n) of its mux with X = P - (52 + 2 row). One list of windows [X, X+n) per tile serves both, because
they differ by a constant of the tile. Rules, all per tile:

* lanes: sends do not overlap, windows do not overlap;
* format: a window switches it at P - 2 unless the window before needs the same, so two events must lie
  between that and a wide one. After a tile's last window it is switched back, for which there is always time;
* controls: no register write at the first two events of a send of the tile's own. Writes are at X, X+n (mux)
  and P (pointer); of a wide window at P (pointer), and at the early member of the pair at X-1 and X+n-1 (pair
  mux). A pair mux, a format or a wide window's pointer is written alone at its event;
* elements: a send's reads [S, S+n) and a receive's writes [P, P+n+5) do not overlap in time if they share an
  effective element.
"""

from __future__ import annotations

from ...native.loops import compiled
from ..machine.topology import MUX_TO_POINTER_BASE, RECEIVE_GUARD
from .tables import (
    CONTROL,
    EARLY,
    FORM,
    HEARD,
    HEARS_WIDE,
    ITEMS,
    KIND,
    READ,
    READS,
    ROUTE,
    SENDS,
    SENT,
    SOURCE,
    STEADY,
    TILE,
    WIDE,
    WINDOWS,
    WRITES,
    WRITTEN,
    Ints,
    Table,
    Windows,
)
from .windows import after, crossed, fit, form_before, parted, recent, shared, starts_at, written_at


def _sender_at_python(
    messages: Table, tiles: Table, sends: Windows, windows: Windows, masks: Ints, message: int, start: int
) -> int:
    """The first event from `start` on at which a message can leave, if receivers do not matter."""
    s, n = messages[message, SOURCE], messages[message, ITEMS]
    reads, wide = messages[message, READS], messages[message, CONTROL] & WIDE
    delay = MUX_TO_POINTER_BASE + 2 * (s >> 6)
    high = tiles[s, SENDS] + tiles[s, SENT]
    low, floor = recent(sends, tiles[s, SENDS], high)
    high_x = tiles[s, WINDOWS] + tiles[s, HEARD]
    low_x, floor_x = recent(windows, tiles[s, WINDOWS], high_x)
    start, low_p, high_p = max(start, floor, floor_x), 0, 0
    if wide:
        high_p = tiles[s ^ 2, SENDS] + tiles[s ^ 2, SENT]
        low_p, floor = recent(sends, tiles[s ^ 2, SENDS], high_p)
        start = max(start, floor)
    while True:
        begin = start
        start = fit(sends, low, high, start, n, 0)
        if wide:
            start = fit(sends, low_p, high_p, start, n, 0)
            if start != begin:
                continue
        start += written_at(windows, low_x, high_x, delay, start)
        if reads & tiles[s, WRITTEN]:
            store = start - delay
            start = shared(windows, masks, low_x, high_x, reads, store, store + n, RECEIVE_GUARD) + delay
        if start == begin:
            return int(start)


sender_at = compiled(_sender_at_python, "i", "mmssvii")


def _receiver_at_python(
    messages: Table,
    receivers: Table,
    tiles: Table,
    sends: Windows,
    send_masks: Ints,
    windows: Windows,
    masks: Ints,
    message: int,
    receiver: int,
    start: int,
) -> int:
    """An event from `start` on before which a receiver cannot take what leaves; `start` if it can then."""
    d, route, kind = receivers[receiver, TILE], receivers[receiver, ROUTE], receivers[receiver, KIND]
    n = messages[message, ITEMS]
    delay = MUX_TO_POINTER_BASE + 2 * (d >> 6)
    high = tiles[d, WINDOWS] + tiles[d, HEARD]
    low, floor = recent(windows, tiles[d, WINDOWS], high)
    high_s = tiles[d, SENDS] + tiles[d, SENT]
    low_s, floor_s = recent(sends, tiles[d, SENDS], high_s)
    begin = start + route + 1
    at = max(begin, floor, floor_s, 2 if kind & EARLY else 1)
    if at != begin:
        return int(at - route - 1)
    at = fit(windows, low, high, at, n, kind)
    if kind & STEADY:
        at += (at ^ kind >> 5) & 1
    if kind & WIDE == 0:
        at += starts_at(sends, low_s, high_s, at)
        at += starts_at(sends, low_s, high_s, at + n)
    elif kind & EARLY:
        at += starts_at(sends, low_s, high_s, at - 1)
        at += starts_at(sends, low_s, high_s, at + n - 1)
    if tiles[d, HEARS_WIDE]:
        if form_before(windows, low, after(windows, low, high, at)) != kind & FORM:
            at += starts_at(sends, low_s, high_s, at + delay - 2)
        at = parted(windows, low, high, sends, low_s, high_s, delay, at, kind)
    at += starts_at(sends, low_s, high_s, at + delay)
    mask = receivers[receiver, WRITES]
    if mask & tiles[d, READ]:
        store = at + delay
        at = shared(sends, send_masks, low_s, high_s, mask, store, store + n + RECEIVE_GUARD, 0) - delay
    if at == begin and tiles[d, HEARS_WIDE] and crossed(windows, low, high, delay, at, n, kind):
        at += 1
    return int(at - route - 1)


receiver_at = compiled(_receiver_at_python, "i", "mmmsvsviii")
