"""Worker code of `softmax_f16` for one panel all of whose columns count.

Nothing branches within a row, so the rows are the body of one `rpt`: second pass of a row, then its sum and
the first pass of the next one, whose loads need no slots of their own. The vector units work in every slot.
Sums are two lanes of sums of pairs, products with ones.

Worker registers:
    $m0, $m1 words of the scores and of p    $m2 row's state    $m3 further rows    $m11 the kernel's table
    $a6 minus the largest score, $a5 the largest score in float32, then $a4:5 ones, others words
"""

from __future__ import annotations

from .softmax_words import LOWEST, ONE_WORDS, PROBABILITIES, ROWS, SCORES, STATE
from .text import CLEAR_ACCUMULATORS, bundle, from_frame

_NEXT_ROW = 21
"""Words from a row's last to the worker's next row, six rows below."""


def _load(pair: str, step: int = 1) -> str:
    return f"ld64step {pair}, $mzero, $m0+=, {step}"


def _store(pair: str, step: int = 1) -> str:
    return f"st64step {pair}, $mzero, $m1+=, {step}"


def _difference(pair: str) -> str:
    return f"f16v4add {pair}, $a6:BL, {pair}"


def _add(pair: str) -> str:
    return f"f16v4cmac $a4:5, {pair}"


def _larger(pair: str) -> str:
    return f"f16v4max $a4:5, $a4:5, {pair}"


START = [
    bundle(from_frame("$m0", SCORES), CLEAR_ACCUMULATORS[0]),
    bundle(_load("$a4:5"), CLEAR_ACCUMULATORS[1]),
    bundle(_load("$a6:7"), f"setzi $a1, {LOWEST:#x}"),
    bundle(_load("$a2:3"), _larger("$a6:7")),
    bundle(_load("$a6:7", -3), _larger("$a2:3")),
    bundle(from_frame("$m3", ROWS), _larger("$a6:7")),
    bundle(from_frame("$m2", STATE), "f16v4maxc $a6, $a4:5"),
    bundle(_load("$a2:3"), "f16v2max $a6, $a6, $a1"),
    bundle("brneg $m3, .L{symbol}_exit", "f16tof32 $a5, $a6"),
    bundle(from_frame("$m1", PROBABILITIES), "f16v2sub $a6, $azero, $a6"),
]
"""First pass of the first row; up to the branch nothing is stored."""
IDLE = 1 + next(index for index, line in enumerate(START) if "brneg" in line)
"""Slots of a worker without rows, beside its exit."""

SECOND = [
    bundle("st32step $a5, $mzero, $m2+=, 1", "f16v2exp $a2, $a2"),
    bundle(_load("$a0:1"), "f16v2exp $a3, $a3"),
    bundle(_store("$a2:3"), _difference("$a0:1")),
    bundle("setzi $m11, .L{symbol}_table", "f16v2exp $a0, $a0"),
    bundle(f"ld64 $a4:5, $m11, $mzero, {ONE_WORDS}", "f16v2exp $a1, $a1"),
    bundle(_load("$a2:3"), _add("$a2:3")),
    bundle(_store("$a0:1"), _add("$a0:1")),
    bundle("nop", _difference("$a2:3")),
    bundle(_load("$a0:1", _NEXT_ROW), "f16v2exp $a2, $a2"),
    bundle("nop", "f16v2exp $a3, $a3"),
    bundle(_store("$a2:3"), _add("$a2:3")),
    bundle("nop", _difference("$a0:1")),
    bundle("nop", "f16v2exp $a0, $a0"),
    bundle("nop", "f16v2exp $a1, $a1"),
    bundle(_store("$a0:1", _NEXT_ROW), _add("$a0:1")),
]
"""Second pass, from the first word's differences on."""

_SUM = ("f32v2gina $a0:1, $azeros, 0", "f32add $a0, $a0, $a1")
_STORE_SUM = "st32step $a0, $mzero, $m2+=, 11"

BETWEEN = [
    bundle(_load("$a4:5"), _SUM[0]),
    bundle(_load("$a6:7"), _SUM[1]),
    bundle(_load("$a2:3"), _larger("$a6:7")),
    bundle(_load("$a6:7", -3), _larger("$a2:3")),
    bundle(_STORE_SUM, _larger("$a6:7")),
    bundle("ld32 $a7, $m11, $mzero, 0", "f16v4maxc $a6, $a4:5"),
    bundle(_load("$a2:3"), "f16v2max $a6, $a6, $a7"),
    bundle("nop", "f16tof32 $a5, $a6"),
    bundle("nop", "f16v2sub $a6, $azero, $a6"),
    bundle("nop", _difference("$a2:3")),
]
"""A row's sum and the next one's first pass."""

ROW = [*SECOND, *BETWEEN]
BEFORE = bundle(f"rpt $m3, {len(ROW) - 1}", _difference("$a2:3"))
END = [*(bundle("nop", step) for step in _SUM), bundle(_STORE_SUM)]


def narrow(symbol: str) -> list[str]:
    """The worker, on the exit and the table of a kernel; the table begins with -65504."""
    lines = [*START, BEFORE, *ROW, *SECOND, *END]
    return [*(line.replace("{symbol}", symbol) for line in lines), "exitz $m15"]
