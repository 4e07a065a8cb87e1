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
from .supervisor import call_cycles, launch, schedule, to_frame
from .text import bundle, section, worker

SYMBOL = "normalise_f16"

OUT, X, SUMS, AFFINE, LAST_ROW, PANEL_COUNT, PARTS, INVERSE, EPSILON, JUMP, BETWEEN = range(11)
LIMIT, SUMS_STEP, AFFINE_STEP = range(11, 14)
FRAME_BYTES = 56
FEW = 3
"""Rows, or panels of one row, that pairs of workers share: half the columns each."""


def argument(word: int, register: str) -> str:
    """Loads a word of the frame."""
    return f"ld32 {register}, $mvertex_base, $mzero, {word}"


def begin(exit_label: str) -> list[str]:
    """A worker's first row: $m0..$m4 and $m9."""
    return [
        "get $m0, $WSR",
        "and $m0, $m0, 7",
        argument(LAST_ROW, "$m3"),
        "sub $m3, $m3, $m0",
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

_ONES = ("setzi $a6, 0x03c00", "or $a6, $a6, 0x3c000000", "or $a7, $a6, $azero")
_BEGIN = begin(".Lnormalise_exit")
_START = [*map(bundle, _BEGIN[: len(_ONES)], _ONES), *_BEGIN[len(_ONES) :]]
_FEW_START = [
    *map(bundle, ("get $m0, $WSR", "and $m0, $m0, 7", "shl $m0, $m0, 4"), _ONES),
    argument(LIMIT, "$m3"),
    "sub $m3, $m3, $m0",
    "brneg $m3, .Lnormalise_exit",
    "shr $m11, $m0, 5",
    argument(SUMS_STEP, "$m1"),
    "mul $m1, $m1, $m11",
    argument(SUMS, "$m2"),
    "add $m2, $m2, $m1",
]
"""A worker's half row, if they are few: $m0 = its offset in x and the result, $m11 = number of its pair."""


def _statistics(mains: list[str]) -> list[str]:
    """From sums in $a0:1 and $a2:3 to minus the mean in $a4, and $TAS; `mains` go into free main slots."""
    work = [
        "f32v2add $a2:3, $a2:3, $a0:1",
        "f32sub $a4, $azero, $a5",
        "f32v2mul $a2:3, $a4:5, $a2:3",  # minus the mean, mean square
        "f32mul $a4, $a2, $a2",
        "f32sub $a3, $a3, $a4",
        "f32max $a3, $a3, $azero",
        "f32add $a3, $a3, $a5",
        "f32tof16 $a4, $a2",  # minus the mean as a half
        "f16tof32 $a5, $a4",
        "f32sub $a5, $a2, $a5",  # and the rest of it
        "f32oorx $a2, $a3",
        "f32mul $a3, $a5, $a2",
        "f32v2tof16 $a2, $a2:3",
        "uput $TAS, $a2",
    ]
    loads = [argument(INVERSE, "$a5"), *mains[:2], argument(EPSILON, "$a5"), *mains[2:]]
    loads += ["nop"] * (len(work) - len(loads))
    return [bundle(*pair) for pair in zip(loads, work, strict=True)]


def _first_words(step: str, free: str) -> list[str]:
    return [
        bundle("ld64step $a0:1, $mzero, $m7+=, 1"),
        bundle(free, "f16v4add $a0:1, $a4:BL, $a0:1"),
        bundle(f"ld64step $a0:1, $mzero, $m7+=, {step}", "f16v4mix $azeros, $a0:1, $a6:7"),
    ]


_ROW_STATISTICS = [
    *MERGE,
    *_statistics(
        [
            "setzi $m5, 32",
            argument(AFFINE, "$m6"),
            "mov $m7, $m0",
            "mov $m8, $m1",
            "add $m2, $m2, 48",
            "add $m0, $m0, 192",
            "add $m1, $m1, 192",
            "add $m3, $m3, -6",
        ]
    ),
    *_first_words("1", "setzi $m10, 0"),
]
_FEW_STATISTICS = [
    bundle(argument(PARTS, "$m5"), "or64 $a0:1, $azeros, $azeros"),
    bundle(argument(BETWEEN, "$m6"), "or64 $a2:3, $azeros, $azeros"),
    bundle("rpt $m5, 0"),
    bundle("ld64step $a0:1, $mzero, $m2+=, $m6", "f32v2add $a2:3, $a2:3, $a0:1"),
    *_statistics(
        [
            "setzi $m5, 32",
            argument(AFFINE_STEP, "$m6"),
            "mul $m6, $m6, $m11",
            "and $m8, $m0, 16",
            "add $m6, $m6, $m8",
            argument(AFFINE, "$m8"),
            "add $m6, $m6, $m8",
            argument(X, "$m7"),
            "add $m7, $m7, $m0",
            argument(OUT, "$m8"),
            "add $m8, $m8, $m0",
            argument(JUMP, "$m9"),
        ]
    ),
    *_first_words("$m9", argument(PANEL_COUNT, "$m4")),
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
_ROW = [*_ROW_STATISTICS, bundle(f"rpt $m4, {len(_PANEL) - 1}"), *_PANEL, *_LAST_PANEL]
_FEW_PANEL = [*_word("$m10", "1", "1"), *_word("1", "$m9", "7"), bundle("mov $m10, $m9")]
_FEW = [
    *_FEW_START,
    *_FEW_STATISTICS,
    bundle("setzi $m10, 0"),
    bundle(f"rpt $m4, {len(_FEW_PANEL) - 1}"),
    *_FEW_PANEL,
    *_word("$m10", None, "1"),
    *_word("1", None, "7", centre=False),
    bundle("st64step $a2:3, $mzero, $m8+=, 1"),
]


def frame_lines() -> list[str]:
    """Lines for `schedule`: the frame, from the arguments."""
    return [
        f"add $m11, $m11, -{FRAME_BYTES}",
        to_frame("%out", OUT),
        to_frame("%x", X),
        to_frame("%sums", SUMS),
        to_frame("%affine", AFFINE),
        to_frame("%parts", PARTS),
        to_frame("%inverse", INVERSE),
        to_frame("$m9", EPSILON),
        "shl %rows, %shape, 16",
        "shr %jump, %rows, 14",
        "shr %rows, %rows, 16",
        to_frame("%rows", BETWEEN),
        "add %jump, %jump, -3",
        "shr %panels, %shape, 16",
        "add %panels, %panels, -1",
        "add %last, %rows, -1",
        to_frame("%last", LAST_ROW),
    ]


_FEW_FRAME = [
    # Few rows, and at least a panel; if there is one row, few panels instead.
    f"cmpult %few, %rows, {FEW + 1}",
    "shrs %some, %panels, 31",
    "andc %few, %few, %some",
    "cmpeq %wide, %rows, 1",
    f"cmpult %narrow, %panels, {FEW}",
    "and %wide, %wide, %narrow",
    "add %along, %panels, 1",
    "movnz %rows, %wide, %along",
    "shl %limit, %rows, 5",
    "add %limit, %limit, -1",
    to_frame("%limit", LIMIT),
    "setzi %zero, 0",
    "movnz %panels, %wide, %zero",
    "shl %step, %wide, 6",
    to_frame("%step", AFFINE_STEP),
    "shl %step8, %wide, 3",
    "sub %step8, 8, %step8",
    to_frame("%step8", SUMS_STEP),
    "shl %double, %few, 1",
    "add %jump, %jump, %double",
    "setzi $m9, .Lnormalise",
    "setzi %entry, .Lnormalise_few",
    "movnz $m9, %few, %entry",
]


@cache
def supervisor(label: str) -> tuple[str, ...]:
    """From the arguments to the workers' end; the same for both kernels on merged sums."""
    few = _FEW_FRAME if label == ".Lnormalise" else [f"setzi $m9, {label}"]
    names = ("out", "x", "sums", "affine", "shape", "parts", "inverse")
    given = {f"%{name}": f"$m{2 + index}" for index, name in enumerate(names)}
    lines = [*frame_lines(), *few, to_frame("%jump", JUMP), to_frame("%panels", PANEL_COUNT)]
    return (
        *schedule(lines, ["$m0", "$m1"], given),
        *launch(FRAME_BYTES),
    )


def _source() -> str:
    lines = [*_START, ".Lnormalise_row:", *_ROW, ".Lnormalise_exit:", "exitz $m15"]
    few = worker(".Lnormalise_few", [*_FEW, "exitz $m15"])
    return section(SYMBOL, [*supervisor(".Lnormalise"), *worker(".Lnormalise", lines), *few])


def cycles(rows: Any, panels: Any, parts: Any, **_: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    rows, panels, parts = (np.asarray(value, dtype=np.int64) for value in (rows, panels, parts))
    wait = MULTI_SLOT["f32oorx"] - 1
    row = len(_ROW) + wait + len(_PANEL) * (panels - 2) + parts - 1
    lone = (rows == 1) & (panels <= FEW)
    few_slots = len(_FEW) + 1 + wait + len(_FEW_PANEL) * np.where(lone, -1, panels - 2) + parts - 1
    slots = np.where(rows <= FEW, few_slots, len(_START) + 1 + ceil_div(rows, WORKER_SLOTS) * row)
    # Without panels it is the way of many rows.
    idle = np.where(rows > 0, 8, np.where(panels > 0, 7, 6))
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


def contract(affine: Operand, inverse: str, epsilon: str, notes: str = "") -> Contract:
    """What a caller of a normalisation from sums must keep.

    Args:
        inverse, epsilon: what these scalars mean.
    """
    return Contract(
        operands=(
            Operand("out", "a16", "out"),
            Operand("x", "a16", "in"),
            Operand("sums", "words", "in"),
            affine,
        ),
        scalars=(
            ROWS,
            PANELS,
            Scalar("parts", "parts of the sums", 1, 65535),
            Scalar("inverse", inverse, 0, (1 << 32) - 1),
            Scalar("epsilon", epsilon, 0, (1 << 32) - 1),
        ),
        packed=(("rows", "panels", 16),),
        may_alias=(("out", "x"),),
        notes=f"sums: float32 [parts][rows][2] as `row_sums_f16` gives them. {notes}$TAS is clobbered.",
    )


KERNEL = Kernel(
    SYMBOL,
    _source,
    contract(
        Operand("affine", "a16", "in"),
        "bits of the float32 1 / columns",
        "bits of a float32",
        "affine: gamma and beta in the two rows of each panel. ",
    ),
    cycles,
    reference,
)
