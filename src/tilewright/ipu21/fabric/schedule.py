"""Scheduling a phase: from logical transfers to one row per tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .bounds import lower_bound
from .greedy import element_unions, leaving_events
from .joining import continued, shared
from .messages import Ints, Messages, Spans, as_messages, cut, directions, spans_of
from .pairing import MINIMUM_ITEMS, entirely, least_items, pairs, widened
from .rows import compose_arrays
from .transfers import TILE_IDS, check_transfers
from .units import halved
from .writes import register_writes


@dataclass(frozen=True)
class Schedule:
    """A scheduled phase.

    Attributes:
        messages: the messages as sent: cut from the transfers, multicasts perhaps divided among receivers,
            some perhaps as 64-bit items.
        starts: sender event at which each message leaves.
        tiles: physical tiles that have a row, ascending.
        ends: event at which each of those rows ends.
        words, word_offsets: the rows' words, concatenated in the order of `tiles`.
        bound: no schedule of the transfers has a shorter longest row, 64-bit items included (see
        `lower_bound`).
    """

    messages: Messages
    starts: NDArray[np.int64]
    tiles: NDArray[np.int64]
    ends: NDArray[np.int64]
    words: NDArray[np.uint32]
    word_offsets: NDArray[np.int64]
    bound: int

    @cached_property
    def rows(self) -> dict[int, NDArray[np.uint32]]:
        """Words of every row by physical tile: event 0 is the first word, the last is `br $m10`."""
        bounds = self.word_offsets
        return {int(tile): self.words[bounds[i] : bounds[i + 1]] for i, tile in enumerate(self.tiles)}

    @property
    def horizon(self) -> int:
        """Events of the longest row."""
        return int(self.ends.max(initial=0))

    @cached_property
    def element_masks(self) -> NDArray[np.int64]:
        """By physical tile: bit e set if messages read or write effective element e. The tile's row, with
        FETCH_LOOKAHEAD_BYTES behind it, must lie in other elements."""
        read, written = element_unions(self.messages)
        return read | written

    def length(self, tile: int) -> int:
        """Events of a tile's row; 0 for a tile that sits the phase out."""
        at = int(np.searchsorted(self.tiles, tile))
        return int(self.ends[at]) if at < len(self.tiles) and self.tiles[at] == tile else 0


def schedule(
    transfers: NDArray[np.void], destinations: NDArray[np.void], *, forwarding: bool = False
) -> Schedule:
    """Rows that carry out a set of transfers, in one phase.

    Args:
        transfers: TRANSFER array.
        destinations: DESTINATION array that the transfers point into.
        forwarding: a transfer that reads bytes which others of the phase write sends on what they bring, and
            leaves only after that has arrived. Otherwise such transfers are refused.

    The result depends on the arguments only. Tiles without a row sit the phase out. Whatever both tiles of a
    pair want is sent as 64-bit items if that makes the phase shorter.

    Raises:
        ScheduleError: see `check_transfers` and `forwarding.waits`.
    """
    check_transfers(transfers, destinations, forwarding=forwarding)
    spans = spans_of(transfers, destinations)
    if not len(transfers):
        none = np.zeros(0, dtype=np.int64)
        return Schedule(cut(spans), none, none, none, np.zeros(0, np.uint32), np.zeros(1, np.int64), bound=0)
    once = shared(spans)
    bound = lower_bound(as_messages(once), *least_items(once, pairs(once)))
    variants = (cut(variant) for variant in _variants(spans, once, joining=not forwarding))
    found = leaving_events(variants, bound, forwarding=forwarding)
    return _rows(*_regroup(found.messages, found.leaves), bound)


def _variants(spans: Spans, once: Spans, *, joining: bool) -> Iterator[Spans]:
    """Shared bytes sent once and what continues joined; not joined; as asked. Each with 64-bit items wherever
    they save time for sure, only where no receiver is left out, wherever possible, and nowhere. What goes to
    one tile each also in halves.
    """
    forms = [continued(once) if joining else once]
    forms += [once] if forms[0] is not once else []
    forms += [spans] if once is not spans else []
    for form in forms:
        tried: list[NDArray[np.bool_]] = []
        for minimum in MINIMUM_ITEMS:
            paired = pairs(form, minimum)
            for chosen in (paired, entirely(form, paired)):
                if chosen.any() and not any(np.array_equal(chosen, other) for other in tried):
                    tried.append(chosen)
                    yield widened(form, chosen)
        yield form
    if joining and (np.diff(forms[0].offsets) == 1).all():
        yield halved(forms[0])


def _regroup(messages: Messages, leaves: Ints) -> tuple[Messages, Ints]:
    """Messages whose receivers all get the same send, and the events at which they leave."""
    owner = messages.owner
    order = np.argsort(owner << 40 | leaves, kind="stable")
    owner, leaves = owner[order], leaves[order]
    heads = np.flatnonzero(np.concatenate([[True], (np.diff(owner) != 0) | (np.diff(leaves) != 0)]))
    kept = owner[heads]
    spans = Spans(
        source=messages.source[kept],
        address=messages.address[kept],
        words=messages.words[kept],
        wide=messages.wide[kept],
        transfer=messages.transfer[kept],
        offsets=np.append(heads, len(leaves)),
        tile=messages.tile[order],
        target=messages.target[order],
    )
    return Messages(
        **vars(spans),
        control=directions(spans),
        elements=messages.elements[kept],
        route=messages.route[order],
        written=messages.written[order],
    ), leaves[heads]


def _rows(messages: Messages, starts: Ints, bound: int) -> Schedule:
    """Compose the rows of placed messages."""
    order = np.lexsort((starts, messages.source))
    sends = np.stack([starts, messages.items, messages.address, messages.control], axis=1)[order]
    send_tile = messages.source[order]
    controls, bounds, ends = register_writes(messages, starts)
    np.maximum.at(ends, send_tile, sends[:, 0] + sends[:, 1])
    tiles = np.flatnonzero(ends)
    rows, word_offsets = compose_arrays(
        sends,
        np.searchsorted(send_tile, np.append(tiles, TILE_IDS)),
        controls,
        np.append(bounds[tiles], bounds[TILE_IDS]),
        ends[tiles],
        tiles,
    )
    return Schedule(messages, starts, tiles, ends[tiles], rows, word_offsets, bound)
