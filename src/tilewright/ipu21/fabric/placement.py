"""Placing messages in time, one after another, each at the earliest event that breaks no rule (compiled).

A message that leaves at event S of its sender occupies the sender's lane for [S, S+n) and, at each receiver,
the mux for [X, X+n) with X = S + T + 1 and the pointer for [P, P+n) with P = X + 52 + 2 row. One list of
windows per tile serves both, because they differ by a constant of the tile. Rules, all per tile:

* lanes: sends do not overlap, mux windows do not overlap;
* controls: no mux or pointer write (X, X+n, P) at the first two events of a send;
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

Ints = NDArray[np.int64]


def _after_python(values: Ints, low: int, high: int, value: int) -> int:
    """Index of the first of the sorted `values[low:high]` above `value`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


_after = compiled(_after_python, "i", "viii")


def _fit_python(begin: Ints, words: Ints, low: int, high: int, at: int, size: int) -> int:
    """The first event from `at` on with `size` free events among the windows `[low:high]`."""
    i = _after(begin, low, high, at)
    if i > low:
        at = max(at, begin[i - 1] + words[i - 1])
    while i < high and begin[i] < at + size:
        at = begin[i] + words[i]
        i += 1
    return int(at)


_fit = compiled(_fit_python, "i", "vviiii")


def _starts_at_python(begin: Ints, low: int, high: int, event: int) -> int:
    """Events by which a write at `event` must move to miss the first two events of every send."""
    i = _after(begin, low, high, event)
    if i > low and begin[i - 1] >= event - 1:
        return int(begin[i - 1] + 2 - event)
    return 0


_starts_at = compiled(_starts_at_python, "i", "viii")


def _written_at_python(begin: Ints, words: Ints, low: int, high: int, delay: int, start: int) -> int:
    """Events by which a send at `start` must move so that no write falls on its first two events."""
    i = _after(begin, low, high, start + 1)
    if i > low and begin[i - 1] >= start:
        return int(begin[i - 1] + 1 - start)
    while i > low:
        end = begin[i - 1] + words[i - 1]
        if end < start:
            break
        if end <= start + 1:
            return int(end + 1 - start)
        i -= 1
    i = _after(begin, low, high, start + 1 - delay)
    if i > low and begin[i - 1] + delay >= start:
        return int(begin[i - 1] + delay + 1 - start)
    return 0


_written_at = compiled(_written_at_python, "i", "vviiii")


def _shared_python(
    begin: Ints, words: Ints, masks: Ints, low: int, high: int, mask: int, first: int, stop: int, guard: int
) -> int:
    """Latest end (`guard` included) of the windows in one of the elements `mask` that overlap [first, stop),
    or `first`."""
    i = _after(begin, low, high, stop - 1)
    latest = first
    while i > low:
        end = begin[i - 1] + words[i - 1] + guard
        if end <= first:
            break
        if masks[i - 1] & mask:
            latest = max(latest, end)
        i -= 1
    return latest


_shared = compiled(_shared_python, "i", "vvviiiiii")


def _insert_python(
    begin: Ints, words: Ints, masks: Ints, low: int, high: int, at: int, size: int, mask: int
) -> None:
    i = high
    while i > low and begin[i - 1] > at:
        begin[i] = begin[i - 1]
        words[i] = words[i - 1]
        masks[i] = masks[i - 1]
        i -= 1
    begin[i] = at
    words[i] = size
    masks[i] = mask


