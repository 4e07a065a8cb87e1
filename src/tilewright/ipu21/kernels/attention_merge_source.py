"""Assembly of `attention_merge_f16` and `attention_merge_own_f16`: the same workers behind two supervisors.

Workers take whole rows in turn; of at most three rows pairs of workers take one each and half its columns. A
worker writes the weights of its row below its $mworker_base, two halves in a word: first exp(m_j - largest),
then that over the sum. The first word holds the first part and, of an even number of parts, the second one,
else nothing. The loops load what the next step needs, so the last weight is followed by a word that is read
and not used.

Worker registers:
    $m0 byte offset of the row (or its half) in a panel    $m1 step of the own partial output, in words
    $m2, $m3, $m4 own and other partial outputs, out    $m5 other parts    $m6 words from a part to the next
    $m7 panels left    $m9 weight of the second part    $m10 weight    $m8 scratch    $m11 rows left
    $a4, $a5 weights of a part and of the own one
"""

from __future__ import annotations

from functools import cache

from ..machine.timing import MULTI_SLOT
from .supervisor import call_cycles, launch, schedule, to_frame
from .text import bundle, section, worker

MAXIMUM_PARTS = 80
"""As many weights, and a word more at either end, lie below a worker's base register."""
WEIGHT_BYTES = 4 * (MAXIMUM_PARTS // 2 + 3)

HALVED_ROWS = 3
"""Up to here pairs of workers share a row."""

(
    _OUT,
    _OWN,
    _OWN_STATE,
    _OTHERS,
    _STATES,
    _ROWS,
    _PANELS,
    _COUNT,
    _ODD,
    _PAIRS,
    _FIRST,
    _BETWEEN,
    _PART,
    _BACK_HALF,
    _BACK_PANEL,
    _OWN_STEP,
    _OUT_STEP,
) = range(17)
FRAME_BYTES = 72


def _load(word: int, register: str) -> str:
    return f"ld32 {register}, $mvertex_base, $mzero, {word}"


def start(halved: bool) -> list[str]:
    """A worker's first row. A half of a row's panel has 16 bytes."""
    share = ["and $m2, $m0, 1", "shl $m2, $m2, 4", "shr $m0, $m0, 1"] if halved else []
    return [
        bundle("get $m0, $WSR", "setzi $a0, 8"),
        bundle("and $m0, $m0, 7", "uput $FP_CLR, $a0"),  # 8: clear all accumulators
        *share,
        _load(_ROWS, "$m11"),
        "sub $m11, $m11, $m0",
        "brneg $m11, .Lmerge_exit",
        "shl $m0, $m0, 5",
        *(["add $m0, $m0, $m2"] if halved else []),
    ]


_MINUS_INFINITY = "0xff800000"
LARGEST = [bundle("ld32step $a0, $mzero, $m3+=, $m9", "f32max $a6, $a6, $a0")]
_ODD_PART = [bundle("ld32step $a1, $mzero, $m2+=, $m9"), bundle("ld32step $a3, $mzero, $m3+=, $m9")]
PAIR = [
    bundle("ld32step $a0, $mzero, $m2+=, $m9", "f32v2tof16 $a7, $a4:5"),
    bundle("ld32step $a1, $mzero, $m2+=, $m9", "f16v2exp $a7, $a7"),
    bundle("st32step $a7, $mzero, $m10+=, 1", "f16v2tof32 $a4:5, $a7"),
    bundle("ld32step $a2, $mzero, $m3+=, $m9", "f32v2mac $a2:3, $a4:5"),
    bundle("ld32step $a3, $mzero, $m3+=, $m9", "f32v2add $a4:5, $a6:B, $a0:1"),
]
SCALE = [
    bundle("ld32step $a0, $mzero, $m9+=, 1", "f32v2tof16 $a7, $a4:5"),
    bundle("st32step $a7, $mzero, $m10+=, 1", "f16v2tof32 $a4:5, $a0"),
    bundle("nop", "f32v2mul $a4:5, $a2:B, $a4:5"),
]
_WEIGHTS = f"add {{}}, $mworker_base, -{WEIGHT_BYTES - 4}"


def row() -> list[str]:
    """A row's weights, and where its columns begin."""
    return [
        bundle("shr $m1, $m0, 5", f"or $a0, $azero, {_MINUS_INFINITY}"),
        bundle("shl $m1, $m1, 3", f"or $a1, $azero, {_MINUS_INFINITY}"),
        bundle(_load(_OWN_STATE, "$m4"), "setzi $a3, 0"),
        bundle("ld32 $a6, $m4, $m1, 0"),
        bundle(_load(_STATES, "$m2")),
        bundle("add $m2, $m2, $m1"),
        bundle(_load(_BETWEEN, "$m9")),
        bundle(_load(_COUNT, "$m5")),
        bundle("mov $m3, $m2"),
        bundle("rpt $m5, 0"),
        *LARGEST,
        bundle(_load(_ODD, "$m8"), "f32max $a6, $a6, $a0"),
        bundle("ld32 $a0, $m4, $m1, 0", "f32sub $a6, $azero, $a6"),
        bundle("ld32 $a2, $m4, $m1, 1"),
        bundle("add $m3, $m2, 4"),
        bundle("rpt $m8, 1"),
        *_ODD_PART,
        bundle(_load(_PAIRS, "$m8"), "f32v2add $a4:5, $a6:B, $a0:1"),
        bundle(_WEIGHTS.format("$m10")),
        bundle(f"rpt $m8, {len(PAIR) - 1}"),
        *PAIR,
        bundle(_load(_OWN, "$m2"), "f32v2tof16 $a7, $a4:5"),
        bundle(_load(_OTHERS, "$m3"), "f16v2exp $a7, $a7"),
        bundle("st32step $a7, $mzero, $m10+=, 1", "f16v2tof32 $a4:5, $a7"),
        bundle("st32 $a7, $m10, $mzero, 0", "f32v2mac $a2:3, $a4:5"),  # read, not used
        bundle(_WEIGHTS.format("$m9"), "f32v2gina $a2:3, $azeros, 0"),
        bundle("add $m10, $m9, -4", "f32add $a2, $a2, $a3"),  # the first store brings nothing yet
        bundle("add $m2, $m2, $m0", "or $a3, $azero, 0x0d800000"),  # 2^-100, against a zero sum
        bundle("add $m3, $m3, $m0", "f32max $a2, $a2, $a3"),
        bundle("add $m8, $m8, 1", "f32oox $a2, $a2"),
        bundle(f"rpt $m8, {len(SCALE) - 1}"),
        *SCALE,
        bundle(_load(_FIRST, "$m9"), "f32v2tof16 $a7, $a4:5"),
        bundle("st32 $a7, $m10, $mzero, 0"),
        bundle(_WEIGHTS.format("$m10")),
        bundle("ld32 $a5, $m10, $mzero, 0"),
        bundle("add $m9, $m9, $m10"),
        bundle("mov $m10, $m9"),
        bundle(_load(_OUT, "$m4")),
        bundle("add $m4, $m4, $m0"),
        bundle(_load(_PART, "$m6")),
        bundle(_load(_OWN_STEP, "$m1")),
        bundle(_load(_PANELS, "$m7")),
    ]


PART = [
    bundle("ld64step $a0:1, $mzero, $m3+=, 1", "f16v8acc $a0:3"),
    bundle("ld64step $a2:3, $mzero, $m3+=, $m6", "f16v4mul $a0:1, $a4:BL, $a0:1"),
    bundle("ldb16step $a4, $mzero, $m10+=, 1", "f16v4mul $a2:3, $a4:BL, $a2:3"),
]


def _half_row(own: str, back: int, step: str, again: str) -> list[str]:
    """Eight columns: `own` and `step` words to the next half row, `back` where the other parts' one is."""
    return [
        bundle("ld64step $a0:1, $mzero, $m2+=, 1"),
        bundle(f"ld64step $a2:3, $mzero, $m2+=, {own}", "f16v4mul $a0:1, $a5:BL, $a0:1"),
        bundle("ldb16step $a4, $mzero, $m10+=, 1", "f16v4mul $a2:3, $a5:BL, $a2:3"),
        bundle(f"rpt $m5, {len(PART) - 1}"),
        *PART,
        bundle(_load(back, "$m8"), "f16v8acc $a0:3"),
        bundle("add $m3, $m3, $m8", "f16v2gina $a0, $azero, 0"),
        bundle("mov $m10, $m9", "f16v2gina $a1, $azero, 0"),
        bundle("st64step $a0:1, $mzero, $m4+=, 1", "f16v2gina $a2, $azero, 0"),
        bundle("nop" if step == "1" else _load(_OUT_STEP, "$m8"), "f16v2gina $a3, $azero, 0"),
        bundle(f"st64step $a2:3, $mzero, $m4+=, {step}"),
        *([bundle(again)] if again else []),
    ]


def panel(halved: bool) -> list[str]:
    """A worker's columns of a panel."""
    again = "brnzdec $m7, .Lmerge_halves_panel" if halved else "brnzdec $m7, .Lmerge_rows_panel"
    last = _half_row("$m1", _BACK_PANEL, "$m8", again)
    return last if halved else [*_half_row("1", _BACK_HALF, "1", ""), *last]


END = [
    bundle(f"add $m0, $m0, {32 * 6}"),
    bundle("add $m11, $m11, -6"),
    bundle("brpos $m11, .Lmerge_rows_row"),
]
"""To a worker's next row; where rows are halved it has none."""


def _worker(halved: bool) -> list[str]:
    label = ".Lmerge_halves" if halved else ".Lmerge_rows"
    body = [f"{label}_row:", *row(), f"{label}_panel:", *panel(halved), *([] if halved else END)]
    return worker(label, [*start(halved), *body, "exitz $m15"])


_WAIT = MULTI_SLOT["f16v2exp"] - 1
ROW_SLOTS = len(row()) - len([*LARGEST, *_ODD_PART, *PAIR]) + MULTI_SLOT["f32oox"] - 1 + _WAIT
PAIR_SLOTS = len([*PAIR, *SCALE]) + _WAIT
HALF_ROW_SLOTS = len(panel(True)) - len(PART)
"""Slots of a row of one part beside its columns, of each pair of further parts' weights, and of half a row's
panel beside `PART` for each other part."""


OWN_ARGUMENTS = {
    "%out": "$m2",
    "%own": "$m3",
    "%own_state": "$m4",
    "%others": "$m5",
    "%states": "$m6",
    "%shape": "$m7",
    "%packed": "$m8",
}
_OWN_HEAD = (
    "shr %count, %packed, 20",
    "shl %own_along, %packed, 12",
    "shr %own_along, %own_along, 12",
    "shl %along, %rows, 5",
    "mul %part, %along, %panels",
    "shl %between, %rows, 1",
)
MERGE_ARGUMENTS = {
    "%out": "$m2",
    "%own": "$m3",
    "%own_state": "$m4",
    "%shape": "$m5",
    "%parts": "$m6",
    "%along": "$m7",
    "%part": "$m8",
}
_MERGE_HEAD = (
    "add %count, %parts, -1",
    "mov %own_along, %along",
    "add %others, %own, %part",
    "add %states, %own_state, $m9",
    "shr %between, $m9, 2",
)


@cache
def supervisor(own: bool) -> tuple[str, ...]:
    """From the arguments to the workers' end."""
    lines = [
        f"add $m11, $m11, -{FRAME_BYTES}",
        "shr %panels, %shape, 16",
        "shl %rows, %shape, 16",
        "shr %rows, %rows, 16",
        *(_OWN_HEAD if own else _MERGE_HEAD),
        to_frame("%out", _OUT),
        to_frame("%own", _OWN),
        to_frame("%own_state", _OWN_STATE),
        to_frame("%others", _OTHERS),
        to_frame("%states", _STATES),
        to_frame("%between", _BETWEEN),
        to_frame("%count", _COUNT),
        "and %odd, %count, 1",
        to_frame("%odd", _ODD),
        "shl %odd, %odd, 1",
        "sub %odd, 4, %odd",
        to_frame("%odd", _FIRST),
        "shr %pairs, %count, 1",
        to_frame("%pairs", _PAIRS),
        # What a worker with whole rows has to do differently, in words.
        f"cmpult %halved, %rows, {HALVED_ROWS + 1}",
        "setzi $m9, .Lmerge_rows",
        "setzi %entry, .Lmerge_halves",
        "movnz $m9, %halved, %entry",
        "shl %halved, %halved, 1",
        "add %halved, %halved, -3",
        "mul %all, %part, %count",
        "add %part, %part, -8",
        "shrs %part, %part, 3",
        to_frame("%part", _PART),
        "sub %back, 16, %all",
        to_frame("%back", _BACK_HALF),
        "shl %less, %halved, 3",
        "add %less, %less, 8",
        "sub %all, %less, %all",
        "add %all, %all, %along",
        to_frame("%all", _BACK_PANEL),
        "shrs %own_along, %own_along, 3",
        "add %own_along, %own_along, %halved",
        to_frame("%own_along", _OWN_STEP),
        "shl %out_step, %rows, 2",
        "add %out_step, %out_step, %halved",
        to_frame("%out_step", _OUT_STEP),
        # No rows without panels.
        "add %rows, %rows, -1",
        "cmpeq %none, %panels, 0",
        "shl %none, %none, 14",
        "sub %rows, %rows, %none",
        to_frame("%rows", _ROWS),
        "add %panels, %panels, -1",
        to_frame("%panels", _PANELS),
    ]
    given = OWN_ARGUMENTS if own else MERGE_ARGUMENTS
    # $m9 is an argument first and then the entry.
    free = [f"$m{register}" for register in range(9) if f"$m{register}" not in given.values()]
    return (
        *schedule(lines, free, given, seed=24),
        *launch(FRAME_BYTES),
    )


def supervisor_cycles(own: bool) -> int:
    """Cycles of a call beside its workers' slots."""
    return call_cycles(supervisor(own))


def source(symbol: str, own: bool) -> str:
    """The whole kernel."""
    lines = [*supervisor(own), *_worker(False), *_worker(True)]
    return section(symbol, [*lines[:-1], ".Lmerge_exit:", lines[-1]])
