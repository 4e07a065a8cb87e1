"""Going through the receivers of fragments one by one (compiled): who gets what, and how much that is.

Arrays of fragments and copies are those of `movement`, seen as rows of integers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...native.loops import compiled
from ..fabric.pairing import MINIMUM_ITEMS

Ints = NDArray[np.int64]

SOURCE, SOURCE_OFFSET, WORDS, DESTINATION_OFFSET, FIRST, COUNT = range(6)
"""Columns of fragments."""
TILE, FROM, TO, LENGTH = range(4)
"""Columns of copies."""

PAIRED_LEAST = MINIMUM_ITEMS[0]
"""Fewest 64-bit items as which a fragment reaches both tiles of a pair."""

ALL, PAIRED, NONE = range(3)
"""Senders that take part in their own multicasts, see `divide`."""

RECEIVED, SENT, PIECES, COPIES, COPIED = range(5)
"""Rows of what `add_load` counts."""


def _beside_partner_python(tiles: Ints, first: int, k: int, stop: int) -> bool:
    """True if the other tile of the pair of tiles[k] is among tiles[first:stop], which rise."""
    if tiles[k] % 2:
        return bool(k > first and tiles[k - 1] == tiles[k] - 1)
    return bool(k + 1 < stop and tiles[k + 1] == tiles[k] + 1)


_beside_partner = compiled(_beside_partner_python, "b", "viii")


def _divide_python(
    spans: Ints,
    held: Ints,
    held_first: Ints,
    holder: Ints,
    holds: Ints,
    wanted: Ints,
    wanted_first: Ints,
    want: Ints,
    hearing: int,
    fragments: Ints,
    receivers: Ints,
    copies: Ints,
) -> tuple[int, int, int]:
    made, heard, kept = 0, 0, 0
    for i in range(len(spans)):
        shard, first, stop = holder[i], wanted_first[want[i]], wanted_first[want[i] + 1]
        sender = held[held_first[shard]]
        remote = 0
        for k in range(first, stop):
            if wanted[k] >= len(holds) or holds[wanted[k]] != shard:
                remote += 1
        begin = heard
        for k in range(first, stop):
            to = wanted[k]
            hears_itself = to == sender and remote >= 2 and hearing != NONE
            if hears_itself and hearing == PAIRED:
                hears_itself = _beside_partner(wanted, first, k, stop)
            if to >= len(holds) or holds[to] != shard or hears_itself:
                receivers[heard] = to
                heard += 1
            else:
                copies[kept, TILE] = to
                copies[kept, FROM] = spans[i, SOURCE_OFFSET]
                copies[kept, TO] = spans[i, DESTINATION_OFFSET]
                copies[kept, LENGTH] = spans[i, WORDS] // 2
                kept += 1
        if heard > begin:
            fragments[made, SOURCE] = sender
            fragments[made, SOURCE_OFFSET] = spans[i, SOURCE_OFFSET]
            fragments[made, WORDS] = spans[i, WORDS]
            fragments[made, DESTINATION_OFFSET] = spans[i, DESTINATION_OFFSET]
            fragments[made, FIRST] = begin
            fragments[made, COUNT] = heard - begin
            made += 1
    return made, heard, kept


divide = compiled(_divide_python, "3", "mvvvvvvvimvm")
"""Divide the receivers of spans into those that are sent to and those that copy what they hold.

`spans` are fragments without tiles, of shard `holder` to shard `want`. The tiles that hold shard s of the
source are `held[held_first[s] : held_first[s + 1]]`, and `holds` is the shard that each tile holds, or -1;
`wanted` and `wanted_first` are likewise those of the destination. A sender that needs a span itself takes
part in its own multicast when at least two others receive it and `hearing` is ALL, or PAIRED and its partner
wants it too. Fills `fragments`, `receivers` and `copies`, all large enough; returns how many there are of
each.
"""


def _add_load_python(fragments: Ints, receivers: Ints, copies: Ints, totals: Ints) -> None:
    for i in range(len(fragments)):
        words, first = fragments[i, WORDS], fragments[i, FIRST]
        stop = first + fragments[i, COUNT]
        totals[SENT, fragments[i, SOURCE]] += words
        paired = words if words % 2 or words < 2 * PAIRED_LEAST else words // 2
        for k in range(first, stop):
            to = receivers[k]
            together = _beside_partner(receivers, first, k, stop)
            totals[RECEIVED, to] += paired if together else words
            totals[PIECES, to] += 1
    for i in range(len(copies)):
        totals[COPIES, copies[i, TILE]] += 1
        totals[COPIED, copies[i, TILE]] += copies[i, LENGTH]


add_load = compiled(_add_load_python, "-", "mvmm")
"""Add what a move asks of every tile to `totals`, rows as above: events of receiving, words sent, fragments
received, copies and the 64-bit words of these."""
