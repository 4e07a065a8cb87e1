"""Assembly of `attention_merge_f16` and `attention_merge_own_f16`: the same workers behind two supervisors.

Workers take whole rows in turn, from a frame they share, by code of its own where rows end with half a panel.
Of at most three rows that do not, pairs of workers take one each and half its columns, three pairs every
third panel if there is one row only; each has a frame of its own. A
worker writes the weights of its row below its $mworker_base, two halves in a word: first exp(m_j - largest),
then that over the sum. The first word holds the first part and, of an even number of parts, the second one,
else nothing. The loops load what the next step needs, so the last weight is followed by a word that is read
and not used.

Worker registers:
    $m1 step of the own partial output, in words    $m2, $m3, $m4 own and other partial outputs, out
    $m5 other parts    $m6 words from a part to the next    $m7 panels left    $m10 weight
  of whole rows:
    $m0 byte offset of the row in a panel    $m8 scratch    $m9 weight of the second part    $m11 rows left
  of few rows:
    $m0 the common words    $m8 from behind the last part to the next panel    $m11 step of out, in words
    $a4, $a5 weights of a part and of the own one
"""

from __future__ import annotations

from ..machine.timing import MULTI_SLOT
from .attention_merge_few import COUNTS as FEW_COUNTS
from .attention_merge_few import few_name
from .attention_merge_straight import COUNTS, straight_name
from .attention_merge_supervisor import WHOLE_ROWS, launches, prologue
from .attention_merge_words import (
    BACK_HALF,
    BACK_PANEL,
    BETWEEN,
    COLUMNS,
    COMMON,
    COUNT,
    FIRST,
    LEAST,
    ODD,
    OTHERS,
    OUT,
    OUT_STEP,
    OWN,
    OWN_STATE,
    OWN_STEP,
    PAIRS,
    PANELS,
    PART_STEP,
    ROWS,
    STATES,
    WEIGHT_BYTES,
)
from .text import CLEAR_ACCUMULATORS, bundle, from_frame, section, worker


def _common(register: str, word: int) -> str:
    """Load a common word where rows are few."""
    return f"ld32 {register}, $m0, $mzero, {word - ROWS}"


START = [
    bundle("get $m0, $WSR", CLEAR_ACCUMULATORS[0]),
    bundle("and $m0, $m0, 7", CLEAR_ACCUMULATORS[1]),
    bundle(from_frame("$m11", ROWS)),
    "sub $m11, $m11, $m0",
    "brneg $m11, .Lmerge_exit",
    "shl $m0, $m0, 5",
]
"""To a worker's first whole row."""


_MINUS_INFINITY = 0xFF800000
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
    bundle("ld32 $a0, $m10, $mzero, 1", "f32v2mul $a4:5, $a2:B, $a4:5"),
    bundle("nop", "f32v2tof16 $a7, $a4:5"),
    bundle("st32step $a7, $mzero, $m10+=, 1", "f16v2tof32 $a4:5, $a0"),
]
"""Two weights over the sum; what follows the loop does the last two."""
_WEIGHTS = f"add $m10, $mworker_base, -{WEIGHT_BYTES - 4}"
_WEIGHT = "ldb16step $a4, $mworker_base, $m10+=, 1"
_LEAST_SUM = f"or $a3, $azero, {LEAST:#x}"


