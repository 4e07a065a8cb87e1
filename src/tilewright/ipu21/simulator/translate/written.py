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


def loads_unwritten(state: Integers, scratch: Integers) -> int:
    """Not zero if a worker has loaded a word that nobody had written before the launch."""
    written = bytes_at(state[at.SHADOW])
    missing = 0
    for kind in range(0, 2 * WORKERS, 2):
        runs = integers_at(scratch[sc.RUNS] + kind * sc.RUN_BYTES)
        for index in range(scratch[sc.RUN_COUNTS + kind]):
            # What begins behind its end is no run.
            if runs[2 * index] < runs[2 * index + 1]:
                missing |= unwritten(written, runs[2 * index], runs[2 * index + 1])
        combs = integers_at(scratch[sc.COMBS] + kind * sc.COMB_BYTES)
        for index in range(scratch[sc.COMB_COUNTS + kind]):
            low = combs[4 * index]
            while low < combs[4 * index + 1]:
                missing |= unwritten(written, low, low + combs[4 * index + 3])
                low += combs[4 * index + 2]
    pages = integers_at(scratch[sc.DIRTY_LIST])
    for item in range(scratch[sc.DIRTY_COUNT]):
        lines = integers_at(scratch[sc.BITS] + pages[item] * 768)
        for index in range(sc.LINE):
            touched = 0
            for worker in range(WORKERS):
                touched |= lines[index + 16 * worker]
            low = (pages[item] << (sc.PAGE_LOG + 2)) + (index << 8)
            while touched:
                if touched & 1:
                    missing |= unwritten(written, low, low + 4)
                touched = (touched >> 1) & 0x7FFFFFFFFFFFFFFF
                low += 4
    return missing


def note_written(state: Integers, scratch: Integers) -> int:
    """All that workers have stored has been written."""
    written = bytes_at(state[at.SHADOW])
    for kind in range(1, 2 * WORKERS, 2):
        runs = integers_at(scratch[sc.RUNS] + kind * sc.RUN_BYTES)
        for index in range(scratch[sc.RUN_COUNTS + kind]):
            if runs[2 * index] < runs[2 * index + 1]:
                write(written, runs[2 * index], runs[2 * index + 1])
        combs = integers_at(scratch[sc.COMBS] + kind * sc.COMB_BYTES)
        for index in range(scratch[sc.COMB_COUNTS + kind]):
            low = combs[4 * index]
            while low < combs[4 * index + 1]:
                write(written, low, low + combs[4 * index + 3])
                low += combs[4 * index + 2]
    pages = integers_at(scratch[sc.DIRTY_LIST])
    for item in range(scratch[sc.DIRTY_COUNT]):
        lines = integers_at(scratch[sc.BITS] + pages[item] * 768)
        for index in range(sc.LINE):
            stored = 0
            for worker in range(WORKERS):
                stored |= lines[index + 16 * worker + 8]
            low = (pages[item] << (sc.PAGE_LOG + 2)) + (index << 8)
            while stored:
                if stored & 1:
                    write(written, low, low + 4)
                stored = (stored >> 1) & 0x7FFFFFFFFFFFFFFF
                low += 4
    return 0
