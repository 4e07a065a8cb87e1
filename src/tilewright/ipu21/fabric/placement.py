"""Placing messages in time, each at the earliest event that breaks no rule (compiled).

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

import numpy as np
from numpy.typing import NDArray

from ...native.loops import compiled
from ..machine.topology import MUX_TO_POINTER_BASE, RECEIVE_GUARD

LOOK_BACK, LOOK_BACK_EVENTS = 64, 256
"""Gaps are sought among the latest so many windows of a tile, lest the search grow with the phase, but in at
least so many events: routes differ by up to 190."""

_REACH = 104
"""Events after its end by which a window's last store, with the guard, is over: 52 + 2 * 22 + 5, and some."""

_CHOICE = 64
"""Messages among which a receiver chooses."""

_PATIENCE = 32
"""Events later than would be possible at best within which a candidate's place is sought first."""
NEVER = 1 << 60
"""A length that everything is shorter than; that of a placement given up."""

WIDE, EARLY, STEADY, ODD = 4, 8, 16, 32
"""Bits of a receive window's kind, beside the direction in the lower two; 0 is a 32-bit window. STEADY: it
begins at even events only, or at odd ones if ODD too. Windows of one tile that do, and have even lengths,
never have writes at one event that may not share it."""
_FORM = 7
"""Bits of a kind that tell the format: 0, or a direction and WIDE."""
LENT = 1
"""Kind of a send that is the partner's, by this tile's lane; its own have 0."""
_MUX, _PAIRMUX, _FORMAT, _PLAIN_POINTER, _WIDE_POINTER = 1, 2, 4, 8, 16

SOURCE, ITEMS, CONTROL, READS, OWN, FIRST = range(6)
"""Columns of messages: OWN is not 0 if the sender is among the receivers, FIRST is the first of these (the
next message's follow)."""
TILE, ROUTE, KIND, WRITES = range(4)
"""Columns of receivers: KIND is that of the window, WRITES an element mask."""
SENDS, SENT, WINDOWS, HEARD, READ, WRITTEN, HEARS_WIDE = range(7)
"""Columns of tiles: where its sends and windows begin and how many there are so far, the elements of all that
it sends and receives, and whether it receives wide messages."""

Ints = NDArray[np.int64]
Table = NDArray[np.int64]
Windows = NDArray[np.int32]
"""[n, 3]: begin, end, kind. Sorted and disjoint within each tile's slice; small, since memory limits the
search. The element masks of the windows lie in an array beside them."""


def _after_python(windows: Windows, low: int, high: int, value: int) -> int:
    """Index of the first of the sorted `windows[low:high]` that begins after `value`."""
    while low < high:
        middle = (low + high) >> 1
        if windows[middle, 0] > value:
            high = middle
        else:
            low = middle + 1
    return low


_after = compiled(_after_python, "i", "siii")


def _gap_python(one: int, two: int) -> int:
    """Events between a window of kind `one` and the next, of kind `two`."""
    return 2 if two & WIDE and one & _FORM != two & _FORM else 0


_gap = compiled(_gap_python, "i", "ii")


def _fit_python(windows: Windows, low: int, high: int, at: int, size: int, kind: int) -> int:
    """The first event from `at` on with room for a window of `size` events among `windows[low:high]`."""
    if high > low and windows[high - 1, 0] <= at:
        return max(at, int(windows[high - 1, 1] + _gap(windows[high - 1, 2], kind)))
    i = _after(windows, low, high, at)
    if i > low:
        at = max(at, windows[i - 1, 1] + _gap(windows[i - 1, 2], kind))
    while i < high and windows[i, 0] < at + size + _gap(kind, windows[i, 2]):
        at = windows[i, 1] + _gap(windows[i, 2], kind)
        i += 1
    return int(at)


_fit = compiled(_fit_python, "i", "siiiii")


def _starts_at_python(sends: Windows, low: int, high: int, event: int) -> int:
    """Events by which a write at `event` must move to miss the first two events of every send of its own."""
    if high == low or sends[high - 1, 0] < event - 1:
        return 0
    i = _after(sends, low, high, event)
    while i > low and sends[i - 1, 0] >= event - 1:
        if sends[i - 1, 2] != LENT:
            return int(sends[i - 1, 0] + 2 - event)
        i -= 1
    return 0


_starts_at = compiled(_starts_at_python, "i", "siii")