def row() -> list[str]:
    """A row's weights, and where its columns begin; $m7 = panels but one."""
    return [
        bundle("shr $m1, $m0, 5", f"or $a0, $azero, {_MINUS_INFINITY:#x}"),
        bundle("shl $m1, $m1, 3", f"or $a1, $azero, {_MINUS_INFINITY:#x}"),
        bundle(from_frame("$m4", OWN_STATE), "setzi $a3, 0"),
        bundle("ld32 $a6, $m4, $m1, 0"),
        bundle(from_frame("$m2", STATES)),
        bundle("add $m2, $m2, $m1"),
        bundle(from_frame("$m9", BETWEEN)),
        bundle(from_frame("$m5", COUNT)),
        bundle("mov $m3, $m2"),
        bundle("rpt $m5, 0"),
        *LARGEST,
        bundle(from_frame("$m8", ODD), "f32max $a6, $a6, $a0"),
        bundle("ld32 $a0, $m4, $m1, 0", "f32sub $a6, $azero, $a6"),
        bundle("ld32 $a2, $m4, $m1, 1"),
        bundle("add $m3, $m2, 4"),
        bundle("rpt $m8, 1"),
        *_ODD_PART,
        bundle(from_frame("$m8", PAIRS), "f32v2add $a4:5, $a6:B, $a0:1"),
        bundle(_WEIGHTS),
        bundle(f"rpt $m8, {len(PAIR) - 1}"),
        *PAIR,
        bundle(from_frame("$m2", OWN), "f32v2tof16 $a7, $a4:5"),
        bundle(from_frame("$m3", OTHERS), "f16v2exp $a7, $a7"),
        bundle("st32step $a7, $mzero, $m10+=, 1", "f16v2tof32 $a4:5, $a7"),
        bundle("st32 $a7, $m10, $mzero, 0", "f32v2mac $a2:3, $a4:5"),  # read, not used
        bundle(_WEIGHTS, "f32v2gina $a2:3, $azeros, 0"),
        bundle("ld32 $a0, $m10, $mzero, 0", "f32add $a2, $a2, $a3"),
        bundle("add $m2, $m2, $m0", _LEAST_SUM),
        bundle("add $m3, $m3, $m0", "f32max $a2, $a2, $a3"),
        bundle("mov $m1, $m10", "f32oox $a2, $a2"),
        bundle(f"rpt $m8, {len(SCALE) - 1}", "f16v2tof32 $a4:5, $a0"),
        *SCALE,
        bundle(from_frame("$m9", FIRST), "f32v2mul $a4:5, $a2:B, $a4:5"),
        bundle(from_frame("$m4", OUT), "f32v2tof16 $a7, $a4:5"),
        bundle("st32 $a7, $m10, $mzero, 0"),
        bundle("ld32 $a5, $m1, $mzero, 0"),
        bundle("mov $m10, $m9"),
        bundle("add $m4, $m4, $m0"),
        bundle(from_frame("$m6", PART_STEP)),
        bundle(from_frame("$m1", OWN_STEP)),
        bundle(from_frame("$m7", PANELS)),
    ]


OTHER_PART = [
    bundle("ld64step $a0:1, $mzero, $m3+=, 1", "f16v8acc $a0:3"),
    bundle("ld64step $a2:3, $mzero, $m3+=, $m6", "f16v4mul $a0:1, $a4:BL, $a0:1"),
    bundle(_WEIGHT, "f16v4mul $a2:3, $a4:BL, $a2:3"),
]


def _half_row(own: str, back: int, step: str) -> list[str]:
    """Eight columns: `own` and `step` words to the next half row, `back` where the other parts' one is."""
    return [
        bundle("ld64step $a0:1, $mzero, $m2+=, 1"),
        bundle(f"ld64step $a2:3, $mzero, $m2+=, {own}", "f16v4mul $a0:1, $a5:BL, $a0:1"),
        bundle(_WEIGHT, "f16v4mul $a2:3, $a5:BL, $a2:3"),
        bundle(f"rpt $m5, {len(OTHER_PART) - 1}"),
        *OTHER_PART,
        bundle(from_frame("$m8", back), "f16v8acc $a0:3"),
        bundle("add $m3, $m3, $m8", "f16v2gina $a0, $azero, 0"),
        bundle("mov $m10, $m9", "f16v2gina $a1, $azero, 0"),
        bundle("st64step $a0:1, $mzero, $m4+=, 1", "f16v2gina $a2, $azero, 0"),
        bundle("nop" if step == "1" else from_frame("$m8", OUT_STEP), "f16v2gina $a3, $azero, 0"),
        bundle(f"st64step $a2:3, $mzero, $m4+=, {step}"),
    ]


