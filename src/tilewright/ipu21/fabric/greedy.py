"""Finding when messages leave: a few greedy placements, of which the best is kept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..machine import topology
from . import routes
from .forwarding import Waits, waits
from .messages import Ints, Messages, cumulative, slices
from .orders import candidates
from .pairing import early
from .transfers import TILE_IDS

GOOD_ENOUGH, _GOOD_ENOUGH_IF_MANY = 1.02, 1.05
_MANY = 150_000
"""Length over bound at which no further placement is tried; the second once so many receivers were placed."""

_LIMITS, _PATIENCE, _EASE = (1.0, 1.03), (0.25, 0.1, 0.5, 0.02, 1.0), (40, 100, 15)
"""Parameters of the sweeps tried: length aimed at and patience over the bound, ease in percent. Measured: the
best of the first few is nearly always within 2 % of the bound."""
_SWEEPS, _SWEPT = 96, 400_000
"""Most sweeps tried, and most receivers placed by all of them together; three are always tried."""
_PLACED = 100_000
"""Receivers of multicasts up to which other placements are tried too."""


def leaving_events(messages: Messages, bound: int, *, forwarding: bool = False) -> tuple[Ints, int]:
    """Sender event at which each receiver's items leave, and the latest row end.

    `bound` is that of `bounds.lower_bound`; `forwarding` tells that messages may read what others bring.
    """
    best, shortest = np.zeros(0, dtype=np.int64), 1 << 62
    placed = 0
    for leaves, horizon in _placements(messages, bound, waits(messages) if forwarding else None):
        placed += len(leaves)
        if horizon < shortest:
            best, shortest = leaves, horizon
        if shortest <= (GOOD_ENOUGH if placed < _MANY else _GOOD_ENOUGH_IF_MANY) * bound:
            break
    return best, shortest


def element_unions(messages: Messages) -> tuple[Ints, Ints]:
    """Per tile: masks of the elements that its sends read and its receives write."""
    read = np.zeros(TILE_IDS, dtype=np.int64)
    written = np.zeros(TILE_IDS, dtype=np.int64)
    np.bitwise_or.at(read, messages.source, messages.elements)
    np.bitwise_or.at(written, messages.tile, messages.written)
    return read, written


class _Tables:
    """The messages as the compiled loops want them."""

    def __init__(self, messages: Messages) -> None:
        from .placement import EARLY, WIDE

        self.messages = messages
        self.count = np.diff(messages.offsets)
        owner = messages.owner
        sender = messages.source[owner]
        wide = messages.wide[owner]
        kind = routes.direction(sender, messages.tile) | WIDE
        kind |= np.where(early(sender, messages.tile), EARLY, 0)
        kind = np.where(wide, kind, 0)
        self.receivers = np.stack([messages.tile, messages.route, kind, messages.written], axis=1)
        own = np.bincount(owner[messages.tile == sender], minlength=len(messages.source))
        columns = (messages.source, messages.items, messages.control, messages.elements, own)
        self.columns = np.stack([*columns, messages.offsets[:-1]], axis=1)
        heard = np.bincount(messages.tile, minlength=TILE_IDS)
        self.tiles = np.zeros((TILE_IDS + 1, 7), dtype=np.int64)
        self.tiles[:, 2] = cumulative(heard)
        self.tiles[:-1, 4], self.tiles[:-1, 5] = element_unions(messages)
        self.tiles[:-1, 6] = np.bincount(messages.tile[wide], minlength=TILE_IDS)

    def ordered(self, order: Ints) -> tuple[Ints, Ints, Ints]:
        """Messages in an order (with a last row), their receivers, and the indices of these."""
        receivers = slices(self.messages.offsets[order], self.count[order])
        columns = np.concatenate([self.columns[order], np.zeros((1, 6), dtype=np.int64)])
        columns[:, 5] = cumulative(self.count[order])
        return columns, self.receivers[receivers], receivers

    def tiles_with(self, sends: Ints) -> Ints:
        """The tiles, with room for this many sends of every message."""
        wide = np.flatnonzero(self.messages.wide)
        room = np.bincount(self.messages.source, sends, TILE_IDS)
        room += np.bincount(topology.partner(self.messages.source[wide]), sends[wide], TILE_IDS)
        tiles = self.tiles.copy()
        tiles[:, 0] = cumulative(room.astype(np.int64))
        return tiles


def _placements(messages: Messages, bound: int, chained: Waits | None) -> Iterator[tuple[Ints, int]]:
    """Placements, most promising first. Multicasts seldom find all receivers free together: they are swept
    first, unless messages wait for one another."""
    tables = _Tables(messages)
    single = bool((tables.count == np.where(messages.wide, 2, 1)).all())
    if not single and chained is None:
        yield from _sweeps(tables, bound)
    if single or chained is not None or len(messages.tile) <= _PLACED:
        yield from _insertions(tables, bound, chained)


def _insertions(tables: _Tables, bound: int, chained: Waits | None) -> Iterator[tuple[Ints, int]]:
    from .placement import place

    nothing = np.zeros(len(tables.count) + 1, dtype=np.int64)
    for order, parts in candidates(tables.messages, bound):
        if chained is not None:
            order = order[np.argsort(chained.depth[order], kind="stable")]
        columns, receivers, index = tables.ordered(order)
        offsets, awaited = nothing, nothing[:0]
        if chained is not None:
            count = np.diff(chained.offsets)[order]
            offsets = cumulative(count)
            place_of = np.empty_like(index)
            place_of[index] = np.arange(len(index))
            awaited = place_of[chained.receiver[slices(chained.offsets[order], count)]]
        placed = np.zeros(len(index), dtype=np.int64)
        tiles = tables.tiles_with(parts)
        horizon = place(parts[order], columns, receivers, tiles, offsets, awaited, placed)
        leaves = np.empty_like(placed)
        leaves[index] = placed
        yield leaves, horizon


def _sweeps(tables: _Tables, bound: int) -> Iterator[tuple[Ints, int]]:
    from .placement import sweep

    messages = tables.messages
    columns, receivers, _ = tables.ordered(np.arange(len(messages.source)))
    tiles = tables.tiles_with(tables.count)
    owner, by_tile = messages.owner, np.argsort(messages.tile, kind="stable")
    tries = min(max(_SWEPT // len(owner), 3), _SWEEPS)
    grid = [(limit, patience, ease) for limit in _LIMITS for ease in _EASE for patience in _PATIENCE]
    for attempt in range(tries):
        limit, patience, ease = grid[attempt % len(grid)]
        salt = attempt // len(grid)
        leaves = np.full(len(owner), -1, dtype=np.int64)
        horizon = sweep(
            int(limit * bound),
            int(patience * bound),
            ease,
            salt,
            owner,
            by_tile.copy(),
            columns,
            receivers,
            tiles.copy(),
            leaves,
        )
        yield leaves, horizon
