"""Worker code of `softmax_f16` for several panels all of whose columns count.

The rows of the general code without what looks at a tail. A row's sum is finished in slots of the next row's
first pass; the first row's first pass stands apart, as no sum is ready yet.

Worker registers:
    $m2 row's state    $m3 further rows    $m4 panels    $m5 bytes from behind a row's last panel to its first
    $m6 table          $m7, $m8 word of the scores and of p    $m9 words from a panel's last to the next one's
    first              $m10 scratch        $m11 like $m5, to the next row
    $a4 minus the largest score, $a0:3 and $a6:7 words
"""

from __future__ import annotations

from collections.abc import Sequence

from .softmax_words import JUMP, PROBABILITIES, ROWS, SCORES, STATE, ZERO_WORDS
from .text import CLEAR_ACCUMULATORS, bundle, from_frame

PANELS, BACK, NEXT = 5, 6, 7
"""Further words of a worker's frame."""

POINTERS = [
    bundle(from_frame("$m7", SCORES)),
    bundle(from_frame("$m8", PROBABILITIES)),
    bundle(from_frame("$m2", STATE)),
    bundle(from_frame("$m9", JUMP)),
    bundle(from_frame("$m4", PANELS)),
    bundle(from_frame("$m5", BACK)),
]
"""Where words and states are, and the ways between them."""
FULL_START = [
    bundle(from_frame("$m3", ROWS), CLEAR_ACCUMULATORS[0]),
    bundle("brneg $m3, .L{symbol}_exit", CLEAR_ACCUMULATORS[1]),
    bundle("setzi $m6, .L{symbol}_table"),
    bundle("ld64 $a4:5, $m6, $mzero, 0"),
    bundle("ld64 $a2:3, $m6, $mzero, 0"),
    *POINTERS,
    bundle(from_frame("$m11", NEXT)),
    bundle("setzi $m10, 0"),
]
"""To the first row."""
_TO_FIRST = bundle("add $m7, $m7, $m5", "f16v4max $a4:5, $a4:5, $a2:3")
_LARGEST = "f16v4maxc $a4, $a4:5"
_SUM = "f32add $a6, $a0, $a1"
_STORE_SUM = "st32step $a6, $mzero, $m2+=, 11"
_SECOND = [
    bundle(f"ld64 $a2:3, $m6, $mzero, {ZERO_WORDS}", "f16tof32 $a5, $a4"),
    bundle("st32step $a5, $mzero, $m2+=, 1", "f16v2sub $a4, $azero, $a4"),
]
_AFTER = [
    bundle("st64step $a2:3, $mzero, $m8+=, $m9", "f16v8acc $a0:3"),
    bundle("add $m7, $m7, $m11", "f32v2gina $a0:1, $azeros, 0"),
    bundle("add $m8, $m8, $m11", "f32v2gina $a2:3, $azeros, 0"),
    bundle("ld64 $a4:5, $m6, $mzero, 0", "f32v4acc $a0:3"),
    bundle("setzi $m10, 0", "f32v2gina $a0:1, $azeros, 0"),
    bundle("ld64 $a2:3, $m6, $mzero, 0", "f32v2gina $a6:7, $azeros, 0"),
    bundle("brnzdec $m3, .L{symbol}_full_row", "f32v2add $a0:1, $a0:1, $a6:7"),
]
FULL_ROW = 3 + len(_SECOND) + 1 + len(_AFTER)
"""Slots of a row beside its panels'."""
FULL_END = [bundle("nop", _SUM), bundle(_STORE_SUM)]


def full(symbol: str, first_panel: Sequence[str], second_panel: Sequence[str]) -> list[str]:
    """The worker, on the exit and the table of a kernel, from both passes' code for a panel."""
    first = f"rpt $m4, {len(first_panel) - 1}"
    lines = [
        *FULL_START,
        bundle(first),
        *first_panel,
        _TO_FIRST,
        bundle("bri .L{symbol}_full_second", _LARGEST),
        ".L{symbol}_full_row:",
        bundle(first, _SUM),
        *first_panel,
        _TO_FIRST,
        bundle(_STORE_SUM, _LARGEST),
        ".L{symbol}_full_second:",
        *_SECOND,
        bundle(f"rpt $m4, {len(second_panel) - 1}", "or64 $a0:1, $azeros, $azeros"),
        *second_panel,
        *_AFTER,
        *FULL_END,
        "exitz $m15",
    ]
    return [line.replace("{symbol}", symbol) for line in lines]
