"""`gemm_f16`, `gemm_row_f16`, `gemm_add_f16`: C = start + A x W on one tile, float16 in and out.

A (a16) is [K/16][R][16], C (a16) is [N/16][R][16]: a result is again a legal left operand. W is made of
panels of [16 columns][16 inner], `w_inner_stride` bytes apart along K and `w_column_stride` along N: 512 and
32 K for weights in b16 order, 32 R' and 512 for an a16 matrix of R' rows of which the transpose is wanted
(Q K^T). Sums are float32 inside a 16-wide inner group and float16 between groups. They start from zeros, from
one row16 for all rows, or from an a16 array shaped like C, which may be C itself.

`gemm_listed_f16`, `gemm_listed_row_f16`, `gemm_listed_add_f16`: the same, and each panel of W may lie
anywhere in one of two arrays. W is the list of their addresses, [N/16][K/16], with `LOOK_AHEAD` words behind
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.matrix_unit import SUMS_OF_SINGLES
from ..machine.memory import is_interleaved
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from ..machine.workers import ACCUMULATORS_SURVIVE_EXIT
from . import gemm_few as few
from . import gemm_source, gemm_stream
from .gemm_few_stream import FewPanel, Opening, check_slots
from .gemm_frame import (
    ADD,
    CHUNK_ROWS,
    FEW_ROWS,
    MODES,
    NEAR_ROWS,
    PART_ROWS,
    ROW,
    W_STRIDES,
    ZERO,
    start_operand,
)
from .gemm_short import ShortPanel, short_start_slots
from .gemm_source import LISTED, SYMBOLS
from .gemm_stream import Panel
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar

MAXIMUM_ROWS = 13312
"""As many as interleaved memory holds of one column group."""


LOOK_AHEAD = 2
"""Addresses that are read behind a list of panels, of any bytes of the tile."""


def contract(mode: str, *, listed: bool = False) -> Contract:
    """What a caller of the family's member with this start mode must keep.

    Args:
        listed: a list says where each panel of W lies.
    """
    panels = [
        Operand(name, "b16", "in", alignment=16, prefers_interleaved=True)
        for name in (("own", "others") if listed else ("w",))
    ]
    ends = [start_operand(mode), *panels] if listed else [*panels, start_operand(mode)]
    behind = (
        f" w: the address of each panel, in own or others, and {LOOK_AHEAD} of any bytes; the weights are "
        "loaded fast if both arrays are interleaved."
    )
    return Contract(
        operands=(
            Operand("c", "a16", "out", alignment=16, interleaved=True),
            Operand("a", "a16", "in", alignment=16),
            *([Operand("w", "words", "in")] if listed else []),
            *ends,
        ),
        scalars=(
            Scalar("rows", "rows of A and C in memory", 0, MAXIMUM_ROWS),
            Scalar("inner", "groups of 16 inner elements", 1, 4095),
            Scalar("columns", "groups of 16 columns", 0, 4095),
            *(() if listed else W_STRIDES),
        ),
        packed=(("inner", "columns", 16),),
        apart=(("c", "a"),),
        apart_in_standard=(("start", "a"),) if mode != ZERO else (),
        may_alias=(("c", "start"),) if mode == ADD else (),
        notes=(
            "Rows are independent: padding rows may hold anything. The accumulators and registers of the "
            "workers must survive exitz and runall (documented; open on hardware for the accumulators). "
            "$FP_INFMT and $FP_ISCL must be 0 (open whether they matter for float16). $TAS is left alone. "
            f"Up to {FEW_ROWS} rows, infinite weights give NaN: zeros are multiplied with them."
            + behind
            * listed
        ),
    )


ENTRY_STREAM, ENTRY_FEW, ENTRY_SHORT, ENTRY_SHORT_FEW = 365, 795, 294, 265
"""Supervisor cycles of a chunk outside its panels, with call and return: for many rows and for few, and for
both where accumulators do not survive."""
ENTRY_ADD, ENTRY_NARROW, ENTRY_SINGLE, AGAIN = 28, 5, 6, 48
"""More if sums start from an array, if W is not interleaved, if there is one panel, for each chunk before the
last."""
ENTRY_LISTED, LISTED_SINGLE, LISTED_AGAIN = 8, 2, 42
"""More if a list says where panels are; then, if there is one panel, and for each chunk before the last. The
way to the next column group is one cycle shorter."""
COLUMN, LAST_COLUMN = 3, 12
"""Cycles from one column group to the next, and more to the last, with several K groups."""
RETURN_ROWS, RETURN_COLUMNS, RETURN_LISTED = 22, 26, 6
"""Cycles of a call without rows, and of one without columns; more with a list."""


def _panel(slots: Any, wide: Any) -> Any:
    """Cycles of one panel whose busiest worker needs so many slots: weights, launch, release."""
    return np.where(wide, 32, 64) + 1 + (RUN_LAUNCH - 1) + RUN_RELEASE + WORKER_SLOTS * slots


def _slots(panel: Panel, rows: Any) -> Any:
    share = np.maximum(ceil_div(rows, WORKER_SLOTS), gemm_stream.SHORTEST)
    return 4 * share + panel.extra_slots


def panel_cycles(rows: Any, wide: Any = True, straight: bool = True) -> Any:
    """Cycles of the panel that repeats: neither first nor last of a column group; up to `CHUNK_ROWS` rows.

    Args:
        straight: as in `cycles_of`.
    """
    rows = np.asarray(rows)
    near, stride = (_middle_slots(near, rows, straight) for near in (True, False))
    is_near = (rows <= NEAR_ROWS) & (rows > WORKER_SLOTS * gemm_stream.SHORTEST)
    slots = np.where(rows <= FEW_ROWS, FewPanel().slots, np.where(is_near, near, stride))
    return _panel(slots, wide) + 0


def _middle_slots(near: bool, rows: Any, straight: bool) -> Any:
    """Slots of the busiest worker of a middle panel."""
    share = ceil_div(rows, WORKER_SLOTS)
    own = gemm_stream.UNROLLED if near else (gemm_stream.SHORTEST,)
    has_own = np.isin(share, own) | (straight & np.isin(share, gemm_stream.STRAIGHT))
    # All straight panels take as many slots beyond four per row.
    return np.where(has_own, _slots(Panel(near=near, rows=5), rows), _slots(Panel(near=near), rows))


def _stream_slots(mode: str, rows: Any, all_rows: Any, inner: Any, columns: Any, straight: bool) -> Any:
    """Slots of the busiest worker of the stream."""

    def several(near: bool, share: int = 0) -> Any:
        first = Panel(mode, first=True, near=near, rows=share)
        opening = replace(first, opening=True)
        begin = np.where(columns == 1, _slots(replace(opening, lone=near), rows), _slots(opening, rows))
        more = (columns - 1) * (_slots(Panel(mode, last=True, rows=share), rows) + _slots(first, rows))
        middle = columns * (inner - 2) * _middle_slots(near, rows, straight)
        return begin + more + middle + _slots(Panel(last=True, final=True, rows=share), rows)

    def one(share: int = 0) -> Any:
        only = Panel(mode, first=True, last=True, rows=share)
        final = replace(only, final=True)
        slots = _slots(replace(only, opening=True), rows) + _slots(final, rows)
        slots = slots + (columns - 2) * _slots(only, rows)
        return np.where(columns == 1, _slots(replace(final, opening=True, lone=True), rows), slots)

    near = np.asarray(all_rows <= NEAR_ROWS)
    several_groups = several(True) if near.all() else several(False)
    if near.any() and not near.all():
        several_groups = np.where(near, several(True), several_groups)
    for share in gemm_stream.UNROLLED:
        is_near = share != gemm_stream.SHORTEST
        fits = (near | (not is_near)) & (ceil_div(rows, WORKER_SLOTS) == share)
        if fits.any():
            several_groups = np.where(fits, several(is_near, share), several_groups)
    few = ceil_div(rows, WORKER_SLOTS) <= gemm_stream.SHORTEST
    return np.where(inner == 1, np.where(few, one(gemm_stream.SHORTEST), one()), several_groups)


def _few_slots(mode: str, rows: Any, inner: Any, columns: Any) -> Any:
    """Slots of a worker with one or two rows."""
    less = np.asarray(rows < WORKER_SLOTS)

    def opening(single: bool, lone: bool) -> Any:
        begin = Opening(mode, single, lone)
        return begin.slots + less * check_slots(begin.panel)

    def pair(first: str, second: str) -> Any:
        panel = FewPanel(mode, first, second)
        return panel.slots + less * panel.stores

    several = (columns - 1) * (pair(few.FIRST, few.MIDDLE) + pair(few.MIDDLE, few.LAST))
    several = several + columns * (inner - 2) * FewPanel().slots + pair(few.MIDDLE, few.FINAL)
    several = several + opening(False, False)
    single = (columns - 2) * pair(few.FIRST, few.LAST) + pair(few.FIRST, few.FINAL)
    single = np.where(columns == 1, opening(True, True), single + opening(True, False))
    return np.where(inner == 1, single, several)


def _short_slots(mode: str, rows: Any, inner: Any, columns: Any, is_few: bool) -> Any:
    """The same where accumulators do not survive."""

    def slots(first: bool, last: bool) -> Any:
        extra = ShortPanel(mode, first, last, is_few).slots
        return extra if is_few else 4 * np.maximum(ceil_div(rows, WORKER_SLOTS), gemm_stream.SHORTEST) + extra

    several = slots(True, False) + (inner - 2) * slots(False, False) + slots(False, True)
    return short_start_slots(mode, is_few) + columns * np.where(inner == 1, slots(True, True), several)


def _chunk(
    mode: str,
    rows: Any,
    all_rows: Any,
    inner: Any,
    columns: Any,
    wide: Any,
    survive: bool,
    straight: bool,
    listed: bool,
) -> Any:
    """Cycles of one chunk."""
    if survive:
        stream, few_slots = (
            _stream_slots(mode, rows, all_rows, inner, columns, straight),
            _few_slots(mode, rows, inner, columns),
        )
    else:
        stream, few_slots = (_short_slots(mode, rows, inner, columns, is_few) for is_few in (False, True))
    slots = np.where(rows <= FEW_ROWS, few_slots, stream)
    many, few_rows = (ENTRY_STREAM, ENTRY_FEW) if survive else (ENTRY_SHORT, ENTRY_SHORT_FEW)
    entry = np.where(rows <= FEW_ROWS, few_rows, many) + np.where(wide, 0, ENTRY_NARROW)
    single = LISTED_SINGLE if listed else ENTRY_SINGLE
    entry = entry + np.where(inner * columns == 1, single, 0) + (ENTRY_ADD if mode == ADD else 0)
    more = LAST_COLUMN + (COLUMN - listed) * (columns - 1)
    entry = entry + (ENTRY_LISTED if listed else 0) + np.where((inner > 1) & (columns > 1), more, 0)
    return entry + inner * columns * _panel(0, wide) + WORKER_SLOTS * slots


def cycles_of(
    mode: str,
    rows: Any,
    inner: Any,
    columns: Any,
    wide: Any = True,
    survive: bool = ACCUMULATORS_SURVIVE_EXIT,
    straight: bool = True,
    listed: bool = False,
    **_: Any,
) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays. See `Kernel.cycles`.

    Args:
        mode: one of `gemm_frame.MODES`.
        wide: W is interleaved.
        survive: see `gemm_source.source`.
        straight: the middle panel of `gemm_tables.straight_of` is linked, as programs have it.
        listed: a list says where panels are.
    """
    rows, inner, columns = (np.asarray(value, dtype=np.int64) for value in (rows, inner, columns))

    def chunk(part: Any) -> Any:
        return _chunk(mode, part, rows, inner, columns, wide, survive, straight, listed)

    again, idle = (LISTED_AGAIN, RETURN_LISTED) if listed else (AGAIN, 0)
    return in_chunks(chunk, rows, columns, CHUNK_ROWS, PART_ROWS, again, idle)


