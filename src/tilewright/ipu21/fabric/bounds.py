"""How short a phase can be at best."""

from __future__ import annotations

import numpy as np

from ..machine import topology
from .messages import Ints, Messages
from .transfers import TILE_IDS


def lower_bound(
    messages: Messages, sent_items: Ints | None = None, received_items: Ints | None = None
) -> int:
    """Events that the longest row of these messages cannot be under.

    That is the busiest endpoint's items, with the earliest event at which its first message can begin and the
    least that its last one still takes after its last item has left.

    Args:
        messages: all messages of the phase; that their multicasts may be divided does not matter.
        sent_items, received_items: events that each message takes its sender, and each receiver, at the
            least, if some of the messages may be sent in another way too.
    """
    if not len(messages.source):
        return 0
    owner = messages.owner
    sender = messages.source[owner]
    sent_items = messages.items if sent_items is None else sent_items
    received_items = messages.items[owner] if received_items is None else received_items
    begins = np.maximum(0, -messages.route)
    store = topology.mux_to_store(messages.tile) + topology.RECEIVE_GUARD
    sent = _per_tile_minimum(sender, begins) + _per_tile_minimum(sender, messages.route + 1 + store)
    sent += np.bincount(messages.source, sent_items, TILE_IDS).astype(np.int64)
    received = _per_tile_minimum(messages.tile, begins + messages.route + 1 + store)
    received += np.bincount(messages.tile, received_items, TILE_IDS).astype(np.int64)
    lent = messages.source[messages.wide]
    if len(lent):
        sent += np.bincount(topology.partner(lent), sent_items[messages.wide], TILE_IDS).astype(np.int64)
    return int(max(sent[messages.source].max(), received[messages.tile].max()))


def _per_tile_minimum(tile: Ints, value: Ints) -> Ints:
    result = np.full(TILE_IDS, 1 << 30, dtype=np.int64)
    np.minimum.at(result, tile, value)
    return result
