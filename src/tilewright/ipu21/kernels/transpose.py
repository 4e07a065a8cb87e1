"""`transpose_f16`: x a16 [C/16][R][16] -> out a16 [R/16][C][16], in tiles of 16 x 16.

Four rows by four columns at a time go through the accumulators: `f16v4istacc` enters two rows and
`f16v4stacc` takes a column out; the last two columns leave with the rows of the next block. Where x and out
share no 32 KiB of memory one slot loads a row's word and stores a column's; elsewhere that takes two slots. A
tile's blocks follow each other down the rows first; loads run on into words of the tile that are not used.

Workers take whole tiles in turn, or pairs of workers take them and each half the columns, whichever ends
earlier; without the one-slot way always the pairs. Tiles in one line, one beside or below the other, lie at
equal steps, and so do a worker's where six tiles are whole rows of them (`ROUNDS`); then each worker has a
frame of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arithmetic import ceil_div
from ..machine.timing import WORKER_SLOTS
from .halves import Halves
from .kernel import Contract, Kernel, Operand, Scalar
from .paced import BLOCK_SHIFT
from .supervisor import call_cycles
from .text import section, worker
from .transpose_source import (
    FEW,
    FEW_START,
    LINE_START,
    ROUNDS,
    TILE,
    WRAP,
    few_code,
    line_slots,
    line_worker,
    turns_slots,
    turns_start,
    turns_worker,
)
from .transpose_supervisor import NO_LINE, launches, prologue

SYMBOL = "transpose_f16"
MAXIMUM_TILES = 255
"""Along either side."""


def _source() -> str:
    line, turns = launches()
    return section(
        SYMBOL,
        [
            *prologue(),
            NO_LINE,
            *line,
            ".Ltranspose_turns:",
            *turns,
            *line_worker(".Ltranspose_line_whole", False),
            *line_worker(".Ltranspose_line_halves", True),
            *turns_worker(".Ltranspose_whole", False, True),
            *turns_worker(".Ltranspose_halves", True, True),
            *turns_worker(".Ltranspose_plain", True, False),
            *worker(".Ltranspose_few", [*FEW_START, *(line for part in range(3) for line in few_code(part))]),
            ".Ltranspose_exit:",
            "exitz $m15",
        ],
    )


def is_apart(x: int, out: int, row_tiles: int, column_tiles: int, x_stride: int, out_stride: int) -> bool:
    """True if a call loads and stores in one slot for these addresses and strides."""
    x_end = x + x_stride * (column_tiles - 1) + TILE * row_tiles - 1
    out_end = out + out_stride * (row_tiles - 1) + TILE * column_tiles - 1
    return x_end >> BLOCK_SHIFT < out >> BLOCK_SHIFT or out_end >> BLOCK_SHIFT < x >> BLOCK_SHIFT


def cycles(
    row_tiles: Any, column_tiles: Any, x_stride: Any = 0, out_stride: Any = 0, apart: Any = True
) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays. `apart`: see `is_apart`."""
    high, wide = np.asarray(row_tiles, dtype=np.int64), np.asarray(column_tiles, dtype=np.int64)
    tiles = high * wide
    whole = ceil_div(tiles, 6) * turns_slots(False, True) < ceil_div(2 * tiles, 6) * turns_slots(True, True)
    pairs = np.where(apart, _busiest(high, wide, True, True), _busiest(high, wide, True, False))
    slots = np.where(whole & np.asarray(apart), _busiest(high, wide, False, True), pairs)
    in_line = np.minimum(ceil_div(tiles, 6) * line_slots(False), ceil_div(2 * tiles, 6) * line_slots(True))
    # The first third is the longest.
    few = len(FEW_START) + len(few_code(0)) - 1
    line = np.where(tiles <= FEW, few, len(LINE_START) + in_line + 1)
    is_line = ((high == 1) | (wide == 1)) & (tiles > 0) & np.asarray(apart)
    is_round = np.isin(wide, list(ROUNDS)) & (high > 1) & np.asarray(apart)
    line = np.where(is_round, len(LINE_START) + ceil_div(tiles, 6) * line_slots(False) + 1, line)
    is_line = is_line | is_round
    slots = np.where(is_line, line, np.where(wide > 0, slots, 5))
    by_line, by_turns = launches()
    fixed = (
        call_cycles([*prologue(), NO_LINE, *by_line]),
        call_cycles([*prologue(), f"!{NO_LINE}", *by_turns]),
    )
    return np.where(is_line, *fixed) + WORKER_SLOTS * slots


def _busiest(high: Any, wide: Any, halved: bool, paced: bool) -> Any:
    """Slots of the busiest worker, for at least one column of tiles."""
    step = 3 if halved else 6
    fixed = len(turns_start(halved, paced)) + 3
    slots = np.zeros(np.broadcast(high, wide).shape, dtype=np.int64)
    for first in range(step):
        tiles = np.maximum(ceil_div(high * wide - first, step), 0)
        # Columns of tiles after the first in which the worker has none: it goes on to the next one.
        passed = np.where(high < step, wide - 1 - (tiles - (first < high)), 0)
        busy = fixed + tiles * turns_slots(halved, paced) + wide * (len(WRAP) + 1) + (wide - 1) + passed
        slots = np.maximum(slots, busy)
    return slots


def way(arguments: Mapping[str, int]) -> dict[str, bool]:
    """Whether a call loads and stores in one slot, see `cycles`."""
    names = ("x", "out", "row_tiles", "column_tiles", "x_stride", "out_stride")
    return {"apart": is_apart(*(arguments[name] for name in names))}


def reference(x: Halves) -> Halves:
    """x [C/16, R, 16] -> [R/16, C, 16]."""
    panels, rows, _ = x.shape
    matrix = x.transpose(1, 0, 2).reshape(rows, 16 * panels)
    return matrix.T.reshape(16 * panels, rows // 16, 16).transpose(1, 0, 2).copy()


KERNEL = Kernel(
    SYMBOL,
    _source,
    Contract(
        operands=(Operand("out", "a16", "out"), Operand("x", "a16", "in")),
        scalars=(
            Scalar("row_tiles", "rows of x / 16", 0, MAXIMUM_TILES),
            Scalar("column_tiles", "columns of x / 16", 0, MAXIMUM_TILES),
            Scalar("x_stride", "bytes between panels of x", 0, multiple=8),
            Scalar("out_stride", "bytes between panels of out", 0, multiple=8),
        ),
        packed=(("row_tiles", "column_tiles", 16),),
        faster_apart=(("out", "x"),),
        notes="Fastest where x and out share no 32 KiB block of memory.",
    ),
    cycles,
    reference,
    way=way,
)
