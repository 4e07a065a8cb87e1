"""`attention_merge_f16`: one attention output out of partial ones over blocks of keys.

out = sum e^(m_j - m) O_j / sum e^(m_j - m) l_j with m the largest m_j of a row. Worker w takes the rows w,
w + 6, ... It writes a row's weights e^(m_j - m) / sum, rounded to half precision, below its $mworker_base,
then adds weight times O_j, rounded to half precision, in float32. Rows whose sum is zero become 0.

Worker registers:
    $m0 partial output    $m1 out    $m2 row's state    $m3 rows of the tile below this one    $m4 parts
    $m5 words from a part's half row to the next part's    $m7, $m8 bytes from there to the next half row
    $m9 words from a row's last in a panel to the next panel's first    $m6, $m10 scratch    $m11 panels left
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import MULTI_SLOT, WORKER_SLOTS
from .grid import PANELS, ROWS
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar
from .supervisor import call_cycles, schedule
from .text import bundle, section, worker

SYMBOL = "attention_merge_f16"

MAXIMUM_PARTS = 44
"""As many weights, and one word more, lie below a worker's base register."""
_WEIGHT_BYTES = 4 * (MAXIMUM_PARTS + 1)

(
    _OUT,
    _PARTIAL,
    _STATES,
    _ROW_COUNT,
    _PARTS,
    _ALONG,
    _BACK_HALF,
    _BACK_PANEL,
    _JUMP,
    _PANELS,
    _STATE_ALONG,
    _NEXT_PARTIAL,
    _NEXT_OUT,
) = range(13)
_FRAME_BYTES = 56

_WEIGHTS = f"add $m10, $mworker_base, -{_WEIGHT_BYTES}"


def _load(word: int, register: str) -> str:
    return f"ld32 {register}, $mvertex_base, $mzero, {word}"


_START = [
    bundle("get $m0, $WSR", "setzi $a0, 8"),
    bundle("and $m0, $m0, 7", "uput $FP_CLR, $a0"),  # 8: clear all accumulators
    _load(_ROW_COUNT, "$m3"),
    "sub $m3, $m3, $m0",
    "add $m3, $m3, -1",
    "brneg $m3, .Lmerge_exit",
    _load(_PANELS, "$m11"),
    "brneg $m11, .Lmerge_exit",
    "shl $m1, $m0, 5",
    "shl $m2, $m0, 3",
    _load(_STATES, "$m4"),
    "add $m2, $m2, $m4",
    _load(_PARTIAL, "$m4"),
    "add $m0, $m1, $m4",
    _load(_OUT, "$m4"),
    "add $m1, $m1, $m4",
    _load(_PARTS, "$m4"),
    _load(_ALONG, "$m5"),
    _load(_BACK_HALF, "$m7"),
    _load(_BACK_PANEL, "$m8"),
]

_LARGEST = [bundle("ld64step $a2:3, $mzero, $m6+=, $m9", "f32max $a0, $a0, $a2")]
_SUM = [
    bundle("ld64step $a2:3, $mzero, $m6+=, $m9"),
    bundle("nop", "f32sub $a2, $a2, $a0"),
    bundle("nop", "f32exp $a1, $a2"),
    bundle("st32step $a1, $mzero, $m10+=, 1", "f32mac $a1, $a3"),
]
_SCALE = [
    bundle("ld32 $a1, $m10, $mzero, 0"),
    bundle("nop", "f32mul $a1, $a1, $a2"),
    bundle("nop", "f32tof16 $a1, $a1"),
    bundle("st32step $a1, $mzero, $m10+=, 1"),
]
_ROW = [
    bundle(_load(_STATE_ALONG, "$m9"), "or $a0, $azero, 0xff800000"),  # minus infinity
    bundle("mov $m6, $m2", "or $a2, $azero, 0xff800000"),
    bundle("rpt $m4, 0"),
    *_LARGEST,
    bundle("mov $m6, $m2", "f32max $a0, $a0, $a2"),
    bundle(_WEIGHTS),
    bundle(f"rpt $m4, {len(_SUM) - 1}"),
    *_SUM,
    bundle(_WEIGHTS, "f32v2gina $a2:3, $azeros, 0"),
    bundle(_load(_JUMP, "$m9"), "or $a3, $azero, 0x0d800000"),  # 2^-100, against a zero sum
    bundle(_load(_PANELS, "$m11"), "f32max $a2, $a2, $a3"),
    bundle("add $m2, $m2, 48", "f32oox $a2, $a2"),
    bundle(f"rpt $m4, {len(_SCALE) - 1}"),
    *_SCALE,
    bundle("st32 $a1, $m10, $mzero, 0"),  # read, not used
]
_PART = [
    bundle("ld64step $a0:1, $mzero, $m0+=, 1", "f16v8acc $a0:3"),
    bundle("ld64step $a2:3, $mzero, $m0+=, $m5", "f16v4mul $a0:1, $a4:BL, $a0:1"),
    bundle("ld32step $a4, $mzero, $m10+=, 1", "f16v4mul $a2:3, $a4:BL, $a2:3"),
]


def _half_row(back: str, step: str, last: str) -> list[str]:
    """Eight columns: `back` to the next half row of the first part, `step` to that of the result."""
    return [
        bundle(_WEIGHTS, "or64 $a0:1, $azeros, $azeros"),
        bundle("ld32step $a4, $mzero, $m10+=, 1", "or64 $a2:3, $azeros, $azeros"),
        bundle(f"rpt $m4, {len(_PART) - 1}"),
        *_PART,
        bundle(f"add $m0, $m0, {back}", "f16v8acc $a0:3"),
        bundle("nop", "f16v2gina $a0, $azero, 0"),
        bundle("nop", "f16v2gina $a1, $azero, 0"),
        bundle("st64step $a0:1, $mzero, $m1+=, 1", "f16v2gina $a2, $azero, 0"),
        bundle("nop", "f16v2gina $a3, $azero, 0"),
        bundle(f"st64step $a2:3, $mzero, $m1+=, {step}"),
        *([bundle(last)] if last else []),
    ]


