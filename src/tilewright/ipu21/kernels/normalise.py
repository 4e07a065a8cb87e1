"""`normalise_f16`: (x - mean) / sqrt(variance + epsilon) * gamma + beta for each row, from sums in parts.

Worker w takes the rows w, w + 6, ...; up to `FEW` rows are shared by pairs of workers, half of the columns
each, and a single row's panels by all pairs. A worker adds the parts' sums and sums of squares in float32,
has mean and variance in float32. x times 1 / sqrt (a half, `f16v4mix`) minus the mean times the same
(`f32v2aop`) is float32 until it is rounded to a half; then come gamma and beta. So a mean far from zero costs
no accuracy. Where rounding makes a variance negative, its magnitude is as small.

The store of a word is one word late. `f16v4mix` delivers one word late, so gamma and beta follow one word
behind x. Every worker has a frame of its own. What has at most one half row for each worker may have code for
its rows and parts, see `normalise_once`.

Worker registers:
    $m0, $m1 row of x and of the result    $m2 row's sums    $m3 rows after this one    $m4 panels - 1
    $m5 32, from gamma to beta    $m6 gamma    $m7, $m8 word of x and of the result
    $m9 words from a panel's last to the next one's first    $m11 the same for gamma, if the row is shared
    $a4:5 minus the mean    $a6:7 1 / sqrt    $a0:3 words
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import MULTI_SLOT, WORKER_SLOTS
from .grid import PANELS, ROWS, third
from .halves import Halves, to_halves, to_singles
from .kernel import Contract, Kernel, Operand, Scalar
from .launch import SIXTH
from .normalise_frame import (
    AFFINE,
    ALONG,
    EPSILON,
    FEW,
    INVERSE,
    LAST,
    LOAD_INVERSE,
    MERGED,
    OUT,
    SUMS,
    WORDS,
    X,
)
from .normalise_once import PARTS, once_lines, once_slots, once_table
from .supervisor import call_cycles, launch, to_frame, to_frames
from .text import bundle, from_frame, section, worker

SYMBOL = "normalise_f16"

FRAME_BYTES = 4 * 6 * WORDS


def _low(register: str, word: int) -> str:
    """Loads the lower half of a word of the frame."""
    return f"ldz16 {register}, $mvertex_base, $mzero, {2 * word}"


def _high(register: str, word: int) -> str:
    return f"ldz16 {register}, $mvertex_base, $mzero, {2 * word + 1}"


def begin(exit_label: str) -> list[str]:
    """A worker's first row: $m0..$m4 and $m9."""
    return [
        _low("$m5", MERGED),
        f"brz $m5, {exit_label}",
        from_frame("$m2", SUMS),
        from_frame("$m0", X),
        from_frame("$m1", OUT),
        from_frame("$m3", LAST),
        _low("$m4", ALONG),
        _high("$m9", ALONG),
    ]


def merge() -> list[str]:
    """Adds a row's sums at $m2 over the parts; the last one remains in $a0:1. Leaves the parts in $m5 and the
    rows in $m6.
    """
    return [
        bundle(_low("$m5", MERGED), "or64 $a0:1, $azeros, $azeros"),
        bundle(_high("$m6", MERGED), "or64 $a2:3, $azeros, $azeros"),
        bundle("rpt $m5, 0"),
        *_MERGE_PART,
    ]


_MERGE_PART = [bundle("ld64step $a0:1, $mzero, $m2+=, $m6", "f32v2add $a2:3, $a2:3, $a0:1")]

NEXT_SUMS = ("mul $m5, $m5, $m6", "shl $m5, $m5, 3", "sub $m2, $m2, $m5", "add $m2, $m2, 48")
"""From the end of a row's sums to those of the worker's next row."""

_START = begin(".Lnormalise_exit")
_FEW_START = [
    bundle(_low("$m5", MERGED)),
    bundle("brz $m5, .Lnormalise_exit"),
    bundle(LOAD_INVERSE),
    bundle(from_frame("$m2", SUMS)),
    bundle(_high("$m6", MERGED), "or64 $a0:1, $azeros, $azeros"),
    bundle("rpt $m5, 0", "or64 $a2:3, $azeros, $azeros"),
    *_MERGE_PART,
]


def _statistics(mains: list[str], step: str) -> list[str]:
    """From the sums in $a0:1 and $a2:3, with -1 / columns twice in $a4:5, to $a4:7 and $TAS; then the first
    words of x.

    Args:
        mains: nine instructions that go along; the third loads epsilon to $a1.
        step: words from the row's second word to its third.
    """
    work = [
        "f32v2add $a2:3, $a2:3, $a0:1",
        "f32mul $a3, $a4, $a3",  # minus the mean square
        "f32v2mul $a4:5, $a2:B, $a4:5",  # minus the mean
        "f32mul $a0, $a4, $a4",
        "f32add $a3, $a0, $a3",  # minus the variance
        "f32absadd $a3, $a3, $a1",
        "f32oorx $a3, $a3",
        "f32tof16 $a0, $a3",
        "uput $TAS, $a0",
        "f16v2tof32 $a6:7, $a0",
        "f16v4mix $azeros, $a0:1, $azeros",
    ]
    loads = [*mains, "ld64step $a0:1, $mzero, $m7+=, 1", f"ld64step $a0:1, $mzero, $m7+=, {step}"]
    return [bundle(*pair) for pair in zip(loads, work, strict=True)]


