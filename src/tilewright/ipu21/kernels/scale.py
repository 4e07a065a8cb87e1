"""`scale_f16`: all elements times one factor; `scale_rows_f16`: each row divided by the sum in its state.

Both use `f16v4mix` with x twice and the factor as a sum of two halves, f = high + low: the products and their
sum are rounded once, from float32. The factor keeps 22 bits while |f| >= 2^-3, and has an absolute error of
2^-25 below. `f16v4mix` delivers one step late.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import MULTI_SLOT, WORKER_SLOTS
from .grid import PANELS, ROWS
from .halves import Halves, to_halves, to_singles
from .kernel import Contract, Kernel, Operand, Scalar
from .launch import WORDS, words_cycles, words_kernel
from .supervisor import call_cycles, launch, schedule, to_frame
from .text import bundle, from_frame, section, worker

SYMBOL, ROWS_SYMBOL = "scale_f16", "scale_rows_f16"

SPLIT = [
    "f32tof16 $a1, $a0",
    "f16tof32 $a2, $a1",
    "f32sub $a0, $a0, $a2",
    "f32tof16 $a0, $a0",
    "sort4x16lo $a0, $a1, $a0",
    "uput $TAS, $a0",
]
"""From a factor in $a0 to its two halves in $TAS; uses $a0..$a2."""
_MIX = "f16v4mix $a2:3, $a0:1, $a0:1"
FIRST = "f16v4mix $azeros, $a0:1, $a0:1"
_LAST = "f16v4mix $a2:3, $azeros, $azeros"


def load(step: str) -> str:
    """Loads the next word of x."""
    return f"ld64step $a0:1, $mzero, $m7+=, {step}"


def _store(step: str) -> str:
    return f"st64step $a2:3, $mzero, $m8+=, {step}"


_WORDS_BEGIN = [
    "ld32 $a0, $mvertex_base, $mzero, 4",
    bundle("ld32 $m8, $mvertex_base, $mzero, 2", SPLIT[0]),
    bundle("ld32 $m7, $mvertex_base, $mzero, 3", SPLIT[1]),
    bundle("add $m8, $m8, $m0", SPLIT[2]),
    bundle("add $m7, $m7, $m0", SPLIT[3]),
    bundle("add $m1, $m1, -1", SPLIT[4]),
    bundle("nop", SPLIT[5]),
    bundle(load("1")),
    bundle(f"brz $m1, .L{SYMBOL}_last", FIRST),
    bundle(load("1")),
    bundle("add $m1, $m1, -1"),
    bundle("rpt $m1, 1"),
]
_WORD = [bundle(load("1"), _MIX), bundle(_store("1"))]
_WORDS_END = [bundle("nop", _MIX), bundle(_store("1"))]
_LAST_WORD = [bundle("nop", _LAST), bundle(_store("1"))]


def _source() -> str:
    lines = [*_WORDS_BEGIN, *_WORD, *_WORDS_END, f".L{SYMBOL}_last:", *_LAST_WORD]
    return words_kernel(SYMBOL, ["$m2", "$m3", "$m5"], "$m4", lines)


def cycles(words: Any, factor: Any = 0) -> Any:
    """Cycles of a call of `scale_f16` (exact on the simulator), whatever the factor; integers or arrays."""
    share = ceil_div(np.asarray(words), WORKER_SLOTS)
    single = words_cycles(words, once=len(_WORDS_BEGIN) - 3 + len(_LAST_WORD) + 1, each=0)
    once = len([*_WORDS_BEGIN, *_WORDS_END, *_LAST_WORD]) + 1 - len(_WORD)
    return np.where(share > 1, words_cycles(words, once, len(_WORD)), single)


def factors(factor: Any) -> tuple[Halves, Halves]:
    """The two halves of float32 factors."""
    factor = np.asarray(factor, np.float32)
    high = to_halves(factor)
    return high, to_halves(factor - high.astype(np.float32))


def scaled(x: Halves, factor: Any) -> Halves:
    """x times float32 factors as the kernels do it."""
    high, low = (part.astype(np.float64) for part in factors(factor))
    wide = x.astype(np.float64)
    return to_halves(to_singles(high * wide + low * wide))


def reference(x: Halves, factor: int) -> Halves:
    """x times the float32 with the bits `factor`."""
    return scaled(x, np.array(factor, np.uint32).view(np.float32))


_OUT, _IN, _STATE, _ROW_COUNT, _PANELS, _JUMP = range(6)
_FRAME_BYTES = 24


_ROWS_BEGIN = [
    "get $m0, $WSR",
    "and $m0, $m0, 7",
    from_frame("$m3", _ROW_COUNT),
    "sub $m3, $m3, $m0",
    "add $m3, $m3, -1",
    "brneg $m3, .Lscale_rows_exit",
    from_frame("$m4", _PANELS),
    "brneg $m4, .Lscale_rows_exit",
    from_frame("$m2", _STATE),
    "shl $m1, $m0, 3",
    "add $m2, $m2, $m1",
    "shl $m1, $m0, 5",
    from_frame("$m0", _IN),
    "add $m0, $m0, $m1",
    from_frame("$m5", _OUT),
    "add $m1, $m1, $m5",
    from_frame("$m9", _JUMP),
]
_ROW_BEGIN = [
    bundle("ld32 $a0, $m2, $mzero, 1", "or $a1, $azero, 0x0d800000"),  # 2^-100, against a zero sum
    bundle("mov $m7, $m0", "f32max $a1, $a1, $a0"),
    bundle("mov $m8, $m1", "f32oox $a1, $a1"),
    bundle("add $m0, $m0, 192", "f32cmpgt $a0, $a0, $azero"),
    bundle("add $m1, $m1, 192", "and $a0, $a0, $a1"),
    bundle("add $m2, $m2, 48", SPLIT[0]),
    bundle("add $m3, $m3, -6", SPLIT[1]),
    *(bundle("nop", step) for step in SPLIT[2:]),
    bundle(load("1")),
    bundle(load("1"), FIRST),
    bundle("rpt $m4, 7"),
]
PANEL = [
    bundle(load("1"), _MIX),
    bundle(_store("1")),
    bundle(load("$m9"), _MIX),
    bundle(_store("1")),
    bundle(load("1"), _MIX),
    bundle(_store("1")),
    bundle(load("1"), _MIX),
    bundle(_store("$m9")),
]
LAST_PANEL = [
    bundle(load("1"), _MIX),
    bundle(_store("1")),
    bundle(load("1"), _MIX),
    bundle(_store("1")),
    bundle("nop", _MIX),
    bundle(_store("1")),
    bundle("nop", _LAST),
    bundle(_store("1")),
]
_ROW_END = [*LAST_PANEL, bundle("brpos $m3, .Lscale_rows_row")]


@cache
def _rows_supervisor() -> tuple[str, ...]:
    lines = [
        f"add $m11, $m11, -{_FRAME_BYTES}",
        to_frame("$m2", _OUT),
        to_frame("$m3", _IN),
        to_frame("$m4", _STATE),
        "shl %rows, $m5, 16",
        "shr %jump, %rows, 14",
        "shr %rows, %rows, 16",
        "add %jump, %jump, -3",
        "shr %panels, $m5, 16",
        "add %panels, %panels, -1",
        to_frame("%rows", _ROW_COUNT),
        to_frame("%jump", _JUMP),
        to_frame("%panels", _PANELS),
        "setzi $m9, .Lscale_rows",
    ]
    return (
        *schedule(lines, ["$m0", "$m1", "$m6"]),
        *launch(_FRAME_BYTES),
    )


def _rows_source() -> str:
    row = [".Lscale_rows_row:", *_ROW_BEGIN, *PANEL, *_ROW_END]
    lines = [*_ROWS_BEGIN, *row, ".Lscale_rows_exit:", "exitz $m15"]
    return section(ROWS_SYMBOL, [*_rows_supervisor(), *worker(".Lscale_rows", lines)])


def rows_cycles(rows: Any, panels: Any) -> Any:
    """Cycles of a call of `scale_rows_f16` (exact on the simulator); integers or arrays."""
    rows, panels = np.asarray(rows, dtype=np.int64), np.asarray(panels, dtype=np.int64)
    row = len([*_ROW_BEGIN, *_ROW_END]) + MULTI_SLOT["f32oox"] - 1 + len(PANEL) * (panels - 1)
    slots = len(_ROWS_BEGIN) + 1 + ceil_div(rows, WORKER_SLOTS) * row
    idle = np.where(rows > 0, 9, 7)
    return call_cycles(_rows_supervisor()) + WORKER_SLOTS * np.where((rows > 0) & (panels > 0), slots, idle)


def rows_reference(x: Halves, state: NDArray[np.float32]) -> Halves:
    """x [panels, rows, 16] divided by state[:, 1]; 0 where that is 0."""
    sums = state[:, 1]
    inverse = (1 / np.maximum(sums, np.float32(2.0**-100)).astype(np.float64)).astype(np.float32)
    return scaled(x, np.where(sums > 0, inverse, np.float32(0))[None, :, None])


KERNELS = (
    Kernel(
        SYMBOL,
        _source,
        Contract(
            operands=(Operand("out", "words", "out"), Operand("x", "words", "in")),
            scalars=(WORDS, Scalar("factor", "bits of a float32, -65504..65504", 0, (1 << 32) - 1)),
            may_alias=(("out", "x"),),
            notes="$TAS is clobbered.",
        ),
        cycles,
        reference,
    ),
    Kernel(
        ROWS_SYMBOL,
        _rows_source,
        Contract(
            operands=(
                Operand("out", "a16", "out"),
                Operand("x", "a16", "in"),
                Operand("state", "words", "in"),
            ),
            scalars=(ROWS, PANELS),
            packed=(("rows", "panels", 16),),
            may_alias=(("out", "x"),),
            notes="state: float32 [rows][2], of which the second counts. $TAS is clobbered.",
        ),
        rows_cycles,
        rows_reference,
    ),
)
