"""Assembly of the float32 matrix kernels: what the supervisor does otherwise than for float16, and tables."""

from __future__ import annotations

from ..machine.workers import ACCUMULATORS_SURVIVE_EXIT
from . import gemm_f32_few as few
from . import gemm_f32_stream as stream
from .gemm_f32_few import FewPanel, few_lines, opening_label, opening_lines
from .gemm_f32_rounds import ROW_BYTES
from .gemm_f32_short import short_routines, short_tables
from .gemm_f32_stream import StreamPanel, panel_lines
from .gemm_few import FINAL, FIRST, LAST, MIDDLE
from .gemm_frame import ADD, CHUNK_ROWS, FEW_ROWS, LARGER, ROW, SMALLER, ZERO
from .gemm_prologue import INNER_MASK, both, falling, few_code, repeats, stream_frame
from .gemm_source import Family, family_source
from .gemm_tables import TABLE_BYTES
from .supervisor import to_frame
from .text import routine

SYMBOLS = {ZERO: "gemm_f32", ROW: "gemm_row_f32", ADD: "gemm_add_f32"}
STREAM_CHUNK_ROWS = 384
"""Most rows at a time of the stream: the way back over a worker's 64 rows of C, in words, fits a field."""


def _stream_frame() -> list[str]:
    """What the workers of the stream need; the first table is theirs."""
    return [
        "shl %wide, %q, 6",
        f"sub %step, {ROW_BYTES}, %wide",  # from behind the last row of an even K group to the first of odd
        *falling("%step", stream.STEP, ROW_BYTES),
        "add %column, $m1, $m1",
        *both("%column", stream.COLUMN),
        # Twice the step, and 64(R - 1).
        f"add %column, %column, -{ROW_BYTES}",
        "add %both, %step, %step",
        "add %both, %both, %column",
        *falling("%both", stream.BOTH_STEPS, 2 * ROW_BYTES),
        *repeats(stream.REPEATS),
        "shl %words, %q, 3",
        f"sub %low, {1025 + (5 << 10)}, %words",  # f1 = 1 - 8n, f2 = 5
        "or %usual, %low, 0x100000",  # f3 = 1
        "add %usual_too, %usual, -8",
        to_frame("%usual_too", LARGER + stream.STRIDES),
        "or %away, %low, 0x3f900000",  # f3 = -7
        "add %away_too, %away, -8",
        to_frame("%away_too", LARGER + stream.AWAY),
        "cmpeq %twice, %q, 2",
        "shl %eight, %twice, 23",  # f3 = -7
        "sub %usual, %usual, %eight",
        to_frame("%usual", SMALLER + stream.STRIDES),
        "shl %turn, %twice, 20",
        "shl %less, %twice, 13",
        "sub %turn, %turn, %less",  # f2 = -3, without a borrow
        "add %away, %away, %turn",
        to_frame("%away", SMALLER + stream.AWAY),
        # From word 10 to word 19, or 11 if the second row is done twice, of the next column.
        f"add %next, %column, {ROW_BYTES + 72}",
        to_frame("%next", LARGER + stream.NEXT_START),
        "shl %row, %twice, 6",
        "sub %next, %next, %row",
        to_frame("%next", SMALLER + stream.NEXT_START),
    ]


