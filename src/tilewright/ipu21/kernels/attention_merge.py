"""`attention_merge_f16`: one attention output out of partial ones over blocks of keys.

out = sum e^(m_j - m) O_j / sum e^(m_j - m) l_j with m the largest m_j of a row. A worker writes a row's
weights e^(m_j - m) / sum, rounded to half precision, below its $mworker_base, and then adds weight times O_j,
rounded to half precision, in float32. Rows whose sum is zero become 0.

Workers take whole rows in turn, or pairs of workers take them and each half the columns, whichever ends
earlier.

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
from .grid import PANELS, ROWS, THIRD
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar
from .supervisor import call_cycles, schedule
from .text import bundle, section, worker

SYMBOL = "attention_merge_f16"

MAXIMUM_PARTS = 44
"""As many weights, and a word more at either end, lie below a worker's base register."""
_WEIGHT_BYTES = 4 * (MAXIMUM_PARTS + 2)

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

_WEIGHTS = f"add $m10, $mworker_base, -{_WEIGHT_BYTES - 4}"


def _load(word: int, register: str) -> str:
    return f"ld32 {register}, $mvertex_base, $mzero, {word}"


def _start(halved: bool) -> list[str]:
    """A worker's first row. A half of a row's panel has 16 bytes."""
    share = ["and $m6, $m0, 1", "shl $m6, $m6, 4", "shr $m0, $m0, 1"] if halved else []
    half = ["add $m0, $m0, $m6", "add $m1, $m1, $m6"] if halved else []
    return [
        bundle("get $m0, $WSR", "setzi $a0, 8"),
        bundle("and $m0, $m0, 7", "uput $FP_CLR, $a0"),  # 8: clear all accumulators
        *share,
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
        *half,
        _load(_PARTS, "$m4"),
        _load(_ALONG, "$m5"),
        _load(_BACK_HALF, "$m7"),
        _load(_BACK_PANEL, "$m8"),
    ]


_LARGEST = [bundle("ld64step $a2:3, $mzero, $m6+=, $m9", "f32max $a0, $a0, $a2")]
_SUM = [
    bundle("ld64step $a2:3, $mzero, $m6+=, $m9", "f32mac $a1, $a3"),
    bundle("st32step $a1, $mzero, $m10+=, 1", "f32sub $a2, $a2, $a0"),
    bundle("nop", "f32exp $a1, $a2"),
]
_SCALE = [
    bundle("ld32 $a1, $m10, $mzero, 1", "f32tof16 $a4, $a3"),
    bundle("st32step $a4, $mzero, $m10+=, 1", "f32mul $a3, $a1, $a2"),
]