_HALVES = [*_half_row("1", BACK_HALF, "1"), *_half_row("$m1", BACK_PANEL, "$m8")]
PANEL = [*_HALVES, bundle("brnzdec $m7, .Lmerge_rows_panel")]
ODD_PANEL = [*_HALVES, bundle("brnzdec $m7, .Lmerge_odd_panel")]
_BRANCH = [bundle("brz $m7, .Lmerge_odd_last"), bundle("add $m7, $m7, -1")]
"""To the first panel of a row that ends with half of one, or behind all panels."""
_LAST = [*_half_row("1", BACK_HALF, "1"), *(bundle(f"st64 $azeros, $m4, $mzero, {word}") for word in (0, 1))]
"""Half a panel, and zeros."""


def _end(label: str) -> list[str]:
    """To a worker's next row."""
    return [
        bundle(f"add $m0, $m0, {32 * 6}"),
        bundle("add $m11, $m11, -6"),
        bundle(f"brpos $m11, {label}"),
    ]


END = _end(".Lmerge_rows_row")
ODD_END = [*_LAST, *_end(".Lmerge_odd_row")]


def _whole_rows() -> list[str]:
    body = [".Lmerge_rows_row:", *row(), ".Lmerge_rows_panel:", *PANEL, *END]
    return worker(".Lmerge_rows", [*START, *body, "exitz $m15"])


def _odd_rows() -> list[str]:
    body = [".Lmerge_odd_row:", *row(), *_BRANCH, ".Lmerge_odd_panel:", *ODD_PANEL]
    return worker(".Lmerge_odd", [*START, *body, ".Lmerge_odd_last:", *ODD_END, "exitz $m15"])


FEW_START = [
    bundle(from_frame("$m7", COLUMNS), CLEAR_ACCUMULATORS[0]),
    bundle("brneg $m7, .Lmerge_exit", CLEAR_ACCUMULATORS[1]),
    bundle(from_frame("$m0", COMMON), f"or $a0, $azero, {_MINUS_INFINITY:#x}"),
    bundle(from_frame("$m4", OWN_STATE)),
    bundle(from_frame("$m2", STATES)),
    bundle(_common("$m9", BETWEEN)),
    bundle(_common("$m5", COUNT)),
    bundle("ld32 $a6, $m4, $mzero, 0"),
    bundle("rpt $m5, 0"),
]
"""To the largest score of the other parts."""
_FEW_LARGEST = [bundle("ld32step $a0, $mzero, $m2+=, $m9", "f32max $a6, $a6, $a0")]
FEW_FIRST = [
    bundle(from_frame("$m2", STATES), "f32max $a6, $a6, $a0"),
    bundle("ld32 $a0, $m4, $mzero, 0", "f32sub $a6, $azero, $a6"),
    bundle("ld32 $a2, $m4, $mzero, 1", f"or $a1, $azero, {_MINUS_INFINITY:#x}"),
    bundle("add $m3, $m2, 4", "setzi $a3, 0"),
    bundle(_common("$m8", ODD)),
    bundle("rpt $m8, 1"),
]
FEW_PAIRS = [
    bundle(_common("$m8", PAIRS), "f32v2add $a4:5, $a6:B, $a0:1"),
    bundle(_WEIGHTS),
    bundle(f"rpt $m8, {len(PAIR) - 1}"),
]
"""The first two parts."""
FEW_SUM = [
    bundle(from_frame("$m2", OWN), "f32v2tof16 $a7, $a4:5"),
    bundle(from_frame("$m4", OUT), "f16v2exp $a7, $a7"),
    bundle("st32step $a7, $mzero, $m10+=, 1", "f16v2tof32 $a4:5, $a7"),
    bundle("st32 $a7, $m10, $mzero, 0", "f32v2mac $a2:3, $a4:5"),  # read, not used
    bundle(_WEIGHTS, "f32v2gina $a2:3, $azeros, 0"),
    bundle("ld32 $a0, $m10, $mzero, 0", "f32add $a2, $a2, $a3"),
    bundle("mov $m11, $m10", _LEAST_SUM),
    bundle(from_frame("$m3", OTHERS), "f32max $a2, $a2, $a3"),
    bundle(_common("$m6", PART_STEP), "f32oox $a2, $a2"),
    bundle(f"rpt $m8, {len(SCALE) - 1}", "f16v2tof32 $a4:5, $a0"),
]
FEW_COLUMNS = [
    bundle(_common("$m8", BACK_PANEL), "f32v2mul $a4:5, $a2:B, $a4:5"),
    bundle(_common("$m1", OWN_STEP), "f32v2tof16 $a7, $a4:5"),
    bundle("st32 $a7, $m10, $mzero, 0"),
    bundle("ld32 $a5, $m11, $mzero, 0"),
    bundle(_common("$m10", FIRST)),
    bundle(_WEIGHT),
]
"""To the columns."""