_insert = compiled(_insert_python, "-", "vvviiiii")


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
    words: Ints,
    elements: Ints,
    offsets: Ints,
    tile: Ints,
    route: Ints,
    written: Ints,
    send_offsets: Ints,
    receive_offsets: Ints,
    read_union: Ints,
    write_union: Ints,
    leaves: Ints,
) -> int:
    send_begin = np.zeros(send_offsets[-1], np.int64)
    send_words = np.zeros(send_offsets[-1], np.int64)
    send_masks = np.zeros(send_offsets[-1], np.int64)
    mux_begin = np.zeros(receive_offsets[-1], np.int64)
    mux_words = np.zeros(receive_offsets[-1], np.int64)
    mux_masks = np.zeros(receive_offsets[-1], np.int64)
    send_count = np.zeros(len(send_offsets) - 1, np.int64)
    mux_count = np.zeros(len(send_offsets) - 1, np.int64)
    most = 0
    for message in order:
        most = max(most, offsets[message + 1] - offsets[message])
    left = np.zeros(most, np.int64)
    earliest = np.zeros(most, np.int64)
    horizon = 0
    for message in order:
        s, n, reads = source[message], words[message], elements[message]
        low, low_x = send_offsets[s], receive_offsets[s]
        high_x = low_x + mux_count[s]
        delay = _POINTER + 2 * (s >> 6)
        hazard = reads & write_union[s] != 0
        remaining = offsets[message + 1] - offsets[message]
        for i in range(remaining):
            left[i] = offsets[message] + i
        for part in range(parts[message], 0, -1):
            high = low + send_count[s]
            needed = (remaining + part - 1) // part
            start = send_begin[high - LOOK_BACK] if high - low > LOOK_BACK else 0
            if remaining == 1 and mux_count[tile[left[0]]] > LOOK_BACK:
                j = left[0]
                start = max(
                    start, mux_begin[receive_offsets[tile[j]] + mux_count[tile[j]] - LOOK_BACK] - route[j]
                )
            while True:
                # The sender alone, then what each receiver alone allows from there on.
                start = _fit(send_begin, send_words, low, high, start, n)
                moved = _written_at(mux_begin, mux_words, low_x, high_x, delay, start)
                if hazard and moved == 0:
                    p = start - delay
                    moved = (
                        _shared(mux_begin, mux_words, mux_masks, low_x, high_x, reads, p, p + n, _GUARD) - p
                    )
                if moved:
                    start += moved
                    continue
                ready = 0
                for i in range(remaining):
                    j = left[i]
                    d = tile[j]
                    x = max(start + route[j] + 1, 1)
                    low_r, low_s = receive_offsets[d], send_offsets[d]
                    high_r, high_s = low_r + mux_count[d], low_s + send_count[d]
                    at = _fit(mux_begin, mux_words, low_r, high_r, x, n)
                    after = _POINTER + 2 * (d >> 6)
                    at += _starts_at(send_begin, low_s, high_s, at)
                    at += _starts_at(send_begin, low_s, high_s, at + n)
                    at += _starts_at(send_begin, low_s, high_s, at + after)
                    if written[j] & read_union[d]:
                        p, end = at + after, at + after + n + _GUARD
                        at = _shared(send_begin, send_words, send_masks, low_s, high_s, written[j], p, end, 0)
                        at -= after
                    earliest[i] = at - route[j] - 1
                    if earliest[i] == start:
                        ready += 1
                if ready >= needed:
                    break
                start = _rank(earliest, remaining, needed, start)
            _insert(send_begin, send_words, send_masks, low, high, start, n, reads)
            send_count[s] += 1
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
                _insert(mux_begin, mux_words, mux_masks, low_r, low_r + mux_count[d], x, n, written[j])
                mux_count[d] += 1
                leaves[j] = start
                horizon = max(horizon, x + _POINTER + 2 * (d >> 6) + n + _GUARD)
            remaining = kept
            if kept == 0:
                break
    return horizon


place = compiled(_place_python, "i", "vvvvvvvvvvvvvv")
"""Place messages greedily; message and receiver arrays as in `transfers.Messages`.

`order` lists all messages; `parts` tells into how many sends each may be divided, every one to the receivers
that are ready for it; `send_offsets` (room for all parts) and `receive_offsets` count messages per tile id
(cumulative); `read_union` and `write_union` are the element masks of everything a tile sends and receives;
`leaves` is filled with the sender event at which each receiver's words leave. Returns the latest row end.
"""
