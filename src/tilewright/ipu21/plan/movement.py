"""Moves between layouts as arrays of contiguous fragments: which spans of which buffers travel where.

In a16 order a group of 16 columns is one panel of 32-byte records, so any range of rows of one panel is
contiguous in both layouts and travels as it is, without a local permutation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from .layout import MICRO, SHARD, Layout

RECORD_BYTES = 2 * MICRO
"""One row of a panel: 16 float16 elements."""
RECORD_WORDS = RECORD_BYTES // 4

FRAGMENT = np.dtype(
    [
        ("source", "<i8"),
        ("source_offset", "<i8"),
        ("words", "<i8"),
        ("destination_offset", "<i8"),
        ("first", "<i8"),
        ("count", "<i8"),
    ]
)
"""One contiguous span: source tile, byte offset in the source buffer, 32-bit words, byte offset in the
destination buffer (the same on every receiver), and the receivers as `tiles[first : first + count]`."""

COPY = np.dtype([("tile", "<i8"), ("source_offset", "<i8"), ("destination_offset", "<i8"), ("words", "<i8")])
"""A span that stays on its tile; `words` are 64-bit."""


@dataclass
class Traffic:
    """What one move asks of the fabric and of local copies.

    Attributes:
        fragments: FRAGMENT array.
        tiles: receivers of all fragments, logical tiles.
        copies: COPY array.
    """

    fragments: NDArray[np.void]
    tiles: NDArray[np.int64]
    copies: NDArray[np.void]


@dataclass(frozen=True)
class Load:
    """What a move asks of its busiest tiles.

    Attributes:
        words, pieces: 32-bit words and fragments at the busiest receiver (or sender, if that has more).
        copies: local copies of the tile that copies most; copied: its 64-bit words, per copy, rounded up.
    """

    words: int
    pieces: int
    copies: int
    copied: int


@lru_cache(maxsize=256)
def retile(source: Layout, destination: Layout) -> Traffic:
    """Fragments that bring a matrix from one a16 layout into another; every destination shard is filled.

    A tile that holds a piece and also needs it takes part in its own multicast when at least two other tiles
    receive it; otherwise it copies locally.
    """
    held, wanted = distinct_shards(source), distinct_shards(destination)
    row_low = np.maximum(held.shards["row"][:, None], wanted.shards["row"][None, :])
    row_high = np.minimum(_row_end(held.shards)[:, None], _row_end(wanted.shards)[None, :])
    column_low = np.maximum(held.shards["column"][:, None], wanted.shards["column"][None, :])
    column_high = np.minimum(_column_end(held.shards)[:, None], _column_end(wanted.shards)[None, :])
    h, w = np.nonzero((row_low < row_high) & (column_low < column_high))
    pair, source_offset, destination_offset, records = _spans(
        held.shards[h],
        wanted.shards[w],
        row_low[h, w],
        row_high[h, w],
        column_low[h, w],
        column_high[h, w],
    )
    spans = np.zeros(len(pair), dtype=FRAGMENT)
    spans["source_offset"], spans["destination_offset"] = source_offset, destination_offset
    spans["words"] = records * RECORD_WORDS
    return _traffic(spans, held, h[pair], wanted, w[pair])


def _row_end(shards: NDArray[np.void]) -> NDArray[np.int64]:
    return np.asarray(shards["row"] + shards["rows"], dtype=np.int64)


def _column_end(shards: NDArray[np.void]) -> NDArray[np.int64]:
    return np.asarray(shards["column"] + shards["padded_columns"], dtype=np.int64)


@lru_cache(maxsize=256)
def gather(partial: Layout, result: Layout, parts: int, stride: int) -> Traffic:
    """Fragments that bring the others' partial sums of each piece to its root, one slot per sender.

    Tiles whose index `(t // stride) % parts` alone differs hold partial sums of the same block.
    """
    tiles = np.arange(partial.tiles, dtype=np.int64)
    index = (tiles // stride) % parts
    columns: list[list[NDArray[np.int64]]] = [[], [], [], [], []]
    for root_index in range(parts):
        senders = tiles[index != root_index]
        roots = senders + (root_index - index[senders]) * stride
        held, piece = partial.shards[senders], result.shards[roots]
        keep = (piece["rows"] > 0) & (held["rows"] > 0)
        senders, roots, held, piece = senders[keep], roots[keep], held[keep], piece[keep]
        pair, source_offset, offset, records = _spans(
            held,
            piece,
            piece["row"],
            piece["row"] + piece["rows"],
            piece["column"],
            piece["column"] + piece["padded_columns"],
        )
        slot = index[senders] - (index[senders] > root_index)
        offset = offset + slot[pair] * result.bytes[roots[pair]]
        for column, part in zip(
            columns, (senders[pair], roots[pair], source_offset, offset, records), strict=True
        ):
            column.append(part)
    sender, root, source_offset, offset, records = (np.concatenate(column) for column in columns)
    order = np.lexsort((offset, root, source_offset, sender))
    fragments = np.zeros(len(order), dtype=FRAGMENT)
    fragments["source"], fragments["source_offset"] = sender[order], source_offset[order]
    fragments["destination_offset"], fragments["words"] = offset[order], records[order] * RECORD_WORDS
    fragments["first"], fragments["count"] = np.arange(len(order)), 1
    return Traffic(fragments, root[order], np.zeros(0, dtype=COPY))


@dataclass(frozen=True)
class DistinctShards:
    """The distinct non-empty shards of a layout, in order of their first tile.

    Attributes:
        shards: SHARD records.
        tiles, first: tiles that hold shard i: tiles[first[i] : first[i + 1]], rising.
        of_tile: shard of each tile of the layout, -1 where it holds none.
    """

    shards: NDArray[np.void]
    tiles: NDArray[np.int64]
    first: NDArray[np.int64]
    of_tile: NDArray[np.int64]


def distinct_shards(layout: Layout) -> DistinctShards:
    """The distinct shards of a layout and who holds each."""
    shards = layout.shards
    tiles = np.flatnonzero(shards["rows"] > 0)
    keys = np.stack([shards[field][tiles] for field in SHARD.names or ()], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    number = rank[inverse.reshape(-1)]
    of_tile = np.full(layout.tiles, -1, dtype=np.int64)
    of_tile[tiles] = number
    counts = np.bincount(number, minlength=len(first))
    return DistinctShards(
        shards[tiles[np.sort(first)]],
        tiles[np.argsort(number, kind="stable")],
        np.concatenate([[0], np.cumsum(counts)]),
        of_tile,
    )


def _spans(
    held: NDArray[np.void],
    wanted: NDArray[np.void],
    row_low: NDArray[np.int64],
    row_high: NDArray[np.int64],
    column_low: NDArray[np.int64],
    column_high: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Contiguous spans of rectangles: (rectangle index, source offset, destination offset, records).

    Panels whose every allocated row travels join into one span.
    """
    rows = row_high - row_low
    panels = (column_high - column_low) // MICRO
    whole = (
        (rows == held["padded_rows"])
        & (rows == wanted["padded_rows"])
        & (row_low == held["row"])
        & (row_low == wanted["row"])
    )
    pieces = np.where(whole, 1, panels)
    records = np.where(whole, rows * panels, rows)
    pair = np.repeat(np.arange(len(pieces)), pieces)
    panel = np.arange(len(pair)) - np.repeat(np.cumsum(pieces) - pieces, pieces)

    def offset(shard: NDArray[np.void]) -> NDArray[np.int64]:
        first_panel = (column_low - shard["column"]) // MICRO
        base = first_panel * shard["padded_rows"] + (row_low - shard["row"])
        return np.asarray((base[pair] + panel * shard["padded_rows"][pair]) * RECORD_BYTES, dtype=np.int64)

    return pair, offset(held), offset(wanted), records[pair]


