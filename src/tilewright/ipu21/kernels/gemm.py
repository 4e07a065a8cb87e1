"""`gemm_f16`: C = A x W on one tile, float16 in and out, float16 partial sums between inner groups.

A (a16) is [K/16][R][16], W (b16) is [N/16][K/16][16 columns][16 inner], C (a16) is [N/16][R][16]; the
result's order is again a legal left operand. Sums are float32 inside a 16-wide inner group; between groups C
holds the float16 partial.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from . import gemm_source
from .gemm_source import (
    FINAL,
    FINAL_LONG,
    FIRST,
    FIRST_LONG,
    FIRST_NEAR,
    LAST,
    LAST_LONG,
    MIDDLE,
    MIDDLE_LONG,
    MIDDLE_NEAR,
    NEAR_ROWS,
    ONLY,
    ONLY_FINAL,
    START_LONG_SLOTS,
    START_SLOTS,
    STRIDE_ROWS,
)
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar

MINIMUM_ROWS = 18
"""Three rows per worker: a result must be stored before it is reloaded as a partial (see `gemm_source`)."""
MAXIMUM_ROWS = 5460
"""Up to here w * R / 6 is exact in the kernel's 32-bit fixed-point division."""
ACCESS_TAIL = 0
"""Nothing is read past any operand: the input pointer wraps within A and is not followed after the last row.
"""

CONTRACT = Contract(
    operands=(
        Operand("c", "a16", "out", alignment=16, interleaved=True),
        Operand("a", "a16", "in", alignment=8),
        Operand("w", "b16", "in", alignment=16, interleaved=True),
    ),
    scalars=(
        Scalar("rows", "rows of A and C in memory", MINIMUM_ROWS, MAXIMUM_ROWS),
        Scalar("inner", "groups of 16 inner elements", 1, 4096),
        Scalar("columns", "groups of 16 columns", 0, 4096),
    ),
    apart=(("c", "a"),),
    notes=(
        "Rows are independent: padding rows may hold anything. The accumulators and registers of the workers "
        "must survive exitz and runall (documented; open on hardware for the accumulators). $FP_INFMT and "
        "$FP_ISCL must be 0 (open whether they matter for float16). $TAS is left alone. C is read only after "
        "it has been written; the first five words of each worker's rows are written twice."
    ),
)

PANEL_FIXED = 32 + 1 + (RUN_LAUNCH - 1) + RUN_RELEASE
"""Supervisor cycles per panel beside the workers: weights, runall, launch, release."""
ENTRY_NEAR, ENTRY_STRIDE, ENTRY_LONG = 42, 46, 46
"""Supervisor cycles of a call outside its panels, by the size class of `rows`."""
ENTRY_SINGLE, ENTRY_ALONE = 46, 48
"""The same for one K group, with several columns and with one."""
SINGLE_EXTRA = 1
"""With one K group the loop's arithmetic sits among the weight loads."""
RETURN = 14
"""Supervisor cycles of a call without columns."""


def _panel(rows: Any, panel: gemm_source.Panel) -> Any:
    """Cycles of one panel: the busiest worker has ceil(rows / 6) rows of four slots."""
    return PANEL_FIXED + WORKER_SLOTS * (4 * ceil_div(rows, WORKER_SLOTS) + panel.extra_slots)


def panel_cycles(rows: Any) -> Any:
    """Cycles of the panel that repeats: neither first nor last of a column group."""
    return _by_size(rows, _panel(rows, MIDDLE_NEAR), _panel(rows, MIDDLE), _panel(rows, MIDDLE_LONG))


def _by_size(rows: Any, near: Any, stride: Any, long: Any) -> Any:
    return np.where(
        np.asarray(rows) <= NEAR_ROWS, near, np.where(np.asarray(rows) <= STRIDE_ROWS, stride, long)
    )


def cycles(rows: Any, inner: Any, columns: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays. See `Kernel.cycles`."""
    start = _by_size(rows, START_SLOTS, START_SLOTS, START_LONG_SLOTS)
    first = _by_size(rows, _panel(rows, FIRST_NEAR), _panel(rows, FIRST), _panel(rows, FIRST_LONG))
    last = _by_size(rows, _panel(rows, LAST), _panel(rows, LAST), _panel(rows, LAST_LONG))
    final = _by_size(rows, _panel(rows, FINAL), _panel(rows, FINAL), _panel(rows, FINAL_LONG))
    several = _by_size(rows, ENTRY_NEAR, ENTRY_STRIDE, ENTRY_LONG) + WORKER_SLOTS * start + final
    several = several + columns * (first + (inner - 2) * panel_cycles(rows)) + (columns - 1) * last
    single = np.where(np.asarray(columns) == 1, ENTRY_ALONE, ENTRY_SINGLE) + WORKER_SLOTS * START_SLOTS
    single = single + columns * SINGLE_EXTRA + (columns - 1) * _panel(rows, ONLY) + _panel(rows, ONLY_FINAL)
    return np.where(np.asarray(columns) > 0, np.where(np.asarray(inner) == 1, single, several), RETURN) + 0


def goal(rows: Any, inner: Any, columns: Any) -> Any:
    """Four cycles per row and 130 per panel, 294 per call (the published kernel's call overhead)."""
    return inner * columns * (4 * rows + 130) + 294


def reference(a: Halves, w: Halves) -> Halves:
    """C [N/16, R, 16] from A [K/16, R, 16] and W [N/16, K/16, 16, 16], with the kernel's rounding steps.

    Each AMP instruction adds four exact products to a float32 accumulator and rounds once (assumed, as the
    simulator does); the partial sum is rounded to float16 after every inner group.
    """
    groups, rows, _ = a.shape
    columns = w.shape[0]
    partial: Halves = np.zeros((columns, rows, 16), np.float16)
    with np.errstate(invalid="ignore", over="ignore"):
        for group in range(groups):
            x = a[group].astype(np.float64)
            total = partial.astype(np.float32)
            for phase in range(4):
                products = [_outer(x, w, group, 4 * phase + i) for i in range(4)]
                dot = (products[0] + products[1]) + (products[2] + products[3])
                total = (total.astype(np.float64) + dot).astype(np.float32)
            partial = to_halves(total)
    return partial


def _outer(x: NDArray[np.float64], w: Halves, group: int, inner: int) -> NDArray[np.float64]:
    column = w[:, group, :, inner].astype(np.float64)
    return x[None, :, inner, None] * column[:, None, :]


KERNEL = Kernel("gemm_f16", gemm_source.source, CONTRACT, cycles, reference, goal)
