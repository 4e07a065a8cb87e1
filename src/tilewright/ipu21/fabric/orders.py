"""Ways in which greedy placement is tried: an order of the messages, and how far multicasts may be divided.

Placement fills gaps, so the order decides which messages get the early ones. Measured on random sets: with
slack at most endpoints the busiest first is within 1 % of the bound; with uneven sizes the longest first is
best; with equal sizes and no slack (superposed permutations) only an edge colouring comes near. Equal is what
counts between two tiles: all messages from one to another follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..machine import topology
from .colouring import colour
from .messages import Messages
from .transfers import TILE_IDS
from .units import units

_COLOUR_CELLS = 1 << 24
"""Endpoints times colours above which colouring is not tried (its table would be large and slow)."""

_ROUND, _ONE_ROUND = 32, 64
"""Messages per tile and round, and how many still make one round, see `_rounds`."""
_EVEN = 0.9
"""Mean load over the busiest, and shortest bundle of messages over the longest, from which on colours come
first."""
_BUSY, _PROMISING = 0.8, 1.25
"""Mean load over the busiest, and length of units over the bound, at which units come first."""
_SENDER_SHARES = (0.4, 0.7, 1.0)
"""Shares of the bound that a sender's lane may be filled to by sending multicasts in parts."""

Order = NDArray[np.int64]


def candidates(messages: Messages, bound: int) -> Iterator[tuple[Order, Order]]:
    """(order, parts) pairs worth trying, most promising first; `bound` is that of `bounds.lower_bound`."""
    receivers = np.diff(messages.offsets)
    sent = np.bincount(messages.source, messages.items, TILE_IDS)
    lent = messages.wide.nonzero()[0]
    sent += np.bincount(topology.partner(messages.source[lent]), messages.items[lent], TILE_IDS)
    received = np.bincount(messages.tile, messages.items[messages.owner], TILE_IDS)
    busiest = np.maximum(
        sent[messages.source], np.maximum.reduceat(received[messages.tile], messages.offsets[:-1])
    )
    whole = np.ones(len(receivers), dtype=np.int64)
    most = max(sent.max(), received.max())
    bundle = _bundles(messages) if (receivers == 1).all() else None
    tight = False
    if bundle is not None:
        sizes = np.bincount(bundle, messages.items)
        busy = min(load[load > 0].mean() for load in (sent, received)) / most
        tight = bool(_EVEN * sizes.max() <= sizes.min() and busy >= _EVEN)
        if tight:
            orders = _coloured(messages, bundle)
        else:
            orders = _in_units(messages, bundle, bound) if busy >= _BUSY else iter(())
        for order in orders:
            yield order, whole
    rounds = _rounds(messages)
    # One key instead of two or three: large phases are sorted much faster so.
    idle = (busiest.max() - busiest).astype(np.int64)
    shorter = messages.items.max() - messages.items
    by_load = np.argsort(rounds << 48 | idle << 16 | shorter, kind="stable")
    yield by_load, whole
    yield np.argsort(rounds << 48 | shorter, kind="stable"), whole
    if bundle is not None:
        for bundles in () if tight else (bundle, np.arange(len(bundle))):
            for order in _coloured(messages, bundles):
                yield order, whole
        return
    # Many multicasts at once seldom find all their receivers free together. A sender with time to spare
    # sends again instead.
    own = np.zeros(len(receivers), dtype=bool)
    owner = messages.owner
    own[owner[messages.tile == messages.source[owner]]] = True
    for share in _SENDER_SHARES:
        spare = (share * bound / sent[messages.source]).astype(np.int64)
        parts = np.where(own, 1, np.clip(spare, 1, np.where(messages.wide, receivers // 2, receivers)))
        if (parts > 1).any():
            yield by_load, parts


def _rounds(messages: Messages) -> NDArray[np.int64]:
    """A round for each message, so that no tile sends or receives much more than ROUND messages in one.

    Placement looks for gaps among the latest messages of a tile only; taking large phases in rounds, each
    message dealt to one by chance (a fixed hash), keeps all tiles at about the same time.
    """
    degree = int(np.bincount(messages.source, minlength=TILE_IDS).max())
    degree = max(degree, int(np.bincount(messages.tile, minlength=TILE_IDS).max()))
    if degree <= _ONE_ROUND:
        return np.zeros(len(messages.source), dtype=np.int64)
    count = -(-degree // _ROUND)
    order = np.argsort(messages.source << 32 | scattered(len(messages.source)), kind="stable")
    sent = np.bincount(messages.source, minlength=TILE_IDS)
    first = np.cumsum(sent) - sent
    source = messages.source[order]
    rounds = np.empty(len(order), dtype=np.int64)
    rounds[order] = (np.arange(len(order)) - first[source]) * count // sent[source]
    return rounds


def scattered(count: int) -> Order:
    """A fixed pseudo-random number for each of 0..count-1 (the finaliser of a 32-bit hash)."""
    value = np.arange(1, count + 1, dtype=np.uint64)
    for shift, factor in ((16, 0x45D9F3B), (15, 0x2C1B3C6D), (16, 1)):
        value = ((value ^ (value >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return value.astype(np.int64)


def _bundles(messages: Messages) -> Order:
    """Of messages to one receiver each: a number for all that go from one tile to one other."""
    _, bundle = np.unique(messages.source * TILE_IDS + messages.tile, return_inverse=True)
    numbers: Order = bundle.reshape(-1).astype(np.int64)
    return numbers


def _in_units(messages: Messages, bundle: Order, bound: int) -> Iterator[Order]:
    """Bundles of different lengths in units, colour by colour, where that promises to be short."""
    found = units(messages.source, messages.tile, messages.items, bundle)
    if found.length > _PROMISING * bound:
        return
    small = found.small[found.of]
    chosen, rest = np.flatnonzero(~small), np.flatnonzero(small)
    rest = rest[np.argsort(found.of[rest], kind="stable")]
    _, unit = np.unique(found.of[chosen], return_inverse=True)
    for order in _coloured(messages, unit.reshape(-1), chosen):
        yield np.concatenate([chosen[order], rest])


def _coloured(messages: Messages, bundle: Order, chosen: Order | None = None) -> Iterator[Order]:
    """Colour by colour, where messages of one bundle have one colour. Colouring in the order of route times
    groups like routes, which keeps the gaps short that an endpoint has between messages of different columns.

    Args:
        chosen: the messages that `bundle` and the orders are of, if not all.
    """
    _, first = np.unique(bundle, return_index=True)
    first = first if chosen is None else chosen[first]
    source, tile, route = messages.source[first], messages.tile[first], messages.route[first]
    degree = max(int(np.bincount(end).max()) for end in (source, tile))
    if 2 * TILE_IDS * degree > _COLOUR_CELLS:
        return
    along = route - 2 * ((source >> 6) - (tile >> 6))
    for sign in (-1, 1):
        order = np.argsort(sign * along, kind="stable")
        colours = np.zeros(len(order), dtype=np.int64)
        colour(source, tile, order, degree, colours)
        used = np.bincount(colours, minlength=degree)
        mean = np.bincount(colours, along, degree) / np.maximum(used, 1)
        yield np.lexsort((bundle, colours[bundle], sign * mean[colours[bundle]]))
