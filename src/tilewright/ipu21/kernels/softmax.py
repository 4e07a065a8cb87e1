"""`softmax_f16`, `softmax_unsummed_f16`, `softmax_causal_f16`: unnormalised probabilities, with each row's
largest score and sum.

p = exp(score - largest score of the row) in half precision, 0 where no column counts; the row's state holds
the largest score and the sum of its p in float32. Division is left to `scale_rows_f16` or
`attention_merge_f16`, where it costs less. Rows are shared by the six workers. `softmax_unsummed_f16` leaves
sums to others, so that it takes less time where all columns of several panels count.

The cycle formulas are exact but for neighbours that are both the largest of their row: `f16v2exp` of two
zeros takes one slot instead of two (known), so such a row can take less.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import WORKER_SLOTS
from .grid import MAXIMUM_SIDE, PANELS, ROWS
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar
from .row_sums import lane_sums
from .softmax_full_source import FULL_END, FULL_ROW, FULL_START
from .softmax_narrow_source import BEFORE, END, IDLE, ROW, SECOND, START
from .softmax_source import (
    BEFORE_FIRST,
    BETWEEN,
    ENDING,
    FIRST_PANEL,
    FIRST_TAIL,
    LIMIT,
    SECOND_PANEL,
    SECOND_TAIL,
    TAIL_SLOTS,
    ZERO_PANEL,
    ZERO_TAIL_SLOTS,
    slots_of,
    source,
    start,
    supervisor_cycles,
)
from .softmax_unsummed_source import UNSUMMED_PANEL, UNSUMMED_ROW, UNSUMMED_START

SYMBOL, CAUSAL_SYMBOL, UNSUMMED_SYMBOL = "softmax_f16", "softmax_causal_f16", "softmax_unsummed_f16"

LOWEST = np.float16(-65504)
"""The largest score of a row in which no column counts."""


def _row_slots(panels: Any, valid: Any) -> Any:
    """Slots of one row of which `valid` columns count."""
    whole, tail = valid // 16, valid % 16
    words = ceil_div(tail, 4)
    loops = whole * (slots_of(FIRST_PANEL) + slots_of(SECOND_PANEL)) + (whole > 0)
    tails = (tail > 0) * 2 * TAIL_SLOTS + words * (slots_of(FIRST_TAIL) + slots_of(SECOND_TAIL))
    behind = (tail > 0) * (ZERO_TAIL_SLOTS + 4 - words)
    zeros = (panels > whole) * (2 + behind + slots_of(ZERO_PANEL) * (panels - whole - (tail > 0)))
    branches = 1 + 1 + 1 + 3 + 1  # around the tails, before the late store, to the zeros, to the next row
    return slots_of([*BEFORE_FIRST, *BETWEEN, *ENDING]) + branches + loops + tails + zeros


def _cycles(symbol: str, rows: Any, panels: Any, valid: Any) -> Any:
    rows, panels, valid = (np.asarray(value, dtype=np.int64) for value in (rows, panels, valid))
    begin = len(start(symbol, False))
    each = ceil_div(rows, WORKER_SLOTS)
    narrow, is_full = _is_narrow(panels, valid), (panels > 1) & (valid == 16 * panels)
    once = slots_of([*START, BEFORE, *SECOND, *END])
    slots = begin + each * _row_slots(panels, valid)
    if symbol == UNSUMMED_SYMBOL:
        full_row = UNSUMMED_ROW + panels * slots_of([*FIRST_PANEL, *UNSUMMED_PANEL])
        full = len(UNSUMMED_START) + each * full_row
    else:
        full_row = FULL_ROW + panels * slots_of([*FIRST_PANEL, *SECOND_PANEL])
        full = len(FULL_START) + each * full_row + len(FULL_END)
    slots = np.where(is_full, full, slots)
    slots = np.where(narrow, once + (each - 1) * slots_of(ROW), slots) + 1
    slots = np.where(rows > 0, slots, np.where(narrow, IDLE + 1, NO_ROW_SLOTS))
    return supervisor_cycles(symbol, False) + WORKER_SLOTS * slots


def cycles(rows: Any, panels: Any, valid: Any) -> Any:
    """Cycles of a call of `softmax_f16` (exact on the simulator); integers or arrays."""
    return _cycles(SYMBOL, rows, panels, valid)


def _is_narrow(panels: Any, valid: Any) -> Any:
    """Where one panel is all there is, and all of it counts."""
    return (panels == 1) & (valid == 16)


NO_ROW_SLOTS = 3
"""Slots of a worker without rows."""


def _counting(rows: int, valid: int, diagonal: int) -> NDArray[np.int64]:
    """Causal: columns that count, per row."""
    return np.clip(np.arange(rows) + diagonal + 1, 0, valid)


def _causal_cycles(rows: int, panels: int, valid: int, diagonal: int) -> int:
    each = slots_of(LIMIT) + _row_slots(np.int64(panels), _counting(rows, valid, _signed(diagonal)))
    begin = len(start(CAUSAL_SYMBOL, True))
    slots = [begin + 1 + int(each[w::WORKER_SLOTS].sum()) if w < rows else NO_ROW_SLOTS for w in range(6)]
    return supervisor_cycles(CAUSAL_SYMBOL, True) + WORKER_SLOTS * max(slots)


def _signed(word: int) -> int:
    return (word & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def causal_cycles(rows: Any, panels: Any, valid: Any, diagonal: Any) -> Any:
    """Cycles of a call of `softmax_causal_f16` (exact on the simulator); integers or arrays."""
    return np.vectorize(_causal_cycles, otypes=[np.int64])(rows, panels, valid, diagonal)


def _reference_row(scores: Halves, valid: int, narrow: bool) -> tuple[Halves, np.float32, np.float32]:
    """One row as [columns]: p, largest score, sum in the kernel's order of additions: eight lanes of whole
    panels and four of what is behind them, or, if it is `narrow`, two of pairs.
    """
    largest = scores[:valid].max(initial=LOWEST)
    p = np.zeros_like(scores)
    with np.errstate(over="ignore", invalid="ignore"):
        difference = to_halves(scores[:valid].astype(np.float64) - np.float64(largest)).astype(np.float64)
        p[:valid] = to_halves(np.exp(difference))
    if narrow:
        return p, np.float32(largest), np.float32(lane_sums(p.astype(np.float64)))
    wide = p.astype(np.float32)
    lanes = np.zeros(8, np.float32)
    whole = valid // 16 * 16
    for column in range(0, whole, 8):
        lanes = lanes + wide[column : column + 8]
    for column in range(whole, valid, 4):
        lanes[:4] = lanes[:4] + wide[column : column + 4]
    four = lanes[:4] + lanes[4:]
    sums = four[:2] + four[2:]
    return p, np.float32(largest), np.float32(sums[0] + sums[1])


def reference(scores: Halves, valid: int, diagonal: int | None = None) -> tuple[Halves, NDArray[np.float32]]:
    """Scores [panels, rows, 16] -> p like them, state [rows, 2]; exp correctly rounded (open on a card)."""
    panels, rows, _ = scores.shape
    counting = [valid] * rows if diagonal is None else _counting(rows, valid, diagonal).tolist()
    narrow = diagonal is None and bool(_is_narrow(panels, valid))
    by_row = scores.transpose(1, 0, 2).reshape(rows, panels * 16)
    p, state = np.zeros_like(by_row), np.zeros((rows, 2), np.float32)
    for row, columns in enumerate(counting):
        p[row], state[row, 0], state[row, 1] = _reference_row(by_row[row], columns, narrow)
    return p.reshape(rows, panels, 16).transpose(1, 0, 2).copy(), state


def unsummed_reference(scores: Halves, valid: int) -> tuple[Halves, NDArray[np.float32]]:
    """Scores [panels, rows, 16] -> p like them, largest scores [rows]."""
    p, state = reference(scores, valid)
    return p, state[:, 0]


_SUMS = "the largest score and the sum of p."
_NO_SUMS = "the largest score, and the sum of p or what was there."


def _kernel(symbol: str, causal: bool) -> Kernel:
    summed = symbol != UNSUMMED_SYMBOL
    scalars = (ROWS, PANELS, Scalar("valid", "columns that count, from the first", 0, 16 * MAXIMUM_SIDE))
    diagonal = Scalar("diagonal", "column j counts for row i iff j <= i + diagonal", -(1 << 30), 1 << 30)
    return Kernel(
        symbol,
        partial(source, symbol, causal, summed),
        Contract(
            operands=(
                Operand("p", "a16", "out"),
                Operand("scores", "a16", "in"),
                Operand("state", "words", "out"),
            ),
            scalars=(*scalars, diagonal) if causal else scalars,
            packed=(("rows", "panels", 16),),
            may_alias=(("p", "scores"),),
            notes=f"valid <= 16 panels. state: float32 [rows][2], {_SUMS if summed else _NO_SUMS}",
        ),
        causal_cycles if causal else partial(_cycles, symbol),
        reference if summed else unsummed_reference,
    )


KERNELS = (_kernel(SYMBOL, False), _kernel(UNSUMMED_SYMBOL, False), _kernel(CAUSAL_SYMBOL, True))
