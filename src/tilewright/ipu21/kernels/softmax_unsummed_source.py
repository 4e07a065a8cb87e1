"""Worker code of `softmax_unsummed_f16` for several panels all of whose columns count: no sums.

Vector units work in nearly every slot. A word's exponentials are taken while the next one is loaded, so the
last panel stands apart: there is nothing to load behind it, and its pointers go on to the worker's next row.

Worker registers:
    $m0 panels but one    $m1 words from a row's last to the first of the worker's next row
    $m2 row's state    $m3 further rows    $m4 panels    $m5 bytes from behind a row's last panel to its first
    $m6 table          $m7, $m8 word of the scores and of p    $m9 words from a panel's last to the next one's
    first              $m10 step of the late store
    $a4 minus the largest score, $a5 the largest score in float32, $a0:3 and $a6:7 words
"""

from __future__ import annotations

from collections.abc import Sequence

from .softmax_full_source import NEXT, POINTERS
from .softmax_words import ROWS
from .text import bundle, from_frame

UNSUMMED_START = [
    bundle(from_frame("$m3", ROWS)),
    bundle("brneg $m3, .L{symbol}_exit"),
    bundle("setzi $m6, .L{symbol}_table"),
    bundle("ld64 $a4:5, $m6, $mzero, 0"),
    *POINTERS,
    bundle(from_frame("$m1", NEXT)),
    bundle("shrs $m1, $m1, 3"),
    bundle("add $m1, $m1, $m9"),
    bundle("add $m0, $m4, -1"),
    bundle("setzi $m10, 0"),
]
"""To the first row."""


def _load(pair: str, step: str) -> str:
    return f"ld64step {pair}, $mzero, $m7+=, {step}"


def _store(pair: str, step: str) -> str:
    return f"st64step {pair}, $mzero, $m8+=, {step}"


def _half_row(late: str, step: str, between: str, behind: str, end: str) -> list[str]:
    """Eight columns, the first word of which is there.

    Args:
        late: step of the store of the word before; `step` from the second word on.
        between, behind, end: what else is done meanwhile.
    """
    return [
        bundle(_load("$a6:7", step), "f16v4add $a0:1, $a4:BL, $a0:1"),
        bundle(_store("$a2:3", late), "f16v2exp $a0, $a0"),
        bundle(between, "f16v2exp $a1, $a1"),
        bundle(_store("$a0:1", "1"), "f16v4add $a2:3, $a4:BL, $a6:7"),
        bundle(behind, "f16v2exp $a2, $a2"),
        bundle(end, "f16v2exp $a3, $a3"),
    ]


_FOLLOWING = _load("$a0:1", "1")
UNSUMMED_PANEL = [
    *_half_row("$m10", "1", "mov $m10, $m9", _FOLLOWING, "nop"),
    *_half_row("1", "$m9", "nop", _FOLLOWING, "nop"),
]
LAST_PANEL = [
    *_half_row("$m10", "1", "nop", _FOLLOWING, "st32step $a5, $mzero, $m2+=, 12"),
    *_half_row("1", "$m1", "setzi $m10, 0", "ld64 $a4:5, $m6, $mzero, 0", "nop"),
]
"""The last panel of a row, its state, and what the next row begins with."""
_BETWEEN = [
    bundle("add $m7, $m7, $m5", "f16v4max $a4:5, $a4:5, $a2:3"),
    bundle(_FOLLOWING, "f16v4maxc $a4, $a4:5"),
    bundle("nop", "f16tof32 $a5, $a4"),
    bundle(f"rpt $m0, {len(UNSUMMED_PANEL) - 1}", "f16v2sub $a4, $azero, $a4"),
]
_END = [
    bundle(_store("$a2:3", "$m1")),
    bundle("brnzdec $m3, .L{symbol}_full_row"),
]
UNSUMMED_ROW = 1 + len(_BETWEEN) + len(_END)
"""Slots of a row beside its panels'."""


def unsummed(symbol: str, first_panel: Sequence[str]) -> list[str]:
    """The worker, on the exit and the table of a kernel, from the first pass's code for a panel."""
    lines = [
        *UNSUMMED_START,
        ".L{symbol}_full_row:",
        bundle(f"rpt $m4, {len(first_panel) - 1}", "or64 $a2:3, $a4:5, $a4:5"),
        *first_panel,
        *_BETWEEN,
        *UNSUMMED_PANEL,
        *LAST_PANEL,
        *_END,
        "exitz $m15",
    ]
    return [line.replace("{symbol}", symbol) for line in lines]
