"""Workers of `attention_merge_own_f16` for few rows and a fixed number of other parts.

As in `attention_merge_source` pairs of workers take a row each, or every third panel of the only row, and
half its columns; frames are the same. Nothing is repeated, and what is written here in order is packed
into bundles: the weights of the row together with the first half row, then half rows of further panels.
Scores stay in registers from the search for the largest one on, as far as there is room; exponentials wait
in memory, in single precision, for the inverse of their sum, and weights stay in registers. They are
computed as in `attention_merge_source`, and two to a word as there: the first word holds the first part
and, of an even number of parts, the second one, else nothing. $TAS is 0, so that `f16v4mix` takes half the
sums out.

Worker registers:
    $m0 the common words    $m1, $m8, $m10 scratch    $m2, $m3, $m4 own and other partial outputs, out
    $m6 words from a part to the next    $m7 panels left    $m9 the same of the states
    $a4..7 weights
  of the weights:
    $m2, $m3, $m4 scores of the others, all of the others, own    $m10 exponentials    $m11 4
    $a0:5, $a7 scores, $a6 the largest; then differences, and two exponentials in $a6:7
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ..machine.timing import MULTI_SLOT
from .attention_merge_words import (
    BACK_PANEL,
    COLUMNS,
    COMMON,
    LEAST_SUM,
    OTHERS,
    OUT,
    OUT_STEP,
    OWN,
    OWN_STATE,
    OWN_STEP,
    PART_STEP,
    ROWS,
    STATE_STEP,
    STATES,
)
from .pack import pack
from .text import CLEAR_ACCUMULATORS, Pair, bundle, count_instructions, from_frame, lines_of, section

SYMBOL = "attention_merge_own_f16_few"
COUNTS = range(1, 8)
"""Numbers of other parts: their weights and the own one take half the registers."""

_ROOM = 32
"""Bytes below a worker's base register for exponentials."""


def few_name(count: int) -> str:
    """Symbol of the code for so many other parts."""
    return f"{SYMBOL}_of_{count}"


def _common(register: str, word: int) -> str:
    return f"ld32 {register}, $m0, $mzero, {word - ROWS}"


def _words(count: int) -> int:
    """Pairs of parts."""
    return 1 + count // 2


def _weight(count: int, part: int) -> str:
    """The weight of a part, the own one first, as an operand."""
    place = part if count % 2 or part == 0 else part + 1
    return f"$a{4 + place // 2}:{'BU' if place % 2 else 'BL'}"


def _largest(count: int) -> list[str]:
    """Less the largest score in $a6. Of four pairs those of the first three stay in $a0:5, else all do."""
    kept = ["$a0", *(["$a1"] if count % 2 else []), "$a2", "$a3", "$a4", "$a5"]
    registers = [*kept[: count + 1], *["$a7"] * (count + 1 - len(kept))]
    lines = [f"ld32 {registers[0]}, $m4, $mzero, 0"]
    largest = registers[0]
    for register in registers[1:]:
        lines += [f"ld32step {register}, $mzero, $m2+=, $m9", f"f32max $a6, {largest}, {register}"]
        largest = "$a6"
    lines.append("f32sub $a6, $azero, $a6")
    return [*lines, *([] if count % 2 else ["or $a1, $azero, 0xff800000"])]


def _differences(count: int) -> list[str]:
    """Of all scores from the largest one, as halves, to `_HALVES`."""
    words = _words(count)
    lines = [
        f"f32v2add $a{2 * word}:{2 * word + 1}, $a6:B, $a{2 * word}:{2 * word + 1}" for word in (0, 1, 2)
    ]
    if words == 1:
        return [lines[0], "f32v2tof16 $a0, $a0:1"]
    first = [*lines[:2], "f32v4tof16 $a0:1, $a0:3"]
    if words == 2:
        return first
    if words == 3:
        return [*first, lines[2], "f32v2tof16 $a4, $a4:5"]
    return [
        *first,
        "shl $m8, $m9, 3",  # back to the last two
        "sub $m2, $m2, $m8",
        "ld32step $a2, $mzero, $m2+=, $m9",
        "ld32 $a3, $mzero, $m2, 0",
        lines[2],
        "f32v2add $a6:7, $a6:B, $a2:3",
        "f32v4tof16 $a4:5, $a4:7",
    ]


_HALVES = ("$a0", "$a1", "$a4", "$a5")


def _exponentials(count: int) -> list[str]:
    """All but the last two in memory, those in $a6:7, and the inverse of the sum in $a2."""
    words = _words(count)
    lines = [
        from_frame("$m3", STATES),
        "setzi $m11, 4",
        f"add $m10, $mworker_base, -{_ROOM}",
        "ld32 $a2, $m4, $mzero, 1",
        *(["ld32step $a3, $m11, $m3+=, $m9"] if count % 2 else ["setzi $a3, 0"]),
    ]
    for word in range(words):
        half = _HALVES[word]
        if word:
            lines += [f"ld32step {register}, $m11, $m3+=, $m9" for register in ("$a2", "$a3")]
        lines += [
            f"f16v2exp {half}, {half}",
            f"f16v2tof32 $a6:7, {half}",
            "f32v2mac $a2:3, $a6:7",
            *([f"st64 $a6:7, $m10, $mzero, {word}"] if word + 1 < words else []),
        ]
    return [
        *lines,
        "f32v2gina $a2:3, $azeros, 0",
        "f32add $a2, $a2, $a3",
        from_frame("$m0", COMMON),
        _common("$a3", LEAST_SUM),
        "f32max $a2, $a2, $a3",
        "f32oox $a2, $a2",
    ]


