"""Placing messages in time, one after another, each at the earliest event that breaks no rule (compiled).

A message of n items that leaves at event S of its sender occupies the sender's lane for [S, S+n), and the
partner's too if it is wide. Each receiver stores its items at [P, P+n) with P = S + route + 53 + 2 row; that
is [X, X+n) of its mux with X = P - (52 + 2 row). One list of windows [X, X+n) per tile serves both, because
they differ by a constant of the tile. Rules, all per tile:

* lanes: sends do not overlap, windows do not overlap;
* format: a wide window switches it at P - 2 and back at P + n - 2, so two events must lie between its start
  and the window before it, unless that is a wide one from the same direction: then the format stays;
* controls: no register write at the first two events of a send. Writes are at X, X+n (mux) and P (pointer);
  of a wide window at P-2, P+n-2 (format) and P (pointer), and at the early member of the pair at X-1 and
  X+n-1 (pair mux). A pair mux, a format or a wide window's pointer is written alone at its event;
* elements: a send's reads [S, S+n) and a receive's writes [P, P+n+5) do not overlap in time if they share an
  effective element.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled

# Copies of constants of machine.topology and (in sequence) of items: a compiled loop's cache would not
# notice a change in another file. A test holds them equal.
_GUARD = 5
_POINTER = 52
LOOK_BACK = 256
"""Gaps are sought among the latest so many windows of a tile, lest the search grow with the phase."""

WIDE, EARLY = 4, 8
"""Bits of a receive window's kind, beside the direction in the lower two; 0 is a 32-bit window."""
_MUX, _PAIRMUX, _FORMAT, _PLAIN_POINTER, _WIDE_POINTER = 1, 2, 4, 8, 16

Ints = NDArray[np.int64]
Windows = NDArray[np.int64]
"""[n, 4]: begin, items, element mask, kind. Sorted by begin within each tile's slice."""


def _after_python(windows: Windows, low: int, high: int, value: int) -> int:
    """Index of the first of the sorted `windows[low:high]` that begins after `value`."""
    while low < high:
        middle = (low + high) >> 1
        if windows[middle, 0] > value:
            high = middle
        else:
            low = middle + 1
    return low


_after = compiled(_after_python, "i", "miii")


def _gap_python(one: int, two: int) -> int:
    """Events between a window of kind `one` and the next, of kind `two`."""
    return 2 if two & WIDE and one & 7 != two & 7 else 0


_gap = compiled(_gap_python, "i", "ii")


def _fit_python(windows: Windows, low: int, high: int, at: int, size: int, kind: int) -> int:
    """The first event from `at` on with room for a window of `size` events among `windows[low:high]`."""
    i = _after(windows, low, high, at)
    if i > low:
        at = max(at, windows[i - 1, 0] + windows[i - 1, 1] + _gap(windows[i - 1, 3], kind))
    while i < high and windows[i, 0] < at + size + _gap(kind, windows[i, 3]):
        at = windows[i, 0] + windows[i, 1] + _gap(windows[i, 3], kind)
        i += 1
    return int(at)


_fit = compiled(_fit_python, "i", "miiiii")


def _starts_at_python(sends: Windows, low: int, high: int, event: int) -> int:
    """Events by which a write at `event` must move to miss the first two events of every send."""
    i = _after(sends, low, high, event)
    if i > low and sends[i - 1, 0] >= event - 1:
        return int(sends[i - 1, 0] + 2 - event)
    return 0


_starts_at = compiled(_starts_at_python, "i", "miii")


def _ends_python(windows: Windows, low: int, high: int, event: int) -> int:
    """Index of the window that ends at `event`, or -1."""
    i: int = _after(windows, low, high, event - 1)
    return i - 1 if i > low and windows[i - 1, 0] + windows[i - 1, 1] == event else -1


_ends = compiled(_ends_python, "i", "miii")


def _begins_python(windows: Windows, low: int, high: int, event: int) -> int:
    """Index of the window that begins at `event`, or -1."""
    i = _after(windows, low, high, event)
    return i - 1 if i > low and windows[i - 1, 0] == event else -1


_begins = compiled(_begins_python, "i", "miii")


def _writes_at_python(windows: Windows, low: int, high: int, delay: int, event: int) -> int:
    """The registers that the receives `windows[low:high]` write at `event`, as a bit set."""
    found = 0
    for i in (_begins(windows, low, high, event), _ends(windows, low, high, event)):
        if i >= 0 and windows[i, 3] == 0:
            found |= _MUX
    for i in (_begins(windows, low, high, event + 1), _ends(windows, low, high, event + 1)):
        if i >= 0 and windows[i, 3] & EARLY:
            found |= _PAIRMUX
    switch = event - delay + 2
    for i in (_begins(windows, low, high, switch), _ends(windows, low, high, switch)):
        if i >= 0 and windows[i, 3] & WIDE:
            found |= _FORMAT
    i = _begins(windows, low, high, event - delay)
    if i >= 0:
        found |= _WIDE_POINTER if windows[i, 3] & WIDE else _PLAIN_POINTER
    return found


