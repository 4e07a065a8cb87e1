"""Forwarding within a phase: which messages read what others of the same phase bring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import ScheduleError
from .messages import Ints, Messages, cumulative, slices

_BASE = 1 << 20


@dataclass(frozen=True)
class Waits:
    """What each message waits for.

    Message i may leave once its tile has stored what the receivers `receiver[offsets[i]:offsets[i+1]]` take
    (indices into the receiver arrays). `depth` is the length of the longest chain before it, 0 for none.
    """

    offsets: Ints
    receiver: Ints
    depth: Ints


def waits(messages: Messages) -> Waits:
    """The waits of messages whose sources may be written by other messages of the phase.

    Raises:
        ScheduleError: messages that wait for one another in a circle.
    """
    owner = messages.owner
    begin = messages.tile * _BASE + messages.target
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], (begin + 4 * messages.words[owner])[order]
    read = messages.source * _BASE + messages.address
    # No byte is written twice, so the ends are sorted too.
    low = np.searchsorted(end, read, side="right")
    high = np.searchsorted(begin, read + 4 * messages.words, side="left")
    count = np.maximum(high - low, 0)
    receiver = order[slices(low, count)]
    offsets = cumulative(count)
    waiting = np.repeat(np.arange(len(read)), count)
    depth = np.zeros(len(read), dtype=np.int64)
    for _ in range(len(read) + 1):
        deeper = depth.copy()
        np.maximum.at(deeper, waiting, depth[owner[receiver]] + 1)
        if np.array_equal(deeper, depth):
            return Waits(offsets, receiver, depth)
        depth = deeper
    stuck = int(messages.transfer[np.argmax(depth)])
    raise ScheduleError("it waits for itself, by what others forward", where=f"transfer {stuck}")