def _row(halved: bool) -> list[str]:
    """A row's weights."""
    return [
        bundle(_load(_STATE_ALONG, "$m9"), "or $a0, $azero, 0xff800000"),  # minus infinity
        bundle("mov $m6, $m2", "or $a2, $azero, 0xff800000"),
        bundle("rpt $m4, 0"),
        *_LARGEST,
        bundle("mov $m6, $m2", "f32max $a0, $a0, $a2"),
        bundle(_WEIGHTS, "setzi $a1, 0"),
        bundle("add $m10, $m10, -4", "setzi $a3, 0"),  # the first store brings nothing yet
        bundle(f"rpt $m4, {len(_SUM) - 1}"),
        *_SUM,
        bundle("st32step $a1, $mzero, $m10+=, 1", "f32mac $a1, $a3"),
        bundle("st32 $a1, $m10, $mzero, 0", "f32v2gina $a2:3, $azeros, 0"),  # read, not used
        bundle(_WEIGHTS, "or $a3, $azero, 0x0d800000"),  # 2^-100, against a zero sum
        bundle(_load(_PANELS, "$m11"), "f32max $a2, $a2, $a3"),
        bundle(f"add $m2, $m2, {24 if halved else 48}", "f32oox $a2, $a2"),
        bundle("ld32 $a1, $m10, $mzero, 0"),
        bundle(_load(_JUMP, "$m9"), "f32mul $a3, $a1, $a2"),
        bundle(f"rpt $m4, {len(_SCALE) - 1}"),
        *_SCALE,
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


def _panel(halved: bool) -> list[str]:
    again = "brnzdec $m11, .Lmerge_halves_panel" if halved else "brnzdec $m11, .Lmerge_rows_panel"
    last = _half_row("$m8", "$m9", again)
    return last if halved else [*_half_row("$m7", "1", ""), *last]


def _end(halved: bool) -> list[str]:
    return [
        bundle(_load(_NEXT_PARTIAL, "$m6")),
        bundle("add $m0, $m0, $m6"),
        bundle(_load(_NEXT_OUT, "$m6")),
        bundle("add $m1, $m1, $m6"),
        bundle(f"add $m3, $m3, -{3 if halved else 6}"),
        bundle(f"brpos $m3, .Lmerge_{'halves' if halved else 'rows'}_row"),
    ]


def _worker(halved: bool) -> list[str]:
    label = ".Lmerge_halves" if halved else ".Lmerge_rows"
    row = [f"{label}_row:", *_row(halved), f"{label}_panel:", *_panel(halved), *_end(halved)]
    return worker(label, [*_start(halved), *row, "exitz $m15"])


_OTHER = len(_row(False)) - len(_LARGEST + _SUM + _SCALE) + len(_end(False)) + MULTI_SLOT["f32oox"] - 1
_WEIGHT = len(_LARGEST + _SUM + _SCALE) + MULTI_SLOT["f32exp"] - 1
_HALF_ROW = len(_panel(True)) - len(_PART)
"""Slots of a row and of each of its weights, and of half a row's panel beside `_PART` for each part."""


def _frame(register: str, word: int) -> str:
    return f"st32 {register}, $m11, $mzero, {word}"


@cache
def _supervisor() -> tuple[tuple[str, ...], ...]:
    """From the arguments to the choice, and the two ways to the workers' end: rows and halves."""
    head = [
        f"add $m11, $m11, -{_FRAME_BYTES}",
        _frame("%out", _OUT),
        _frame("%partial", _PARTIAL),
        _frame("$m4", _STATES),
        _frame("$m6", _PARTS),
        "shr $m1, %shape, 16",
        "shl $m0, %shape, 16",
        "shr $m0, $m0, 16",
        _frame("$m0", _ROW_COUNT),
        "add %along, $m8, -8",
        "shrs %along, %along, 3",
        _frame("%along", _ALONG),
        "shr %between, %state_along, 3",
        _frame("%between", _STATE_ALONG),
        "mul $m8, $m8, $m6",
        "sub %half, 16, $m8",
        _frame("%half", _BACK_HALF),
        "add %panels, $m1, -1",
        _frame("%panels", _PANELS),
        # Slots of a row's weights and of half a row, and of the busiest worker either way.
        f"mul %weights, $m6, {_WEIGHT}",
        f"add %weights, %weights, {_OTHER}",
        f"mul %columns, $m6, {len(_PART)}",
        f"add %columns, %columns, {_HALF_ROW}",
        "mul %columns, %columns, $m1",
        "add %weights, %weights, %columns",
        f"setzi %third, {THIRD}",
        "add %halves, $m0, 2",
        "mul %halves, %halves, %third",
        "shr %halves, %halves, 16",
        "add %rows, %halves, 1",
        "shr %rows, %rows, 1",
        "mul %halves, %halves, %weights",
        "add %weights, %weights, %columns",
        "mul %rows, %rows, %weights",
        "cmpult $m6, %halves, %rows",
        "mul $m4, $m7, $m1",
    ]
    given = {"%out": "$m2", "%partial": "$m3", "%shape": "$m5", "%state_along": "$m9"}
    ways = []
    for halved in (False, True):
        ways.append(
            [
                # $m0 rows, $m1 panels, $m4 bytes of a part's panels, $m7 of one, $m8 of all parts
                "shl %jump, $m0, 2",
                f"add %jump, %jump, -{1 if halved else 3}",
                _frame("%jump", _JUMP),
                *([] if halved else ["add $m7, $m7, -16"]),
                "sub %panel, $m7, $m8",
                _frame("%panel", _BACK_PANEL),
                f"sub %width, {96 if halved else 192}, $m4",
                _frame("%width", _NEXT_PARTIAL),
                "mul %size, $m0, $m1",
                "shl %size, %size, 5",
                f"sub %size, {96 if halved else 192}, %size",
                _frame("%size", _NEXT_OUT),
                f"setzi $m9, {'.Lmerge_halves' if halved else '.Lmerge_rows'}",
            ]
        )
    launch = ["runall $m9, $m11, 0", f"add $m11, $m11, {_FRAME_BYTES}", "sync 2", "br $m10"]
    pool = ["$m2", "$m3", "$m5"]
    return (
        tuple(schedule(head, (), given)),
        ("brnz $m6, .Lmerge_by_halves", *schedule(ways[0], pool), *launch),
        (*schedule(ways[1], pool), *launch),
    )


def _source() -> str:
    head, rows, halves = _supervisor()
    lines = [*head, *rows, ".Lmerge_by_halves:", *halves, *_worker(False), *_worker(True)]
    return section(SYMBOL, [*lines[:-1], ".Lmerge_exit:", lines[-1]])


def cycles(rows: Any, panels: Any, parts: Any, **_: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    rows, panels, parts = (np.asarray(value, dtype=np.int64) for value in (rows, panels, parts))
    weights = _OTHER + _WEIGHT * parts
    columns = panels * (_HALF_ROW + len(_PART) * parts)
    # Without its loop's branch, the first half of a panel is a slot shorter.
    halves = ceil_div(rows, 3) * (weights + columns)
    whole = ceil_div(rows, WORKER_SLOTS) * (weights + 2 * columns)
    halved = halves < whole
    head, row_way, half_way = _supervisor()
    fixed = np.where(
        halved, call_cycles([*head, f"!{row_way[0]}", *half_way]), call_cycles([*head, *row_way])
    )
    shorter = ceil_div(rows, WORKER_SLOTS) * panels
    slots = np.where(halved, len(_start(True)) + halves, len(_start(False)) + whole - shorter) + 1
    idle = np.where(rows > 0, 9, 7) + 3 * halved
    return fixed + WORKER_SLOTS * np.where((rows > 0) & (panels > 0), slots, idle)


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
