"""`row_sums_f16`: sum and sum of squares of each row in float32.

Workers 2 i and 2 i + 1 take the rows i, i + 3, ..., the last one first: the one adds elements, the other one
squares, each in two lanes of products of pairs (`f16v4cmac`). Every worker has a frame of its own. Of one
panel and up to three rows each worker has at most one row, and asks for nothing else of its share.

Worker registers:
    $m2 result    $m3 byte of the result behind it    $m4 panels    $m7 word of x
    $m5 words from a panel's last to the next one's first    $m9 from the end of a row to the row before
    $a0:1 a word    $a6:7 ones
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import WORKER_SLOTS
from .grid import PANELS, ROWS, third
from .halves import Halves
from .kernel import Contract, Kernel, Operand, Scalar
from .supervisor import call_cycles, launch, to_frame
from .text import CLEAR_ACCUMULATORS, bundle, count_instructions, from_frame, routine, section, worker

SYMBOL = "row_sums_f16"

_ENTRY, _X, _OUT, _LAST, _PANELS, _JUMP, _BACK = range(7)
_WORDS = 7
"""Of a worker's frame. `_LAST` is the first row's byte of the result, 24 per row."""
_FRAME_BYTES = 4 * 6 * _WORDS


_BEGIN = [
    bundle(from_frame("$m10", _ENTRY), CLEAR_ACCUMULATORS[0]),
    bundle(from_frame("$m7", _X), CLEAR_ACCUMULATORS[1]),
    bundle(from_frame("$m3", _LAST), "setzi $a6, 0x03c00"),
    bundle(from_frame("$m4", _PANELS), "or $a6, $a6, 0x3c000000"),
    bundle(from_frame("$m5", _JUMP), "or $a7, $a6, $azero"),
    bundle("br $m10", "or64 $a0:1, $azeros, $azeros"),
]


def _row(label: str, factors: str) -> list[str]:
    """One sum over a row's columns; `factors` are what a word is multiplied with."""
    add = f"f16v4cmac {factors}, $a0:1"
    return [
        f"{label}:",
        bundle("rpt $m4, 3"),
        *(bundle(f"ld64step $a0:1, $mzero, $m7+=, {step}", add) for step in ("1", "1", "1", "$m5")),
        bundle(from_frame("$m2", _OUT), add),
        bundle(from_frame("$m9", _BACK), "f32v2gina $a2:3, $azeros, 0"),
        bundle("add $m7, $m7, $m9", "f32add $a2, $a2, $a3"),
        bundle("st32 $a2, $m2, $m3, 0", "or64 $a0:1, $azeros, $azeros"),
        "add $m3, $m3, -24",
        f"brpos $m3, {label}",
    ]


_ONCE_BEGIN = [
    bundle(from_frame("$m10", _ENTRY), CLEAR_ACCUMULATORS[0]),
    bundle(from_frame("$m7", _X), CLEAR_ACCUMULATORS[1]),
    bundle("br $m10", "f16v2exp $a6, $azero"),  # one
]


def _once(label: str, factors: str, before: str) -> list[str]:
    """One sum over the only row's 16 columns; `factors` as for `_row`, `before` what they still need."""
    add = f"f16v4cmac {factors}, $a0:1"
    return [
        f"{label}:",
        *(bundle("ld64step $a0:1, $mzero, $m7+=, 1", work) for work in (before, add, add, add)),
        bundle(from_frame("$m2", _OUT), add),
        bundle("nop", "f32v2gina $a2:3, $azeros, 0"),
        bundle("nop", "f32add $a2, $a2, $a3"),
        "st32 $a2, $m2, $mzero, 0",
        "exitz $m15",
    ]


_ONCE_ROWS = 3
_ONCE_SUMS = _once(".Lrow_sums_once_row", "$a6:7", "f16v2exp $a7, $azero")
_ONCE_SQUARES = _once(".Lrow_sums_once_squares", "$a0:1", "fnop")