def _form_before_python(windows: Windows, low: int, i: int) -> int:
    """The format of the window before the one at `i`; of the first of the tile's, what a row begins with."""
    return int(windows[i - 1, 2] & _FORM) if i > low else 0


_form_before = compiled(_form_before_python, "i", "sii")


def _writes_at_python(windows: Windows, low: int, high: int, delay: int, event: int) -> bool:
    """True if one of the receives `windows[low:high]` writes a register at `event`."""
    i = _after(windows, low, high, event + 1)
    while i > low and windows[i - 1, 1] + delay >= event:
        i -= 1
        first, stop, kind = windows[i, 0], windows[i, 1], windows[i, 2]
        if first + delay == event or (kind == 0 and event in (first, stop)):
            return True
        if first + delay - 2 == event and _form_before(windows, low, i) != kind & _FORM:
            return True
        if kind & EARLY and event in (first - 1, stop - 1):
            return True
    return False


_writes_at = compiled(_writes_at_python, "b", "siiii")


def _met_python(kind: int, event: int, begin: int, end: int, opens: int, store: int, write: int) -> bool:
    """True if a window of `kind` has a write at `event` that may not share it with `write`. `opens` is the
    event at which it switches the format, -1 if it does not."""
    if event == opens and write != _FORMAT:
        return True
    if kind & WIDE == 0:
        if event in (begin, end) and write & (_PAIRMUX | _FORMAT | _WIDE_POINTER):
            return True
        return bool(event == store and write & (_PAIRMUX | _FORMAT))
    if kind & EARLY and (event in (begin - 1, end - 1)) and write != _PAIRMUX:
        return True
    return bool(event == store and write & (_MUX | _PAIRMUX | _FORMAT))


_met = compiled(_met_python, "b", "iiiiiii")


def _crossed_python(
    windows: Windows, low: int, high: int, delay: int, begin: int, size: int, kind: int
) -> bool:
    """True if a new window's register writes may not share an event with one that is there."""
    end = begin + size
    store, opens = begin + delay, -1
    i = _after(windows, low, high, end + delay + 1)
    place = _after(windows, low, high, begin)
    if _form_before(windows, low, place) != kind & _FORM:
        opens = store - 2
    while i > low and windows[i - 1, 1] + delay >= begin - 1:
        i -= 1
        first, stop, other = windows[i, 0], windows[i, 1], windows[i, 2]
        # The writes of the other window, each with those of the new one that it may not meet.
        for edge in (first, stop):
            if other & WIDE == 0:
                meets = _met(kind, edge, begin, end, opens, store, _MUX)
            else:
                meets = other & EARLY and _met(kind, edge - 1, begin, end, opens, store, _PAIRMUX)
            if meets:
                return True
        before = kind & _FORM if i == place else _form_before(windows, low, i)
        if before != other & _FORM and _met(kind, first + delay - 2, begin, end, opens, store, _FORMAT):
            return True
        pointer = _WIDE_POINTER if other & WIDE else _PLAIN_POINTER
        if _met(kind, first + delay, begin, end, opens, store, pointer):
            return True
    return False


_crossed = compiled(_crossed_python, "b", "siiiiii")


def _parted_python(
    windows: Windows,
    low: int,
    high: int,
    sends: Windows,
    low_s: int,
    high_s: int,
    delay: int,
    at: int,
    kind: int,
) -> int:
    """`at` unless a window there would make the next one switch the format back at an event that has no room
    for that: then where that one is over."""
    i = _after(windows, low, high, at)
    if i == high or windows[i, 2] & _FORM == kind & _FORM:
        return at
    if _form_before(windows, low, i) != windows[i, 2] & _FORM:
        return at
    back = windows[i, 0] + delay - 2
    if _starts_at(sends, low_s, high_s, back) or _writes_at(windows, low, high, delay, back):
        return int(windows[i, 1])
    return at


_parted = compiled(_parted_python, "i", "siisiiiii")


def _written_at_python(windows: Windows, low: int, high: int, delay: int, start: int) -> int:
    """Events by which a send at `start` must move so that no write falls on its first two events."""
    if _writes_at(windows, low, high, delay, start + 1):
        return 2
    return 1 if _writes_at(windows, low, high, delay, start) else 0


_written_at = compiled(_written_at_python, "i", "siiii")


