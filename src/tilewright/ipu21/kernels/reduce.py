"""`reduce_f16`: own partial sum plus `remote_count` others, summed in float32 and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arithmetic import ceil_div
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar
from .launch import MAXIMUM_WORDS, RETURN
from .reduce_source import TAIL_SLOTS, UNROLLED, source, start_slots

SUPERVISOR = {True: 50 + RUN_LAUNCH + RUN_RELEASE, False: 51 + RUN_LAUNCH + RUN_RELEASE}
"""Cycles of a wide or plain call beside its workers; plain ones take up to 3 more, by what made them plain.
"""


def cycles(remote: Any, words: Any, columns: Any, wide: bool = True) -> Any:
    """Cycles of a call (exact on the simulator if wide, up to 3 too low if plain); integers or arrays.

    Args:
        wide: the operands allow the fast way, see `reduce_source.is_wide`; an odd number of words never does.
    """
    remote, words, columns = (np.asarray(value, dtype=np.int64) for value in (remote, words, columns))
    plain = _way(remote, words, words * columns, False)
    chosen = (
        np.where(words % 2 == 0, _way(remote, words // 2, words * columns // 2, True), plain)
        if wide
        else plain
    )
    return np.where(words * columns > 0, chosen, RETURN + 1 + (words > 0))


def _way(remote: Any, group: Any, total: Any, wide: bool) -> Any:
    """Cycles with `total` units in groups of `group`."""
    share = ceil_div(total, WORKER_SLOTS)
    group = np.maximum(group, 1)
    unrolled = (remote <= UNROLLED) & wide
    each = remote + np.where(unrolled, 5, 7 if wide else 6)
    slots = np.zeros(np.broadcast(remote, total).shape, dtype=np.int64)
    for index in range(WORKER_SLOTS):
        first = index * share
        left = np.minimum(total - first, share) - 1
        in_group = group - 1 - first % group
        groups = 1 + np.maximum(0, ceil_div(left - in_group, group))
        # A group without a step (only the first can be one) skips its loop.
        entered = groups - ((in_group == 0) | (left <= 0))
        around = 6 * groups + np.where(unrolled, 0, entered) + wide
        busy = start_slots(wide) + around + left * each + TAIL_SLOTS[wide] + remote
        slots = np.maximum(slots, np.where(left >= 0, busy, 0))
    return SUPERVISOR[wide] + WORKER_SLOTS * slots


def reference(own: Halves, remote: Halves) -> Halves:
    """own [groups, words * 4] plus remote [partials, groups, words * 4], added in order in float32, rounded
    once.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        total = own.astype(np.float32)
        for partial in remote:
            total = total + partial.astype(np.float32)
        return to_halves(total)


KERNEL = Kernel(
    "reduce_f16",
    source,
    Contract(
        operands=(
            Operand("out", "words", "out"),
            Operand("own", "words", "in"),
            Operand("remote", "words", "in"),
        ),
        scalars=(
            Scalar("remote_count", "remote partials", 1, 4096),
            Scalar("words", "8-byte words per column group", 0, MAXIMUM_WORDS),
            Scalar("columns", "column groups", 0, MAXIMUM_WORDS),
            Scalar("own_stride", "bytes from one group of the own partial to the next", 0, multiple=8),
            Scalar("remote_stride", "bytes from one remote partial to the next", 0, multiple=8),
        ),
        may_alias=(("out", "own"),),
        notes=(
            "words * columns <= 98292. Fastest where own and remote lie in interleaved memory and they, both "
            "strides and 8 * words are multiples of 16."
        ),
    ),
    cycles,
    reference,
)
