"""Units: what a tile sends to another one, in parts that take about as long everywhere.

An edge colouring comes near the bound where all that has one colour takes as long. So where tiles send much
to few others, and to some of these twice as much as to others, that counts as two edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .messages import Ints, Spans, cumulative, pieces_of
from .transfers import TILE_IDS

_PARTS = (1, 2, 3, 4, 6, 8)
"""Into how many units the longest bundle may be divided."""
_SMALL = 0.2
"""Part of the longest unit from which on one gets a colour; shorter ones find gaps."""
_LEAST_WORDS = 64
"""Shorter spans are not halved: a message costs register writes."""


@dataclass(frozen=True)
class Units:
    """Messages in units.

    Attributes:
        of: unit of each message; a unit's messages go from one tile to one other.
        small: of each unit, whether it is to fill gaps only.
        length: events if all units that are not small take as long as the longest, at the busiest tile.
    """

    of: Ints
    small: Ints
    length: int


def halved(spans: Spans) -> Spans:
    """The same bytes moved, all but short spans in two halves; 32-bit spans only."""
    pieces = np.where(spans.words >= _LEAST_WORDS, 2, 1)
    whole = np.repeat(np.arange(len(pieces)), pieces)
    second = np.arange(len(whole)) > cumulative(pieces)[whole]
    words = spans.words[whole]
    half = words // 4 * 2
    size = np.where(second, words - half, np.where(pieces[whole] == 2, half, words))
    return pieces_of(spans, whole, np.where(second, half, 0), size)


def units(source: Ints, tile: Ints, items: Ints, bundle: Ints) -> Units:
    """The division of bundles that an edge colouring should serve best.

    Args:
        source, tile, items: sender, receiver and events of each message.
        bundle: a number from 0 on for all messages from one tile to one other.
    """
    sizes = np.bincount(bundle, items)
    order = np.argsort(bundle, kind="stable")
    behind = np.cumsum(items[order]) - np.concatenate([[0], np.cumsum(sizes)])[bundle[order]]
    # The middle of each message in its bundle, as a share of the bundle.
    middle = np.empty(len(items))
    middle[order] = (behind - items[order] / 2) / sizes[bundle[order]]
    best: Units | None = None
    for parts in _PARTS:
        count = np.maximum(np.round(sizes * parts / sizes.max()), 1).astype(np.int64)[bundle]
        part = np.minimum((middle * count).astype(np.int64), count - 1)
        _, first, of = np.unique(bundle * (_PARTS[-1] + 1) + part, return_index=True, return_inverse=True)
        length = np.bincount(of, items)
        small = length < _SMALL * length.max()
        busiest = max(
            int(np.bincount(end[first[~small]], minlength=TILE_IDS).max()) for end in (source, tile)
        )
        found = Units(of.astype(np.int64), small, busiest * int(length.max()))
        if best is None or found.length < best.length:
            best = found
    assert best is not None
    return best
