"""`copy_u64` and `fill_u64`: move or set 8-byte words, anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernel import Contract, Kernel, Operand, Scalar
from .launch import WORDS, words_cycles, words_kernel
from .paced import SUPERVISOR_CYCLES, paced_kernel
from .text import bundle

SMALL_WORDS = 24
"""Up to here the supervisor copies by itself: launching workers would take longer."""
SMALL_FILL = 31
"""Up to here the supervisor fills by itself."""
LARGE_ENTRY = 12
"""Cycles until it is known that workers pay."""


def _copy_source() -> str:
    addresses = [
        "ld32 $m4, $mvertex_base, $mzero, 2",
        "ld32 $m5, $mvertex_base, $mzero, 3",
        "add $m4, $m4, $m0",
        "add $m5, $m5, $m0",
    ]
    return paced_kernel(
        "copy_u64",
        ["$m2", "$m3"],
        "$m4",
        load="$m3",
        store="$m2",
        plain=[
            *addresses,
            bundle("rpt $m1, 1"),
            bundle("ld64step $a0:1, $mzero, $m5+=, 1"),
            bundle("st64step $a0:1, $mzero, $m4+=, 1"),
        ],
        paced=[
            *addresses,
            "ld64step $a0:1, $mzero, $m5+=, 1",
            "tapack $m2:3, $m5, $m5, $m4",
            "add $m1, $m1, -1",
            bundle("rpt $m1, 0"),
            bundle("ldst64pace $a0:1, $a0:1, $m2:3+=, $mzero, 0"),
            "st64pace $a0:1, $m2:3+=, $mzero, 0",
        ],
        head=[
            f"cmpult $m0, $m4, {SMALL_WORDS + 1}",
            "shr $m5, $m4, 1",
            "and $m6, $m4, 1",
            "brz $m0, .Lcopy_u64_large",
            "brz $m6, .Lcopy_u64_pairs",
            "ld32 $m0, $m3, $mzero, 0",
            "ld32 $m1, $m3, $mzero, 1",
            "add $m3, $m3, 8",
            "st32 $m0, $m2, $mzero, 0",
            "st32 $m1, $m2, $mzero, 1",
            "add $m2, $m2, 8",
            ".Lcopy_u64_pairs:",
            "brz $m5, .Lcopy_u64_return",
            "add $m5, $m5, -1",
            ".Lcopy_u64_pair:",
            *(f"ld32 $m{register}, $m3, $mzero, {index}" for index, register in enumerate((0, 1, 6, 7))),
            "add $m3, $m3, 16",
            *(f"st32 $m{register}, $m2, $mzero, {index}" for index, register in enumerate((0, 1, 6, 7))),
            "add $m2, $m2, 16",
            "brnzdec $m5, .Lcopy_u64_pair",
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
        head=[
            f"cmpult $m0, $m3, {SMALL_FILL + 1}",
            "shr $m1, $m3, 2",
            "and $m6, $m3, 3",
            "brz $m0, .Lfill_u64_large",
            "brz $m6, .Lfill_u64_fours",
            "add $m6, $m6, -1",
            ".Lfill_u64_one:",
            "st32 $m4, $m2, $mzero, 0",
            "st32 $m5, $m2, $mzero, 1",
            "add $m2, $m2, 8",
            "brnzdec $m6, .Lfill_u64_one",
            ".Lfill_u64_fours:",
            "brz $m1, .Lfill_u64_return",
            "add $m1, $m1, -1",
            ".Lfill_u64_four:",
            *(f"st32 $m{4 + word % 2}, $m2, $mzero, {word}" for word in range(8)),
            "add $m2, $m2, 32",
            "brnzdec $m1, .Lfill_u64_four",
            "br $m10",
            ".Lfill_u64_large:",
        ],
    )


def copy_cycles(words: Any, way: str = "interleaved") -> Any:
    """Cycles of `copy_u64` (exact on the simulator); integers or arrays. `way`: see `paced.way`."""
    words = np.asarray(words)
    pairs = words // 2
    first = np.where(words % 2 == 0, 17, 21)  # with one word more, its latency covers the branch around it
    small = np.where(pairs > 0, first + 17 * pairs, first + 9)
    once, each = (8, 2) if way == "plain" else (10, 1)
    large = LARGE_ENTRY + words_cycles(words, once, each, SUPERVISOR_CYCLES[way])
    return np.where(words <= SMALL_WORDS, small, large)


def fill_cycles(words: Any, low: Any = 0, high: Any = 0) -> Any:
    """Cycles of `fill_u64` (exact on the simulator); the value does not matter."""
    words = np.asarray(words)
    ones, fours = words % 4, words // 4
    first = np.where(ones > 0, 7 + 9 * ones, 14)
    # The last of several single words leaves the address two cycles late for the first four.
    small = np.where(fours > 0, first + 3 + 2 * (ones > 1) + 15 * fours, first + 12)
    return np.where(words <= SMALL_FILL, small, LARGE_ENTRY + words_cycles(words, once=7, each=1))


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