def _few_frame() -> list[str]:
    """The same for few rows; the second table is theirs, and the third where workers are without rows."""
    lines = [
        f"and %all, %shape, {INNER_MASK:#x}",
        "mul %all, %all, $m1",
        "shr %all, %all, 3",
        "shr %column, $m1, 2",
        "add %column, %column, 1",
        "cmpult %none, %q, 1",
        "add %q_more, %q, 1",
        to_frame("%q", SMALLER + few.ROWS),
        to_frame("%q_more", LARGER + few.ROWS),
        "max %done, %q, 1",  # a worker without rows does one, and stores nothing
    ]
    for place, rows in ((LARGER, "%q_more"), (SMALLER, "%done")):
        lines += [
            f"shl %eight{place}, {rows}, 3",  # the words of C a worker does
            f"sub %next{place}, 9, %eight{place}",
            f"sub %column{place}, %column, %eight{place}",
            to_frame(f"%column{place}", place + few.COLUMN),
            f"sub %first{place}, %column{place}, %all",
            to_frame(f"%first{place}", place + few.FIRST_GROUP),
            f"add %result{place}, %eight{place}, -15",
            to_frame(f"%result{place}", place + few.RESULT_STEP),
            f"add %between{place}, %eight{place}, -11",
            f"add %both{place}, %next{place}, %column{place}",
        ]
        if place == SMALLER:
            # Without rows, it stays where it is.
            lines += [
                "add %still, $mzero, -3",
                f"movnz %next{place}, %none, %still",
                "add %still, %still, %still",
                f"movnz %both{place}, %none, %still",
            ]
        lines += [
            to_frame(f"%between{place}", place + few.BETWEEN_ROWS),
            to_frame(f"%next{place}", place + few.NEXT_GROUP),
            to_frame(f"%both{place}", place + few.BOTH_STEPS),
        ]
    return [
        *lines,
        f"mul %table, %none, {TABLE_BYTES}",
        f"add %table, %table, {TABLE_BYTES}",
        "add $m0, $m0, %table",
    ]


def _openings(mode: str) -> list[StreamPanel]:
    """A call's first panel if there are several column groups, and if there is one."""
    return [StreamPanel(mode, first=True, opening=True, lone=lone) for lone in (False, True)]


def _tables(mode: str) -> list[str]:
    first, last = StreamPanel(mode, first=True), StreamPanel(mode, last=True)
    panels = [*_openings(mode), first, StreamPanel(), last, StreamPanel(last=True, final=True)]
    words = [str(ROW_BYTES * STREAM_CHUNK_ROWS if mode == ADD else 0), *(panel.label for panel in panels)]
    for stores in ("_all", ""):
        words += [opening_label(mode, lone) + stores for lone in (False, True)]
        words += [FewPanel(mode, FIRST, MIDDLE).label + stores, FewPanel().label]
        words += [FewPanel(mode, MIDDLE, LAST).label + stores, FewPanel(ZERO, MIDDLE, FINAL).label + stores]
    return words


def _routines(mode: str) -> list[str]:
    """All worker routines that only this start mode uses."""
    panels = [*_openings(mode), StreamPanel(mode, first=True), StreamPanel(mode, last=True)]
    return [
        *(line for panel in panels for line in routine(panel_lines(panel))),
        *(line for lone in (False, True) for line in routine(opening_lines(mode, lone))),
        *routine(few_lines(FewPanel(mode, FIRST))),
        *routine(few_lines(FewPanel(mode, MIDDLE, LAST))),
    ]


def _shared() -> list[str]:
    """The worker routines that do not see where sums start."""
    return [
        *routine(panel_lines(StreamPanel())),
        *routine(panel_lines(StreamPanel(last=True, final=True))),
        *routine(few_lines(FewPanel())),
        *routine(few_lines(FewPanel(ZERO, MIDDLE, FINAL))),
    ]


def source(survive: bool = ACCUMULATORS_SURVIVE_EXIT) -> str:
    """The float32 family.

    Args:
        survive: the form for accumulators that keep their values from one launch of the workers to the next.
    """
    if survive:
        family = Family(
            "gemm_f32",
            SYMBOLS,
            ROW_BYTES,
            STREAM_CHUNK_ROWS,
            STREAM_CHUNK_ROWS,
            FEW_ROWS,
            _tables,
            _routines,
            _stream_frame(),
            few_code(_few_frame()),
            _shared(),
        )
    else:
        family = Family(
            "gemm_f32",
            SYMBOLS,
            ROW_BYTES,
            CHUNK_ROWS,
            CHUNK_ROWS,
            0,
            short_tables,
            short_routines,
            stream_frame(signed_repeats=True),
            (),
        )
    return family_source(family)
