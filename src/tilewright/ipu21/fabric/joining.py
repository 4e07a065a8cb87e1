"""Making few messages of many transfers: what several tiles want is sent once, what continues is sent as one.

Receivers that want the same bytes of a sender become one multicast. One that wants only the beginning of
another's bytes shares that part: placed back to back, the parts are one message that it leaves early. Spans
that continue one another at the sender and at all receivers become one span.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .messages import Ints, Spans, cumulative, slices
from .transfers import TILE_IDS

_BASE = 1 << 20


def shared(spans: Spans) -> Spans:
    """The same bytes moved, but no word sent again for another receiver; 32-bit spans only."""
    begin = spans.source * _BASE + spans.address
    order = np.lexsort((spans.words, begin))
    same = begin[order][1:] == begin[order][:-1]
    if not same.any():
        return spans
    group = np.cumsum(np.concatenate([[True], ~same])) - 1
    size = np.bincount(group)
    # A tile that wants the same bytes twice must receive them twice.
    owner_group = np.empty(len(order), dtype=np.int64)
    owner_group[order] = group
    key = np.sort(owner_group[spans.owner] * TILE_IDS + spans.tile)
    size[key[1:][key[1:] == key[:-1]] // TILE_IDS] = 1
    # So must a sender that hears itself: its words are checked against its own elements span by span.
    size[owner_group[spans.owner[spans.tile == spans.source[spans.owner]]]] = 1
    several = size[group] > 1
    alone, order, group = order[~several], order[several], group[several]
    if not len(order):
        return spans
    # Within a group, sorted by length, part k holds the words between lengths k-1 and k, for spans k and on.
    words = spans.words[order]
    first = np.concatenate([[True], group[1:] != group[:-1]])
    before = np.where(first, 0, np.concatenate([[0], words[:-1]]))
    parts = np.flatnonzero(words > before)
    starts, count = np.flatnonzero(first), np.diff(np.append(np.flatnonzero(first), len(group)))
    ends = np.repeat(starts + count, count)
    members = slices(parts, (ends - np.arange(len(order)))[parts])
    part = np.repeat(parts, (ends - np.arange(len(order)))[parts])
    receivers = slices(spans.offsets[order[members]], np.diff(spans.offsets)[order[members]])
    reached = np.diff(spans.offsets)[order[members]]
    moved = 4 * np.repeat(before[part], reached)
    total = np.bincount(np.searchsorted(parts, part), reached, len(parts)).astype(np.int64)
    common = Spans(
        source=spans.source[order[parts]],
        address=spans.address[order[parts]] + 4 * before[parts],
        words=words[parts] - before[parts],
        wide=spans.wide[order[parts]],
        transfer=spans.transfer[order[parts]],
        offsets=cumulative(total),
        tile=spans.tile[receivers],
        target=spans.target[receivers] + moved,
    )
    return _sorted(_both(spans.chosen(np.sort(alone)), common))


def _both(one: Spans, two: Spans) -> Spans:
    fields = {name: np.concatenate([getattr(one, name), getattr(two, name)]) for name in vars(one)}
    fields["offsets"] = np.concatenate([one.offsets, one.offsets[-1] + two.offsets[1:]])
    return Spans(**fields)


def _sorted(spans: Spans) -> Spans:
    """In the order of the transfers, so that equal phases give equal schedules."""
    return spans.chosen(np.argsort(spans.transfer << 20 | spans.address, kind="stable"))


def continued(spans: Spans) -> Spans:
    """The same bytes moved, what continues in one span; 32-bit spans only."""
    own = np.zeros(len(spans.source), dtype=np.bool_)
    own[spans.owner[spans.tile == spans.source[spans.owner]]] = True
    begin = spans.source * _BASE + spans.address
    # Sorted, since looking up values in order is much faster.
    known, ends = np.sort(begin), np.sort(begin + 4 * spans.words)
    if not (known[np.minimum(np.searchsorted(known, ends), len(known) - 1)] == ends).any():
        return spans
    count = np.diff(spans.offsets)
    # Receivers in the order of their tiles, and a number for each set of them; sets that happen to share one
    # are only not looked at side by side.
    tile, target = spans.tile, spans.target
    if (count > 1).any():
        order = np.argsort(spans.owner * TILE_IDS + tile, kind="stable")
        tile, target = tile[order], target[order]
    mixed = (tile + 1) * (tile + 12345) * 0x9E3779B1 & 0xFFFFFFFF
    signature = np.add.reduceat(mixed, spans.offsets[:-1]) * 64 + count
    ends_of = (signature * TILE_IDS + spans.source) % ((1 << 43) - 57)
    line = np.argsort(ends_of * _BASE + spans.address, kind="stable")
    one, two = line[:-1], line[1:]
    linked = (begin[one] + 4 * spans.words[one] == begin[two]) & (signature[one] == signature[two])
    linked &= (spans.source[one] == spans.source[two]) & (count[one] == count[two]) & ~own[one] & ~own[two]
    linked[linked] = _continues(spans, tile, target, one[linked], two[linked])
    if not linked.any():
        return spans
    head = np.concatenate([[True], ~linked])
    kept = line[head]
    words = np.add.reduceat(spans.words[line], np.flatnonzero(head))
    arranged = replace(spans, tile=tile, target=target).chosen(kept)
    result = replace(
        arranged, words=words, transfer=np.minimum.reduceat(spans.transfer[line], np.flatnonzero(head))
    )
    return _sorted(result)


def _continues(spans: Spans, tile: Ints, target: Ints, one: Ints, two: Ints) -> NDArray[np.bool_]:
    """True where span `two` goes on at every receiver where span `one` ends; both have as many."""
    count = np.diff(spans.offsets)[one]
    a, b = slices(spans.offsets[one], count), slices(spans.offsets[two], count)
    follows = (tile[a] == tile[b]) & (target[b] == target[a] + 4 * np.repeat(spans.words[one], count))
    result: NDArray[np.bool_] = np.logical_and.reduceat(follows, cumulative(count)[:-1])
    return result