def _shared_python(
    windows: Windows, masks: Ints, low: int, high: int, mask: int, first: int, stop: int, guard: int
) -> int:
    """Latest end (`guard` included) of the windows in one of the elements `mask` that overlap [first, stop),
    or `first`."""
    i = _after(windows, low, high, stop - 1)
    latest = first
    while i > low:
        end = windows[i - 1, 1] + guard
        if end <= first:
            break
        if masks[i - 1] & mask:
            latest = max(latest, end)
        i -= 1
    return int(latest)


_shared = compiled(_shared_python, "i", "sviiiiii")


def _recent_python(windows: Windows, low: int, high: int) -> tuple[int, int]:
    """Where the search begins in the slice [low:high]: first index, and the first event that no older window
    has to do with."""
    if high - low <= LOOK_BACK:
        return low, 0
    first = high - LOOK_BACK
    if windows[high - 1, 0] - windows[first, 0] < LOOK_BACK_EVENTS:
        first = max(high - LOOK_BACK_EVENTS, low)
        if first == low:
            return low, 0
    return first, windows[first, 0] + _REACH


_recent = compiled(_recent_python, "2", "sii")


def _sender_at_python(
    messages: Table, tiles: Table, sends: Windows, windows: Windows, masks: Ints, message: int, start: int
) -> int:
    """The first event from `start` on at which a message can leave, if receivers do not matter."""
    s, n = messages[message, SOURCE], messages[message, ITEMS]
    reads, wide = messages[message, READS], messages[message, CONTROL] & WIDE
    delay = MUX_TO_POINTER_BASE + 2 * (s >> 6)
    high = tiles[s, SENDS] + tiles[s, SENT]
    low, floor = _recent(sends, tiles[s, SENDS], high)
    high_x = tiles[s, WINDOWS] + tiles[s, HEARD]
    low_x, floor_x = _recent(windows, tiles[s, WINDOWS], high_x)
    start, low_p, high_p = max(start, floor, floor_x), 0, 0
    if wide:
        high_p = tiles[s ^ 2, SENDS] + tiles[s ^ 2, SENT]
        low_p, floor = _recent(sends, tiles[s ^ 2, SENDS], high_p)
        start = max(start, floor)
    while True:
        begin = start
        start = _fit(sends, low, high, start, n, 0)
        if wide:
            start = _fit(sends, low_p, high_p, start, n, 0)
            if start != begin:
                continue
        start += _written_at(windows, low_x, high_x, delay, start)
        if reads & tiles[s, WRITTEN]:
            store = start - delay
            start = _shared(windows, masks, low_x, high_x, reads, store, store + n, RECEIVE_GUARD) + delay
        if start == begin:
            return int(start)


_sender_at = compiled(_sender_at_python, "i", "mmssvii")


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
    low, floor = _recent(windows, tiles[d, WINDOWS], high)
    high_s = tiles[d, SENDS] + tiles[d, SENT]
    low_s, floor_s = _recent(sends, tiles[d, SENDS], high_s)
    begin = start + route + 1
    at = max(begin, floor, floor_s, 2 if kind & EARLY else 1)
    if at != begin:
        return int(at - route - 1)
    at = _fit(windows, low, high, at, n, kind)
    if kind & STEADY:
        at += (at ^ kind >> 5) & 1
    if kind & WIDE == 0:
        at += _starts_at(sends, low_s, high_s, at)
        at += _starts_at(sends, low_s, high_s, at + n)
    elif kind & EARLY:
        at += _starts_at(sends, low_s, high_s, at - 1)
        at += _starts_at(sends, low_s, high_s, at + n - 1)
    if tiles[d, HEARS_WIDE]:
        if _form_before(windows, low, _after(windows, low, high, at)) != kind & _FORM:
            at += _starts_at(sends, low_s, high_s, at + delay - 2)
        at = _parted(windows, low, high, sends, low_s, high_s, delay, at, kind)
    at += _starts_at(sends, low_s, high_s, at + delay)
    mask = receivers[receiver, WRITES]
    if mask & tiles[d, READ]:
        store = at + delay
        at = _shared(sends, send_masks, low_s, high_s, mask, store, store + n + RECEIVE_GUARD, 0) - delay
    if at == begin and tiles[d, HEARS_WIDE] and _crossed(windows, low, high, delay, at, n, kind):
        at += 1
    return int(at - route - 1)


_receiver_at = compiled(_receiver_at_python, "i", "mmmsvsviii")


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


_insert = compiled(_insert_python, "-", "sviiiiii")