_PANEL_SLOTS = 4
_SUMS = _row(".Lrow_sums_row", "$a6:7")
_SQUARES = _row(".Lrow_sums_squares", "$a0:1")


@cache
def _supervisor() -> tuple[str, ...]:
    lines = [
        f"add $m11, $m11, -{_FRAME_BYTES}",
        "shr $m0, $m4, 16",  # panels
        "shl $m4, $m4, 16",
        "shr $m4, $m4, 16",  # rows
        "mul $m1, $m0, $m5",
        "sub $m1, -96, $m1",
        "add $m5, $m5, -24",
        "shrs $m5, $m5, 3",
        "setzi $m8, .Lrow_sums_exit",
    ]
    shared = {_PANELS: "$m0", _JUMP: "$m5", _BACK: "$m1"}
    for frame in range(0, 6 * _WORDS, _WORDS):
        lines += [to_frame(register, frame + word) for word, register in shared.items()]
    # One row at most for each worker, and one panel.
    lines += [
        "cmpeq $m0, $m0, 1",
        "add $m1, $m4, -1",
        f"cmpult $m1, $m1, {_ONCE_ROWS}",
        "and $m0, $m0, $m1",
    ]
    for index in range(6):
        frame, pair, square = index * _WORDS, index // 2, index % 2
        lines += [
            *third("$m6", "$m4", 2 - pair),
            "add $m6, $m6, -1",
            "mul $m6, $m6, 24",
            to_frame("$m6", frame + _LAST),
            "shl $m7, $m6, 2",
            "add $m7, $m7, $m3",
            f"add $m7, $m7, {32 * pair}",
            to_frame("$m7", frame + _X),
            f"add $m7, $m2, {8 * pair + 4 * square}",
            to_frame("$m7", frame + _OUT),
            "cmpslt $m7, $m6, 0",
            f"setzi $m9, {(_SUMS, _SQUARES)[square][0][:-1]}",
            f"setzi $m5, {(_ONCE_SUMS, _ONCE_SQUARES)[square][0][:-1]}",
            "movnz $m9, $m0, $m5",
            "movnz $m9, $m7, $m8",
            to_frame("$m9", frame + _ENTRY),
        ]
    lines += ["setzi $m9, .Lrow_sums", "setzi $m5, .Lrow_sums_once", "movnz $m9, $m0, $m5"]
    return (*lines, *launch(_FRAME_BYTES, _WORDS))


def _source() -> str:
    ends = [".Lrow_sums_exit:", "exitz $m15"]
    lines = worker(".Lrow_sums", [*_BEGIN, *_SUMS, *ends])
    squares = routine([*_SQUARES, "exitz $m15"])
    once = worker(".Lrow_sums_once", [*_ONCE_BEGIN, *_ONCE_SUMS, *_ONCE_SQUARES])
    return section(SYMBOL, [*_supervisor(), *lines, *squares, *once])


def cycles(rows: Any, panels: Any, x_stride: Any = 0) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    rows, panels = np.asarray(rows, dtype=np.int64), np.asarray(panels, dtype=np.int64)
    row = len(_SUMS) - 1 + _PANEL_SLOTS * (panels - 1)
    slots = len(_BEGIN) + 1 + ceil_div(rows, 3) * row
    is_once = (rows > 0) & (rows <= _ONCE_ROWS) & (panels == 1)
    slots = np.where(is_once, len(_ONCE_BEGIN) + count_instructions(_ONCE_SUMS), slots)
    return call_cycles(_supervisor()) + WORKER_SLOTS * slots


def lane_sums(addends: NDArray[np.float64]) -> NDArray[np.float32]:
    """Sums over the last axis as the kernel adds: pairs, in two float32 lanes that meet at the end."""
    lanes = np.zeros((*addends.shape[:-1], 2), np.float32)
    pairs = addends[..., 0::2] + addends[..., 1::2]
    for first in range(0, pairs.shape[-1], 2):
        lanes = (lanes + pairs[..., first : first + 2]).astype(np.float32)
    return np.asarray(lanes[..., 0] + lanes[..., 1], np.float32)


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
