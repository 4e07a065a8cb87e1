"""`gelu_f16`: x sigm(c1 x + c3 x^3), which is the tanh form of GeLU, since 0.5 (1 + tanh z) = sigm(2 z).

The sigmoid keeps its relative accuracy where tanh would cancel against 1. A large |x| saturates x^3, which
leaves a gate of 0 or 1 and so a result of 0 or x. `f16v4mix` delivers one step late: it returns z of the
previous word, whose x is therefore loaded a second time. The load of the next word is clamped to the last
one: nothing outside a worker's share is read. Six bundles per word of four halves, two of them sigmoids of
two slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..machine.timing import MULTI_SLOT
from .halves import Halves, to_halves, to_singles
from .kernel import Contract, Kernel, Operand
from .launch import WORDS, words_cycles, words_kernel
from .text import bundle

LINEAR = 0x3E62
"""2 sqrt(2 / pi) as a half: 1.595703125."""
CUBIC = 0x2C91
"""2 sqrt(2 / pi) * 0.044715 as a half: 0.07135009765625."""

_X, _AGAIN, _CUBE, _Z = "$a0:1", "$a2:3", "$a4:5", "$a6:7"
_SQUARE = f"f16v4mul {_CUBE}, {_X}, {_X}"
_TIMES_X = f"f16v4mul {_CUBE}, {_CUBE}, {_X}"


def _source() -> str:
    constants = CUBIC << 16 | LINEAR
    return words_kernel(
        "gelu_f16",
        ["$m2", "$m3"],
        "$m4",
        [
            "ld32 $m5, $mvertex_base, $mzero, 2",
            "ld32 $m4, $mvertex_base, $mzero, 3",
            "add $m4, $m4, $m0",
            f"ld64 {_X}, $m4, $mzero, 0",
            bundle("add $m1, $m1, -1", _SQUARE),
            bundle("shl $m6, $m1, 3", _TIMES_X),
            "add $m6, $m6, $m4",  # the last word
            "add $m7, $m4, 8",
            "min $m7, $m7, $m6",
            bundle(f"ld64 {_X}, $m7, $mzero, 0", f"f16v4mix $azeros, {_X}, {_CUBE}"),
            bundle("add $m5, $m5, $m0", _SQUARE),
            bundle("add $m7, $m7, 8", _TIMES_X),
            "min $m7, $m7, $m6",
            bundle("rpt $m1, 5"),
            bundle(f"ld64step {_AGAIN}, $mzero, $m4+=, 1", f"f16v4mix {_Z}, {_X}, {_CUBE}"),
            bundle(f"ld64 {_X}, $m7, $mzero, 0", "f16v2sigm $a6, $a6"),
            bundle("add $m7, $m7, 8", "f16v2sigm $a7, $a7"),
            bundle("min $m7, $m7, $m6", f"f16v4mul {_Z}, {_AGAIN}, {_Z}"),
            bundle(f"st64step {_Z}, $mzero, $m5+=, 1", _SQUARE),
            bundle("nop", _TIMES_X),
            bundle(f"ld64 {_AGAIN}, $m4, $mzero, 0", f"f16v4mix {_Z}, $azeros, $azeros"),
            "f16v2sigm $a6, $a6",
            "f16v2sigm $a7, $a7",
            f"f16v4mul {_Z}, {_AGAIN}, {_Z}",
            f"st64 {_Z}, $m5, $mzero, 0",
        ],
        aux=[
            f"setzi $a0, {constants & 0xFFFFF:#x}",
            f"or $a0, $a0, {constants & 0xFFF00000:#x}",
            "uput $TAS, $a0",
        ],
    )


def cycles(words: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    word = 4 + 2 * MULTI_SLOT["f16v2sigm"]
    return words_cycles(words, once=14 + 3 + 2 * MULTI_SLOT["f16v2sigm"] + 1, each=word)


def reference(x: Halves) -> Halves:
    """GeLU with the kernel's rounding steps and a correctly rounded sigmoid (open on a card)."""
    return gated(x, LINEAR, CUBIC)


def gated(x: Halves, linear: int, cubic: int) -> Halves:
    """x sigm(linear x + cubic x^3) with the kernel's rounding steps; the factors are bits of halves."""
    first, third = np.array([linear, cubic], np.uint16).view(np.float16).astype(np.float64)
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        square = to_halves(wide * wide).astype(np.float64)
        cube = to_halves(square * wide).astype(np.float64)
        z = to_halves(to_singles(first * wide + third * cube)).astype(np.float64)
        gate = to_halves(1 / (1 + np.exp(-z))).astype(np.float64)
        return to_halves(wide * gate)


KERNEL = Kernel(
    "gelu_f16",
    _source,
    Contract(
        operands=(Operand("out", "words", "out"), Operand("x", "words", "in")),
        scalars=(WORDS,),
        may_alias=(("out", "x"),),
        notes="$TAS is clobbered. $FP_ICTL.NANOO must be 0: x^3 saturates on purpose.",
    ),
    cycles,
    reference,
)