def _send_python(
    messages: Table, tiles: Table, sends: Windows, send_masks: Ints, message: int, start: int
) -> None:
    """Enter a send."""
    s, n = messages[message, SOURCE], messages[message, ITEMS]
    low = tiles[s, SENDS]
    _insert(sends, send_masks, low, low + tiles[s, SENT], start, n, messages[message, READS], 0)
    tiles[s, SENT] += 1
    if messages[message, CONTROL] & WIDE:
        low = tiles[s ^ 2, SENDS]
        _insert(sends, send_masks, low, low + tiles[s ^ 2, SENT], start, n, 0, LENT)
        tiles[s ^ 2, SENT] += 1


_send = compiled(_send_python, "-", "mmsvii")


def _receive_python(
    receivers: Table, tiles: Table, windows: Windows, masks: Ints, receiver: int, start: int, size: int
) -> int:
    """Enter a receive; the event at which it is over."""
    d = receivers[receiver, TILE]
    at, low = start + receivers[receiver, ROUTE] + 1, tiles[d, WINDOWS]
    mask, kind = receivers[receiver, WRITES], receivers[receiver, KIND]
    _insert(windows, masks, low, low + tiles[d, HEARD], at, size, mask, kind)
    tiles[d, HEARD] += 1
    return int(at + MUX_TO_POINTER_BASE + 2 * (d >> 6) + size + RECEIVE_GUARD)


_receive = compiled(_receive_python, "i", "mmsviii")


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
                start = _sender_at(messages, tiles, sends, windows, masks, message, start)
                ready = 0
                if needed >= remaining:
                    begin = start
                    for i in range(remaining):
                        j = left[i]
                        start = _receiver_at(
                            messages, receivers, tiles, sends, send_masks, windows, masks, message, j, start
                        )
                        earliest[i] = start
                    if start == begin:
                        break
                    continue
                for i in range(remaining):
                    earliest[i] = _receiver_at(
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
            _send(messages, tiles, sends, send_masks, message, start)
            horizon = max(horizon, start + n)
            kept = 0
            for i in range(remaining):
                j = left[i]
                if earliest[i] == start:
                    over[j] = _receive(receivers, tiles, windows, masks, j, start, n)
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
) -> int:
    """Place messages greedily, in their order.

    `parts` tells into how many sends each may be divided, each to the receivers that are ready for it; the
    tables have the columns above, messages and tiles one row more that ends the last slices (the slices of
    sends have room for all parts and lent lanes); sends and windows, and the masks of each, need no contents.
    A message leaves after the receivers `waits` in its slice of `wait_offsets` have stored what they get
    (their messages come before it). `leaves` is filled with the sender event at which each receiver's items
    leave. Returns the latest row end.
    """
    most = int(np.diff(messages[:, FIRST]).max(initial=0))
    room = np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(len(receivers), np.int64)
    lists = sends, send_masks, windows, masks
    return int(_place(parts, messages, receivers, tiles, wait_offsets, waits, *lists, leaves, *room))


def _push_python(heap: Ints, count: int, value: int) -> int:
    """Add a number to a heap, whose least comes first; how many there are now."""
    i = count
    while i > 0 and heap[(i - 1) >> 1] > value:
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    heap[i] = value
    return count + 1


_push = compiled(_push_python, "i", "vii")


def _pop_python(heap: Ints, count: int) -> int:
    """Take the least of `count` numbers from a heap."""
    least, value = heap[0], heap[count - 1]
    i, child = 0, 1
    while child < count - 1:
        if child + 1 < count - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[i] = heap[child]
        i, child = child, 2 * child + 1
    heap[i] = value
    return int(least)


