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

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

_GUARD = 5
_POINTER = 52

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


_after: Callable[..., Any] = numba.njit(cache=True)(_after_python)


def _fit_python(begin: Ints, words: Ints, low: int, high: int, at: int, size: int) -> int:
    """The first event from `at` on with `size` free events among the windows `[low:high]`."""
    i = _after(begin, low, high, at)
    if i > low:
        at = max(at, begin[i - 1] + words[i - 1])
    while i < high and begin[i] < at + size:
        at = begin[i] + words[i]
        i += 1
    return int(at)


_fit: Callable[..., Any] = numba.njit(cache=True)(_fit_python)


def _starts_at_python(begin: Ints, low: int, high: int, event: int) -> int:
    """Events by which a write at `event` must move to miss the first two events of every send."""
    i = _after(begin, low, high, event)
    if i > low and begin[i - 1] >= event - 1:
        return int(begin[i - 1] + 2 - event)
    return 0


_starts_at: Callable[..., Any] = numba.njit(cache=True)(_starts_at_python)


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


_written_at: Callable[..., Any] = numba.njit(cache=True)(_written_at_python)


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


_shared: Callable[..., Any] = numba.njit(cache=True)(_shared_python)


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


_insert: Callable[..., None] = numba.njit(cache=True)(_insert_python)


def _place_python(
    order: Ints,
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
    starts: Ints,
) -> int:
    """Fill `starts` (the event S of every message), placing messages in `order`. Returns the last row end."""
    send_begin = np.zeros(send_offsets[-1], np.int64)
    send_words = np.zeros(send_offsets[-1], np.int64)
    send_masks = np.zeros(send_offsets[-1], np.int64)
    mux_begin = np.zeros(receive_offsets[-1], np.int64)
    mux_words = np.zeros(receive_offsets[-1], np.int64)
    mux_masks = np.zeros(receive_offsets[-1], np.int64)
    send_count = np.zeros(len(send_offsets) - 1, np.int64)
    mux_count = np.zeros(len(send_offsets) - 1, np.int64)
    horizon = 0
    for message in order:
        s, n, reads = source[message], words[message], elements[message]
        first, last = offsets[message], offsets[message + 1]
        low, low_x = send_offsets[s], receive_offsets[s]
        high, high_x = low + send_count[s], low_x + mux_count[s]
        delay = _POINTER + 2 * (s >> 6)
        hazard = reads & write_union[s] != 0
        start = 0
        for j in range(first, last):
            start = max(start, -route[j])
        moved = True
        while moved:
            begun = start
            start = _fit(send_begin, send_words, low, high, start, n)
            start += _written_at(mux_begin, mux_words, low_x, high_x, delay, start)
            if hazard:
                start = delay + _shared(
                    mux_begin,
                    mux_words,
                    mux_masks,
                    low_x,
                    high_x,
                    reads,
                    start - delay,
                    start - delay + n,
                    _GUARD,
                )
            moved = start != begun
            for j in range(first, last):
                d = tile[j]
                x = start + route[j] + 1
                low_r, low_s = receive_offsets[d], send_offsets[d]
                high_r, high_s = low_r + mux_count[d], low_s + send_count[d]
                at = _fit(mux_begin, mux_words, low_r, high_r, x, n)
                after = _POINTER + 2 * (d >> 6)
                at += _starts_at(send_begin, low_s, high_s, at)
                at += _starts_at(send_begin, low_s, high_s, at + n)
                at += _starts_at(send_begin, low_s, high_s, at + after)
                if written[j] & read_union[d]:
                    p = at + after
                    at = (
                        _shared(
                            send_begin,
                            send_words,
                            send_masks,
                            low_s,
                            high_s,
                            written[j],
                            p,
                            p + n + _GUARD,
                            0,
                        )
                        - after
                    )
                if at != x:
                    start += at - x
                    moved = True
        starts[message] = start
        _insert(send_begin, send_words, send_masks, low, high, start, n, reads)
        send_count[s] += 1
        horizon = max(horizon, start + n)
        for j in range(first, last):
            d = tile[j]
            x = start + route[j] + 1
            low_r = receive_offsets[d]
            _insert(mux_begin, mux_words, mux_masks, low_r, low_r + mux_count[d], x, n, written[j])
            mux_count[d] += 1
            horizon = max(horizon, x + _POINTER + 2 * (d >> 6) + n + _GUARD)
    return horizon


place: Callable[..., Any] = numba.njit(cache=True)(_place_python)
"""Place messages greedily; arguments as in `transfers.Messages`.

`order` lists all messages; `send_offsets` and `receive_offsets` count messages per tile id (cumulative);
`read_union` and `write_union` are the element masks of everything a tile sends and receives; `starts` is
filled with the sender event S of every message. Returns the latest row end.
"""