_writes_at = compiled(_writes_at_python, "i", "miiii")


def _crossed_python(
    windows: Windows, low: int, high: int, delay: int, begin: int, size: int, kind: int
) -> bool:
    """True if a new window's register writes may not share an event with one that is there."""
    end = begin + size
    if kind & WIDE == 0:
        alone = _PAIRMUX | _FORMAT | _WIDE_POINTER
        return bool(
            _writes_at(windows, low, high, delay, begin) & alone
            or _writes_at(windows, low, high, delay, end) & alone
            or _writes_at(windows, low, high, delay, begin + delay) & (_PAIRMUX | _FORMAT)
        )
    pointers = _PLAIN_POINTER | _WIDE_POINTER
    if kind & EARLY:
        others = _MUX | _FORMAT | pointers
        if _writes_at(windows, low, high, delay, begin - 1) & others:
            return True
        if _writes_at(windows, low, high, delay, end - 1) & others:
            return True
    others = _MUX | _PAIRMUX | pointers
    return bool(
        _writes_at(windows, low, high, delay, begin + delay - 2) & others
        or _writes_at(windows, low, high, delay, end + delay - 2) & others
        or _writes_at(windows, low, high, delay, begin + delay) & (_MUX | _PAIRMUX | _FORMAT)
    )


_crossed = compiled(_crossed_python, "b", "miiiiii")


def _written_at_python(windows: Windows, low: int, high: int, delay: int, wide: bool, start: int) -> int:
    """Events by which a send at `start` must move so that no write falls on its first two events."""
    if wide:
        if _writes_at(windows, low, high, delay, start + 1):
            return 2
        return 1 if _writes_at(windows, low, high, delay, start) else 0
    i = _after(windows, low, high, start + 1)
    if i > low and windows[i - 1, 0] >= start:
        return int(windows[i - 1, 0] + 1 - start)
    while i > low:
        end = windows[i - 1, 0] + windows[i - 1, 1]
        if end < start:
            break
        if end <= start + 1:
            return int(end + 1 - start)
        i -= 1
    i = _after(windows, low, high, start + 1 - delay)
    if i > low and windows[i - 1, 0] + delay >= start:
        return int(windows[i - 1, 0] + delay + 1 - start)
    return 0


_written_at = compiled(_written_at_python, "i", "miiibi")


def _shared_python(
    windows: Windows, low: int, high: int, mask: int, first: int, stop: int, guard: int
) -> int:
    """Latest end (`guard` included) of the windows in one of the elements `mask` that overlap [first, stop),
    or `first`."""
    i = _after(windows, low, high, stop - 1)
    latest = first
    while i > low:
        end = windows[i - 1, 0] + windows[i - 1, 1] + guard
        if end <= first:
            break
        if windows[i - 1, 2] & mask:
            latest = max(latest, end)
        i -= 1
    return int(latest)


_shared = compiled(_shared_python, "i", "miiiiii")


def _receive_at_python(
    windows: Windows,
    low: int,
    high: int,
    sends: Windows,
    low_s: int,
    high_s: int,
    delay: int,
    begin: int,
    size: int,
    kind: int,
    mask: int,
    wide: bool,
) -> int:
    """An event from `begin` on before which a receiver cannot take a message; `begin` itself if it then can.

    `mask` is 0 if the tile sends from none of the elements written, `wide` tells that it receives wide
    messages at all.
    """
    at = _fit(windows, low, high, begin, size, kind)
    if kind & WIDE == 0:
        at += _starts_at(sends, low_s, high_s, at)
        at += _starts_at(sends, low_s, high_s, at + size)
    else:
        if kind & EARLY:
            at += _starts_at(sends, low_s, high_s, at - 1)
            at += _starts_at(sends, low_s, high_s, at + size - 1)
        at += _starts_at(sends, low_s, high_s, at + delay - 2)
        at += _starts_at(sends, low_s, high_s, at + delay + size - 2)
    at += _starts_at(sends, low_s, high_s, at + delay)
    if mask:
        store = at + delay
        at = _shared(sends, low_s, high_s, mask, store, store + size + _GUARD, 0) - delay
    if at == begin and wide and _crossed(windows, low, high, delay, at, size, kind):
        at += 1
    return int(at)


_receive_at = compiled(_receive_at_python, "i", "miimiiiiiiib")


def _insert_python(windows: Windows, low: int, high: int, at: int, size: int, mask: int, kind: int) -> None:
    i = high
    while i > low and windows[i - 1, 0] > at:
        for column in range(4):
            windows[i, column] = windows[i - 1, column]
        i -= 1
    windows[i, 0] = at
    windows[i, 1] = size
    windows[i, 2] = mask
    windows[i, 3] = kind


