"""Workers of `attention_merge_own_f16` for a fixed, small number of other parts.

Nothing is repeated: the weights of a row stay in registers, and what the next half row needs is loaded while
sums come out. Each number is a routine of its own, linked only if a program asks for it. Workers take whole
rows in turn, from a frame they share. Weights are computed as in `attention_merge_source`, and two to a word
as there: the first word holds the first part and, of an even number of parts, the second one, else nothing.

Worker registers:
    $m0 byte offset of the row in a panel    $m11 rows left    $m1 step of the own partial output, in words
    $m5, $m8 from the last part's half row to the first one's next, within a panel and to the next one
    $m6 words from a part to the next        $m9 the same of the states
    $m2, $m3, $m4 own and other partial outputs, out; before, the states    $m7 panels left    $m10 scratch
    $a7, $a6 weights, lower half first    $a4:5 sums
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..machine.timing import MULTI_SLOT
from .attention_merge_words import (
    BETWEEN,
    LEAST,
    OTHERS,
    OUT,
    OUT_STEP,
    OWN,
    OWN_STATE,
    OWN_STEP,
    PANELS,
    PART_STEP,
    ROWS,
    STATES,
    STRAIGHT_HALF,
    STRAIGHT_PANEL,
)
from .text import CLEAR_ACCUMULATORS, bundle, from_frame, section

SYMBOL = "attention_merge_own_f16"
COUNTS = range(1, 4)
"""Numbers of other parts: their weights and the own one take two registers."""

START = [
    bundle("get $m0, $WSR", CLEAR_ACCUMULATORS[0]),
    bundle("and $m0, $m0, 7", CLEAR_ACCUMULATORS[1]),
    bundle(from_frame("$m11", ROWS)),
    bundle("sub $m11, $m11, $m0"),
    bundle("brneg $m11, .Lmerge_exit"),
    bundle("shl $m0, $m0, 5"),
    bundle(from_frame("$m1", OWN_STEP)),
    bundle(from_frame("$m5", STRAIGHT_HALF)),
    bundle(from_frame("$m6", PART_STEP)),
    bundle(from_frame("$m8", STRAIGHT_PANEL)),
    bundle(from_frame("$m9", BETWEEN)),
]
"""To a worker's first whole row."""
END = bundle("brpos $m11, .Lmerge_row")
"""To its next one."""
_NOTHING = ("or $a1, $azero, 0xff800000", "setzi $a3, 0")
_LARGER = "f32max $a6, $a6, $a0"
_INVERSE = (
    "f32v2gina $a2:3, $azeros, 0",
    "f32add $a2, $a2, $a3",
    f"or $a3, $azero, {LEAST:#x}",
    "f32max $a2, $a2, $a3",
    "f32oox $a2, $a2",
)
_TO_COLUMNS = [
    from_frame("$m2", OWN),
    from_frame("$m3", OTHERS),
    from_frame("$m4", OUT),
    from_frame("$m7", PANELS),
    "add $m2, $m2, $m0",
    "add $m3, $m3, $m0",
    "add $m4, $m4, $m0",
    "add $m11, $m11, -6",
    "add $m0, $m0, 192",
]
"""Where the columns of a row begin; then the row is the next one."""


def straight_name(count: int) -> str:
    """Symbol of the code for so many other parts."""
    return f"{SYMBOL}_of_{count}"


def _weight(count: int, part: int) -> str:
    """The weight of a part, the own one first, as an operand."""
    place = part if count % 2 or part == 0 else part + 1
    return f"$a{7 - place // 2}:{'BU' if place % 2 else 'BL'}"