def in_chunks(
    chunk: Callable[[Any], Any], rows: Any, columns: Any, size: int, part: int, again: int, idle: int = 0
) -> Any:
    """Cycles of a call that works off `part` of its rows at a time while more than `size` are left.

    Args:
        chunk: cycles of a chunk of so many rows.
        again: cycles more of each after the first.
        idle: cycles more of a call without work.
    """
    full = ceil_div(np.maximum(rows - size, 0), part)
    busy = chunk(rows - full * part)
    if np.any(full):
        busy = busy + full * (chunk(np.asarray(part)) + again)
    nothing = np.where(rows == 0, RETURN_ROWS, RETURN_COLUMNS) + idle
    return np.where((rows == 0) | (columns == 0), nothing, busy) + 0


cycles = partial(cycles_of, ZERO)
"""`cycles_of` for sums that start from zeros."""


def goal(rows: Any, inner: Any, columns: Any, wide: Any = True, **_: Any) -> Any:
    """Four cycles per row and 130 per panel, 294 per call (the published kernel's call overhead); reached by
    calls of one chunk."""
    rows = np.maximum(rows, WORKER_SLOTS)
    return inner * columns * (4 * rows + 130 + np.where(wide, 0, 32)) + 294


def reference(a: Halves, w: Halves, start: Halves | None = None) -> Halves:
    """C [N/16, R, 16] from A [K/16, R, 16] and W [N/16, K/16, 16, 16], with the kernel's rounding steps.

    Each AMP instruction adds up four exact products as `SUMS_OF_SINGLES` says and adds the sum to a float32
    accumulator; the partial sum is rounded to float16 after every inner group.

    Args:
        start: what sums start from, a row [N/16, 16] or an array shaped like C.
    """
    groups, rows, _ = a.shape
    partial_sum: Halves = np.zeros((len(w), rows, 16), np.float16)
    if start is not None:
        partial_sum = partial_sum + (start if start.ndim == 3 else start[:, None, :])
    with np.errstate(invalid="ignore", over="ignore"):
        for group in range(groups):
            x = a[group].astype(np.float32 if SUMS_OF_SINGLES else np.float64)
            total = partial_sum.astype(np.float32)
            for phase in range(4):
                products = [_outer(x, w, group, 4 * phase + i) for i in range(4)]
                dot = products[0] + products[1] + products[2] + products[3]
                total = (total + dot).astype(np.float32)
            partial_sum = to_halves(total)
    return partial_sum


def _outer(x: NDArray[Any], w: Halves, group: int, inner: int) -> NDArray[Any]:
    column = w[:, group, :, inner].astype(x.dtype)
    products: NDArray[Any] = x[None, :, inner, None] * column[:, None, :]
    return products


def way(arguments: Mapping[str, int]) -> dict[str, bool]:
    """Which way a call loads its weights, see `cycles_of`."""
    panels = ("own", "others") if "own" in arguments else ("w",)
    return {"wide": all(is_interleaved(arguments[name]) for name in panels)}


def _kernel(mode: str, *, listed: bool = False) -> Kernel:
    return Kernel(
        (LISTED if listed else SYMBOLS)[mode],
        gemm_source.source,
        contract(mode, listed=listed),
        partial(cycles_of, mode, listed=listed),
        reference,
        goal,
        way,
    )


KERNEL = _kernel(ZERO)
STARTED = (_kernel(ROW), _kernel(ADD))
BY_LIST = tuple(_kernel(mode, listed=True) for mode in MODES)
