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

from ...native.loops import compiled
from .first_fit import element_end
from .problem import ALIGN, FIRST, HARD, LAST, MEMORY, MUST, SIZE

Ints = NDArray[np.int64]
Relations = NDArray[np.uint8]

FOUND, NONE, GAVE_UP = 1, 0, -1


def _settle_python(items: Ints, limits: Ints, item: int, floor: int) -> int:
    """The lowest address at or above `floor` at which an item may lie, nothing else considered."""
    align = items[item, ALIGN]
    address = (floor + align - 1) // align * align
    if address < limits[1] and (items[item, MEMORY] == MUST or address + items[item, SIZE] > limits[1]):
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
        must = items[i, MEMORY] == MUST
        for t in range(items[i, FIRST], items[i, LAST] + 1):
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
            end = floors[i] + items[i, SIZE]
            least = min(least, element_end(limits, end) if closed[i] else end)
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
    slack: int,
    budget: int,
    at: Ints,
    floors: Ints,
    chosen: Ints,
    levels: Ints,
    work: Ints,
    closed: Ints,
) -> int:
    count = len(items)
    number, following, path = levels[0], levels[1], levels[2]
    cost = count
    for i in range(count):
        at[i] = -1
        floors[0, i] = _settle(items, limits, i, limits[0])
        cost += items[i, LAST] - items[i, FIRST] + 1
        for j in range(count):
            if relations[i, j] >= HARD:
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
        fits = address + items[item, SIZE] <= limits[2]
        end = address + items[item, SIZE]
        beyond = element_end(limits, end)
        depth += 1
        for i in range(count):
            floor = floors[depth - 1, i]
            if at[i] < 0 and relations[item, i]:
                least = beyond if relations[item, i] >= HARD else end
                if least > floor:
                    floor = _settle(items, limits, i, least)
                    if floor + items[i, SIZE] > limits[2]:
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


_search = compiled(_search_python, "i", "mvuvvviivmmmvv")


def search(
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
    """Fill `at` with an address for every item that breaks no hard rule.

    `sizes` is what items take of a section at least, `slack` what of it may be missing at the top; `twins` is
    as `Problem.twins` gives it; `rank` orders items among those with the same lowest address; `budget` limits
    the work, in steps of the inner loops. Returns FOUND, NONE (there is no placement) or GAVE_UP.
    """
    count = len(items)
    tables = np.empty((2, count + 1, count), np.int64)
    levels, work = np.zeros((3, count + 1), np.int64), np.empty(4 * sections, np.int64)
    room = tables[0], tables[1], levels, work, np.zeros(count, np.int64)
    return int(_search(items, sizes, relations, limits, twins, rank, slack, budget, at, *room))