def _traffic(
    spans: NDArray[np.void],
    held: DistinctShards,
    holder: NDArray[np.int64],
    wanted: DistinctShards,
    want: NDArray[np.int64],
) -> Traffic:
    """Sort the receivers of each span into remote ones and those that hold it themselves.

    Args:
        spans: FRAGMENT records without tiles.
        holder, want: shard numbers of source and destination of each span.
    """
    sender = held.tiles[held.first[holder]]
    count = wanted.first[want + 1] - wanted.first[want]
    span = np.repeat(np.arange(len(spans)), count)
    begin = np.cumsum(count) - count
    receiver = wanted.tiles[np.arange(len(span)) - np.repeat(begin - wanted.first[want], count)]
    holds = np.zeros(len(receiver), dtype=bool)
    known = receiver < len(held.of_tile)
    holds[known] = held.of_tile[receiver[known]] == holder[span[known]]
    remote = np.bincount(span, weights=~holds, minlength=len(spans)).astype(np.int64)
    looped = (receiver == sender[span]) & (remote[span] >= 2)
    sent, kept = ~holds | looped, holds & ~looped
    receivers = np.bincount(span, weights=sent, minlength=len(spans)).astype(np.int64)
    fragments = spans.copy()
    fragments["source"] = sender
    fragments["count"] = receivers
    fragments["first"] = np.cumsum(receivers) - receivers
    copies = np.zeros(int(kept.sum()), dtype=COPY)
    copies["tile"] = receiver[kept]
    for field in ("source_offset", "destination_offset"):
        copies[field] = spans[field][span[kept]]
    copies["words"] = spans["words"][span[kept]] // 2
    return Traffic(fragments[receivers > 0], receiver[sent], copies)


def load_of(traffic: Traffic, tiles: int) -> Load:
    """Words, fragments and copies at the busiest tiles of a move over `tiles` tiles."""
    fragments = traffic.fragments
    receiver_words = np.bincount(
        traffic.tiles, weights=np.repeat(fragments["words"], fragments["count"]), minlength=tiles
    )
    sender_words = np.bincount(fragments["source"], weights=fragments["words"], minlength=tiles)
    pieces = np.bincount(traffic.tiles, minlength=tiles)
    copies = np.bincount(traffic.copies["tile"], minlength=tiles)
    copied = np.bincount(traffic.copies["tile"], weights=traffic.copies["words"], minlength=tiles)
    busiest = int(np.argmax(copied)) if len(copied) else 0
    count = int(copies[busiest]) if len(copies) else 0
    return Load(
        words=int(max(receiver_words.max(initial=0), sender_words.max(initial=0))),
        pieces=int(pieces.max(initial=0)),
        copies=count,
        copied=ceil_div(int(copied[busiest]), count) if count else 0,
    )
