"""`row_sums_f16`: sum and sum of squares of each row in float32. Worker w takes the rows w, w + 6, ...

Worker registers:
    $m0 row of x    $m2 row of the result    $m3 rows of the tile below this one    $m4 panels
    $m5 words from a panel's last to the next one's first    $m7 word of x
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import WORKER_SLOTS
from .grid import PANELS, ROWS
from .halves import Halves
from .kernel import Contract, Kernel, Operand, Scalar
from .supervisor import call_cycles, schedule
from .text import bundle, section, worker

SYMBOL = "row_sums_f16"

_OUT, _X, _ROW_COUNT, _PANELS, _JUMP = range(5)
_FRAME_BYTES = 24


def _argument(word: int, register: str) -> str:
    return f"ld32 {register}, $mvertex_base, $mzero, {word}"


_BEGIN = [
    bundle("get $m0, $WSR", "setzi $a0, 8"),
    bundle("and $m0, $m0, 7", "uput $FP_CLR, $a0"),  # 8: clear all accumulators
    _argument(_ROW_COUNT, "$m3"),
    "sub $m3, $m3, $m0",
    "add $m3, $m3, -1",
    "brneg $m3, .Lrow_sums_exit",
    _argument(_OUT, "$m2"),
    "shl $m1, $m0, 3",
    "add $m2, $m2, $m1",
    "shl $m1, $m0, 5",
    _argument(_X, "$m0"),
    "add $m0, $m0, $m1",
    _argument(_PANELS, "$m4"),
    _argument(_JUMP, "$m5"),
]


def _panel(accumulate: str) -> list[str]:
    return [
        bundle("ld64step $a0:1, $mzero, $m7+=, 1", accumulate),
        bundle("ld64step $a2:3, $mzero, $m7+=, 1"),
        bundle("ld64step $a0:1, $mzero, $m7+=, 1", accumulate),
        bundle("ld64step $a2:3, $mzero, $m7+=, $m5"),
    ]


def _pass(accumulate: str, result: str) -> list[str]:
    """One sum over the row's columns, as a pair that remains to be added."""
    pair = f"f32v2add {result}, {result}, $a0:1"
    return [
        bundle("mov $m7, $m0", "or64 $a0:1, $azeros, $azeros"),
        bundle("nop", "or64 $a2:3, $azeros, $azeros"),
        bundle("rpt $m4, 3"),
        *_panel(accumulate),
        bundle("nop", accumulate),
        bundle("nop", f"f32v2gina {result}, $azeros, 0"),
        *[bundle("nop", "f32v2gina $a0:1, $azeros, 0"), bundle("nop", pair)] * 3,
    ]


_ROW = [
    *_pass("f16v8acc $a0:3", "$a4:5"),
    *_pass("f16v8sqacc $a0:3", "$a6:7"),
    bundle("add $m0, $m0, 192", "f32add $a4, $a4, $a5"),
    bundle("add $m3, $m3, -6", "f32add $a5, $a6, $a7"),
    bundle("st64step $a4:5, $mzero, $m2+=, 6"),
    bundle("brpos $m3, .Lrow_sums_row"),
]


def _frame(register: str, word: int) -> str:
    return f"st32 {register}, $m11, $mzero, {word}"


@cache
def _supervisor() -> tuple[str, ...]:
    lines = [
        f"add $m11, $m11, -{_FRAME_BYTES}",
        _frame("$m2", _OUT),
        _frame("$m3", _X),
        "shl %rows, $m4, 16",
        "shr %rows, %rows, 16",
        _frame("%rows", _ROW_COUNT),
        "shr %panels, $m4, 16",
        _frame("%panels", _PANELS),
        "add %jump, $m5, -24",
        "shrs %jump, %jump, 3",
        _frame("%jump", _JUMP),
        "setzi $m9, .Lrow_sums",
    ]
    return (
        *schedule(lines, ["$m0", "$m1", "$m6"]),
        "runall $m9, $m11, 0",
        f"add $m11, $m11, {_FRAME_BYTES}",
        "sync 2",
        "br $m10",
    )


def _source() -> str:
    lines = [*_BEGIN, ".Lrow_sums_row:", *_ROW, ".Lrow_sums_exit:", "exitz $m15"]
    return section(SYMBOL, [*_supervisor(), *worker(".Lrow_sums", lines)])


def cycles(rows: Any, panels: Any, x_stride: Any = 0) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    rows, panels = np.asarray(rows, dtype=np.int64), np.asarray(panels, dtype=np.int64)
    panel = 2 * len(_panel(""))
    slots = len(_BEGIN) + 1 + ceil_div(rows, WORKER_SLOTS) * (len(_ROW) + panel * (panels - 1))
    return call_cycles(_supervisor()) + WORKER_SLOTS * np.where(rows > 0, slots, 7)


def lane_sums(addends: NDArray[np.float64]) -> NDArray[np.float32]:
    """Sums over the last axis as the kernel adds: eight float32 lanes, then four pairs, then two."""
    lanes = np.zeros((*addends.shape[:-1], 8), np.float32)
    for column in range(0, addends.shape[-1], 8):
        lanes = (lanes + addends[..., column : column + 8]).astype(np.float32)
    pairs = [lanes[..., index : index + 2] for index in (0, 2, 4, 6)]
    total = ((pairs[0] + pairs[1]) + pairs[2]) + pairs[3]
    return np.asarray(total[..., 0] + total[..., 1], np.float32)


def reference(x: Halves) -> NDArray[np.float32]:
    """x [panels, rows, 16] -> [rows, 2]."""
    wide = x.transpose(1, 0, 2).reshape(x.shape[1], 16 * x.shape[0]).astype(np.float64)
    return np.stack([lane_sums(wide), lane_sums(wide * wide)], axis=-1)


KERNEL = Kernel(
    SYMBOL,
    _source,
    Contract(
        operands=(Operand("out", "words", "out"), Operand("x", "a16", "in")),
        scalars=(ROWS, PANELS, Scalar("x_stride", "bytes between panels of x", 0, multiple=8)),
        packed=(("rows", "panels", 16),),
        notes="out: float32 [rows][2], the sum and the sum of squares.",
    ),
    cycles,
    reference,
)
