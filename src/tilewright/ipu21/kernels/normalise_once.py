"""Workers of `normalise_f16` for fixed numbers of rows and parts and at most one half row each.

They are written in order and packed into bundles. A piece of one panel and few rows is such. No loop adds
the parts, whose places are known; a worker without a half row adds those of the first row and leaves then.
Frames are those of `normalise`, and so is what is computed. Linked only if a program asks for it.

Worker registers:
    $m2 row's sums    $m6 gamma and beta    $m7, $m8 x and result
    $a0:1 a part's sums, $a2:3 those of all; then statistics in $a0:5, minus the mean as a half in $a1
    $a4:5, $a2:3 the two words    $a6:7 ones    $a0:1, $a6:7 gamma and beta
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from ..machine.timing import MULTI_SLOT
from .normalise_frame import (
    AFFINE,
    EPSILON,
    FEW,
    LOAD_INVERSE,
    MERGED,
    ONES,
    OUT,
    SUMS,
    WORDS,
    X,
)
from .pack import pack
from .supervisor import load_back, to_frame
from .text import count_instructions, from_frame, lines_of, section

SYMBOL = "normalise_f16"
ROWS = range(1, FEW + 1)
PARTS = range(1, 33)
"""Numbers of rows and of parts for which there is code."""


def once_name(rows: int, parts: int) -> str:
    """Symbol of the code for so many rows and parts."""
    return f"{SYMBOL}_of_{parts}_once_{rows}"


def straight_of(rows: int, panels: int, parts: int) -> list[str]:
    """Symbol of the code that a call with such a piece asks for, if there is some."""
    return [once_name(rows, parts)] if rows in ROWS and panels == 1 and parts in PARTS else []


def _lines(rows: int, parts: int) -> list[str]:
    """From the start to a worker's last store."""
    lines = [*ONES, from_frame("$m2", SUMS), "ld64 $a2:3, $m2, $mzero, 0"]
    for part in range(1, parts):
        lines += [f"ld64 $a0:1, $m2, $mzero, {part * rows}", "f32v2add $a2:3, $a2:3, $a0:1"]
    return [
        *lines,
        LOAD_INVERSE,
        "f32v2mul $a2:3, $a4:5, $a2:3",  # minus the mean, mean square
        from_frame("$m8", OUT),
        f"brneg $m8, .L{SYMBOL}_exit",
        "f32tof16 $a1, $a2",  # minus the mean as a half
        "f32mul $a5, $a2, $a2",
        "f16tof32 $a4, $a1",
        "f32v2sub $a4:5, $a2:3, $a4:5",  # the rest of it, variance
        from_frame("$a2", EPSILON),
        "f32absadd $a2, $a5, $a2",
        "f32oorx $a2, $a2",
        "f32mul $a3, $a4, $a2",
        "f32v2tof16 $a2, $a2:3",
        "uput $TAS, $a2",
        from_frame("$m7", X),
        "ld64 $a4:5, $m7, $mzero, 0",
        "f16v4add $a4:5, $a1:BL, $a4:5",
        "f16v4mix $azeros, $a4:5, $a6:7",
        "ld64 $a2:3, $m7, $mzero, 1",
        "f16v4add $a2:3, $a1:BL, $a2:3",
        "f16v4mix $a4:5, $a2:3, $a6:7",
        from_frame("$m6", AFFINE),
        "ld64 $a0:1, $m6, $mzero, 0",
        "f16v4mul $a4:5, $a4:5, $a0:1",
        "ld64 $a6:7, $m6, $mzero, 4",
        "f16v4mix $a2:3, $azeros, $azeros",
        "f16v4add $a4:5, $a4:5, $a6:7",
        "ld64 $a0:1, $m6, $mzero, 1",
        "f16v4mul $a2:3, $a2:3, $a0:1",
        "ld64 $a6:7, $m6, $mzero, 5",
        "f16v4add $a2:3, $a2:3, $a6:7",
        "st64 $a4:5, $m8, $mzero, 0",
        "st64 $a2:3, $m8, $mzero, 1",
    ]


@cache
def _body(rows: int, parts: int) -> tuple[str, ...]:
    return (*lines_of(pack(_lines(rows, parts))), f".L{SYMBOL}_exit:", "exitz $m15")


def _source(rows: int, parts: int) -> str:
    return section(once_name(rows, parts), _body(rows, parts))


def once_sources() -> dict[str, Callable[[], str]]:
    """What makes the assembly of each, by symbol."""
    return {once_name(rows, parts): partial(_source, rows, parts) for rows in ROWS for parts in PARTS}


@cache
def once_slots() -> NDArray[np.int64]:
    """Slots of a worker with a half row, by parts; the first is of none and means nothing."""
    wait = MULTI_SLOT["f32oorx"] - 1
    return np.array([0, *(count_instructions(_body(FEW, parts)) + wait for parts in PARTS)], dtype=np.int64)


def once_lines() -> list[str]:
    """Supervisor: the worker code for the numbers of rows ($m6) and parts ($m7, rows above them) to $m9, if
    it is linked, of one panel ($m0) and few rows ($m1).
    """
    lines = [
        "shl $m2, $m7, 16",
        "shr $m2, $m2, 16",
        f"cmpult $m3, $m2, {PARTS.stop}",
        "cmpeq $m4, $m0, 1",
        "and $m3, $m3, $m4",
        "and $m3, $m3, $m1",
        "add $m4, $m6, -1",
        f"mul $m4, $m4, {len(PARTS)}",
        "add $m4, $m4, $m2",
        "cmpult $m2, $mzero, $m6",
        "and $m3, $m3, $m2",
        "mul $m4, $m4, $m3",
        "shl $m4, $m4, 2",
        f"setzi $m5, .L{SYMBOL}_once",
        "ld32 $m5, $m5, $m4, 0",
        "movnz $m9, $m5, $m5",
        load_back("$m4", SUMS),
    ]
    for frame in range(2 * WORDS, 6 * WORDS, WORDS):
        lines += [
            load_back("$m2", frame + MERGED),
            "cmpeq $m2, $m2, 0",
            load_back("$m3", frame + SUMS),
            "movnz $m3, $m2, $m4",
            to_frame("$m3", frame + SUMS),
            "shl $m2, $m2, 31",
            load_back("$m3", frame + OUT),
            "or $m3, $m3, $m2",
            to_frame("$m3", frame + OUT),
        ]
    return lines


def once_table() -> list[str]:
    """The code for rows and parts, 0 where nobody has asked for it."""
    names = [once_name(rows, parts) for rows in ROWS for parts in PARTS]
    words = [line for name in names for line in (f".weak {name}", f".word {name}")]
    return [".balign 4", f".L{SYMBOL}_once:", ".word 0", *words]
