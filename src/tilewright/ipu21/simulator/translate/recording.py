"""Native functions that record what workers touch, to find out whether two of them met. Plain Python here;
compiled with `lowering`.

Accesses side by side are kept as runs of bytes, evenly spaced ones as combs, few per worker. All others, and
these when there is no more room for them, go to a bitmap of all words.
"""

from __future__ import annotations

from ...isa.meaning.arrays import Integers
from ...machine.memory import TILE_BASE, TILE_BYTES
from ...machine.topology import WORKERS
from ..pointers import bytes_at, integers_at
from . import scratch as sc


def mark_page(line: Integers, first: int, last: int, pattern: int) -> int:
    """Set those of the bits first..last of one line that are in the pattern of its integers."""
    word, end = first >> 6, last >> 6
    low, high = pattern & (-1 << (first & 63)), ~(-2 << (last & 63))
    while word < end:
        line[word] |= low
        low = pattern
        word += 1
    line[end] |= low & high
    return 0


def mark(scratch: Integers, kind: int, low: int, high: int, pattern: int) -> int:
    """Set the bits of the words from offset `low` to `high` that are in a pattern, which repeats every 64.

    `kind`: 2 * worker, + 1 for stores.
    """
    first, last = low >> 2, (high - 1) >> 2
    page, end = first >> sc.PAGE_LOG, last >> sc.PAGE_LOG
    dirty = bytes_at(scratch[sc.DIRTY])
    line = scratch[sc.BITS] + kind * 64
    while page <= end:
        if dirty[page] == 0:
            dirty[page] = 1
            integers_at(scratch[sc.DIRTY_LIST])[scratch[sc.DIRTY_COUNT]] = page
            scratch[sc.DIRTY_COUNT] += 1
        begin = page << sc.PAGE_LOG
        mark_page(
            integers_at(line + page * sc.PAGE_BYTES),
            max(first - begin, 0),
            min(last - begin, (1 << sc.PAGE_LOG) - 1),
            pattern,
        )
        page += 1
    return 0


def mark_comb(scratch: Integers, kind: int, low: int, high: int, step: int, size: int) -> int:
    """Set the bits of `size` bytes at `low` and every `step` from there, up to `high`."""
    if (low | step | size) & 3 == 0 and 256 % step == 0:
        pattern, place = 0, low >> 2
        while place < (low + 256) >> 2:
            for word in range(size >> 2):
                pattern |= 1 << ((place + word) & 63)
            place += step >> 2
        return mark(scratch, kind, low, high, pattern)
    while low < high:
        mark(scratch, kind, low, low + size, -1)
        low += step
    return 0


def mark_all(scratch: Integers, kind: int) -> int:
    """Move the runs and combs of a kind to the bitmap."""
    runs = integers_at(scratch[sc.RUNS] + kind * sc.RUN_BYTES)
    for index in range(scratch[sc.RUN_COUNTS + kind]):
        mark(scratch, kind, runs[2 * index], runs[2 * index + 1], -1)
    scratch[sc.RUN_COUNTS + kind] = 0
    combs = integers_at(scratch[sc.COMBS] + kind * sc.COMB_BYTES)
    for index in range(scratch[sc.COMB_COUNTS + kind]):
        mark_comb(
            scratch, kind, combs[4 * index], combs[4 * index + 1], combs[4 * index + 2], combs[4 * index + 3]
        )
    scratch[sc.COMB_COUNTS + kind] = 0
    return 0


def record(scratch: Integers, store: int, low: int, high: int) -> int:
    """The running worker accesses the bytes from offset `low` in tile memory to `high`."""
    first, end = low & -4, (high + 3) & -4
    kind = 2 * scratch[sc.WORKER] + store
    runs = integers_at(scratch[sc.RUNS] + kind * sc.RUN_BYTES)
    count = scratch[sc.RUN_COUNTS + kind]
    index = 0
    while index < count:
        if first <= runs[2 * index + 1] and end >= runs[2 * index]:
            runs[2 * index] = min(runs[2 * index], first)
            runs[2 * index + 1] = max(runs[2 * index + 1], end)
            return 0
        index += 1
    if count == sc.MOST_RUNS:
        mark_all(scratch, kind)
        count = 0
    runs[2 * count] = first
    runs[2 * count + 1] = end
    scratch[sc.RUN_COUNTS + kind] = count + 1
    return 0


