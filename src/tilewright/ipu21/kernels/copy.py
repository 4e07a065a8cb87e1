"""`copy_u64` and `fill_u64`: move or set 8-byte words, anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernel import Contract, Kernel, Operand, Scalar
from .launch import WORDS, words_cycles, words_kernel
from .text import bundle

SMALL_WORDS = 8
"""Up to here the supervisor copies by itself: launching workers would take longer."""


def _copy_source() -> str:
    return words_kernel(
        "copy_u64",
        ["$m2", "$m3"],
        "$m4",
        [
            "ld32 $m4, $mvertex_base, $mzero, 2",
            "ld32 $m5, $mvertex_base, $mzero, 3",
            "add $m4, $m4, $m0",
            "add $m5, $m5, $m0",
            bundle("rpt $m1, 1"),
            bundle("ld64step $a0:1, $mzero, $m5+=, 1"),
            bundle("st64step $a0:1, $mzero, $m4+=, 1"),
        ],
        head=[
            f"cmpult $m0, $m4, {SMALL_WORDS + 1}",
            "brz $m0, .Lcopy_u64_large",
            "brz $m4, .Lcopy_u64_return",
            "add $m4, $m4, -1",
            ".Lcopy_u64_next:",
            "ld32 $m0, $m3, $mzero, 0",
            "ld32 $m1, $m3, $mzero, 1",
            "add $m3, $m3, 8",
            "st32 $m0, $m2, $mzero, 0",
            "st32 $m1, $m2, $mzero, 1",
            "add $m2, $m2, 8",
            "brnzdec $m4, .Lcopy_u64_next",
            "br $m10",
            ".Lcopy_u64_large:",
        ],
    )


def _fill_source() -> str:
    return words_kernel(
        "fill_u64",
        ["$m2", "$m4", "$m5"],
        "$m3",
        [
            "ld32 $m4, $mvertex_base, $mzero, 2",
            "ld32 $a0, $mvertex_base, $mzero, 3",
            "ld32 $a1, $mvertex_base, $mzero, 4",
            "add $m4, $m4, $m0",
            bundle("rpt $m1, 0"),
            bundle("st64step $a0:1, $mzero, $m4+=, 1"),
        ],
    )


def copy_cycles(words: Any) -> Any:
    return 0


def fill_cycles(words: Any, low: Any = 0, high: Any = 0) -> Any:
    """Cycles of `fill_u64` (exact on the simulator); the value does not matter."""
    return words_cycles(words, once=7, each=1)


def copy_reference(source: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The words themselves."""
    return source.copy()


def fill_reference(words: int, low: int, high: int) -> NDArray[np.uint64]:
    """`words` words, each `high` above `low`."""
    return np.full(words, high << 32 | low, np.uint64)


COPY = Kernel(
    "copy_u64",
    _copy_source,
    Contract(
        operands=(Operand("destination", "words", "out"), Operand("source", "words", "in")), scalars=(WORDS,)
    ),
    copy_cycles,
    copy_reference,
)

FILL = Kernel(
    "fill_u64",
    _fill_source,
    Contract(
        operands=(Operand("destination", "words", "out"),),
        scalars=(
            WORDS,
            Scalar("low", "low 32 bits of every word", 0, (1 << 32) - 1),
            Scalar("high", "high 32 bits of every word", 0, (1 << 32) - 1),
        ),
    ),
    fill_cycles,
    fill_reference,
)
