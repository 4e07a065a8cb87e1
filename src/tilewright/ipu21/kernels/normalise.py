"""`normalise_f16`: (x - mean) / sqrt(variance + epsilon) * gamma + beta for each row, from sums in parts.

Worker w takes the rows w, w + 6, ...: it adds the parts' sums and sums of squares in float32, has mean and
variance in float32, and handles the row in half precision: x minus the mean rounded to a half, times 1 / sqrt
(a half) plus the rest of the mean's share (`f16v4mix`, float32 inside), times gamma, plus beta. So a mean far
from zero costs no accuracy.

The store of a word is one word late; until there is one it writes the first word's place, whose pointer stays
($m10 = 0). `f16v4mix` delivers one word late, so gamma and beta follow one word behind x.

Worker registers:
    $m0, $m1 row of x and of the result    $m2 row's sums    $m3 rows of the tile below this one
    $m4 panels - 1    $m5 32, from gamma to beta    $m6 gamma    $m7, $m8 word of x and of the result
    $m9 words from a panel's last to the next one's first    $m10 step of the late store    $m11 scratch
    $a4 minus the mean    $a6:7 ones    $a0:3 words
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
from .supervisor import call_cycles, schedule
from .text import bundle, section, worker

SYMBOL = "normalise_f16"

OUT, X, SUMS, AFFINE, ROW_COUNT, PANEL_COUNT, PARTS, INVERSE, EPSILON, JUMP, BETWEEN = range(11)
FRAME_BYTES = 48


def argument(word: int, register: str) -> str:
    """Loads a word of the frame."""
    return f"ld32 {register}, $mvertex_base, $mzero, {word}"


def begin(exit_label: str) -> list[str]:
    """A worker's first row: $m0..$m4 and $m9."""
    return [
        "get $m0, $WSR",
        "and $m0, $m0, 7",
        argument(ROW_COUNT, "$m3"),
        "sub $m3, $m3, $m0",
        "add $m3, $m3, -1",
        f"brneg $m3, {exit_label}",
        argument(PANEL_COUNT, "$m4"),
        f"brneg $m4, {exit_label}",
        argument(SUMS, "$m2"),
        "shl $m1, $m0, 3",
        "add $m2, $m2, $m1",
        "shl $m1, $m0, 5",
        argument(X, "$m0"),
        "add $m0, $m0, $m1",
        argument(OUT, "$m5"),
        "add $m1, $m1, $m5",
        argument(JUMP, "$m9"),
    ]


MERGE_PART = [bundle("ld64step $a0:1, $mzero, $m7+=, $m6", "f32v2add $a2:3, $a2:3, $a0:1")]
MERGE = [
    bundle(argument(PARTS, "$m5"), "or64 $a0:1, $azeros, $azeros"),
    bundle(argument(BETWEEN, "$m6"), "or64 $a2:3, $azeros, $azeros"),
    bundle("mov $m7, $m2"),
    bundle("rpt $m5, 0"),
    *MERGE_PART,
]
"""Adds a row's sums over the parts; the last one remains in $a0:1. $m5..$m7 are scratch."""

_START = begin(".Lnormalise_exit")
_STATISTICS = [
    *MERGE,
    bundle(argument(INVERSE, "$a4"), "f32v2add $a2:3, $a2:3, $a0:1"),
    bundle(argument(EPSILON, "$a7"), "f32v2mul $a2:3, $a4:B, $a2:3"),  # mean, mean square
    bundle("setzi $m5, 32", "f32mul $a5, $a2, $a2"),
    bundle(argument(AFFINE, "$m6"), "f32sub $a3, $a3, $a5"),
    bundle("mov $m7, $m0", "f32max $a3, $a3, $azero"),
    bundle("mov $m8, $m1", "f32add $a3, $a3, $a7"),
    bundle("add $m2, $m2, 48", "f32oorx $a3, $a3"),
    bundle("add $m0, $m0, 192", "f32sub $a2, $azero, $a2"),
    bundle("add $m1, $m1, 192", "f32tof16 $a4, $a2"),  # minus the mean as a half
    bundle("add $m3, $m3, -6", "f16tof32 $a5, $a4"),
    bundle("setzi $m10, 0", "f32sub $a2, $a2, $a5"),  # and the rest of it
    bundle("nop", "f32mul $a2, $a2, $a3"),
    bundle("nop", "f32tof16 $a2, $a2"),
    bundle("nop", "f32tof16 $a3, $a3"),
    bundle("nop", "sort4x16lo $a2, $a3, $a2"),
    bundle("nop", "uput $TAS, $a2"),
    bundle("nop", "setzi $a6, 0x03c00"),
    bundle("nop", "or $a6, $a6, 0x3c000000"),
    bundle("ld64step $a0:1, $mzero, $m7+=, 1", "or $a7, $a6, $azero"),
    bundle("nop", "f16v4add $a0:1, $a4:BL, $a0:1"),
    bundle("ld64step $a0:1, $mzero, $m7+=, 1", "f16v4mix $azeros, $a0:1, $a6:7"),
]


def _word(late: str, ahead: str | None, beta: str, centre: bool = True) -> list[str]:
    """A word's result, and the start of the next one's (`centre`); `ahead` loads the one after that."""
    sources = "$a0:1, $a6:7" if centre else "$azeros, $azeros"
    return [
        bundle(
            f"st64step $a2:3, $mzero, $m8+=, {late}", "f16v4add $a0:1, $a4:BL, $a0:1" if centre else "fnop"
        ),
        bundle("ld64 $a2:3, $m6, $mzero, 0", f"f16v4mix $a0:1, {sources}"),
        bundle(f"ld64step $a2:3, $m5, $m6+=, {beta}", "f16v4mul $a0:1, $a0:1, $a2:3"),
        bundle(f"ld64step $a0:1, $mzero, $m7+=, {ahead}" if ahead else "nop", "f16v4add $a2:3, $a0:1, $a2:3"),
    ]


