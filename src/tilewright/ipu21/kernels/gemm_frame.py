"""What the matrix kernels share: start modes, what both ask of their callers, and the frame that a supervisor
leaves to its workers.

A call works on chunks of up to `CHUNK_ROWS` rows. Rows of a chunk are shared evenly, the first workers have
one more; `n` is a worker's number of rows. Everything that depends on n is in the frame twice, for the
smaller and for the larger n.
"""

from __future__ import annotations

from collections.abc import Iterable

from .kernel import Operand, Scalar
from .text import bundle

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
NEAR_ROWS = 152
"""Most rows in memory for which the way to the next K group fits a stride field."""

FRAME_BYTES = 96
Q_BYTES, MORE_BYTES, LIMIT, FRAME_A, FRAME_C, FRAME_START, GROUP, CHOICE = range(8)
"""Words: bytes of the fewer rows a worker has; 32 x workers that have one more; the same, but a row below
the last for workers without rows; operands; bytes of a K group; 0 for the
other one of two panels a call may begin with."""
SMALLER, LARGER = 8, 12
"""First of four words for each n."""
FINAL, LEFT, SHAPE, TABLE, W_INNER, W_FIRST, W_STRIDE, RETURN = range(16, 24)
"""The supervisor's own words."""
VARIANT_SHIFT = 4


def share_lines(limited: bool) -> list[str]:
    """Start of every worker: leaves $m0 = byte offset of its rows, $m3 = offset of what depends on n, $m4 and
    $m5 = its rows in A and C.

    Args:
        limited: workers may be without rows.
    """
    limit = [f"ld32 $m2, $mvertex_base, $mzero, {LIMIT}"] if limited else []
    return [
        bundle("get $m0, $WSR", "setzi $a0, 8"),
        bundle("and $m0, $m0, 7", "uput $FP_CLR, $a0"),  # 8: clear all accumulators
        f"ld32 $m1, $mvertex_base, $mzero, {Q_BYTES}",
        f"ld32 $m2, $mvertex_base, $mzero, {MORE_BYTES}",
        "shl $m5, $m0, 5",
        "cmpult $m3, $m5, $m2",
        *limit,
        "mul $m0, $m0, $m1",
        "min $m2, $m2, $m5",
        "add $m0, $m0, $m2",
        f"shl $m3, $m3, {VARIANT_SHIFT}",
        f"ld32 $m4, $mvertex_base, $mzero, {FRAME_A}",
        f"ld32 $m5, $mvertex_base, $mzero, {FRAME_C}",
        "add $m4, $m4, $m0",
        "add $m5, $m5, $m0",
    ]


def variant(register: int, word: int) -> str:
    """Load one of the words that depend on n; `share_lines` has left their place in $m3."""
    return f"ld32 $m{register}, $mvertex_base, $m3, {SMALLER + word}"


def few_routine(label: str, lines: Iterable[str], *, stores: bool) -> list[str]:
    """A worker routine for few rows, from its label on.

    Args:
        stores: it stores results, so a worker without rows must leave at once.
    """
    leave = f"{label}_exit"
    if not stores:
        return [f"{label}:", *lines, "exitz $m15"]
    return [f"{label}:", f"brz $m3, {leave}", *lines, f"{leave}:", "exitz $m15"]