def _weights(count: int) -> list[str]:
    """All of them over the sum, in $a4 and what follows."""

    def again(register: str, word: int) -> str:
        return f"ld64 {register}, $m10, $mzero, {word}"

    def scaled(register: str, source: str = "") -> str:
        return f"f32v2mul {register}, $a2:B, {source or register}"

    if _words(count) == 1:
        return [scaled("$a6:7"), "f32v2tof16 $a4, $a6:7"]
    if _words(count) == 2:
        return [scaled("$a6:7"), again("$a4:5", 0), scaled("$a4:5"), "f32v4tof16 $a4:5, $a4:7"]
    if _words(count) == 3:
        last = [scaled("$a6:7"), "f32v2tof16 $a6, $a6:7"]
    else:
        last = [scaled("$a6:7"), again("$a4:5", 2), scaled("$a4:5"), "f32v4tof16 $a6:7, $a4:7"]
    first = [again("$a0:1", 0), scaled("$a0:1"), again("$a4:5", 1), scaled("$a2:3", "$a4:5")]
    return [*last, *first, "f32v4tof16 $a4:5, $a0:3"]


def _half_row(count: int) -> list[str]:
    """Eight columns, all added up but for the last part."""
    lines = []
    for part in range(count + 1):
        pointer, step = ("$m3", "$m6") if part else ("$m2", "1")
        weight = _weight(count, part)
        lines += [
            f"ld64step $a0:1, $mzero, {pointer}+=, 1",
            f"f16v4mul $a0:1, {weight}, $a0:1",
            f"ld64step $a2:3, $mzero, {pointer}+=, {step}",
            f"f16v4mul $a2:3, {weight}, $a2:3",
            *([_ADD] if part < count else []),
        ]
    return lines


_ADD = "f16v8acc $a0:3"
_BEGIN = [
    bundle(from_frame("$m4", OWN_STATE), CLEAR_ACCUMULATORS[0]),
    bundle("brneg $m4, .Lmerge_few_exit", CLEAR_ACCUMULATORS[1]),
]
_SECOND_WORD = "f16v4mix $a2:3, $azeros, $azeros"
_STORES = ("st64step $a0:1, $mzero, $m4+=, 1", "st64 $a2:3, $m4, $mzero, 0")
_SUMS: list[Pair] = [
    ("nop", "f16v2gina $a0, $azero, 0"),
    ("brnz $m7, .Lmerge_few_next", "f16v2gina $a1, $azero, 0"),
]
_END = [bundle(_STORES[0], _SECOND_WORD), _STORES[1], ".Lmerge_few_exit:", "exitz $m15"]


@cache
def _first(count: int) -> tuple[Pair, ...]:
    """From the start to the sums of the first half row."""
    lines = [
        from_frame("$m2", STATES),
        from_frame("$m9", STATE_STEP),
        *_largest(count),
        *_differences(count),
        *_exponentials(count),
        *_weights(count),
        from_frame("$m2", OWN),
        from_frame("$m3", OTHERS),
        from_frame("$m4", OUT),
        _common("$m6", PART_STEP),
        from_frame("$m7", COLUMNS),
        "uput $TAS, $azero",
        *_half_row(count),
    ]
    return (*pack(lines), ("nop", _ADD))


@cache
def _next(count: int) -> tuple[Pair, ...]:
    """From a half row's first word to the sums of the next panel's."""
    lines = [
        _SECOND_WORD,
        *_STORES,
        _common("$m8", OUT_STEP),
        "shl $m8, $m8, 3",
        "add $m4, $m4, $m8",
        _common("$m1", OWN_STEP),
        "add $m1, $m1, -1",
        "shl $m1, $m1, 3",
        "add $m2, $m2, $m1",
        _common("$m10", BACK_PANEL),
        "add $m3, $m3, $m10",
        "add $m7, $m7, -1",
        *_half_row(count),
    ]
    return (*pack(lines), ("bri .Lmerge_few_sums", _ADD))


def _source(count: int) -> str:
    lines = [
        *_BEGIN,
        *lines_of(_first(count)),
        ".Lmerge_few_sums:",
        *lines_of(_SUMS),
        *_END,
        ".Lmerge_few_next:",
        *lines_of(_next(count)),
    ]
    return section(few_name(count), lines)


def few_sources() -> dict[str, Callable[[], str]]:
    """What makes the assembly of each, by symbol."""
    return {few_name(count): partial(_source, count) for count in COUNTS}


@cache
def few_slots(count: int) -> tuple[int, int]:
    """Slots of a worker with one panel, and of each further one."""
    waits = _words(count) * (MULTI_SLOT["f16v2exp"] - 1) + MULTI_SLOT["f32oox"] - 1
    first = count_instructions([*_BEGIN, *_END]) + len(_SUMS) + len(_first(count)) + waits
    return first, len(_SUMS) + len(_next(count))