def close_span(scratch: Integers, store: int, low: int, high: int) -> int:
    """The running worker has touched the bytes from one address to another; none if they are 0.

    Most spans lie apart, so that none is sought which this one would continue.
    """
    if high == 0:
        return 0
    kind = 2 * scratch[sc.WORKER] + store
    count = scratch[sc.RUN_COUNTS + kind]
    if count == sc.MOST_RUNS:
        return record(scratch, store, low - TILE_BASE, high - TILE_BASE)
    runs = integers_at(scratch[sc.RUNS] + kind * sc.RUN_BYTES)
    runs[2 * count] = (low - TILE_BASE) & -4
    runs[2 * count + 1] = (high - TILE_BASE + 3) & -4
    scratch[sc.RUN_COUNTS + kind] = count + 1
    return 0


def record_comb(scratch: Integers, store: int, low: int, step: int, count: int, size: int) -> int:
    """The running worker accesses `size` bytes at `low` and every `step` > `size` bytes from there."""
    kind = 2 * scratch[sc.WORKER] + store
    used = scratch[sc.COMB_COUNTS + kind]
    if (low | step | size) & 3 or used == sc.MOST_COMBS:
        return mark_comb(scratch, kind, low, low + (count - 1) * step + size, step, size)
    combs = integers_at(scratch[sc.COMBS] + kind * sc.COMB_BYTES)
    combs[4 * used] = low
    combs[4 * used + 1] = low + (count - 1) * step + size
    combs[4 * used + 2] = step
    combs[4 * used + 3] = size
    scratch[sc.COMB_COUNTS + kind] = used + 1
    return 0


def between(low: int, size: int, other: int, other_size: int, step: int) -> bool:
    """Whether bytes at an offset, repeated every `step`, pass between others that are repeated so too."""
    if other < low:
        shift = (low - other) % step
        return shift >= other_size and shift + size <= step
    shift = (other - low) % step
    return shift >= size and shift + other_size <= step


def combs_tangle(scratch: Integers, kind: int, other: int) -> int:
    """1 unless each comb of a kind certainly misses all runs and combs of another."""
    combs = integers_at(scratch[sc.COMBS] + kind * sc.COMB_BYTES)
    others = integers_at(scratch[sc.COMBS] + other * sc.COMB_BYTES)
    runs = integers_at(scratch[sc.RUNS] + other * sc.RUN_BYTES)
    for index in range(scratch[sc.COMB_COUNTS + kind]):
        low, high = combs[4 * index], combs[4 * index + 1]
        step, size = combs[4 * index + 2], combs[4 * index + 3]
        for item in range(scratch[sc.RUN_COUNTS + other]):
            first, end = runs[2 * item], runs[2 * item + 1]
            if low < end and first < high and not between(low, size, first, end - first, step):
                return 1
        for item in range(scratch[sc.COMB_COUNTS + other]):
            first, end = others[4 * item], others[4 * item + 1]
            if low < end and first < high:
                if step != others[4 * item + 2]:
                    return 1
                if not between(low, size, first, others[4 * item + 3], step):
                    return 1
    return 0


def tangled(scratch: Integers) -> bool:
    """Whether only the bitmap can tell if combs meet anything of other workers."""
    found = 0
    for kind in range(2 * WORKERS):
        if scratch[sc.COMB_COUNTS + kind]:
            for other in range(2 * WORKERS):
                if (kind | other) & 1 and kind >> 1 != other >> 1:
                    found |= combs_tangle(scratch, kind, other)
    return found != 0


def stored_by(scratch: Integers, worker: int, end: int, step: int, low: int, high: int) -> int:
    """1 if one of the workers up to `end`, `step` by `step`, stored between two offsets."""
    found = 0
    while worker != end:
        kind = 2 * worker + 1
        runs = integers_at(scratch[sc.RUNS] + kind * sc.RUN_BYTES)
        for index in range(scratch[sc.RUN_COUNTS + kind]):
            found |= (runs[2 * index] < high) & (low < runs[2 * index + 1])
        worker += step
    return found