HALF_ROW = [
    bundle("ld64step $a0:1, $mzero, $m2+=, 1"),
    bundle("ld64step $a2:3, $mzero, $m2+=, $m1", "f16v4mul $a0:1, $a5:BL, $a0:1"),
    bundle(f"rpt $m5, {len(OTHER_PART) - 1}", "f16v4mul $a2:3, $a5:BL, $a2:3"),
    *OTHER_PART,
    bundle("add $m3, $m3, $m8", "f16v8acc $a0:3"),
    bundle(_common("$m10", FIRST), "f16v2gina $a0, $azero, 0"),
    bundle(_WEIGHT, "f16v2gina $a1, $azero, 0"),
    bundle("st64step $a0:1, $mzero, $m4+=, 1", "f16v2gina $a2, $azero, 0"),
    bundle(_common("$m11", OUT_STEP), "f16v2gina $a3, $azero, 0"),
    bundle("st64step $a2:3, $mzero, $m4+=, $m11"),
    bundle("brnzdec $m7, .Lmerge_few_panel"),
]
"""Eight columns where rows are few."""


def _few_rows() -> list[str]:
    weights = [
        *FEW_START,
        *_FEW_LARGEST,
        *FEW_FIRST,
        *_ODD_PART,
        *FEW_PAIRS,
        *PAIR,
        *FEW_SUM,
        *SCALE,
        *FEW_COLUMNS,
    ]
    return worker(".Lmerge_few", [*weights, ".Lmerge_few_panel:", *HALF_ROW, ".Lmerge_exit:", "exitz $m15"])


_WAIT = MULTI_SLOT["f16v2exp"] - 1
_WAITS = MULTI_SLOT["f32oox"] - 1 + _WAIT
ROW_SLOTS = len(row()) - len([*LARGEST, *_ODD_PART, *PAIR, *SCALE]) + _WAITS
PAIR_SLOTS = len([*PAIR, *SCALE]) + _WAIT
"""Slots of a row of one part beside its columns, and of each pair of further parts' weights."""
ODD_SLOTS = len([*_BRANCH, *ODD_END]) - len(OTHER_PART)
"""Of a row that ends with half a panel and has one part: beside its weights and whole panels. One less where
there is no whole panel.
"""
FEW_SLOTS = len([*FEW_START, *FEW_FIRST, *FEW_PAIRS, *FEW_SUM, *FEW_COLUMNS]) + _WAITS
"""Slots of a worker of few rows with one part, beside its columns."""


def source(symbol: str, own: bool) -> str:
    """The whole kernel."""
    few, whole = launches()
    lines = [
        *prologue(own),
        WHOLE_ROWS,
        *few,
        ".Lmerge_all:",
        *whole,
        *_whole_rows(),
        *_odd_rows(),
        *_few_rows(),
        *(_straight_table() if own else []),
    ]
    return section(symbol, lines)


def _straight_table() -> list[str]:
    """The code for each number of other parts, 0 where nobody has asked for it."""
    lines = [".balign 4"]
    for label, names in (
        (".Lmerge_straight:", map(straight_name, COUNTS)),
        (".Lmerge_few_straight:", map(few_name, FEW_COUNTS)),
    ):
        lines += [label, ".word 0", *(line for name in names for line in (f".weak {name}", f".word {name}"))]
    return lines