_pop = compiled(_pop_python, "i", "vi")


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
            entries = _push(heap, entries, max(1, limit - to_hear[d] - patience) << 11 | d)
    horizon = 0
    while entries:
        least = _pop(heap, entries)
        entries -= 1
        now, d = least >> 11, least & 2047
        if waiting[d] == 0:
            continue
        due = max(free[d], limit - to_hear[d] - patience)
        if due > now:
            entries = _push(heap, entries, due << 11 | d)
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
            start = _sender_at(messages, tiles, sends, windows, masks, m, start)
            begin = start
            for j in range(first, last):
                if leaves[j] < 0 and (
                    together or j == chosen or (wide and (j - first) ^ 1 == chosen - first)
                ):
                    start = max(
                        start,
                        _receiver_at(
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
                    at = _receiver_at(
                        messages, receivers, tiles, sends, send_masks, windows, masks, m, k, start
                    )
                    joins = at == start
            if joins:
                leaves[j : j + step] = start
        _send(messages, tiles, sends, send_masks, m, start)
        lane[s] = max(lane[s], start + n)
        if wide:
            lane[s ^ 2] = max(lane[s ^ 2], start + n)
        horizon = max(horizon, start + n)
        for j in range(first, last):
            if leaves[j] == start:
                to = receivers[j, TILE]
                horizon = max(horizon, _receive(receivers, tiles, windows, masks, j, start, n))
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
            entries = _push(heap, entries, max(free[d], limit - to_hear[d] - patience) << 11 | d)
    return int(horizon)


_sweep = compiled(_sweep_python, "i", "iiiivvmmmsvsvvvvmv")


def sweep(
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
) -> int:
    """Place messages by the clock: the receiver that cannot wait longer chooses the message it can begin
    first, and whoever else wants that one and is free joins in.

    `limit` is the length aimed at, and `patience` how much earlier than its last chance a receiver begins to
    choose; `ease` is the percentage of its spare time that a receiver may lose at once by joining; `salt`, if
    not 0, makes receivers choose among equals by chance. `owner` is the message of each receiver, `inbox`
    lists the receivers tile by tile (both are used up); the tables are as for `place`, with room for one send
    per receiver; `leaves` must hold -1. Returns the latest row end.
    """
    total = len(tiles) - 1
    room = np.zeros(len(inbox), np.int64), np.zeros(len(messages), np.int64), np.zeros((5, total), np.int64)
    lists, heap = (sends, send_masks, windows, masks), np.empty(total, np.int64)
    ways = limit, patience, ease, salt
    return int(_sweep(*ways, owner, inbox, messages, receivers, tiles, *lists, leaves, *room, heap))


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
        begin = start = _sender_at(messages, tiles, sends, windows, masks, message, start)
        for j in range(messages[message, FIRST], messages[message + 1, FIRST]):
            start = _receiver_at(
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
            entries = _push(heap, entries, layers[i] << 48 | i)
    horizon = 0
    while entries and horizon < known and looks[0] < most:
        entry = _pop(heap, entries)
        entries -= 1
        q = entry & 0xFFFF
        m = order[head[q]]
        due = 0
        for j in range(messages[m, FIRST], messages[m + 1, FIRST]):
            due = max(due, free[receivers[j, TILE]])
        if due > entry >> 16 & 0xFFFFFFFF:
            entries = _push(heap, entries, layers[q] << 48 | due << 16 | q)
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
        _send(messages, tiles, sends, send_masks, m, best)
        left[s] -= n
        lane[s] = max(lane[s], best + n)
        if messages[m, CONTROL] & WIDE:
            lane[s ^ 2] = max(lane[s ^ 2], best + n)
        horizon = max(horizon, best + n)
        due = 0
        for j in range(messages[m, FIRST], messages[m + 1, FIRST]):
            to = receivers[j, TILE]
            horizon = max(horizon, _receive(receivers, tiles, windows, masks, j, best, n))
            free[to] = max(free[to], best + receivers[j, ROUTE] + 1 + n)
            due = max(due, free[to])
            leaves[j] = best
        if head[q] < queues[q + 1]:
            entries = _push(heap, entries, layers[q] << 48 | due << 16 | q)
    return int(horizon) if entries == 0 else NEVER


_choose = compiled(_choose_python, "i", "iiivvvmmmsvsvvvmvmv")


def choose(
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
) -> int:
    """Place messages of queues side by side: of the lowest layer the queue whose next receivers are free
    first goes on, with the one of its first `choice` messages that arrives first; of equals the one whose
    sender has most left to send.

    `order` lists messages queue by queue (it is used up), `queues` where each queue begins in it and one
    more, `layers` has the layer of each. The tables are as for `place`. `leaves` is filled with the sender
    event at which each receiver's items leave; `looks`, one number, becomes how often a receiver was asked
    when it could take a message. Returns the latest row end, or NEVER if that is not before `known` or takes
    `most` looks.
    """
    room = np.zeros((3, len(tiles) - 1), np.int64), queues.copy(), np.zeros((4, choice), np.int64)
    lists, heap = (sends, send_masks, windows, masks), np.empty(len(queues), np.int64)
    bounds, tables = (choice, known, most), (messages, receivers, tiles)
    return int(_choose(*bounds, queues, layers, order, *tables, *lists, leaves, looks, *room, heap))
