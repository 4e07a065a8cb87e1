"""Assembly of the float32 matrix kernels: what the supervisor does otherwise than for float16, and tables."""

from __future__ import annotations

from ..machine.workers import ACCUMULATORS_SURVIVE_EXIT
from . import gemm_f32_few as few
from . import gemm_f32_stream as stream
from .gemm_f32_few import FewPanel, few_lines, few_start_lines
from .gemm_f32_rounds import ROW_BYTES
from .gemm_f32_short import short_routines, short_tables
from .gemm_f32_stream import StreamPanel, panel_lines, start_lines
from .gemm_few import FINAL, FIRST, LAST, MIDDLE
from .gemm_frame import (
    ADD,
    CHUNK_ROWS,
    FEW_ROWS,
    LARGER,
    LIMIT,
    MORE_BYTES,
    Q_BYTES,
    ROW,
    SMALLER,
    ZERO,
)
from .gemm_source import Family, family_source, stream_frame
from .gemm_tables import TABLE_BYTES
from .supervisor import to_frame
from .text import worker

SYMBOLS = {ZERO: "gemm_f32", ROW: "gemm_row_f32", ADD: "gemm_add_f32"}
STREAM_CHUNK_ROWS = 384
"""Most rows at a time of the stream: the way back over a worker's 64 rows of C, in words, fits a field."""


_SHARES = (
    "shl %fewer, %q, 5",
    to_frame("%fewer", Q_BYTES),
    "mul %six, %fewer, 6",
    "sub %more, %rows, %six",
    to_frame("%more", MORE_BYTES),
)


def _stream_frame() -> list[str]:
    """What the workers of the stream need; the first table is theirs."""
    return [
        *_SHARES,
        "shl %wide, %q, 6",
        f"sub %step, {ROW_BYTES}, %wide",  # from behind the last row of an even K group to the first of odd
        to_frame("%step", SMALLER + stream.STEP),
        f"add %step_too, %step, -{ROW_BYTES}",
        to_frame("%step_too", LARGER + stream.STEP),
        "add %repeats, %q, -2",
        to_frame("%repeats", LARGER + stream.REPEATS),
        "add %repeats_too, %q, -3",
        "max %repeats_too, %repeats_too, $mzero",
        to_frame("%repeats_too", SMALLER + stream.REPEATS),
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
    ]


def _few_frame() -> list[str]:
    """The same for few rows; the second table is theirs."""
    return [
        *_SHARES,
        "cmpult %none, %q, 1",
        "shl %below, %none, 5",
        "sub %limit, %more, %below",
        to_frame("%limit", LIMIT),
        "shr %words, %all, 3",
        to_frame("%words", SMALLER + few.ALL),
        to_frame("%words", LARGER + few.ALL),
        to_frame("%q", SMALLER + few.ROWS),
        "add %q_more, %q, 1",
        to_frame("%q_more", LARGER + few.ROWS),
        "shl %eightfold, %q_more, 3",
        to_frame("%eightfold", LARGER + few.EIGHTFOLD),
        "add %done, %q, %none",
        "shl %done, %done, 3",
        to_frame("%done", SMALLER + few.EIGHTFOLD),
        f"add $m0, $m0, {TABLE_BYTES}",
    ]


def _opening(mode: str) -> StreamPanel:
    return StreamPanel(mode, first=True, opening=mode == ZERO)


def _tables(mode: str) -> list[str]:
    def pair(first: str, second: str) -> str:
        return FewPanel(mode, first, second).label

    first, last = StreamPanel(mode, first=True), StreamPanel(mode, last=True)
    final, few_final = StreamPanel(last=True, final=True), FewPanel(ZERO, MIDDLE, FINAL)
    panels = [first.label, StreamPanel().label, last.label, final.label]
    few_panels = [pair(FIRST, MIDDLE), FewPanel().label, pair(MIDDLE, LAST), few_final.label]
    return [
        str(ROW_BYTES * STREAM_CHUNK_ROWS if mode == ADD else 0),
        *(f".Lgemm_f32_start_{mode}", "0", *panels),
        *(f".Lgemm_f32_few_start_{mode}", "0", *few_panels),
    ]


def _routine(lines: list[str]) -> list[str]:
    return worker(lines[0].removesuffix(":"), lines[1:])


def _routines(mode: str) -> list[str]:
    """All worker routines that only this start mode uses."""
    opening, first = _opening(mode), StreamPanel(mode, first=True)
    return [
        *worker(f".Lgemm_f32_start_{mode}", [*start_lines(mode), *panel_lines(opening)]),
        *(_routine(panel_lines(first)) if first != opening else []),
        *_routine(panel_lines(StreamPanel(mode, last=True))),
        *worker(f".Lgemm_f32_few_start_{mode}", few_start_lines(mode)),
        *_routine(few_lines(FewPanel(mode, FIRST))),
        *_routine(few_lines(FewPanel(mode, MIDDLE, LAST))),
    ]


def _shared() -> list[str]:
    """The worker routines that do not see where sums start."""
    return [
        *_routine(panel_lines(StreamPanel())),
        *_routine(panel_lines(StreamPanel(last=True, final=True))),
        *_routine(few_lines(FewPanel())),
        *_routine(few_lines(FewPanel(ZERO, MIDDLE, FINAL))),
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
            FEW_ROWS,
            _tables,
            _routines,
            _stream_frame(),
            _few_frame(),
            _shared(),
        )
    else:
        family = Family(
            "gemm_f32",
            SYMBOLS,
            ROW_BYTES,
            CHUNK_ROWS,
            0,
            short_tables,
            short_routines,
            stream_frame(signed_repeats=True),
            (),
        )
    return family_source(family)