def meets_stores(scratch: Integers, begin: int, step: int) -> int:
    """From one worker on, `step` by `step`: 1 if some touched what one before it stored.

    Most runs do not even lie between the first and the last byte that those before stored.
    """
    found = 0
    first, end = TILE_BYTES, 0
    worker = begin
    while worker >= 0 and worker < WORKERS:
        low, high = first, end
        for kind in range(2 * worker, 2 * worker + 2):
            runs = integers_at(scratch[sc.RUNS] + kind * sc.RUN_BYTES)
            for index in range(scratch[sc.RUN_COUNTS + kind]):
                if (runs[2 * index] < end) & (first < runs[2 * index + 1]):
                    found |= stored_by(scratch, begin, worker, step, runs[2 * index], runs[2 * index + 1])
                if kind & 1:
                    low, high = min(low, runs[2 * index]), max(high, runs[2 * index + 1])
        first, end = low, high
        worker += step
    return found


def races(scratch: Integers) -> int:
    """Not zero if a word that one worker stored was touched by another."""
    if scratch[sc.DIRTY_COUNT] or tangled(scratch):
        for kind in range(2 * WORKERS):
            mark_all(scratch, kind)
        return marks_meet(scratch)
    return meets_stores(scratch, 0, 1) | meets_stores(scratch, WORKERS - 1, -1)


def forget_records(scratch: Integers) -> int:
    """Of the launch that has ended."""
    for kind in range(2 * WORKERS):
        scratch[sc.RUN_COUNTS + kind] = 0
        scratch[sc.COMB_COUNTS + kind] = 0
    dirty = bytes_at(scratch[sc.DIRTY])
    pages = integers_at(scratch[sc.DIRTY_LIST])
    for item in range(scratch[sc.DIRTY_COUNT]):
        page = pages[item]
        dirty[page] = 0
        lines = integers_at(scratch[sc.BITS] + page * sc.PAGE_BYTES)
        for index in range(sc.LINE * sc.PAGE_LINES):
            lines[index] = 0
    scratch[sc.DIRTY_COUNT] = 0
    return 0


def meets_worker(scratch: Integers, low: int, high: int, store: int) -> int:
    """Not zero if a worker stored some of the words from one offset in tile memory to another; or, if these
    are stored to, touched some of them.
    """
    found = 0
    for kind in range(2 * WORKERS):
        if store | (kind & 1):
            runs = integers_at(scratch[sc.RUNS] + kind * sc.RUN_BYTES)
            for index in range(scratch[sc.RUN_COUNTS + kind]):
                found |= (runs[2 * index] < high) & (low < runs[2 * index + 1])
            combs = integers_at(scratch[sc.COMBS] + kind * sc.COMB_BYTES)
            for index in range(scratch[sc.COMB_COUNTS + kind]):
                first, end = combs[4 * index], combs[4 * index + 1]
                step, size = combs[4 * index + 2], combs[4 * index + 3]
                if low < end and first < high and not between(first, size, low, high - low, step):
                    found = 1
    dirty = bytes_at(scratch[sc.DIRTY])
    for word in range(low >> 2, high >> 2):
        page = word >> sc.PAGE_LOG
        if dirty[page]:
            lines = integers_at(scratch[sc.BITS] + page * sc.PAGE_BYTES)
            place = (word >> 6) & (sc.LINE - 1)
            for kind in range(2 * WORKERS):
                if store | (kind & 1):
                    found |= (lines[place + sc.LINE * kind] >> (word & 63)) & 1
    return found


def marks_meet(scratch: Integers) -> int:
    """The same by the bitmap alone."""
    found = 0
    pages = integers_at(scratch[sc.DIRTY_LIST])
    for item in range(scratch[sc.DIRTY_COUNT]):
        lines = integers_at(scratch[sc.BITS] + pages[item] * sc.PAGE_BYTES)
        for index in range(sc.LINE):
            touched = 0
            stored = 0
            for worker in range(WORKERS):
                load = lines[index + 16 * worker]
                store = lines[index + 16 * worker + 8]
                found |= (store & touched) | (load & stored)
                touched |= load | store
                stored |= store
    return found
