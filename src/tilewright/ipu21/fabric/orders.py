"""Orders in which greedy placement is tried; each is a permutation of the messages.

Placement fills gaps, so the order decides which messages get the early ones. Measured on random sets: with
slack at most endpoints the busiest first is within 1 % of the bound; with uneven sizes the longest first is
best; with equal sizes and no slack (superposed permutations) only an edge colouring comes near.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .transfers import TILE_IDS, Messages

_COLOUR_CELLS = 1 << 24
"""Endpoints times colours above which colouring is not tried (its table would be large and slow)."""

Order = NDArray[np.int64]


def candidates(messages: Messages) -> Iterator[Order]:
    """Orders worth trying, most promising first."""
    receivers = np.diff(messages.offsets)
    words = np.repeat(messages.words, receivers)
    sent = np.bincount(messages.source, messages.words, TILE_IDS)
    received = np.bincount(messages.tile, words, TILE_IDS)
    busiest = np.maximum(
        sent[messages.source], np.maximum.reduceat(received[messages.tile], messages.offsets[:-1])
    )
    yield np.lexsort((-messages.words, -busiest))
    yield np.argsort(-messages.words, kind="stable")
    if (receivers == 1).all():
        yield from _coloured(messages)


def _coloured(messages: Messages) -> Iterator[Order]:
    """Colour by colour. Colouring in the order of route times groups like routes, which keeps the gaps short
    that an endpoint has between messages of different columns."""
    from .colouring import colour

    degree = max(int(np.bincount(tile).max()) for tile in (messages.source, messages.tile))
    if 2 * TILE_IDS * degree > _COLOUR_CELLS:
        return
    along = messages.route - 2 * ((messages.source >> 6) - (messages.tile >> 6))
    for sign in (-1, 1):
        order = np.argsort(sign * along, kind="stable")
        colours = np.zeros(len(order), dtype=np.int64)
        colour(messages.source, messages.tile, order, degree, colours)
        used = np.bincount(colours, minlength=degree)
        mean = np.bincount(colours, along, degree) / np.maximum(used, 1)
        yield np.lexsort((colours, sign * mean[colours]))