_PANEL = [*_half_row("$m7", "1", ""), *_half_row("$m8", "$m9", "brnzdec $m11, .Lmerge_panel")]
_END = [
    bundle(_load(_NEXT_PARTIAL, "$m6")),
    bundle("add $m0, $m0, $m6"),
    bundle(_load(_NEXT_OUT, "$m6")),
    bundle("add $m1, $m1, $m6"),
    bundle("add $m3, $m3, -6"),
    bundle("brpos $m3, .Lmerge_row"),
]


def _frame(register: str, word: int) -> str:
    return f"st32 {register}, $m11, $mzero, {word}"


@cache
def _supervisor() -> tuple[str, ...]:
    lines = [
        f"add $m11, $m11, -{_FRAME_BYTES}",
        _frame("$m2", _OUT),
        _frame("$m3", _PARTIAL),
        _frame("$m4", _STATES),
        _frame("$m6", _PARTS),
        "shr %panels, %shape, 16",
        "shl %rows, %shape, 16",
        "shr %jump, %rows, 14",
        "add %jump, %jump, -3",
        _frame("%jump", _JUMP),
        "shr %rows, %rows, 16",
        _frame("%rows", _ROW_COUNT),
        "mul %back, $m8, $m6",
        "sub %half, 16, %back",
        _frame("%half", _BACK_HALF),
        "add %panel, $m7, -16",
        "sub %panel, %panel, %back",
        _frame("%panel", _BACK_PANEL),
        "mul %width, $m7, %panels",
        "sub %width, 192, %width",
        _frame("%width", _NEXT_PARTIAL),
        "mul %size, %rows, %panels",
        "shl %size, %size, 5",
        "sub %size, 192, %size",
        _frame("%size", _NEXT_OUT),
        "add %along, $m8, -8",
        "shrs %along, %along, 3",
        _frame("%along", _ALONG),
        "shr %between, $m9, 3",
        _frame("%between", _STATE_ALONG),
        "add %panels, %panels, -1",
        _frame("%panels", _PANELS),
        "setzi %worker, .Lmerge",
        "mov $m9, %worker",
    ]
    return (
        *schedule(lines, ["$m0", "$m1"], {"%shape": "$m5"}),
        "runall $m9, $m11, 0",
        f"add $m11, $m11, {_FRAME_BYTES}",
        "sync 2",
        "br $m10",
    )


def _source() -> str:
    lines = [*_START, ".Lmerge_row:", *_ROW, ".Lmerge_panel:", *_PANEL, *_END, ".Lmerge_exit:", "exitz $m15"]
    return section(SYMBOL, [*_supervisor(), *worker(".Lmerge", lines)])


def cycles(rows: Any, panels: Any, parts: Any, **_: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    rows, panels, parts = (np.asarray(value, dtype=np.int64) for value in (rows, panels, parts))
    once = len(_ROW) - len(_LARGEST + _SUM + _SCALE) + MULTI_SLOT["f32oox"] - 1 + len(_END)
    part = len(_LARGEST + _SUM + _SCALE) + MULTI_SLOT["f32exp"] - 1
    panel = len(_PANEL) - 2 * len(_PART) + 2 * len(_PART) * parts
    slots = len(_START) + 1 + ceil_div(rows, WORKER_SLOTS) * (once + part * parts + panels * panel)
    idle = np.where(rows > 0, 9, 7)
    return call_cycles(_supervisor()) + WORKER_SLOTS * np.where((rows > 0) & (panels > 0), slots, idle)


def reference(partial: Halves, states: NDArray[np.float32]) -> Halves:
    """partial [parts, panels, rows, 16], states [parts, rows, 2] -> [panels, rows, 16]."""
    parts = partial.shape[0]
    with np.errstate(over="ignore"):
        difference = states[:, :, 0] - states[:, :, 0].max(axis=0)
        raised = np.exp(difference.astype(np.float64)).astype(np.float32)
        total = np.zeros(states.shape[1], np.float32)
        for part in range(parts):
            total = (raised[part].astype(np.float64) * states[part, :, 1] + total).astype(np.float32)
        inverse = (1 / np.maximum(total, np.float32(2.0**-100)).astype(np.float64)).astype(np.float32)
        weights = to_halves(raised * inverse)
        result = np.zeros(partial.shape[1:], np.float32)
        for part in range(parts):
            weight = weights[part].astype(np.float32)[None, :, None]
            result = result + to_halves(weight * partial[part].astype(np.float32)).astype(np.float32)
    return to_halves(result)


KERNEL = Kernel(
    SYMBOL,
    _source,
    Contract(
        operands=(
            Operand("out", "a16", "out"),
            Operand("partial", "a16", "in"),
            Operand("states", "words", "in"),
        ),
        scalars=(
            ROWS,
            PANELS,
            Scalar("parts", "partial outputs", 1, MAXIMUM_PARTS),
            Scalar("panel_stride", "bytes between panels of a part", 0, multiple=8),
            Scalar("part_stride", "bytes between parts", 0, multiple=8),
            Scalar("state_stride", "bytes between the states of parts", 0, multiple=8),
        ),
        packed=(("rows", "panels", 16),),
        notes=(
            "states: float32 [parts][rows][2], largest score and sum. Overwrites up to "
            f"{_WEIGHT_BYTES} bytes below each worker's base register."
        ),
    ),
    cycles,
    reference,
)
