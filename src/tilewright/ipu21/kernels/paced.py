"""Kernels over words with two worker loops: one that loads and stores in the same slot, and one that does
not.

A paced instruction that loads word i + 1 of one array and stores word i of another must not meet one memory
element twice. It cannot if the arrays share no 32 KiB block, or if both lie in interleaved memory at
addresses with the same
bit 3: then the two words have opposite parity. The supervisor tests that when called (conservatively: region
0 is judged by 32 KiB too, and an array that ends at a block's end counts for the next block).
"""

from __future__ import annotations

from collections.abc import Iterable

from ..machine.memory import REGION1_BASE, REGION1_SHIFT
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE
from .launch import SIXTH, frame_bytes, share_lines
from .text import section, worker

BLOCK_SHIFT = 15
"""Arrays are apart if they share no block of this size, which is an element of interleaved memory."""

SUPERVISOR_CYCLES = {
    "interleaved": 40 + RUN_LAUNCH + RUN_RELEASE,
    "apart": 51 + RUN_LAUNCH + RUN_RELEASE,
    "plain": 50 + RUN_LAUNCH + RUN_RELEASE,
}
"""Supervisor cycles of a call by the way it takes, workers not counted."""


def way(load: int, store: int, words: int) -> str:
    """Which way a call takes: paced because both arrays are "interleaved" or lie "apart", or "plain".

    Args:
        load, store: byte addresses of the arrays that are loaded and stored.
    """
    if load >= REGION1_BASE and store >= REGION1_BASE and (load ^ store) & 8 == 0:
        return "interleaved"
    load_last, store_last = (load + 8 * words) >> BLOCK_SHIFT, (store + 8 * words) >> BLOCK_SHIFT
    apart = load_last < store >> BLOCK_SHIFT or store_last < load >> BLOCK_SHIFT
    return "apart" if apart else "plain"


def paced_kernel(
    symbol: str,
    arguments: Iterable[str],
    count: str,
    *,
    load: str,
    store: str,
    paced: Iterable[str],
    plain: Iterable[str],
    head: Iterable[str] = (),
) -> str:
    """Text of a kernel with both loops; see `launch.words_kernel`.

    Args:
        load, store: registers with the two addresses to judge.
        paced, plain: worker code behind `share_lines`, each up to its end without `exitz`.
        head: supervisor code in front.
    """
    passed = list(arguments)
    frame = frame_bytes(len(passed))
    return section(
        symbol,
        [
            *head,
            f"brz {count}, .L{symbol}_return",
            f"shl $m6, {count}, 3",
            f"add $m0, {count}, 5",
            f"and $m8, {load}, {store}",
            f"xor $m1, {load}, {store}",
            f"setzi $m9, {SIXTH}",
            f"add $m11, $m11, -{frame}",
            f"add $m7, {load}, $m6",
            f"add $m6, {store}, $m6",
            f"shr $m8, $m8, {REGION1_SHIFT}",
            "shr $m1, $m1, 3",
            "mul $m0, $m0, $m9",
            f"st32 {count}, $m11, $mzero, 1",
            *(f"st32 {register}, $m11, $mzero, {index + 2}" for index, register in enumerate(passed)),
            "andc $m8, $m8, $m1",
            f"shr $m7, $m7, {BLOCK_SHIFT}",
            f"shr $m6, $m6, {BLOCK_SHIFT}",
            f"shr $m1, {store}, {BLOCK_SHIFT}",
            f"shr $m9, {load}, {BLOCK_SHIFT}",
            "shr $m0, $m0, 18",
            f"brnz $m8, .L{symbol}_choose_paced",
            "cmpult $m7, $m7, $m1",
            "cmpult $m6, $m6, $m9",
            "st32 $m0, $m11, $mzero, 0",
            "or $m7, $m7, $m6",
            f"setzi $m8, .L{symbol}_worker",
            f"brz $m7, .L{symbol}_launch",
            f".L{symbol}_choose_paced:",
            f"setzi $m8, .L{symbol}_worker_paced",
            "st32 $m0, $m11, $mzero, 0",
            f".L{symbol}_launch:",
            "runall $m8, $m11, 0",
            f"add $m11, $m11, {frame}",
            "sync 2",
            f".L{symbol}_return:",
            "br $m10",
            *worker(f".L{symbol}_worker", [*share_lines(symbol), *plain, f".L{symbol}_exit:", "exitz $m15"]),
            *worker(f".L{symbol}_worker_paced", [*share_lines(symbol), *paced, "exitz $m15"]),
        ],
    )
