"""Kernels whose workers take equal runs of 8-byte words: the text around their work, and their cycles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...arithmetic import ceil_div
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from .kernel import Scalar
from .text import bundle, section, worker

SIXTH = 43691
"""n * SIXTH >> 18 == n // 6 for 0 <= n <= 98303 with a 32-bit product."""
MAXIMUM_WORDS = 98298

WORDS = Scalar("words", "8-byte words", 0, MAXIMUM_WORDS)

SHARE_SLOTS = 10
"""Slots of a worker before it turns to its own words."""
SUPERVISOR = 27 + RUN_LAUNCH + RUN_RELEASE
"""Cycles of a call beside its workers."""
RETURN = 12
"""Cycles of a call without work: two taken branches."""


def share_lines(symbol: str, aux: Iterable[str] = ()) -> list[str]:
    """Worker's first `SHARE_SLOTS`: it gets ceil(words / 6) consecutive words, the last workers fewer or
    none.

    Leaves $m1 = its number of words, at least 1, and $m0 = byte offset of the first; a worker without words
    goes to `.L<symbol>_exit`. Frame: words per worker, all words. Uses $m0..$m3.

    Args:
        aux: instructions co-issued with the first slots.
    """
    lines = [
        "get $m0, $WSR",
        "and $m0, $m0, 7",
        "ld32 $m2, $mvertex_base, $mzero, 0",
        "ld32 $m1, $mvertex_base, $mzero, 1",
        "mul $m0, $m0, $m2",
        "sub $m1, $m1, $m0",
        "min $m1, $m1, $m2",
        "cmpslt $m3, $m1, 1",
        f"brnz $m3, .L{symbol}_exit",
        "shl $m0, $m0, 3",
    ]
    for index, instruction in enumerate(aux):
        lines[index] = bundle(lines[index], instruction)
    return lines


def words_kernel(
    symbol: str,
    arguments: Iterable[str],
    count: str,
    lines: Iterable[str],
    aux: Iterable[str] = (),
    head: Iterable[str] = (),
) -> str:
    """Text of a kernel whose workers share the words.

    Args:
        arguments: registers the workers find in their frame, from word 2 on.
        count: register with the number of words; 0 returns at once.
        lines: worker code behind `share_lines`. `.L<symbol>_exit` follows it.
        aux: see `share_lines`.
        head: supervisor code in front.
    """
    passed = list(arguments)
    return section(
        symbol,
        [
            *head,
            f"brz {count}, .L{symbol}_return",
            f"add $m0, {count}, 5",
            f"setzi $m1, {SIXTH}",
            f"add $m9, $m11, -{frame_bytes(len(passed))}",
            f"setzi $m8, .L{symbol}_worker",
            "mul $m0, $m0, $m1",
            f"st32 {count}, $m9, $mzero, 1",
            *(f"st32 {register}, $m9, $mzero, {index + 2}" for index, register in enumerate(passed)),
            "shr $m0, $m0, 18",
            "st32 $m0, $m9, $mzero, 0",
            "runall $m8, $m9, 0",
            "sync 2",
            f".L{symbol}_return:",
            "br $m10",
            *worker(
                f".L{symbol}_worker", [*share_lines(symbol, aux), *lines, f".L{symbol}_exit:", "exitz $m15"]
            ),
        ],
    )


def frame_bytes(arguments: int) -> int:
    """Size of a frame with the two numbers `share_lines` needs and some arguments, in whole 8-byte steps."""
    return -(-(2 + arguments) // 2) * 8


def words_cycles(words: Any, once: int, each: int, supervisor: int = SUPERVISOR) -> Any:
    """Cycles of a call: `once` slots per worker outside the loop, `each` per word beyond the first."""
    share = ceil_div(words, WORKER_SLOTS)
    slots = SHARE_SLOTS + once + each * (share - 1)
    return np.where(np.asarray(words) > 0, supervisor + WORKER_SLOTS * slots, RETURN) + 0
