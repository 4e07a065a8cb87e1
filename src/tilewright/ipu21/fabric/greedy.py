"""Finding when messages leave: a few greedy placements, of which the best is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..machine import topology
from . import routes
from .bounds import lower_bound
from .choosing import choose
from .forwarding import Waits, waits
from .gangs import Parts, ganged
from .messages import Ints, Messages, cumulative, slices
from .orders import candidates
from .pairing import early
from .placement import place
from .sweeping import sweep
from .tables import EARLY, KIND, NEVER, ODD, STEADY, WIDE, Asked, room_for
from .transfers import TILE_IDS

_ENOUGH = ((600_000, 1e9), (400_000, 1.10), (200_000, 1.05), (0, 1.02))
"""(receivers placed by all that was tried, length over bound at which nothing more is tried then)."""
_LOOKS = 4
"""Looks at a receiver, to see when it could take a message, that count as much as placing one."""
_CHOICES = ((400_000, 4), (0, 32))
"""(receivers, messages that a queue chooses among). Measured: more than 32 gain nothing."""
_MOST_LOOKS = 10
"""Looks per receiver at which a placement is given up: where register writes keep meeting, it is poor."""

_LIMITS, _PATIENCE, _EASE = (1.0, 1.03), (0.25, 0.1, 0.5, 0.02, 1.0), (40, 100, 15)
"""Parameters of the sweeps tried: length aimed at and patience over the bound, ease in percent. Measured: the
best of the first few is nearly always within 2 % of the bound."""
_SWEEPS = 96
"""Most sweeps tried of one set of messages."""
_HOPE, _HOPELESS = 2, 1.09
"""Of one kind of placement, no more are tried if the first so many are all longer by so much than what is
known. Measured: later ones differ by less."""
_STALE, _NEAR = 30, 1.10
"""Placements of one kind that do not better what is known, after which no more are tried if that is so near
the bound."""
_PLACED = 100_000
"""Receivers of multicasts up to which other placements are tried too."""

Placement = tuple[Ints, int, int]
"""Sender event at which each receiver's items leave, the latest row end, and the effort: receivers placed."""


_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Found:
    """The best placement found: of which messages, when each receiver's items leave, the latest row end."""

    messages: Messages
    leaves: Ints
    horizon: int


def leaving_events(variants: Iterable[Messages], bound: int, *, forwarding: bool = False) -> Found:
    """The best of some placements of messages, which may be formed in several ways.

    Args:
        variants: ways to form the messages, at least one, the most promising first.
        bound: no placement can be shorter.
        forwarding: messages may read what others bring.

    Each variant is placed in one way; the effort then goes to other placements of them, best first, by one
    kind of placement after the other.
    """
    best: Found | None = None
    effort = 0
    reached: list[tuple[int, int, _Tables]] = []
    for messages in variants:
        least = lower_bound(messages)
        if best is not None and least >= best.horizon:
            continue
        tables = _Tables(messages, bound, waits(messages) if forwarding else None)
        shortest = NEVER
        for leaves, horizon, placed in tables.first(NEVER if best is None else best.horizon):
            effort += placed
            shortest = min(shortest, horizon)
            if best is None or horizon < best.horizon:
                best = Found(messages, leaves, horizon)
            if best.horizon <= _enough(effort) * bound:
                return best
        reached.append((shortest, least, tables))
    reached.sort(key=lambda entry: entry[0])
    # Where there are no gangs, multicasts seldom find all their receivers free together.
    kinds = (_Tables.swept, _Tables.inserted) if best is None else (_Tables.inserted, _Tables.swept)
    for others in kinds:
        for _, least, tables in reached:
            if best is not None and least >= best.horizon:
                continue
            for leaves, horizon, placed in others(tables, NEVER if best is None else best.horizon):
                effort += placed
                if best is None or horizon < best.horizon:
                    best = Found(tables.messages, leaves, horizon)
                if best.horizon <= _enough(effort) * bound:
                    return best
    assert best is not None, "there is a variant, and every variant can be placed"
    return best


def _enough(effort: int) -> float:
    return _at(_ENOUGH, effort)


def _at(steps: tuple[tuple[int, _Value], ...], size: int) -> _Value:
    """The value of the first of the (least size, value) steps that a size reaches."""
    return next(value for least, value in steps if size >= least)


