"""Scheduling a phase: from logical transfers to one row per tile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..machine import topology
from .bounds import lower_bound
from .items import CONTINUE, MUX, POINTER
from .orders import candidates
from .rows import compose_arrays
from .transfers import TILE_IDS, Messages, check_transfers, split_transfers

_GOOD_ENOUGH = 1.02
"""Length over bound at which no further order is tried."""


@dataclass(frozen=True)
class Schedule:
    """A scheduled phase.

    Attributes:
        messages: the messages as sent: cut from the transfers, multicasts perhaps divided among receivers.
        starts: sender event at which each message leaves.
        tiles: physical tiles that have a row, ascending.
        ends: event at which each of those rows ends.
        words, word_offsets: the rows' words, concatenated in the order of `tiles`.
        bound: no schedule of the transfers has a shorter longest row (see `lower_bound`).
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
        read, written = _unions(self.messages)
        return read | written

    def length(self, tile: int) -> int:
        """Events of a tile's row; 0 for a tile that sits the phase out."""
        at = int(np.searchsorted(self.tiles, tile))
        return int(self.ends[at]) if at < len(self.tiles) and self.tiles[at] == tile else 0


def schedule(transfers: NDArray[np.void], destinations: NDArray[np.void]) -> Schedule:
    """Rows that carry out a set of transfers, in one phase.

    Args:
        transfers: TRANSFER array.
        destinations: DESTINATION array that the transfers point into.

    Every source must hold its data at the start of the phase: nothing is forwarded within it. The result
    depends on the arguments only. Tiles without a row sit the phase out.

    Raises:
        ScheduleError: see `check_transfers`.
    """
    check_transfers(transfers, destinations)
    messages = split_transfers(transfers, destinations)
    if not len(transfers):
        none = np.zeros(0, dtype=np.int64)
        return Schedule(messages, none, none, none, np.zeros(0, np.uint32), np.zeros(1, np.int64), bound=0)
    bound = lower_bound(messages)
    return _rows(*_regroup(messages, _leaves(messages, bound)), bound)


def _unions(messages: Messages) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per tile: masks of the elements that its sends read and its receives write."""
    read = np.zeros(TILE_IDS, dtype=np.int64)
    written = np.zeros(TILE_IDS, dtype=np.int64)
    np.bitwise_or.at(read, messages.source, messages.elements)
    np.bitwise_or.at(written, messages.tile, messages.written)
    return read, written


def _leaves(messages: Messages, bound: int) -> NDArray[np.int64]:
    """Sender event at which each receiver's words leave: the best of a few greedy placements."""
    from .placement import place

    read, written = _unions(messages)
    leaves = np.zeros(len(messages.tile), dtype=np.int64)
    best, shortest = leaves, None
    for order, parts in candidates(messages, bound):
        leaves = np.zeros(len(messages.tile), dtype=np.int64)
        horizon = place(
            order,
            parts,
            messages.source,
            messages.words,
            messages.elements,
            messages.offsets,
            messages.tile,
            messages.route,
            messages.written,
            _cumulative(np.bincount(messages.source, parts, TILE_IDS)),
            _cumulative(np.bincount(messages.tile, minlength=TILE_IDS)),
            read,
            written,
            leaves,
        )
        if shortest is None or horizon < shortest:
            shortest, best = horizon, leaves
        if shortest <= _GOOD_ENOUGH * bound:
            break
    return best


def _cumulative(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _regroup(messages: Messages, leaves: NDArray[np.int64]) -> tuple[Messages, NDArray[np.int64]]:
    """Messages whose receivers all get the same send, and the events at which they leave."""
    message = np.repeat(np.arange(len(messages.source)), np.diff(messages.offsets))
    order = np.lexsort((leaves, message))
    message, leaves = message[order], leaves[order]
    first = np.concatenate([[True], (np.diff(message) != 0) | (np.diff(leaves) != 0)])
    heads = np.flatnonzero(first)
    kept = message[heads]
    tile = messages.tile[order]
    alone = np.diff(np.append(heads, len(tile))) == 1
    way = topology.direction(messages.source[kept], tile[heads])
    return Messages(
        source=messages.source[kept],
        address=messages.address[kept],
        words=messages.words[kept],
        control=np.where(alone, way, topology.BOTH),
        elements=messages.elements[kept],
        transfer=messages.transfer[kept],
        offsets=np.append(heads, len(tile)),
        tile=tile,
        target=messages.target[order],
        route=messages.route[order],
        written=messages.written[order],
    ), leaves[heads]


def _rows(messages: Messages, starts: NDArray[np.int64], bound: int) -> Schedule:
    """Compose the rows of placed messages."""
    receivers = np.diff(messages.offsets)
    words = np.repeat(messages.words, receivers)
    sender = np.repeat(messages.source, receivers)
    mux = np.repeat(starts, receivers) + messages.route + 1

    order = np.lexsort((starts, messages.source))
    sends = np.stack([starts, messages.words, messages.address, messages.control], axis=1)[order]
    send_tile = messages.source[order]

    order = np.lexsort((mux, messages.tile))
    tile, mux, words, sender = messages.tile[order], mux[order], words[order], sender[order]
    target = messages.target[order]
    store = mux + topology.mux_to_store(tile)
    same = tile[1:] == tile[:-1]
    abuts = same & (mux[:-1] + words[:-1] == mux[1:])
    selected = np.concatenate([[False], abuts & (sender[1:] == sender[:-1])])
    closes = np.concatenate([~abuts, [True]])
    running = np.concatenate([[False], same & (target[:-1] + 4 * words[:-1] == target[1:])])
    event = np.concatenate([mux[~selected], (mux + words)[closes], store])
    kind = np.concatenate(
        [np.full((~selected).sum() + closes.sum(), MUX), np.where(running, CONTINUE, POINTER)]
    )
    neutral = np.full(closes.sum(), topology.MUX_NEUTRAL)
    value = np.concatenate([sender[~selected], neutral, target])
    payload = np.concatenate([np.zeros(len(event) - len(store), dtype=np.int64), words])
    owner = np.concatenate([tile[~selected], tile[closes], tile])
    order = np.lexsort((kind, event, owner))
    controls = np.stack([event, kind, value, payload], axis=1)[order]
    owner = owner[order]

    ends = np.zeros(TILE_IDS, dtype=np.int64)
    np.maximum.at(ends, send_tile, sends[:, 0] + sends[:, 1])
    np.maximum.at(ends, tile, store + words + topology.RECEIVE_GUARD)
    tiles = np.flatnonzero(ends)
    rows, word_offsets = compose_arrays(
        sends,
        np.searchsorted(send_tile, np.append(tiles, TILE_IDS)),
        controls,
        np.searchsorted(owner, np.append(tiles, TILE_IDS)),
        ends[tiles],
        tiles,
    )
    return Schedule(messages, starts, tiles, ends[tiles], rows, word_offsets, bound)