_PANEL = [
    *_word("$m10", "1", "1"),
    *_word("1", "$m9", "1"),
    *_word("1", "1", "1"),
    *_word("1", "1", "5"),
    bundle("mov $m10, $m9"),
]
_LAST_PANEL = [
    *_word("$m10", "1", "1"),
    *_word("1", "1", "1"),
    *_word("1", None, "1"),
    *_word("1", None, "5", centre=False),
    bundle("st64step $a2:3, $mzero, $m8+=, 1"),
    bundle("brpos $m3, .Lnormalise_row"),
]
_ROW = [*_STATISTICS, bundle(f"rpt $m4, {len(_PANEL) - 1}"), *_PANEL, *_LAST_PANEL]


def frame(register: str, word: int) -> str:
    """Stores a word of the frame."""
    return f"st32 {register}, $m11, $mzero, {word}"


@cache
def supervisor(label: str) -> tuple[str, ...]:
    """From the arguments to the workers' end; the same for both kernels on merged sums."""
    lines = [
        f"add $m11, $m11, -{FRAME_BYTES}",
        frame("$m2", OUT),
        frame("$m3", X),
        frame("$m4", SUMS),
        frame("$m5", AFFINE),
        frame("$m7", PARTS),
        frame("$m8", INVERSE),
        frame("$m9", EPSILON),
        "shl %rows, $m6, 16",
        "shr %jump, %rows, 14",
        "shr %rows, %rows, 16",
        frame("%rows", BETWEEN),
        "add %jump, %jump, -3",
        "shr %panels, $m6, 16",
        "add %panels, %panels, -1",
        frame("%rows", ROW_COUNT),
        frame("%jump", JUMP),
        frame("%panels", PANEL_COUNT),
        f"setzi $m9, {label}",
    ]
    return (
        *schedule(lines, ["$m0", "$m1"]),
        "runall $m9, $m11, 0",
        f"add $m11, $m11, {FRAME_BYTES}",
        "sync 2",
        "br $m10",
    )


def _source() -> str:
    lines = [*_START, ".Lnormalise_row:", *_ROW, ".Lnormalise_exit:", "exitz $m15"]
    return section(SYMBOL, [*supervisor(".Lnormalise"), *worker(".Lnormalise", lines)])


def cycles(rows: Any, panels: Any, parts: Any, **_: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    rows, panels, parts = (np.asarray(value, dtype=np.int64) for value in (rows, panels, parts))
    row = len(_ROW) + MULTI_SLOT["f32oorx"] - 1 + len(_PANEL) * (panels - 2) + parts - 1
    slots = len(_START) + 1 + ceil_div(rows, WORKER_SLOTS) * row
    idle = np.where(rows > 0, 9, 7)
    base = call_cycles(supervisor(".Lnormalise"))
    return base + WORKER_SLOTS * np.where((rows > 0) & (panels > 0), slots, idle)


def merged(sums: NDArray[np.float32]) -> NDArray[np.float32]:
    """[parts, rows, 2] added over the parts in float32, in order."""
    total = np.zeros(sums.shape[1:], np.float32)
    for part in sums:
        total = total + part
    return total


def single(bits: int) -> np.float32:
    """The float32 with these bits."""
    return np.float32(np.array(bits, np.uint32).view(np.float32))


def reference(x: Halves, sums: NDArray[np.float32], affine: Halves, inverse: int, epsilon: int) -> Halves:
    """x [panels, rows, 16], sums [parts, rows, 2], affine [panels, 2, 16], bits of two float32."""
    scaled = merged(sums) * single(inverse)
    mean = scaled[:, 0]
    variance = np.maximum(scaled[:, 1] - mean * mean, np.float32(0)) + single(epsilon)
    factor = (1 / np.sqrt(variance.astype(np.float64))).astype(np.float32)
    coarse = to_halves(-mean)
    rest = to_halves((-mean - coarse.astype(np.float32)) * factor).astype(np.float64)[None, :, None]
    steep = to_halves(factor).astype(np.float64)[None, :, None]
    centred = to_halves(x.astype(np.float64) + coarse.astype(np.float64)[None, :, None]).astype(np.float64)
    result = to_halves(to_singles(steep * centred + rest)).astype(np.float64)
    result = to_halves(result * affine[:, None, 0].astype(np.float64)).astype(np.float64)
    return to_halves(result + affine[:, None, 1].astype(np.float64))


KERNEL = Kernel(
    SYMBOL,
    _source,
    Contract(
        operands=(
            Operand("out", "a16", "out"),
            Operand("x", "a16", "in"),
            Operand("sums", "words", "in"),
            Operand("affine", "a16", "in"),
        ),
        scalars=(
            ROWS,
            PANELS,
            Scalar("parts", "parts of the sums", 1, 65535),
            Scalar("inverse", "bits of the float32 1 / columns", 0, (1 << 32) - 1),
            Scalar("epsilon", "bits of a float32", 0, (1 << 32) - 1),
        ),
        packed=(("rows", "panels", 16),),
        may_alias=(("out", "x"),),
        notes=(
            "sums: float32 [parts][rows][2] as `row_sums_f16` gives them. affine: gamma and beta in the two "
            "rows of each panel. $TAS is clobbered."
        ),
    ),
    cycles,
    reference,
)
