"""How short a phase can be at best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..machine import topology
from .transfers import TILE_IDS, Messages


def lower_bound(messages: Messages) -> int:
    """Events that the longest row of 32-bit messages cannot be under.

    That is the busiest endpoint's words, with the earliest event at which its first message can begin and the
    least that its last one still takes after its last word has left.

    Holds also when multicasts are divided among their receivers.
    """
    if not len(messages.source):
        return 0
    receivers = np.diff(messages.offsets)
    sender = np.repeat(messages.source, receivers)
    words = np.repeat(messages.words, receivers)
    begins = np.maximum(0, -messages.route)
    store = topology.mux_to_store(messages.tile) + topology.RECEIVE_GUARD
    sent = _per_tile_minimum(sender, begins) + _per_tile_minimum(sender, messages.route + 1 + store)
    sent += np.bincount(messages.source, messages.words, TILE_IDS).astype(np.int64)
    received = _per_tile_minimum(messages.tile, begins + messages.route + 1 + store)
    received += np.bincount(messages.tile, words, TILE_IDS).astype(np.int64)
    return int(max(sent[messages.source].max(), received[messages.tile].max()))


def _per_tile_minimum(tile: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.int64]:
    result = np.full(TILE_IDS, 1 << 30, dtype=np.int64)
    np.minimum.at(result, tile, value)
    return result
