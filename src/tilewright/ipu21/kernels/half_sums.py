"""`half_sums_f16`: each row's sum over the eight columns of half a panel, as second word of the row's state.

Workers take every sixth row, each from a frame of its own. A row is loaded while the sum of the one before is
finished.

Worker registers:
    $m2 word of the state    $m3 further rows    $m7 word of x
    $a0:3 a row, $a4:5 the sum of the one before, $a6:7 ones
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import WORKER_SLOTS
from .grid import ROWS
from .halves import Halves
from .kernel import Contract, Kernel, Operand
from .launch import SIXTH
from .row_sums import lane_sums
from .supervisor import call_cycles, launch, schedule, to_frame
from .text import CLEAR_ACCUMULATORS, bundle, from_frame, section, worker

SYMBOL = "half_sums_f16"

_MORE, _X, _STATE = range(3)
_WORDS = 4
"""Of a worker's frame. `_MORE` is the number of rows behind its first one, -1 if it has none."""
_FRAME_BYTES = 4 * WORKER_SLOTS * _WORDS

_FIRST, _SECOND = "ld64step $a0:1, $mzero, $m7+=, 1", "ld64step $a2:3, $mzero, $m7+=, 23"
_ADD_FIRST, _ADD_SECOND = "f16v4cmac $a6:7, $a0:1", "f16v4cmac $a6:7, $a2:3"
_TAKE, _FINISH = "f32v2gina $a4:5, $azeros, 0", "f32add $a4, $a4, $a5"
_ROW = [
    bundle(_FIRST, _TAKE),
    bundle(_SECOND, _FINISH),
    bundle("st32step $a4, $mzero, $m2+=, 12", _ADD_FIRST),
    bundle("nop", _ADD_SECOND),
]
_IDLE = [
    bundle(from_frame("$m3", _MORE), CLEAR_ACCUMULATORS[0]),
    bundle("brneg $m3, .Lhalf_sums_exit", CLEAR_ACCUMULATORS[1]),
]
_BEGIN = [
    *_IDLE,
    bundle(from_frame("$m7", _X), "setzi $a6, 0x03c00"),
    bundle(from_frame("$m2", _STATE), "or $a6, $a6, 0x3c000000"),
    bundle(_FIRST, "or $a7, $a6, $azero"),
    bundle(_SECOND, _ADD_FIRST),
    bundle(f"rpt $m3, {len(_ROW) - 1}", _ADD_SECOND),
]
_END = [bundle("nop", _TAKE), bundle("nop", _FINISH), bundle("st32 $a4, $m2, $mzero, 0")]


@cache
def _supervisor() -> tuple[str, ...]:
    lines = [
        f"add $m11, $m11, -{_FRAME_BYTES}",
        f"setzi %sixth, {SIXTH}",
        f"add %rows, %rows, {WORKER_SLOTS - 1}",
        "add %state, %state, 4",
        "setzi $m9, .Lhalf_sums",
    ]
    for number, frame in enumerate(range(0, _WORDS * WORKER_SLOTS, _WORDS)):
        lines += [
            to_frame("%state", frame + _STATE),
            to_frame("%x", frame + _X),
            f"mul %more{number}, %rows, %sixth",
            f"shr %more{number}, %more{number}, 18",
            f"add %more{number}, %more{number}, -1",
            to_frame(f"%more{number}", frame + _MORE),
            "add %state, %state, 8",
            "add %x, %x, 32",
            "add %rows, %rows, -1",
        ]
    given = {"%state": "$m2", "%x": "$m3", "%rows": "$m4"}
    return (
        *schedule(lines, ["$m0", "$m1", "$m5", "$m6", "$m7", "$m8"], given),
        *launch(_FRAME_BYTES, _WORDS),
    )


def _source() -> str:
    lines = worker(".Lhalf_sums", [*_BEGIN, *_ROW, *_END, ".Lhalf_sums_exit:", "exitz $m15"])
    return section(SYMBOL, [*_supervisor(), *lines])


def cycles(rows: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    each = ceil_div(np.asarray(rows, dtype=np.int64), WORKER_SLOTS)
    slots = np.where(each > 0, len([*_BEGIN, *_END]) + (each - 1) * len(_ROW), len(_IDLE)) + 1
    return call_cycles(_supervisor()) + WORKER_SLOTS * slots


def reference(x: Halves) -> NDArray[np.float32]:
    """x [rows, 8] -> [rows]."""
    return lane_sums(x.astype(np.float64))


KERNEL = Kernel(
    SYMBOL,
    _source,
    Contract(
        operands=(Operand("state", "words", "out"), Operand("x", "a16", "in")),
        scalars=(ROWS,),
        notes="x: the first byte of half a panel. state: float32 [rows][2], of which the second is written.",
    ),
    cycles,
    reference,
)
