"""Native functions that compare what workers touched with what anybody has written. Plain Python here;
compiled with `lowering`.

A tile that watches for unwritten memory keeps one bit per byte: it has been written. Workers store whole
words.
"""

from __future__ import annotations

from ...isa.meaning.arrays import Bytes, Integers
from ...machine.topology import WORKERS
from .. import state as at
from ..pointers import bytes_at, integers_at
from . import scratch as sc


def unwritten(written: Bytes, low: int, high: int) -> int:
    """Not zero unless all words from one offset in tile memory to another have been written."""
    missing = 0
    if low & 4:
        missing |= ~written[low >> 3] & 0xF0
        low += 4
    if high & 4:
        high -= 4
        missing |= ~written[high >> 3] & 0x0F
    for index in range(low >> 3, high >> 3):
        missing |= written[index] ^ 0xFF
    return missing


def write(written: Bytes, low: int, high: int) -> int:
    """All words from one offset in tile memory to another have been written."""
    if low & 4:
        written[low >> 3] |= 0xF0
        low += 4
    if high & 4:
        high -= 4
        written[high >> 3] |= 0x0F
    for index in range(low >> 3, high >> 3):
        written[index] = 0xFF
    return 0


def visit(written: Bytes, store: int, low: int, high: int) -> int:
    """`write` for a store; `unwritten` for a load."""
    if store:
        return write(written, low, high)
    return unwritten(written, low, high)


def visit_all(state: Integers, scratch: Integers, store: int) -> int:
    """`visit` whatever workers have stored, or else loaded: runs, combs, and words in the bitmap."""
    written = bytes_at(state[at.SHADOW])
    missing = 0
    for worker in range(WORKERS):
        kind = 2 * worker + store
        runs = integers_at(scratch[sc.RUNS] + kind * sc.RUN_BYTES)
        for index in range(scratch[sc.RUN_COUNTS + kind]):
            # What begins behind its end is no run.
            if runs[2 * index] < runs[2 * index + 1]:
                missing |= visit(written, store, runs[2 * index], runs[2 * index + 1])
        combs = integers_at(scratch[sc.COMBS] + kind * sc.COMB_BYTES)
        for index in range(scratch[sc.COMB_COUNTS + kind]):
            low = combs[4 * index]
            while low < combs[4 * index + 1]:
                missing |= visit(written, store, low, low + combs[4 * index + 3])
                low += combs[4 * index + 2]
    pages = integers_at(scratch[sc.DIRTY_LIST])
    for item in range(scratch[sc.DIRTY_COUNT]):
        lines = integers_at(scratch[sc.BITS] + pages[item] * sc.PAGE_BYTES)
        for index in range(sc.LINE):
            words = 0
            for worker in range(WORKERS):
                words |= lines[index + sc.LINE * (2 * worker + store)]
            low = (pages[item] << (sc.PAGE_LOG + 2)) + (index << 8)
            while words:
                if words & 1:
                    missing |= visit(written, store, low, low + 4)
                words = (words >> 1) & 0x7FFFFFFFFFFFFFFF
                low += 4
    return missing


def loads_unwritten(state: Integers, scratch: Integers) -> int:
    """Not zero if a worker has loaded a word that nobody had written before the launch."""
    return visit_all(state, scratch, 0)


def note_written(state: Integers, scratch: Integers) -> int:
    """All that workers have stored has been written."""
    return visit_all(state, scratch, 1)
