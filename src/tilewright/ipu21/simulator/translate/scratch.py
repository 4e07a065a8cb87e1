"""What a thread needs to run workers natively: records of accesses, saved memory, the table of translations.

Access bitmaps have one bit per 4-byte word of tile memory. They are kept by pages of 512 words (2 KiB): for
each page twelve lines of 64 bytes, the loads and the stores of worker 0, then of worker 1, and so on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...machine.memory import REGION1_BASE, TILE_BASE, TILE_BYTES
from .. import state as at

LIMIT = 0
"""Issues the running worker may still make."""
WORKER = 1
BITS = 2
DIRTY = 3
"""One byte per page: some bit is set."""
DIRTY_LIST = 4
DIRTY_COUNT = 5
SAVED = 6
"""One byte per block of tile memory: a copy from before the launch exists."""
SAVED_LIST = 7
SAVED_COUNT = 8
COPIES = 9
BACKUP = 10
"""Registers, accumulators and control registers from before the launch."""
MEMORY = 11
"""Address of the running tile's memory, then of its table of decoded words."""
DECODED = 12
CODE_LOW = 13
CODE_HIGH = 14
"""First byte and end of the running code."""
HEADS = 15
"""Per word of region 0: number of the first translation that begins there, 0 for none."""
RECORDS = 16
MISSING = 17
MISSING_FLAVOUR = 18
"""Entry and flavour of the translation that is wanted."""
REASON = 19
"""Why the latest worker could not be carried through, see `reasons`."""
REWRITABLE = 89
"""While stores into code are watched: address of the table of words that may be stored over; otherwise 0."""
TARGET = 88
"""Where a branch went that the translation does not know."""
SLOTS = 20
ISSUES = 21
AGREES = 22
LAST = 23
"""What a worker reports: issue turns, issues, its verdict, the address behind its exit."""
LD64PUTCS, LD128PUTCS = 24, 26
"""Patterns of these instructions: their fixed bits, then a mask of these."""
NATIVE_ISSUES = 28
"""Issues made by translated workers so far; then phases run natively, undone for a race, undone otherwise."""
PHASES, RACES, UNDONE = 29, 30, 31
OVERRUN = 56
"""Issues by which a launch may exceed the budget: it is not interrupted, the stop comes behind it."""
USED = 57
"""Number of the latest translation that ran."""
NUMBERS = 58
"""Per worker the number of its translation, 0 if it does not wait."""
OUTCOMES = 32
"""Per worker four integers: slots, issues, verdict, last address."""
REASON_COUNTS = 64
"""Launches left to the other engine, by reason."""
RUNS = 104
"""Address of the runs of bytes that workers touched: of each worker those it loaded, then those it stored."""
RUN_COUNTS = 105
"""How many there are, twelve counts."""
COMBS = 117
"""Address of the evenly spaced accesses, in the same order."""
COMB_COUNTS = 120
WORDS = 136

MOST_RUNS = 16
RUN_BYTES = 16 * MOST_RUNS
"""Runs of one worker and kind; each is two offsets in tile memory."""
MOST_COMBS = 4
COMB_BYTES = 32 * MOST_COMBS
"""Combs of one worker and kind: offset of the first byte and of the end, step, bytes of each access."""
PAGE_LOG = 9
"""log2 of the 4-byte words per page."""
PAGES = TILE_BYTES // 4 >> PAGE_LOG
PAGE_LINES = 12
LINE = 8
"""Integers per line."""
PAGE_BYTES = 8 * LINE * PAGE_LINES
BLOCK_LOG = 10
"""log2 of the bytes per block of saved memory."""
BLOCKS = TILE_BYTES >> BLOCK_LOG
BACKUP_WORDS = 600

RECORD = 16
"""Integers per translation record: what follows."""
NEXT, SEGMENTS, SEGMENT_COUNT, FLAVOUR, FUNCTION, FAILURES, LOW, HIGH, SUCCESSES, SPECIAL = range(10)
SEGMENT = 3
"""Integers per code segment: index of its first word, number of words, address of the expected words."""

REGION0_WORDS = (REGION1_BASE - TILE_BASE) // 4
FAST, GENERAL, PLAIN = 0, 1, 2
"""Flavours. General code rounds as $FP_CTL says at each instruction. Fast and plain code round to nearest
without randomness; fast code gives up where a result is infinite or a NaN, so that plain code replaces it."""

Integers = NDArray[np.int64]


class Scratch:
    """One thread's working memory. `words` is what native code sees, at `address`."""

    def __init__(self, heads: Integers, records: Integers) -> None:
        self.words: Integers = _aligned(8 * WORDS).view(np.int64)
        self.address = int(self.words.ctypes.data)
        self._bits = _aligned(PAGES * PAGE_LINES * LINE * 8).view(np.int64)
        self._dirty = np.zeros(PAGES + 8, dtype=np.uint8)
        self._dirty_list = np.zeros(PAGES, dtype=np.int64)
        self._saved = np.zeros(BLOCKS + 8, dtype=np.uint8)
        self._saved_list = np.zeros(BLOCKS, dtype=np.int64)
        self._copies = np.zeros(TILE_BYTES, dtype=np.uint8)
        self._runs = np.zeros(12 * RUN_BYTES // 8, dtype=np.int64)
        self._combs = np.zeros(12 * COMB_BYTES // 8, dtype=np.int64)
        self._backup = np.zeros(BACKUP_WORDS, dtype=np.int64)
        for place, array in (
            (BITS, self._bits),
            (DIRTY, self._dirty),
            (DIRTY_LIST, self._dirty_list),
            (SAVED, self._saved),
            (SAVED_LIST, self._saved_list),
            (COPIES, self._copies),
            (BACKUP, self._backup),
            (RUNS, self._runs),
            (COMBS, self._combs),
        ):
            self.words[place] = array.ctypes.data
        self.use(heads, records)
        for place, (fixed, mask) in zip(
            (LD64PUTCS, LD128PUTCS), (_pattern("ld64putcs"), _pattern("ld128putcs")), strict=True
        ):
            self.words[place], self.words[place + 1] = fixed, mask

    def use(self, heads: Integers, records: Integers) -> None:
        """The table of translations, which may have moved."""
        self.words[HEADS], self.words[RECORDS] = heads.ctypes.data, records.ctypes.data


def _pattern(mnemonic: str) -> tuple[int, int]:
    from ...isa.forms import forms_named

    form = forms_named(mnemonic)[0]
    return form.fixed, form.mask


def _aligned(size: int) -> NDArray[np.uint8]:
    """Zeroed bytes that begin at a cache line."""
    raw = np.zeros(size + 64, dtype=np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + size]


assert at.REGISTER_STRIDE * (at.CONTEXTS - 1) + 6 * 16 + 6 * 24 <= BACKUP_WORDS
