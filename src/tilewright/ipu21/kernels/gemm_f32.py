"""`gemm_f32`, `gemm_row_f32`, `gemm_add_f32`: C = start + A x W on one tile, all in float32.

A (a16) is [K/16][R][16], W is made of panels of [16 columns][8 inner], `w_inner_stride` bytes apart along K
and `w_column_stride` along N (512 and 64 K for weights [N/16][K/8][16][8]). C (a16) is [N/16][R][16]: a
result is again a legal left operand. The matrix unit gives out a row's 16 columns one pair after the other,
and only in this order do results and partials take turns in the two elements of interleaved memory at full
rate for any number of rows; two panels of 8 columns would need pointer jumps that fit a stride field up to
128 rows. Sums start from zeros, from one row16 for all rows, or from an a16 array shaped like C, which may be
C itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from ..machine.workers import ACCUMULATORS_SURVIVE_EXIT
from . import gemm, gemm_f32_source, gemm_f32_stream
from . import gemm_f32_short as short
from .gemm_f32_few import CHECK_SLOTS, FewPanel, opening_slots
from .gemm_f32_short import SinglePanel
from .gemm_f32_source import STREAM_CHUNK_ROWS, SYMBOLS
from .gemm_f32_stream import StreamPanel
from .gemm_few import FINAL, FIRST, LAST, MIDDLE
from .gemm_frame import ADD, CHUNK_ROWS, FEW_ROWS, ROW, W_STRIDES, ZERO, start_operand
from .kernel import Contract, Kernel, Operand, Scalar

Singles = NDArray[np.float32]

MAXIMUM_ROWS = 6656
"""As many as interleaved memory holds of one column group."""
INNER = 8
"""Inner elements of a group."""


def contract(mode: str) -> Contract:
    """What a caller of the family's member with this start mode must keep."""
    return Contract(
        operands=(
            Operand("c", "a16", "out", alignment=16, interleaved=True),
            Operand("a", "a16", "in"),
            Operand("w", "b8", "in", alignment=16, prefers_interleaved=True),
            start_operand(mode),
        ),
        scalars=(
            Scalar("rows", "rows of A and C in memory", 0, MAXIMUM_ROWS),
            Scalar("inner", "groups of 8 inner elements", 2, 4094, multiple=2),
            Scalar("columns", "groups of 16 columns", 0, 4095),
            *W_STRIDES,
        ),
        packed=(("inner", "columns", 16),),
        apart=(("c", "a"), *((("start", "a"),) if mode != ZERO else ())),
        may_alias=(("c", "start"),) if mode == ADD else (),
        notes=(
            "Rows are independent: padding rows may hold anything. The accumulators and registers of the "
            "workers must survive exitz and runall (documented; open on hardware for the accumulators). "
            f"$TAS is clobbered (documented). Up to {FEW_ROWS} rows, infinite weights give NaN: zeros are "
            "multiplied with them."
        ),
    )


ENTRY_STREAM, ENTRY_FEW, ENTRY_SHORT = 265, 271, 287
"""Supervisor cycles of a chunk outside its panels, with call and return, for many and for few rows, and where
accumulators do not survive."""
ENTRY_ADD = 28
"""More if sums start from an array."""
AGAIN_STREAM, AGAIN_SHORT = 48, 58
"""More for each chunk before the last."""


