"""Which spans can be sent as 64-bit items: to receivers that are whole partner pairs.

A wide message takes half the events, but both transmit lanes of the sending pair. Which is better depends on
the whole phase, so it is decided for all spans at once: `schedule` compares the results.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..machine import topology
from . import routes
from .messages import Ints, Spans, cumulative

MINIMUM_ITEMS = (4, 16)
"""Shorter wide messages are bound by their register writes, up to five per receiver: under 16 items they may
gain less than they cost, under 4 they gain nothing (measured)."""


def pairs(spans: Spans, minimum: int = MINIMUM_ITEMS[0]) -> NDArray[np.bool_]:
    """Marks the receivers whose partner receives the same, and that could take it as 64-bit items.

    Needed: source and both targets aligned to 8 bytes, `minimum` items and no odd word. If a sender
    that hears itself would be left with fewer than two others beside it, none of its span's receivers count.
    """
    if (np.diff(spans.offsets) < 2).all():
        return np.zeros(len(spans.tile), dtype=np.bool_)
    owner = spans.owner
    order = np.argsort(owner << 11 | _beside_partner(spans.tile), kind="stable")
    tile, by = spans.tile[order], owner[order]
    fits = (spans.address % 8 == 0) & (spans.words % 2 == 0) & (spans.words >= 2 * minimum)
    possible = fits[by] & (spans.target[order] % 8 == 0)
    first = np.zeros(len(tile), dtype=np.bool_)
    first[:-1] = (by[1:] == by[:-1]) & (tile[1:] == tile[:-1] + 2) & (tile[:-1] & 2 == 0)
    first[:-1] &= possible[1:] & possible[:-1]
    marked = first.copy()
    marked[1:] |= first[:-1]
    result = np.zeros(len(tile), dtype=np.bool_)
    result[order] = marked
    own = np.zeros(len(spans.source), dtype=np.bool_)
    own[owner[(spans.tile == spans.source[owner]) & ~result]] = True
    rest = np.bincount(owner[~result], minlength=len(spans.source))
    return result & ~(own & (rest < 3))[owner]


def _beside_partner(tile: Ints) -> Ints:
    """Numbers that sort tiles so that partners are side by side, lane 0 first."""
    return tile & ~3 | (tile & 1) << 1 | tile >> 1 & 1


def entirely(spans: Spans, paired: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of the marked receivers, those of spans that have no others."""
    return paired & ~(np.bincount(spans.owner[~paired], minlength=len(spans.source)) > 0)[spans.owner]


def widened(spans: Spans, paired: NDArray[np.bool_]) -> Spans:
    """Spans with the marked receivers split off into wide ones."""
    owner = spans.owner
    group = 2 * owner + ~paired
    order = np.argsort(group << 11 | _beside_partner(spans.tile), kind="stable")
    group = group[order]
    heads = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    whole = group[heads] // 2
    result = spans.chosen(whole)
    return replace(
        result,
        wide=group[heads] % 2 == 0,
        offsets=cumulative(np.diff(np.append(heads, len(group)))),
        tile=spans.tile[order],
        target=spans.target[order],
    )


def least_items(spans: Spans, paired: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Events that each span takes its sender, and each receiver, at the least, paired or not."""
    half = np.zeros(len(spans.source), dtype=np.bool_)
    half[spans.owner[entirely(spans, paired)]] = True
    words = spans.words[spans.owner]
    return np.where(half, spans.words // 2, spans.words), np.where(paired, words // 2, words)


def early(source: Ints, tile: Ints) -> NDArray[np.bool_]:
    """True for the member of a receiving pair that items reach first: only its pair mux is set."""
    return routes.time_to_mux(source, tile) < routes.time_to_mux(source, topology.partner(tile))
