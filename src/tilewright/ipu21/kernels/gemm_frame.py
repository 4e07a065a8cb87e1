"""What the matrix kernels share: start modes, what both ask of their callers, and the frame that a supervisor
leaves to its workers.

A call works on chunks of up to `CHUNK_ROWS` rows. Rows of a chunk are shared evenly, the first workers have
one more; `n` is a worker's number of rows. What depends on the worker is in the frame six times, and each
worker's base is a word behind that of the one before. What depends on n is there twice, for the smaller and
for the larger n, and each worker finds where its own is.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..machine.timing import WORKER_SLOTS
from .kernel import Operand, Scalar
from .text import CLEAR_ACCUMULATORS, bundle, from_frame

ZERO, ROW, ADD = "zero", "row", "add"
"""Start modes: sums start from zeros, from one row for all rows, from an array shaped like the result."""
MODES = (ZERO, ROW, ADD)

W_STRIDES = tuple(
    Scalar(f"w_{along}_stride", f"bytes between panels of W along {axis}", 0, (1 << 32) - 1, multiple=16)
    for along, axis in (("inner", "K"), ("column", "N"))
)


def start_operand(mode: str) -> Operand:
    """What sums start from."""
    return {
        ZERO: Operand("start", "", "unused"),
        ROW: Operand("start", "row16", "in", alignment=16),
        ADD: Operand("start", "a16", "in", alignment=16),
    }[mode]


CHUNK_ROWS = 768
"""Most rows at a time: 128 per worker are what the way back over a column of C, in words, fits a field."""
FEW_ROWS = 12
"""Up to here, workers have at most two rows and keep partial sums in their accumulators."""
PART_ROWS = CHUNK_ROWS - FEW_ROWS
"""Rows of a chunk that is not the last one, which then has more than `FEW_ROWS`."""
NEAR_ROWS = 152
"""Most rows in memory for which the way to the next K group fits a stride field."""

CHUNK_C, CHUNK_A, CHUNK_START, GROUP, TABLES, LEFT, RETURN, CHUNK_SHAPE = range(8)
"""Words that a next chunk needs: operands, bytes of a K group, the tables, rows left, where the call returns
to, K groups and column groups. A call's last chunk leaves them out."""
STARTS, BLOCKS, ROWS_OF_A, ROWS_OF_C = range(8, 32, 6)
"""First of six words, one per worker: its rows in the array where sums start (`ADD` only), where its block is
(see `block_offset`), its rows in A and C."""
LARGER, SMALLER = 32, 40
"""Blocks of `BLOCK_BYTES` with what depends on n."""
BLOCK_BYTES = 32
SOURCE = 7
"""Word of a block: the row where sums start."""
W_FIRST, W_INNER, W_STRIDE, SHAPE, FINAL, GO = range(48, 54)
"""The supervisor's own words; `FINAL`: entry of the last panel, `GO`: where a chunk's end leads."""
OWN_STRIDES, OWN_BACK = range(GO + 1, GO + 13, 6)
"""First of six words, one per worker, for `gemm_few_stream`."""
FRAME_BYTES = 4 * (OWN_BACK + 6)
BASE_STEP = 1
"""Words from one worker's base to the next one's."""


def block_offset(worker: int) -> int:
    """What a worker finds its block by, if that is the one at `LARGER`: never negative, and as little as it
    can be with a base that moves on from worker to worker."""
    return 4 * BASE_STEP * (WORKER_SLOTS - 1 - worker)


def from_block(register: str, word: int, block: str = "$m10") -> str:
    """Load one of the words that depend on n; `block`: register with where they are."""
    return f"ld32 {register}, $mvertex_base, {block}, {LARGER - block_offset(0) // 4 + word}"


def share_lines(block: str = "$m10") -> list[str]:
    """Start of every worker: leaves its block, its rows in A and C in $m4 and $m5, cleared accumulators."""
    return [
        bundle(from_frame(block, BLOCKS), CLEAR_ACCUMULATORS[0]),
        bundle(from_frame("$m4", ROWS_OF_A), CLEAR_ACCUMULATORS[1]),
        from_frame("$m5", ROWS_OF_C),
    ]


def source_line(mode: str, block: str = "$m10") -> list[str]:
    """Load where a worker's sums start to $m9."""
    return {
        ZERO: [],
        ROW: [from_block("$m9", SOURCE, block)],
        ADD: [from_frame("$m9", STARTS)],
    }[mode]


def few_routine(label: str, lines: Iterable[str], *, stores: bool) -> list[str]:
    """A worker routine for few rows, from its label on.

    Args:
        stores: it stores results, so a worker without rows must leave at once. Where there is none, calls
            begin at the label that ends in `_all`.
    """
    leave = f"{label}_exit"
    if not stores:
        return [f"{label}:", *lines, "exitz $m15"]
    return [f"{label}:", f"brz $m3, {leave}", f"{label}_all:", *lines, f"{leave}:", "exitz $m15"]