def cycles_of(
    mode: str,
    rows: Any,
    inner: Any,
    columns: Any,
    wide: Any = True,
    survive: bool = ACCUMULATORS_SURVIVE_EXIT,
    **_: Any,
) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays. See `Kernel.cycles`.

    Args:
        mode: one of `gemm_frame.MODES`.
        wide: W is interleaved.
        survive: see `gemm_f32_source.source`.
    """
    rows, inner, columns = (np.asarray(value, dtype=np.int64) for value in (rows, inner, columns))

    def chunk(part: Any) -> Any:
        return _chunk(mode, part, inner, columns, wide, survive)

    size, again = (STREAM_CHUNK_ROWS, AGAIN_STREAM) if survive else (CHUNK_ROWS, AGAIN_SHORT)
    return gemm.in_chunks(chunk, rows, columns, size, size, again)


def _chunk(mode: str, rows: Any, inner: Any, columns: Any, wide: Any, survive: bool) -> Any:
    if survive:
        is_few = rows <= FEW_ROWS
        slots = np.where(
            is_few, _few_slots(mode, rows, inner, columns), _stream_slots(mode, rows, inner, columns)
        )
        entry = np.where(is_few, ENTRY_FEW, ENTRY_STREAM)
    else:
        slots, entry = _short_slots(mode, rows, inner, columns), np.asarray(ENTRY_SHORT)
    panel = np.where(wide, 32, 64) + 1 + (RUN_LAUNCH - 1) + RUN_RELEASE
    entry = entry + np.where(wide, 0, gemm.ENTRY_NARROW)
    entry = entry + (ENTRY_ADD if mode == ADD else 0)
    more = gemm.LAST_COLUMN + gemm.COLUMN * (columns - 1)
    entry = entry + np.where(columns > 1, more, 0)
    return entry + inner * columns * panel + WORKER_SLOTS * slots


def _stream_slots(mode: str, rows: Any, inner: Any, columns: Any) -> Any:
    """Slots of the busiest worker of the stream."""
    first = StreamPanel(mode, first=True)
    opening = replace(first, opening=True)
    begin = np.where(columns == 1, replace(opening, lone=True).extra_slots, opening.extra_slots)
    later = first.extra_slots + StreamPanel(mode, last=True).extra_slots
    extra = begin + (columns - 1) * later + StreamPanel(last=True, final=True).extra_slots
    extra = extra + columns * (inner - 2) * StreamPanel().extra_slots
    share = np.maximum(ceil_div(rows, WORKER_SLOTS), gemm_f32_stream.SHORTEST)
    return extra + 8 * share * inner * columns


def _few_slots(mode: str, rows: Any, inner: Any, columns: Any) -> Any:
    """Slots of a worker with one or two rows."""
    less = np.asarray(rows < WORKER_SLOTS)
    later = FewPanel(mode, FIRST).slots + FewPanel(mode, MIDDLE, LAST).slots + 2 * less
    slots = (columns - 1) * later + FewPanel(ZERO, MIDDLE, FINAL).slots + less
    slots = slots + np.where(columns == 1, opening_slots(mode, True), opening_slots(mode, False))
    return slots + CHECK_SLOTS * less + columns * (inner - 2) * FewPanel().slots


def _short_slots(mode: str, rows: Any, inner: Any, columns: Any) -> Any:
    """Slots of the busiest worker where accumulators do not survive."""
    share = ceil_div(rows, WORKER_SLOTS)

    def slots(first: bool, last: bool) -> Any:
        panel = SinglePanel(mode, first, last)
        many = panel.slots(short.SHORTEST) + 8 * (share - short.SHORTEST)
        # Two rows take longer than three.
        many = np.where(rows // WORKER_SLOTS == 2, np.maximum(many, panel.slots(2)), many)
        return np.where(share == 1, panel.slots(1), np.where(share == 2, panel.slots(2), many))

    several = slots(True, False) + (inner - 2) * slots(False, False) + slots(False, True)
    return len(short.start_lines(mode)) + columns * several


cycles = partial(cycles_of, ZERO)
"""`cycles_of` for sums that start from zeros."""


def reference(a: Singles, w: Singles, start: Singles | None = None) -> Singles:
    """C [N/16, R, 16] from A [K/16, R, 16] and W [N/16, K/8, 16, 8], with the kernel's rounding steps.

    Each AMP instruction adds one exact product to a float32 accumulator and rounds once (assumed, as the
    simulator does).

    Args:
        start: what sums start from, a row [N/16, 16] or an array shaped like C.
    """
    rows = a.shape[1]
    total: Singles = np.zeros((len(w), rows, 16), np.float32)
    if start is not None:
        total = total + (start if start.ndim == 3 else start[:, None, :])
    with np.errstate(invalid="ignore", over="ignore"):
        for inner in range(INNER * w.shape[1]):
            column = w[:, inner // INNER, :, inner % INNER].astype(np.float64)
            x = a[inner // 16, :, inner % 16].astype(np.float64)
            total = (total.astype(np.float64) + x[None, :, None] * column[:, None, :]).astype(np.float32)
    return total


KERNELS = tuple(
    Kernel(SYMBOLS[mode], gemm_f32_source.source, contract(mode), partial(cycles_of, mode), reference)
    for mode in (ZERO, ROW, ADD)
)