_insert = compiled(_insert_python, "-", "miiiiii")


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
    order: Ints,
    parts: Ints,
    source: Ints,
    items: Ints,
    control: Ints,
    elements: Ints,
    offsets: Ints,
    tile: Ints,
    route: Ints,
    kind: Ints,
    written: Ints,
    send_offsets: Ints,
    receive_offsets: Ints,
    read_union: Ints,
    write_union: Ints,
    hears_wide: Ints,
    leaves: Ints,
) -> int:
    sends = np.zeros((send_offsets[-1], 4), np.int64)
    windows = np.zeros((receive_offsets[-1], 4), np.int64)
    send_count = np.zeros(len(send_offsets) - 1, np.int64)
    count = np.zeros(len(send_offsets) - 1, np.int64)
    most = 0
    for message in order:
        most = max(most, offsets[message + 1] - offsets[message])
    left = np.zeros(most, np.int64)
    earliest = np.zeros(most, np.int64)
    horizon = 0
    for message in order:
        s, n, reads, wide = source[message], items[message], elements[message], control[message] & 4
        low, low_x = send_offsets[s], receive_offsets[s]
        high_x = low_x + count[s]
        low_p = send_offsets[s ^ 2]
        delay = _POINTER + 2 * (s >> 6)
        hazard = reads & write_union[s] != 0
        step = 2 if wide else 1
        remaining = offsets[message + 1] - offsets[message]
        for i in range(remaining):
            left[i] = offsets[message] + i
        for part in range(parts[message], 0, -1):
            high, high_p = low + send_count[s], low_p + send_count[s ^ 2]
            needed = (remaining // step + part - 1) // part * step
            start = sends[high - LOOK_BACK, 0] if high - low > LOOK_BACK else 0
            if remaining == 1 and count[tile[left[0]]] > LOOK_BACK:
                j = left[0]
                start = max(
                    start, windows[receive_offsets[tile[j]] + count[tile[j]] - LOOK_BACK, 0] - route[j]
                )
            while True:
                # The sender alone, then what each receiver alone allows from there on.
                start = _fit(sends, low, high, start, n, 0)
                if wide:
                    lent = _fit(sends, low_p, high_p, start, n, 0)
                    if lent != start:
                        start = lent
                        continue
                moved = _written_at(windows, low_x, high_x, delay, hears_wide[s] != 0, start)
                if hazard and moved == 0:
                    p = start - delay
                    moved = _shared(windows, low_x, high_x, reads, p, p + n, _GUARD) - p
                if moved:
                    start += moved
                    continue
                for i in range(remaining):
                    j = left[i]
                    d = tile[j]
                    low_r, low_s = receive_offsets[d], send_offsets[d]
                    first = max(start + route[j] + 1, 2 if kind[j] & EARLY else 1)
                    at = _receive_at(
                        windows,
                        low_r,
                        low_r + count[d],
                        sends,
                        low_s,
                        low_s + send_count[d],
                        _POINTER + 2 * (d >> 6),
                        first,
                        n,
                        kind[j],
                        written[j] & read_union[d],
                        hears_wide[d] != 0,
                    )
                    earliest[i] = at - route[j] - 1
                    if wide and i & 1:
                        earliest[i] = max(earliest[i], earliest[i - 1])
                        earliest[i - 1] = earliest[i]
                ready = 0
                for i in range(remaining):
                    if earliest[i] == start:
                        ready += 1
                if ready >= needed:
                    break
                start = _rank(earliest, remaining, needed, start)
            _insert(sends, low, high, start, n, reads, 0)
            send_count[s] += 1
            if wide:
                _insert(sends, low_p, high_p, start, n, 0, 0)
                send_count[s ^ 2] += 1
            horizon = max(horizon, start + n)
            kept = 0
            for i in range(remaining):
                j = left[i]
                if earliest[i] != start:
                    left[kept] = j
                    kept += 1
                    continue
                d = tile[j]
                x = start + route[j] + 1
                low_r = receive_offsets[d]
                _insert(windows, low_r, low_r + count[d], x, n, written[j], kind[j])
                count[d] += 1
                leaves[j] = start
                horizon = max(horizon, x + _POINTER + 2 * (d >> 6) + n + _GUARD)
            remaining = kept
            if kept == 0:
                break
    return horizon


place = compiled(_place_python, "i", "vvvvvvvvvvvvvvvvv")
"""Place messages greedily; message and receiver arrays as in `messages.Messages`.

`order` lists all messages; `parts` tells into how many sends each may be divided, every one to the receivers
that are ready for it; `kind` is that of each receiver's window; `send_offsets` (room for all parts, lent
lanes too) and `receive_offsets` count messages per tile id (cumulative); `read_union` and `write_union` are
the element masks of everything a tile sends and receives; `hears_wide` is not 0 for tiles with wide windows;
`leaves` is filled with the sender event at which each receiver's words leave. Returns the latest row end.
"""
