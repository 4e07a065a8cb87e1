"""`permute_u16`: any rearrangement of 16-bit elements, by a table of source indices.

Workers own whole 32-bit words of the result, since there are no 16-bit stores. Indices are loaded with their
sign, so that one test finds words that need more than two loads: zeros (0xffff) and indices from 0x8000 on.

Worker registers:
    $m0 table    $m1 words after this one    $m2 out    $m3 source    $m4, $m5 indices    $m6 scratch
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import WORKER_SLOTS
from .kernel import Contract, Kernel, Operand, Scalar
from .launch import MAXIMUM_WORDS, SIXTH, share_lines
from .supervisor import call_cycles, launch, schedule, to_frame
from .text import bundle, from_frame, section, worker

SYMBOL = "permute_u16"

ZERO = 0xFFFF
"""The index that gives a zero."""

_SHARE, _WORDS, _OUT, _SOURCE, _TABLE = range(5)
_FRAME_BYTES = 24


def _element(index: str, result: str, name: str) -> list[str]:
    """An element whose index may be anything."""
    label = f".L{SYMBOL}_{name}"
    return [
        bundle(f"cmpeq $m6, {index}, -1", f"setzi {result}, 0"),
        bundle(f"brnz $m6, {label}_done"),
        bundle(f"shl {index}, {index}, 16"),
        bundle(f"shr {index}, {index}, 16"),
        bundle(f"ldb16 {result}, $m3, $mzero, {index}"),
        f"{label}_done:",
    ]


_BEGIN = [
    from_frame("$m2", _OUT),
    "shr $m0, $m0, 1",
    "add $m2, $m2, $m0",
    from_frame("$m4", _TABLE),
    "add $m0, $m0, $m4",
    from_frame("$m3", _SOURCE),
    "add $m1, $m1, -1",
    f"bri .L{SYMBOL}_first",
]
_WORD = [
    bundle("st32step $a2, $mzero, $m2+=, 1"),
    bundle("lds16step $m4, $mzero, $m0+=, 1"),
    bundle("lds16step $m5, $mzero, $m0+=, 1"),
    bundle("or $m6, $m4, $m5"),
    bundle(f"brneg $m6, .L{SYMBOL}_any"),
    bundle("ldb16 $a0, $m3, $mzero, $m4"),
    bundle("ldb16 $a1, $m3, $mzero, $m5"),
    bundle(f"brnzdec $m1, .L{SYMBOL}_store", "sort4x16lo $a2, $a0, $a1"),
]
_ANY = [*_element("$m4", "$a0", "low"), *_element("$m5", "$a1", "high"), bundle(f"bri .L{SYMBOL}_combine")]

MORE_SLOTS = 9
"""Most slots more of a word with an index of 0x8000 or above, zeros included."""


@cache
def _supervisor() -> tuple[str, ...]:
    lines = [
        f"add $m11, $m11, -{_FRAME_BYTES}",
        to_frame("$m2", _OUT),
        to_frame("$m3", _SOURCE),
        to_frame("$m4", _TABLE),
        "shr %words, $m5, 1",
        to_frame("%words", _WORDS),
        f"setzi %sixth, {SIXTH}",
        "add %share, %words, 5",
        "mul %share, %share, %sixth",
        "shr %share, %share, 18",
        to_frame("%share", _SHARE),
        f"setzi $m9, .L{SYMBOL}",
    ]
    return (
        *schedule(lines, ["$m0", "$m1", "$m6"]),
        *launch(_FRAME_BYTES),
    )


def _source() -> str:
    lines = [
        *share_lines(SYMBOL),
        *_BEGIN,
        f".L{SYMBOL}_store:",
        _WORD[0],
        f".L{SYMBOL}_first:",
        *_WORD[1:-1],
        f".L{SYMBOL}_combine:",
        _WORD[-1],
        bundle("st32 $a2, $m2, $mzero, 0"),
        f".L{SYMBOL}_exit:",
        "exitz $m15",
        f".L{SYMBOL}_any:",
        *_ANY,
    ]
    return section(SYMBOL, [*_supervisor(), *worker(f".L{SYMBOL}", lines)])


def cycles(count: Any) -> Any:
    """Cycles of a call; integers or arrays.

    Exact on the simulator if all indices are below 0x8000. Every word (two elements) of the busiest worker
    with a larger one or a zero takes up to `MORE_SLOTS` slots more.
    """
    share = ceil_div(np.asarray(count, dtype=np.int64) // 2, WORKER_SLOTS)
    slots = len([*share_lines(SYMBOL), *_BEGIN]) + len(_WORD) * share + 1
    return call_cycles(_supervisor()) + WORKER_SLOTS * np.where(share > 0, slots, 10)


def reference(source: NDArray[np.uint16], table: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """source[table], 0 where the table says `ZERO`."""
    found = source[np.where(table == ZERO, 0, table)]
    return np.where(table == ZERO, np.uint16(0), found).astype(np.uint16)


KERNEL = Kernel(
    SYMBOL,
    _source,
    Contract(
        operands=(
            Operand("out", "words", "out", alignment=4),
            Operand("source", "words", "in", alignment=2),
            Operand("table", "words", "in", alignment=2),
        ),
        scalars=(Scalar("count", "elements of the result", 0, 2 * MAXIMUM_WORDS, 2),),
        notes="table: uint16 [count], indices of elements of source, 0xffff for a zero.",
    ),
    cycles,
    reference,
)
