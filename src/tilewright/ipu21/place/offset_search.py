"""Looking through all placements in a canonical form, with bounds (compiled).

Every placement can be pushed down until each item rests on a region, on an element boundary or on items below
it. Taken by rising address, such a placement puts every item right on top of the highest one below that it
meets; so a placement is an order, and the search builds that order item by item. Region 1 follows region 0,
so the choice of the region is part of the order: whatever is not placed before region 1 begins lies there.

Cut off are orders in which an item could still be slipped below the next one (pushed down, it is found
elsewhere), and those where the items still to come in some section of time no longer fit above what is there.
The form was described for MiniMalloc (Moffitt, 2023); elements and two regions are ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...compiled import compiled

Ints = NDArray[np.int64]
Relations = NDArray[np.uint8]

FOUND, NONE, GAVE_UP = 1, 0, -1

# Copies, see first_fit.
_SIZE, _ALIGN, _MEMORY, _FIRST, _LAST = 0, 1, 2, 3, 4
_MUST = 1
_HARD = 3
_ELEMENT, _INTERLEAVED = 16 * 1024, 32 * 1024


def _element_end_python(limits: Ints, address: int) -> int:
    """The first start of an effective element at or after an address."""
    size, base = _ELEMENT, 0
    if address >= limits[1]:
        size, base = _INTERLEAVED, limits[1]
    return int(base + (address - base + size - 1) // size * size)


_element_end = compiled(_element_end_python, "i", "vi")


def _settle_python(items: Ints, limits: Ints, item: int, floor: int) -> int:
    """The lowest address at or above `floor` at which an item may lie, nothing else considered."""
    align = items[item, _ALIGN]
    address = (floor + align - 1) // align * align
    if address < limits[1] and (items[item, _MEMORY] == _MUST or address + items[item, _SIZE] > limits[1]):
        address = (limits[1] + align - 1) // align * align
    return int(address)


_settle = compiled(_settle_python, "i", "mvii")


def _hopeless_python(
    items: Ints, sizes: Ints, limits: Ints, floors: Ints, at: Ints, low: int, slack: int, work: Ints
) -> bool:
    """True if in some section the items without an address do not fit above their floors."""
    sections = len(work) // 4
    for t in range(sections):
        work[t], work[sections + t] = 0, 1 << 62
        work[2 * sections + t], work[3 * sections + t] = 0, 1 << 62
    for i in range(len(items)):
        if at[i] >= 0:
            continue
        must = items[i, _MEMORY] == _MUST
        for t in range(items[i, _FIRST], items[i, _LAST] + 1):
            work[t] += sizes[i]
            work[sections + t] = min(work[sections + t], floors[i])
            if must:
                work[2 * sections + t] += sizes[i]
                work[3 * sections + t] = min(work[3 * sections + t], floors[i])
    for t in range(sections):
        if work[t] and max(work[sections + t], low) + work[t] - slack > limits[2]:
            return True
        # If these could begin below `low`, so could all, which are no fewer.
        if work[2 * sections + t] and work[3 * sections + t] + work[2 * sections + t] - slack > limits[2]:
            return True
    return False


_hopeless = compiled(_hopeless_python, "b", "mvvvviiv")


def _candidates_python(
    items: Ints,
    limits: Ints,
    floors: Ints,
    at: Ints,
    twins: Ints,
    closed: Ints,
    rank: Ints,
    low: int,
    last: int,
    chosen: Ints,
) -> int:
    """Fill `chosen` with the items that may be next, best first; their number."""
    least = 1 << 62
    for i in range(len(items)):
        if at[i] < 0:
            end = floors[i] + items[i, _SIZE]
            least = min(least, _element_end(limits, end) if closed[i] else end)
    count = 0
    for i in range(len(items)):
        if at[i] >= 0 or floors[i] >= least or floors[i] < low or (floors[i] == low and i < last):
            continue
        if twins[i] >= 0 and at[twins[i]] < 0:
            continue
        k = count
        while k > 0 and (
            floors[chosen[k - 1]] > floors[i]
            or (floors[chosen[k - 1]] == floors[i] and rank[chosen[k - 1]] > rank[i])
        ):
            chosen[k] = chosen[k - 1]
            k -= 1
        chosen[k] = i
        count += 1
    return count


_candidates = compiled(_candidates_python, "i", "mvvvvvviiv")


def _search_python(
    items: Ints,
    sizes: Ints,
    relations: Relations,
    limits: Ints,
    twins: Ints,
    rank: Ints,
    sections: int,
    slack: int,
    budget: int,
    at: Ints,
) -> int:
    count = len(items)
    floors = np.empty((count + 1, count), np.int64)
    chosen = np.empty((count + 1, count), np.int64)
    number, following = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    path = np.full(count + 1, -1, np.int64)
    work = np.empty(4 * sections, np.int64)
    closed = np.zeros(count, np.int64)
    cost = count
    for i in range(count):
        at[i] = -1
        floors[0, i] = _settle(items, limits, i, limits[0])
        cost += items[i, _LAST] - items[i, _FIRST] + 1
        for j in range(count):
            if relations[i, j] >= _HARD:
                closed[i] = 1
    depth, spent = 0, 0
    if _hopeless(items, sizes, limits, floors[0], at, 0, slack, work):
        return 0
    number[0] = _candidates(items, limits, floors[0], at, twins, closed, rank, 0, -1, chosen[0])
    while True:
        if depth == count:
            return 1
        if following[depth] == number[depth]:
            if depth == 0:
                return 0
            depth -= 1
            at[path[depth]] = -1
            continue
        if spent > budget:
            return -1
        spent += cost
        item = chosen[depth, following[depth]]
        following[depth] += 1
        address = floors[depth, item]
        path[depth], at[item] = item, address
        fits = address + items[item, _SIZE] <= limits[2]
        end = address + items[item, _SIZE]
        beyond = _element_end(limits, end)
        depth += 1
        for i in range(count):
            floor = floors[depth - 1, i]
            if at[i] < 0 and relations[item, i]:
                least = beyond if relations[item, i] >= _HARD else end
                if least > floor:
                    floor = _settle(items, limits, i, least)
                    if floor + items[i, _SIZE] > limits[2]:
                        fits = False
                        break
            floors[depth, i] = floor
        if not fits or _hopeless(items, sizes, limits, floors[depth], at, address, slack, work):
            depth -= 1
            at[item] = -1
            continue
        following[depth] = 0
        number[depth] = _candidates(
            items, limits, floors[depth], at, twins, closed, rank, address, item, chosen[depth]
        )


search = compiled(_search_python, "i", "mvuvvviiiv")
"""Fill `at` with an address for every item that breaks no hard rule.

`sizes` is what items take of a section at least, `slack` what of it may be missing at the top; `twins` is as
`Problem.twins` gives it; `rank` orders items among those with the same lowest address; `budget` limits the
work, in steps of the inner loops. Returns FOUND, NONE (there is no placement) or GAVE_UP.
"""
