"""Placing items one after another, each at the lowest address that is free for it (compiled)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...native.loops import compiled
from ..machine.memory import ELEMENT_BYTES, INTERLEAVED_ELEMENT_BYTES
from .problem import ALIGN, HARD, MEMORY, MUST, PREFER, SIZE, SOFT, SPAN

Ints = NDArray[np.int64]
Relations = NDArray[np.uint8]

BEGIN, REGION1, END = range(3)
"""Entries of `limits`: where data may begin, where region 1 does, and where memory ends."""


def _element_end_python(limits: Ints, address: int) -> int:
    """The first start of an effective element at or after an address."""
    size, base = ELEMENT_BYTES, 0
    if address >= limits[1]:
        size, base = INTERLEAVED_ELEMENT_BYTES, limits[1]
    return int(base + (address - base + size - 1) // size * size)


element_end = compiled(_element_end_python, "i", "vi")


def _element_begin_python(limits: Ints, address: int) -> int:
    """The start of the effective element that holds an address."""
    size, base = ELEMENT_BYTES, 0
    if address >= limits[1]:
        size, base = INTERLEAVED_ELEMENT_BYTES, limits[1]
    return int(base + (address - base) // size * size)


element_begin = compiled(_element_begin_python, "i", "vi")


def _lowest_python(
    items: Ints,
    relations: Relations,
    limits: Ints,
    placed: Ints,
    count: int,
    at: Ints,
    item: int,
    begin: int,
    apart: int,
) -> int:
    """The lowest address from `begin` on that is free for an item beside `placed[:count]` (sorted by
    address); relations from `apart` on keep elements apart. It may lie past the end of memory."""
    size, align = items[item, SIZE], items[item, ALIGN]
    start = (begin + align - 1) // align * align
    moved = True
    while moved:
        moved = False
        for k in range(count):
            other = placed[k]
            relation = relations[item, other]
            if relation == 0:
                continue
            low, high = at[other], at[other] + items[other, SIZE]
            if relation >= apart:
                low, high = element_begin(limits, low), element_end(limits, high)
            if start < high and start + size > low:
                start = (high + align - 1) // align * align
                moved = True
    return int(start)


lowest = compiled(_lowest_python, "i", "muvvivii" + "i")


def _insert_python(placed: Ints, count: int, at: Ints, item: int) -> None:
    """Enter an item into `placed[:count]`, which is sorted by address."""
    k = count
    while k > 0 and at[placed[k - 1]] > at[item]:
        placed[k] = placed[k - 1]
        k -= 1
    placed[k] = item


insert = compiled(_insert_python, "-", "vivi")


def _find_python(
    items: Ints, relations: Relations, limits: Ints, placed: Ints, count: int, at: Ints, item: int
) -> tuple[int, int]:
    """(address, 0) of a place for an item, wishes granted if possible; (-1, bytes lacking) without one."""
    size, memory = items[item, SIZE], items[item, MEMORY]
    lacking = 0
    for choice in range(4):
        # Of an item that prefers region 1, this is the stronger wish: its kernel runs faster there.
        upper = choice < 2 if memory == PREFER else choice % 2 == 1
        soft = choice % 2 == 0 if memory == PREFER else choice < 2
        if memory == MUST and not upper:
            continue
        begin, end = (limits[1], limits[2]) if upper else (limits[0], limits[1])
        if memory == SPAN:
            begin, end = limits[0], limits[2]
        address = lowest(items, relations, limits, placed, count, at, item, begin, SOFT if soft else HARD)
        if address + size <= end:
            return address, 0
        if upper:
            # The last choice above is the least: it grants no wish.
            lacking = address + size - end
    return -1, lacking


find = compiled(_find_python, "2", "muvvivi")


def _first_fit_python(
    items: Ints, relations: Relations, limits: Ints, order: Ints, at: Ints, placed: Ints
) -> tuple[int, int]:
    for count in range(len(order)):
        item = order[count]
        address, lacking = find(items, relations, limits, placed, count, at, item)
        if address < 0:
            return item, lacking
        at[item] = address
        insert(placed, count, at, item)
    return -1, 0


_first_fit = compiled(_first_fit_python, "2", "muvvvv")


def first_fit(items: Ints, relations: Relations, limits: Ints, order: Ints, at: Ints) -> tuple[int, int]:
    """Fill `at` with an address for every item, in the given order. Returns (-1, 0), or the first item that
    finds no place and the bytes that it lacks."""
    item, lacking = _first_fit(items, relations, limits, order, at, np.empty_like(order))
    return item, lacking


def _improve_python(
    items: Ints, relations: Relations, limits: Ints, order: Ints, at: Ints, placed: Ints
) -> None:
    for item in order:
        count = 0
        for other in order:
            if other != item:
                insert(placed, count, at, other)
                count += 1
        size, memory = items[item, SIZE], items[item, MEMORY]
        wrong = memory == PREFER and at[item] < limits[1]
        for other in order:
            if relations[item, other] == SOFT:
                low = element_begin(limits, at[other])
                high = element_end(limits, at[other] + items[other, SIZE])
                wrong = wrong or (at[item] < high and at[item] + size > low)
        if wrong:
            address, _ = find(items, relations, limits, placed, count, at, item)
            if address >= 0:
                at[item] = address


_improve = compiled(_improve_python, "-", "muvvvv")


def improve(items: Ints, relations: Relations, limits: Ints, order: Ints, at: Ints) -> None:
    """Move items whose wishes are not granted to where they are, if there is room as things lie."""
    _improve(items, relations, limits, order, at, np.empty_like(order))
