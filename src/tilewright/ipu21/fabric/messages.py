"""The messages of a phase: transfers joined where they continue one another and cut to the hardware's limits.

A message moves `items` words of 32 bits, or of 64 bits if it is *wide*: a wide message uses the partner's
transmit lane too, and is received by whole partner pairs, both members of which store all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..machine import topology
from . import routes
from .transfers import element_masks

Ints = NDArray[np.int64]

FORMAT_LEAD = 2
"""Events by which the format changes before the first item that it holds for is stored."""


@dataclass(frozen=True)
class Spans:
    """Bytes to move, of any length.

    Per span: `source` tile, `address`, `words` (32-bit), `wide`, `transfer` (index of its first transfer),
    and the slice `offsets[i]:offsets[i+1]` of the receiver arrays. Per receiver: `tile` and `target` (byte
    address). The receivers of a wide span are partner pairs, members side by side.
    """

    source: Ints
    address: Ints
    words: Ints
    wide: NDArray[np.bool_]
    transfer: Ints
    offsets: Ints
    tile: Ints
    target: Ints

    @property
    def owner(self) -> Ints:
        """Index of its span for every receiver."""
        return np.repeat(np.arange(len(self.source)), np.diff(self.offsets))

    def chosen(self, spans: Ints) -> Spans:
        """Some of the spans, in the order given."""
        receivers = slices(self.offsets[spans], np.diff(self.offsets)[spans])
        return Spans(
            source=self.source[spans],
            address=self.address[spans],
            words=self.words[spans],
            wide=self.wide[spans],
            transfer=self.transfer[spans],
            offsets=cumulative(np.diff(self.offsets)[spans]),
            tile=self.tile[receivers],
            target=self.target[receivers],
        )


@dataclass(frozen=True)
class Messages(Spans):
    """Spans that can be sent as one message each.

    Per message further: `control` (send direction bits, and 4 if wide), `elements` (bit mask of the effective
    elements read). Per receiver further: `route`, so that an item that leaves at event S is stored at event
    S + route + 1 + mux_to_store (T of sender and receiver; if wide, the larger of the pair's), and `written`
    (element mask).
    """

    control: Ints
    elements: Ints
    route: Ints
    written: Ints

    @property
    def items(self) -> Ints:
        """Events that each message takes."""
        return np.where(self.wide, self.words // 2, self.words)


def cumulative(counts: Ints) -> Ints:
    """0 and the running sums of `counts`."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def slices(first: Ints, count: Ints) -> Ints:
    """The indices of all slices first[i]:first[i]+count[i], one slice after the other."""
    starts = cumulative(count)
    return np.arange(starts[-1]) + np.repeat(first - starts[:-1], count)


def spans_of(transfers: NDArray[np.void], destinations: NDArray[np.void]) -> Spans:
    """Checked transfers as 32-bit spans, one each."""
    count = transfers["count"].astype(np.int64)
    receivers = slices(transfers["first"].astype(np.int64), count)
    return Spans(
        source=transfers["source"].astype(np.int64),
        address=transfers["address"].astype(np.int64),
        words=transfers["words"].astype(np.int64),
        wide=np.zeros(len(transfers), dtype=np.bool_),
        transfer=np.arange(len(transfers)),
        offsets=cumulative(count),
        tile=destinations["tile"][receivers].astype(np.int64),
        target=destinations["address"][receivers].astype(np.int64),
    )


def route_times(source: Ints, tile: Ints, wide: NDArray[np.bool_]) -> Ints:
    """`Messages.route` of each receiver."""
    route = routes.time_to_mux(source, tile)
    if not wide.any():
        return route
    return np.where(wide, np.maximum(route, routes.time_to_mux(source, topology.partner(tile))), route)


def directions(spans: Spans) -> Ints:
    """Send control bits of each span: a message to one tile or one pair drives one way, others both.

    A pair that includes the sender is driven both ways (known).
    """
    first = spans.offsets[:-1]
    count = np.diff(spans.offsets)
    single = np.where(spans.wide, count == 2, count == 1)
    single &= ~(spans.wide & ((spans.tile[first] | 2) == (spans.source | 2)))
    way = np.where(single, routes.direction(spans.source, spans.tile[first]), topology.BOTH)
    return np.where(spans.wide, way | 4, way)


def as_messages(spans: Spans) -> Messages:
    """Spans of legal lengths as messages."""
    owner = spans.owner
    words = spans.words[owner]
    return Messages(
        **vars(spans),
        control=directions(spans),
        elements=element_masks(spans.address, spans.words),
        route=route_times(spans.source[owner], spans.tile, spans.wide[owner]),
        written=element_masks(spans.target, words),
    )


def cut(spans: Spans) -> Messages:
    """Messages of at most MAX_MESSAGE_WORDS items, in order.

    Some lengths would need two register writes, or a write and the beginning of a send, at one event of a
    tile; such messages are cut further (see `_impossible`).
    """
    items = np.where(spans.wide, spans.words // 2, spans.words)
    least = pieces = -(-items // topology.MAX_MESSAGE_WORDS)
    while (bad := _impossible(spans, -(-items // pieces)) | _impossible(spans, items // pieces)).any():
        pieces = np.where(bad, pieces + least, pieces)
    if (pieces == 1).all():
        return as_messages(spans)
    whole = np.repeat(np.arange(len(pieces)), pieces)
    part = np.arange(len(whole)) - cumulative(pieces)[whole]
    begin = items[whole] * part // pieces[whole]
    size = items[whole] * (part + 1) // pieces[whole] - begin
    return as_messages(pieces_of(spans, whole, begin, size))


def pieces_of(spans: Spans, whole: Ints, begin: Ints, items: Ints) -> Spans:
    """Pieces of spans: of which span each is, its first item there, and its items."""
    step: Ints = np.where(spans.wide[whole], 8, 4)
    result = spans.chosen(whole)
    return replace(
        result,
        address=result.address + step * begin,
        words=items * (step // 4),
        target=result.target + (step * begin)[result.owner],
    )


def _impossible(spans: Spans, items: Ints) -> NDArray[np.bool_]:
    """Messages that no row can carry with this many items.

    A sender that hears itself closes its mux `items` events after it opened it, 27 to 29 events before the
    send. The early member of a pair closes its pair mux 51 + 2 row or 53 + 2 row events before it switches
    the format or writes the pointer. Where a tile hears 64-bit items too, its mux closes after 50 + 2 row
    words just when the format may have to be switched for these.
    """
    owner = spans.owner
    result = np.zeros(len(spans.source), dtype=np.bool_)
    own = owner[spans.tile == spans.source[owner]]
    source = spans.source[own]
    closes = routes.time_to_mux(source, source)
    with_partner = np.minimum(closes, routes.time_to_mux(source, topology.partner(source)))
    closes = np.where(spans.wide[own], with_partner, closes) + 1 + items[own]
    result[own[(closes == 0) | (closes == 1)]] = True
    if spans.wide.any():
        switch = np.abs(items[owner] - topology.mux_to_store(spans.tile))
        wide = spans.wide[owner]
        result[owner[wide & (switch == 1)]] = True
        both = np.isin(spans.tile, spans.tile[wide]) & ~wide
        result[owner[both & (items[owner] == topology.mux_to_store(spans.tile) - FORMAT_LEAD)]] = True
    return result
