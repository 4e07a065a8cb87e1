"""Workers of `normalise_f16` for fixed numbers of rows and parts and at most one half row each.

They are written in order and packed into bundles. A piece of one panel and few rows is such. No loop adds
the parts, whose places are known; a worker without a half row adds those of the first row and leaves then.
Frames are those of `normalise`, and so is what is computed. Linked only if a program asks for it.

Worker registers:
    $m1 scratch in memory    $m2 row's sums    $m6 gamma and beta    $m7, $m8 x and result
    $a0:1 a part's sums, $a2:3 those of all; then minus the mean    $a6:7 1 / sqrt
    $a0:1, $a2:3 the two words, $a4:7 gamma and beta
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
    lines = [from_frame("$m2", SUMS), "ld64 $a2:3, $m2, $mzero, 0"]
    for part in range(1, parts):
        lines += [f"ld64 $a0:1, $m2, $mzero, {part * rows}", "f32v2add $a2:3, $a2:3, $a0:1"]
    return [
        *lines,
        LOAD_INVERSE,
        "f32v2mul $a2:3, $a4:5, $a2:3",  # minus the mean, minus the mean square
        from_frame("$m8", OUT),
        f"brneg $m8, .L{SYMBOL}_exit",
        "add $m1, $mworker_base, -8",
        "st32 $a2, $m1, $mzero, 0",
        "f32mul $a4, $a2, $a2",
        "f32add $a4, $a4, $a3",  # minus the variance
        "ld32 $a3, $m1, $mzero, 0",  # minus the mean a second time
        from_frame("$a5", EPSILON),
        "f32absadd $a4, $a4, $a5",
        "f32oorx $a4, $a4",
        "f32tof16 $a4, $a4",
        "uput $TAS, $a4",
        "f16v2tof32 $a6:7, $a4",
        from_frame("$m7", X),
        "ld64 $a0:1, $m7, $mzero, 0",
        "f16v4mix $azeros, $a0:1, $azeros",
        "f32v2aop $a2:3, $a6:7, 0",
        "ld64 $a4:5, $m7, $mzero, 1",
        "f16v4mix $a0:1, $a4:5, $azeros",
        "f32v2aop $a2:3, $a6:7, 0",
        "f16v4mix $a2:3, $azeros, $azeros",
        from_frame("$m6", AFFINE),
        "ld64 $a4:5, $m6, $mzero, 0",
        "f16v4mul $a0:1, $a0:1, $a4:5",
        "ld64 $a6:7, $m6, $mzero, 4",
        "f16v4add $a0:1, $a0:1, $a6:7",
        "ld64 $a4:5, $m6, $mzero, 1",
        "f16v4mul $a2:3, $a2:3, $a4:5",
        "ld64 $a6:7, $m6, $mzero, 5",
        "f16v4add $a2:3, $a2:3, $a6:7",
        "st64 $a0:1, $m8, $mzero, 0",
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