def _hopeful(placements: Iterator[Placement], known: int, bound: int) -> Iterator[Placement]:
    """Placements of one kind, as long as they may become shorter than `known`."""
    shortest, stale = NEVER, 0
    for count, placement in enumerate(placements, 1):
        yield placement
        shortest = min(shortest, placement[1])
        stale = 0 if placement[1] < known else stale + 1
        known = min(known, placement[1])
        if count == _HOPE and shortest > _HOPELESS * known:
            return
        if stale >= _STALE and known <= _NEAR * bound:
            return


def element_unions(messages: Messages) -> tuple[Ints, Ints]:
    """Per tile: masks of the elements that its sends read and its receives write."""
    read = np.zeros(TILE_IDS, dtype=np.int64)
    written = np.zeros(TILE_IDS, dtype=np.int64)
    np.bitwise_or.at(read, messages.source, messages.elements)
    np.bitwise_or.at(written, messages.tile, messages.written)
    return read, written


class _Tables:
    """One way to form the messages, as the compiled loops want them, and the placements of these."""

    def __init__(self, messages: Messages, bound: int, chained: Waits | None) -> None:
        self.messages, self.bound, self.chained = messages, bound, chained
        self.count = np.diff(messages.offsets)
        owner = messages.owner
        sender = messages.source[owner]
        wide = messages.wide[owner]
        kind = routes.direction(sender, messages.tile) | WIDE
        kind |= np.where(early(sender, messages.tile), EARLY, 0)
        kind = np.where(wide, kind, 0)
        self.steady = np.where(wide, STEADY | ODD * routes.place_parity(messages.tile), 0)
        self.receivers = np.stack([messages.tile, messages.route, kind, messages.written], axis=1)
        own = np.bincount(owner[messages.tile == sender], minlength=len(messages.source))
        columns = (messages.source, messages.items, messages.control, messages.elements, own)
        self.columns = np.stack([*columns, messages.offsets[:-1]], axis=1)
        heard = np.bincount(messages.tile, minlength=TILE_IDS)
        self.tiles = np.zeros((TILE_IDS + 1, 7), dtype=np.int64)
        self.tiles[:, 2] = cumulative(heard)
        self.tiles[:-1, 4], self.tiles[:-1, 5] = element_unions(messages)
        self.tiles[:-1, 6] = np.bincount(messages.tile[wide], minlength=TILE_IDS)
        self.single = bool((self.count == np.where(messages.wide, 2, 1)).all())
        self._orders = candidates(messages, bound)
        self._ways = (True, False) if messages.wide.all() else (False, True) if wide.any() else (False,)

    def first(self, known: int) -> Iterator[Placement]:
        """The placements most likely to be good.

        Args:
            known: length of the best placement so far.
        """
        if self.single or self.chained is not None:
            order, parts = next(self._orders)
            yield self._inserted(order, parts)
            return
        for stairs in (True, False):
            for ways in self._ways:
                parted = ganged(self.messages, stairs=stairs, ways=ways)
                if parted is not None:
                    placement = self._in_turn(parted, ways) if stairs else self._chosen(parted, ways, known)
                    known = min(known, placement[1])
                    yield placement

    def inserted(self, known: int) -> Iterator[Placement]:
        """Further placements, one message after another.

        Args:
            known: length of the best placement so far.
        """
        inserted = (self._inserted(order, parts) for order, parts in self._orders)
        if self.single or self.chained is not None:
            yield from inserted
        elif len(self.messages.tile) <= _PLACED:
            yield from _hopeful(inserted, known, self.bound)

    def swept(self, known: int) -> Iterator[Placement]:
        """Further placements of multicasts that do not wait for one another: receivers choose.

        Args:
            known: length of the best placement so far.
        """
        if not self.single and self.chained is None:
            yield from _hopeful(self._sweeps(), known, self.bound)

    def _ordered(self, order: Ints) -> tuple[Ints, Ints, Ints]:
        """Messages in an order (with a last row), their receivers, and the indices of these."""
        receivers = slices(self.messages.offsets[order], self.count[order])
        columns = np.concatenate([self.columns[order], np.zeros((1, 6), dtype=np.int64)])
        columns[:, 5] = cumulative(self.count[order])
        return columns, self.receivers[receivers], receivers

    def _tiles_with(self, sends: Ints) -> Ints:
        """The tiles, with room for this many sends of every message."""
        wide = np.flatnonzero(self.messages.wide)
        room = np.bincount(self.messages.source, sends, TILE_IDS)
        room += np.bincount(topology.partner(self.messages.source[wide]), sends[wide], TILE_IDS)
        tiles = self.tiles.copy()
        tiles[:, 0] = cumulative(room.astype(np.int64))
        return tiles

    def _inserted(self, order: Ints, parts: Ints) -> Placement:
        """Messages one after another, each as early as it can be."""
        chained = self.chained
        if chained is not None:
            order = order[np.argsort(chained.depth[order], kind="stable")]
        columns, receivers, index = self._ordered(order)
        offsets, awaited = np.zeros(len(order) + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if chained is not None:
            count = np.diff(chained.offsets)[order]
            offsets = cumulative(count)
            place_of = np.empty_like(index)
            place_of[index] = np.arange(len(index))
            awaited = place_of[chained.receiver[slices(chained.offsets[order], count)]]
        placed = np.zeros(len(index), dtype=np.int64)
        tiles = self._tiles_with(parts)
        asked = Asked(columns, receivers, tiles)
        horizon = place(parts[order], asked, offsets, awaited, room_for(tiles), placed)
        leaves = np.empty_like(placed)
        leaves[index] = placed
        return leaves, horizon, len(leaves)

    def _chosen(self, parted: Parts, ways: bool, known: int) -> Placement:
        """Queues of parts of messages side by side.

        Args:
            ways: each part is driven one way.
            known: length from which on the placement is given up.
        """
        asked = self._tables_of(parted, ways)
        count = len(asked.receivers)
        placed, looks = np.zeros(count, dtype=np.int64), np.zeros(1, dtype=np.int64)
        bounds = (_at(_CHOICES, count), known, _MOST_LOOKS * count if known < NEVER else NEVER)
        queues = (parted.queues, parted.layers, np.arange(len(parted.message)))
        horizon = choose(*bounds, *queues, asked, room_for(asked.tiles), placed, looks)
        leaves = np.empty_like(placed)
        leaves[parted.receiver] = placed
        return leaves, horizon, int(looks[0]) // _LOOKS

    def _in_turn(self, parted: Parts, ways: bool) -> Placement:
        """Parts of messages one after another, queues by turns, each as early as it can be.

        Args:
            ways: each part is driven one way.
        """
        parted = parted.by_turns()
        asked = self._tables_of(parted, ways)
        whole = np.ones(len(parted.message), dtype=np.int64)
        nothing = np.zeros(len(asked.messages), dtype=np.int64)
        placed = np.zeros(len(asked.receivers), dtype=np.int64)
        horizon = place(whole, asked, nothing, nothing[:0], room_for(asked.tiles), placed)
        leaves = np.empty_like(placed)
        leaves[parted.receiver] = placed
        return leaves, horizon, len(leaves)

    def _tables_of(self, parted: Parts, ways: bool) -> Asked:
        """Parts of messages, in their order. With `ways`, all windows of a tile can begin at even events, or
        all at odd ones."""
        message, receiver = parted.message, parted.receiver
        columns = np.concatenate([self.columns[message], np.zeros((1, 6), dtype=np.int64)])
        columns[:, 5] = parted.offsets
        receivers = self.receivers[receiver]
        if ways:
            receivers[:, KIND] |= self.steady[receiver]
        tiles = self._tiles_with(np.bincount(message, minlength=len(self.count)))
        return Asked(columns, receivers, tiles)

    def _sweeps(self) -> Iterator[Placement]:
        messages, bound = self.messages, self.bound
        columns, receivers, _ = self._ordered(np.arange(len(messages.source)))
        tiles = self._tiles_with(self.count)
        room = room_for(tiles)
        owner, by_tile = messages.owner, np.argsort(messages.tile, kind="stable")
        grid = [(limit, patience, ease) for limit in _LIMITS for ease in _EASE for patience in _PATIENCE]
        for attempt in range(_SWEEPS):
            limit, patience, ease = grid[attempt % len(grid)]
            ways = int(limit * bound), int(patience * bound), ease, attempt // len(grid)
            leaves = np.full(len(owner), -1, dtype=np.int64)
            asked = Asked(columns, receivers, tiles.copy())
            horizon = sweep(*ways, owner, by_tile.copy(), asked, room, leaves)
            yield leaves, horizon, len(leaves)
