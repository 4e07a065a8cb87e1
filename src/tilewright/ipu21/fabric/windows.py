"""Free places among the sends and windows of one tile, and register writes that may not meet (compiled)."""

from __future__ import annotations

from ...native.loops import compiled
from .tables import EARLY, FORM, LENT, WIDE, Ints, Windows

LOOK_BACK, LOOK_BACK_EVENTS = 64, 256
"""Gaps are sought among the latest so many windows of a tile, lest the search grow with the phase, but in at
least so many events: routes differ by up to 190."""

_REACH = 104
"""Events after its end by which a window's last store, with the guard, is over: 52 + 2 * 22 + 5, and some."""
_MUX, _PAIRMUX, _FORMAT, _PLAIN_POINTER, _WIDE_POINTER = 1, 2, 4, 8, 16


def _after_python(windows: Windows, low: int, high: int, value: int) -> int:
    """Index of the first of the sorted `windows[low:high]` that begins after `value`."""
    while low < high:
        middle = (low + high) >> 1
        if windows[middle, 0] > value:
            high = middle
        else:
            low = middle + 1
    return low


after = compiled(_after_python, "i", "siii")


def _gap_python(one: int, two: int) -> int:
    """Events between a window of kind `one` and the next, of kind `two`."""
    return 2 if two & WIDE and one & FORM != two & FORM else 0


gap = compiled(_gap_python, "i", "ii")


def _fit_python(windows: Windows, low: int, high: int, at: int, size: int, kind: int) -> int:
    """The first event from `at` on with room for a window of `size` events among `windows[low:high]`."""
    if high > low and windows[high - 1, 0] <= at:
        return max(at, int(windows[high - 1, 1] + gap(windows[high - 1, 2], kind)))
    i = after(windows, low, high, at)
    if i > low:
        at = max(at, windows[i - 1, 1] + gap(windows[i - 1, 2], kind))
    while i < high and windows[i, 0] < at + size + gap(kind, windows[i, 2]):
        at = windows[i, 1] + gap(windows[i, 2], kind)
        i += 1
    return int(at)


fit = compiled(_fit_python, "i", "siiiii")


def _starts_at_python(sends: Windows, low: int, high: int, event: int) -> int:
    """Events by which a write at `event` must move to miss the first two events of every send of its own."""
    if high == low or sends[high - 1, 0] < event - 1:
        return 0
    i = after(sends, low, high, event)
    while i > low and sends[i - 1, 0] >= event - 1:
        if sends[i - 1, 2] != LENT:
            return int(sends[i - 1, 0] + 2 - event)
        i -= 1
    return 0


starts_at = compiled(_starts_at_python, "i", "siii")


def _form_before_python(windows: Windows, low: int, i: int) -> int:
    """The format of the window before the one at `i`; of the first of the tile's, what a row begins with."""
    return int(windows[i - 1, 2] & FORM) if i > low else 0


form_before = compiled(_form_before_python, "i", "sii")


def _writes_at_python(windows: Windows, low: int, high: int, delay: int, event: int) -> bool:
    """True if one of the receives `windows[low:high]` writes a register at `event`."""
    i = after(windows, low, high, event + 1)
    while i > low and windows[i - 1, 1] + delay >= event:
        i -= 1
        first, stop, kind = windows[i, 0], windows[i, 1], windows[i, 2]
        if first + delay == event or (kind == 0 and event in (first, stop)):
            return True
        if first + delay - 2 == event and form_before(windows, low, i) != kind & FORM:
            return True
        if kind & EARLY and event in (first - 1, stop - 1):
            return True
    return False


writes_at = compiled(_writes_at_python, "b", "siiii")


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


met = compiled(_met_python, "b", "iiiiiii")


def _crossed_python(
    windows: Windows, low: int, high: int, delay: int, begin: int, size: int, kind: int
) -> bool:
    """True if a new window's register writes may not share an event with one that is there."""
    end = begin + size
    store, opens = begin + delay, -1
    i = after(windows, low, high, end + delay + 1)
    place = after(windows, low, high, begin)
    if form_before(windows, low, place) != kind & FORM:
        opens = store - 2
    while i > low and windows[i - 1, 1] + delay >= begin - 1:
        i -= 1
        first, stop, other = windows[i, 0], windows[i, 1], windows[i, 2]
        # The writes of the other window, each with those of the new one that it may not meet.
        for edge in (first, stop):
            if other & WIDE == 0:
                meets = met(kind, edge, begin, end, opens, store, _MUX)
            else:
                meets = other & EARLY and met(kind, edge - 1, begin, end, opens, store, _PAIRMUX)
            if meets:
                return True
        before = kind & FORM if i == place else form_before(windows, low, i)
        if before != other & FORM and met(kind, first + delay - 2, begin, end, opens, store, _FORMAT):
            return True
        pointer = _WIDE_POINTER if other & WIDE else _PLAIN_POINTER
        if met(kind, first + delay, begin, end, opens, store, pointer):
            return True
    return False


crossed = compiled(_crossed_python, "b", "siiiiii")


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
    i = after(windows, low, high, at)
    if i == high or windows[i, 2] & FORM == kind & FORM:
        return at
    if form_before(windows, low, i) != windows[i, 2] & FORM:
        return at
    back = windows[i, 0] + delay - 2
    if starts_at(sends, low_s, high_s, back) or writes_at(windows, low, high, delay, back):
        return int(windows[i, 1])
    return at


parted = compiled(_parted_python, "i", "siisiiiii")


def _written_at_python(windows: Windows, low: int, high: int, delay: int, start: int) -> int:
    """Events by which a send at `start` must move so that no write falls on its first two events."""
    if writes_at(windows, low, high, delay, start + 1):
        return 2
    return 1 if writes_at(windows, low, high, delay, start) else 0


written_at = compiled(_written_at_python, "i", "siiii")


def _shared_python(
    windows: Windows, masks: Ints, low: int, high: int, mask: int, first: int, stop: int, guard: int
) -> int:
    """Latest end (`guard` included) of the windows in one of the elements `mask` that overlap [first, stop),
    or `first`."""
    i = after(windows, low, high, stop - 1)
    latest = first
    while i > low:
        end = windows[i - 1, 1] + guard
        if end <= first:
            break
        if masks[i - 1] & mask:
            latest = max(latest, end)
        i -= 1
    return int(latest)


shared = compiled(_shared_python, "i", "sviiiiii")


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


recent = compiled(_recent_python, "2", "sii")