def weights(count: int) -> list[str]:
    """A row's weights, and where its columns begin."""
    is_odd, words = count % 2 == 1, 1 + count // 2
    lines = [
        bundle("shr $m10, $m0, 2", _NOTHING[0]),
        bundle(from_frame("$m2", OWN_STATE), _NOTHING[1]),
        bundle(from_frame("$m3", STATES)),
        bundle("ld32 $a6, $m2, $m10, 0"),
        bundle("add $m3, $m3, $m10"),
        bundle("mov $m4, $m3"),
        bundle("ld32step $a0, $mzero, $m4+=, $m9"),
        *[bundle("ld32step $a0, $mzero, $m4+=, $m9", _LARGER)] * (count - 1),
        bundle("add $m4, $m3, 4", _LARGER),
        *([bundle("ld32step $a1, $mzero, $m3+=, $m9")] if is_odd else []),
        bundle("ld32 $a0, $m2, $m10, 0", "f32sub $a6, $azero, $a6"),
    ]
    for word in range(words):
        raised = "$a7" if word == 0 else "$a1"
        own, more = word == 0, word + 1 < words
        lines += [
            bundle(
                "ld32 $a2, $m2, $m10, 1" if own else "ld32step $a2, $mzero, $m4+=, $m9",
                "f32v2add $a4:5, $a6:B, $a0:1",
            ),
            bundle(
                "nop" if own and not is_odd else "ld32step $a3, $mzero, $m4+=, $m9",
                f"f32v2tof16 {raised}, $a4:5",
            ),
            bundle("ld32step $a0, $mzero, $m3+=, $m9" if more else "nop", f"f16v2exp {raised}, {raised}"),
            bundle("nop", f"f16v2tof32 $a4:5, {raised}"),
            bundle("ld32step $a1, $mzero, $m3+=, $m9" if more else "nop", "f32v2mac $a2:3, $a4:5"),
        ]
    work = list(_INVERSE)
    for word in range(words):
        work += [
            f"f16v2tof32 $a4:5, {'$a7' if word == 0 else '$a1'}",
            "f32v2mul $a4:5, $a2:B, $a4:5",
            f"f32v2tof16 $a{7 - word}, $a4:5",
        ]
    mains = [*_TO_COLUMNS, *["nop"] * max(len(work) - len(_TO_COLUMNS), 0)]
    work += ["fnop"] * (len(mains) - len(work))
    return [*lines, *map(bundle, mains, work)]


def _half_row(count: int, further: str) -> list[str]:
    """Eight columns, from the second product of the own part to the complete sums; `further` is the step to
    the next half row of the other parts.
    """
    lines = [bundle("nop", f"f16v4mul $a2:3, {_weight(count, 0)}, $a2:3")]
    for other in range(1, count + 1):
        weight, step = _weight(count, other), further if other == count else "$m6"
        lines += [
            bundle("ld64step $a0:1, $mzero, $m3+=, 1", "f16v8acc $a0:3"),
            bundle(f"ld64step $a2:3, $mzero, $m3+=, {step}", f"f16v4mul $a0:1, {weight}, $a0:1"),
            bundle("nop", f"f16v4mul $a2:3, {weight}, $a2:3"),
        ]
    return [*lines, bundle("nop", "f16v8acc $a0:3")]


def panel(count: int) -> list[str]:
    """A panel of a row."""
    first, last = "f16v2gina $a4, $azero, 0", "f16v2gina $a5, $azero, 0"
    store = "st64step $a4:5, $mzero, $m4+=, 1"
    own = f"f16v4mul $a0:1, {_weight(count, 0)}, $a0:1"
    return [
        bundle("ld64step $a0:1, $mzero, $m2+=, 1"),
        bundle("ld64step $a2:3, $mzero, $m2+=, 1", own),
        *_half_row(count, "$m5"),
        bundle("ld64step $a0:1, $mzero, $m2+=, 1", first),
        bundle("ld64step $a2:3, $mzero, $m2+=, $m1", last),
        bundle(store, first),
        bundle("nop", last),
        bundle(store, own),
        *_half_row(count, "$m8"),
        bundle(from_frame("$m10", OUT_STEP), first),
        bundle("nop", last),
        bundle(store, first),
        bundle("nop", last),
        bundle("st64step $a4:5, $mzero, $m4+=, $m10"),
        bundle("brnzdec $m7, .Lmerge_panel"),
    ]


def _source(count: int) -> str:
    rows = [*START, ".Lmerge_row:", *weights(count), ".Lmerge_panel:", *panel(count), END]
    return section(straight_name(count), [*rows, ".Lmerge_exit:", "exitz $m15"])


def straight_sources() -> dict[str, Callable[[], str]]:
    """What makes the assembly of each, by symbol."""
    return {straight_name(count): partial(_source, count) for count in COUNTS}


def row_slots(count: int) -> tuple[int, int]:
    """Slots of a row beside its panels, and of a panel."""
    waits = 1 + count // 2
    return (
        len([*weights(count), END]) + waits * (MULTI_SLOT["f16v2exp"] - 1) + MULTI_SLOT["f32oox"] - 1,
        len(panel(count)),
    )