_ROW_STATISTICS = [
    bundle(LOAD_INVERSE),
    *merge(),
    *_statistics(
        [
            *NEXT_SUMS[:2],
            from_frame("$a1", EPSILON),
            *NEXT_SUMS[2:],
            "setzi $m5, 32",
            from_frame("$m6", AFFINE),
            "mov $m7, $m0",
            "mov $m8, $m1",
        ],
        "1",
    ),
]
_FEW_STATISTICS = _statistics(
    [
        from_frame("$m7", X),
        from_frame("$m8", OUT),
        from_frame("$a1", EPSILON),
        from_frame("$m6", AFFINE),
        "setzi $m5, 32",
        _low("$m4", ALONG),
        _high("$m9", ALONG),
        from_frame("$m11", LAST),
        "nop",
    ],
    "$m9",
)


def _centre(main: str) -> str:
    """Takes the mean's share from the word that was multiplied last."""
    return bundle(main, "f32v2aop $a4:5, $a6:7, 0")


def _word(ahead: str, beta: str, following: bool = True) -> list[str]:
    """A word's result; multiplies the one `following`, if there is one, and `ahead` goes along."""
    source = "$a0:1" if following else "$azeros"
    return [
        bundle("ld64 $a2:3, $m6, $mzero, 0", f"f16v4mix $a0:1, {source}, $azeros"),
        bundle(f"ld64step $a2:3, $m5, $m6+=, {beta}", "f16v4mul $a0:1, $a0:1, $a2:3"),
        bundle(ahead, "f16v4add $a2:3, $a0:1, $a2:3"),
    ]


def _ahead(step: str) -> str:
    return f"ld64step $a0:1, $mzero, $m7+=, {step}"


def _store(step: str) -> str:
    return f"st64step $a2:3, $mzero, $m8+=, {step}"


def _panels(
    ahead: tuple[str, ...], last: str, more: tuple[str, str] = ("nop", "nop")
) -> tuple[list[str], list[str]]:
    """(a panel of a loop, the last one), from the first word's result on.

    Args:
        ahead: steps of x behind the words two further.
        last: words from the last of beta to the next panel's first.
        more: what goes along in the last panel, where no word is left to load.
    """
    betas = [*["1"] * (len(ahead) - 1), last]
    panel, final = [], []
    for index, (step, beta) in enumerate(zip(ahead, betas, strict=True)):
        left = len(ahead) - 1 - index
        panel += [*_word(_ahead(step), beta), _centre(_store("1" if left else "$m9"))]
        final += _word(_ahead(step) if left > 1 else more[left], beta, following=left > 0)
        final.append(_centre(_store("1")) if left else bundle(_store("1")))
    return panel, final


_PANEL, _LAST_PANEL = _panels(("1", "$m9", "1", "1"), "5", ("add $m0, $m0, 192", "add $m1, $m1, 192"))
_FEW_PANEL, _FEW_LAST_PANEL = _panels(("1", "$m9"), "$m11")


def _all_panels(panel: list[str], last: list[str]) -> list[str]:
    return [_centre(f"rpt $m4, {len(panel) - 1}"), *panel, *last]


_ROW = [*_ROW_STATISTICS, *_all_panels(_PANEL, _LAST_PANEL), bundle("brnzdec $m3, .Lnormalise_row")]
_FEW = [*_FEW_START, *_FEW_STATISTICS, *_all_panels(_FEW_PANEL, _FEW_LAST_PANEL)]


def _along(word: int, register: str, steps: tuple[str, ...]) -> list[str]:
    """Stores a register in all frames; before each but the first a step in turn is added."""
    lines = [to_frame(register, word)]
    for index in range(1, 6):
        lines.append(f"add {register}, {register}, {steps[(index - 1) % len(steps)]}")
        lines.append(to_frame(register, index * WORDS + word))
    return lines


