"""`row_sums_f16`: sum and sum of squares of each row in float32.

Workers 2 i and 2 i + 1 take the rows i, i + 3, ...: the one adds elements, the other one squares.

Worker registers:
    $m2 byte of the result behind $m6    $m3 twice the rows below this one    $m4 panels
    $m5 words from a panel's last to the next one's first    $m7 byte of x behind $m8, $m9 of the row
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
from .supervisor import call_cycles, launch, schedule, to_frame
from .text import bundle, section, worker

SYMBOL = "row_sums_f16"

_OUT, _X, _LIMIT, _PANELS, _JUMP = range(5)
_FRAME_BYTES = 24


def _argument(word: int, register: str) -> str:
    return f"ld32 {register}, $mvertex_base, $mzero, {word}"


_BEGIN = [
    bundle("get $m0, $WSR", "setzi $a0, 8"),
    bundle("and $m0, $m0, 7", "uput $FP_CLR, $a0"),  # 8: clear all accumulators
    bundle(_argument(_LIMIT, "$m3"), "or64 $a0:1, $azeros, $azeros"),
    bundle("sub $m3, $m3, $m0", "or64 $a2:3, $azeros, $azeros"),
    "brneg $m3, .Lrow_sums_exit",
    "shl $m2, $m0, 2",
    "and $m1, $m0, 1",
    "shr $m9, $m0, 1",
    "shl $m9, $m9, 5",
    "mov $m7, $m9",
    _argument(_OUT, "$m6"),
    _argument(_X, "$m8"),
    _argument(_PANELS, "$m4"),
    _argument(_JUMP, "$m5"),
    "brnz $m1, .Lrow_sums_squares_row",
]


def _row(label: str, accumulate: str) -> list[str]:
    """One sum over a row's columns."""
    return [
        f"{label}_row:",
        bundle("rpt $m4, 3"),
        bundle("ld64step $a0:1, $m8, $m7+=, 1", accumulate),
        bundle("ld64step $a2:3, $m8, $m7+=, 1"),
        bundle("ld64step $a0:1, $m8, $m7+=, 1", accumulate),
        bundle("ld64step $a2:3, $m8, $m7+=, $m5"),
        bundle("add $m9, $m9, 96", accumulate),
        bundle("mov $m7, $m9", "f32v2gina $a0:1, $azeros, 0"),
        bundle("add $m3, $m3, -6", "f32v2gina $a2:3, $azeros, 0"),
        bundle("nop", "f32v4acc $a0:3"),
        bundle("nop", "f32v2gina $a0:1, $azeros, 0"),
        bundle("nop", "f32v2gina $a2:3, $azeros, 0"),
        bundle("nop", "f32v2add $a4:5, $a0:1, $a2:3"),
        bundle("nop", "f32add $a4, $a4, $a5"),
        bundle("st32step $a4, $m6, $m2+=, 6", "or64 $a0:1, $azeros, $azeros"),
        bundle(f"brpos $m3, {label}_row", "or64 $a2:3, $azeros, $azeros"),
    ]


_PANEL_SLOTS = 4
_SUMS = _row(".Lrow_sums", "f16v8acc $a0:3")
_SQUARES = _row(".Lrow_sums_squares", "f16v8sqacc $a0:3")


@cache
def _supervisor() -> tuple[str, ...]:
    lines = [
        f"add $m11, $m11, -{_FRAME_BYTES}",
        to_frame("$m2", _OUT),
        to_frame("$m3", _X),
        "shl %limit, $m4, 16",
        "shr %limit, %limit, 15",
        "add %limit, %limit, -1",
        to_frame("%limit", _LIMIT),
        "shr %panels, $m4, 16",
        to_frame("%panels", _PANELS),
        "add %jump, $m5, -24",
        "shrs %jump, %jump, 3",
        to_frame("%jump", _JUMP),
        "setzi $m9, .Lrow_sums",
    ]
    return (
        *schedule(lines, ["$m0", "$m1", "$m6"]),
        *launch(_FRAME_BYTES),
    )


def _source() -> str:
    ends = [".Lrow_sums_exit:", "exitz $m15"]
    lines = worker(".Lrow_sums", [*_BEGIN, *_SUMS, *ends])
    return section(SYMBOL, [*_supervisor(), *lines, ".balign 8", *_SQUARES, "exitz $m15"])


def cycles(rows: Any, panels: Any, x_stride: Any = 0) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    rows, panels = np.asarray(rows, dtype=np.int64), np.asarray(panels, dtype=np.int64)
    row = len(_SUMS) - 1 + _PANEL_SLOTS * (panels - 1)
    slots = len(_BEGIN) + 1 + ceil_div(rows, 3) * row
    return call_cycles(_supervisor()) + WORKER_SLOTS * np.where(rows > 0, slots, 6)


def lane_sums(addends: NDArray[np.float64]) -> NDArray[np.float32]:
    """Sums over the last axis as the kernel adds: eight float32 lanes, then four, then two."""
    lanes = np.zeros((*addends.shape[:-1], 8), np.float32)
    for column in range(0, addends.shape[-1], 8):
        lanes = (lanes + addends[..., column : column + 8]).astype(np.float32)
    four = lanes[..., :4] + lanes[..., 4:]
    total = four[..., :2] + four[..., 2:]
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