def _counts() -> list[str]:
    """MERGED, ALONG, LAST of all frames, from parts $m7, rows $m6, panels $m0, few $m1, a single row $m8."""
    lines = [
        "shl $m2, $m6, 16",
        "or $m7, $m7, $m2",
        # Words between panels: of whole rows, of half ones, and of a third of the panels.
        "shl $m2, $m6, 2",
        "shl $m3, $m1, 1",
        "add $m2, $m2, $m3",
        "shl $m3, $m8, 3",
        "add $m2, $m2, $m3",
        "add $m2, $m2, -3",
        "shl $m2, $m2, 16",
        "mov $m9, $m6",
        "setzi $m3, 3",
        "movnz $m9, $m8, $m3",  # shares
    ]
    for index in range(6):
        frame, pair = index * WORDS, index // 2
        lines += [
            *third("$m3", "$m0", 2 - pair),
            "mov $m4, $m0",
            "movnz $m4, $m8, $m3",
            "add $m4, $m4, -1",
            "add $m5, $m4, $m2",
            to_frame("$m5", frame + ALONG),
            f"setzi $m5, {index}",
            f"setzi $m3, {pair}",
            "movnz $m5, $m1, $m3",
            "cmpult $m5, $m5, $m9",
            "shrs $m4, $m4, 31",
            "andc $m5, $m5, $m4",
            "mul $m5, $m5, $m7",
            to_frame("$m5", frame + MERGED),
            f"add $m4, $m6, {-1 - index}",
            f"setzi $m3, {SIXTH}",
            "mul $m4, $m4, $m3",
            "shr $m4, $m4, 18",
            "shl $m3, $m8, 4",
            "add $m3, $m3, 7",
            "movnz $m4, $m1, $m3",
            to_frame("$m4", frame + LAST),
        ]
    return lines


@cache
def supervisor(label: str, few_label: str | None = None) -> tuple[str, ...]:
    """From the arguments to the workers' end; the same for both kernels on merged sums.

    Args:
        few_label: workers that share few rows, if there are such.
    """
    few = [f"cmpult $m1, $m6, {FEW + 1}", "cmpeq $m8, $m6, 1"]
    if few_label is None:
        few = ["setzi $m1, 0", "setzi $m8, 0"]
    return (
        f"add $m11, $m11, -{FRAME_BYTES}",
        "setzi $m0, 1",
        "shl $m0, $m0, 31",
        "xor $m8, $m8, $m0",
        *(line for word in INVERSE for line in to_frames("$m8", word, WORDS)),
        *to_frames("$m9", EPSILON, WORDS),
        "shr $m0, $m6, 16",
        "shl $m6, $m6, 16",
        "shr $m6, $m6, 16",
        *few,
        "shl $m9, $m1, 4",
        "sub $m9, 32, $m9",
        *_along(X, "$m3", ("$m9",)),
        *_along(OUT, "$m2", ("$m9",)),
        "shl $m2, $m1, 3",
        "sub $m2, 8, $m2",
        "shl $m3, $m8, 3",
        "sub $m3, 8, $m3",
        *_along(SUMS, "$m4", ("$m2", "$m3")),
        "shl $m2, $m1, 4",
        "shl $m3, $m8, 6",
        "sub $m3, $m3, $m2",
        *_along(AFFINE, "$m5", ("$m2", "$m3")),
        *_counts(),
        f"setzi $m9, {label}",
        *([f"setzi $m3, {few_label}", "movnz $m9, $m1, $m3", *once_lines()] if few_label else []),
        *launch(FRAME_BYTES, WORDS),
    )


@cache
def _supervisor() -> tuple[str, ...]:
    return supervisor(".Lnormalise", ".Lnormalise_few")


def _source() -> str:
    lines = [*_START, ".Lnormalise_row:", *_ROW, ".Lnormalise_exit:", "exitz $m15"]
    few = worker(".Lnormalise_few", [*_FEW, "exitz $m15"])
    return section(SYMBOL, [*_supervisor(), *worker(".Lnormalise", lines), *few, *once_table()])


def cycles(rows: Any, panels: Any, parts: Any, straight: bool = True, **_: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays.

    Args:
        straight: the program has the code for its numbers of rows and parts, if there is some.
    """
    rows, panels, parts = (np.asarray(value, dtype=np.int64) for value in (rows, panels, parts))
    wait = MULTI_SLOT["f32oorx"] - 1
    row = len(_ROW) + wait + len(_PANEL) * (panels - 2) + parts - 1
    few_panels = np.where(rows == 1, ceil_div(panels, 3), panels)
    few_slots = len(_FEW) + 1 + wait + len(_FEW_PANEL) * (few_panels - 2) + parts - 1
    if straight:
        is_once = (panels == 1) & (parts < PARTS.stop)
        few_slots = np.where(is_once, once_slots()[np.minimum(parts, PARTS.stop - 1)], few_slots)
    few = rows <= FEW
    slots = np.where(few, few_slots, len(_START) + 1 + ceil_div(rows, WORKER_SLOTS) * row)
    base = call_cycles(_supervisor())
    return base + WORKER_SLOTS * np.where((rows > 0) & (panels > 0), slots, IDLE)


IDLE = 3
"""Slots of a worker without work."""


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
    variance = np.abs(scaled[:, 1] - mean * mean) + single(epsilon)
    factor = (1 / np.sqrt(variance.astype(np.float64))).astype(np.float32)
    steep = to_halves(factor).astype(np.float64)[None, :, None]
    less = mean.astype(np.float64)[None, :, None] * steep
    result = to_halves(to_singles(steep * x.astype(np.float64) - less)).astype(np.float64)
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
