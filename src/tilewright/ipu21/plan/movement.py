"""Moves between layouts as arrays of contiguous fragments: which spans of which buffers travel where.

In every element order a line of records is contiguous (a range of rows of one a16 panel, a range of blocks of
one column group of weights), so any range of it travels as it is, without a local permutation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from .layout import Layout, numbers_of
from .receivers import ALL, NONE, PAIRED, add_load, divide

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

    @property
    def sent(self) -> Traffic:
        """What travels, without local copies."""
        return replace(self, copies=self.copies[:0])

    @property
    def kept(self) -> Traffic:
        """The local copies alone."""
        return replace(self, fragments=self.fragments[:0], tiles=self.tiles[:0])


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


Hearing = Literal["all", "paired", "none"]
"""Which senders take part in multicasts of what they need themselves: all, those whose partner wants the
same, or none."""
HEARING = {"all": ALL, "paired": PAIRED, "none": NONE}


@lru_cache(maxsize=512)
def retile(
    source: Layout, destination: Layout, column_offset: int = 0, *, hearing: Hearing = "all"
) -> Traffic:
    """Fragments that bring a matrix from one layout into another of the same element order; every part of a
    destination shard that the source covers is filled.

    A tile that holds a piece and also needs it takes part in its own multicast when at least two other tiles
    receive it and `hearing` allows it; otherwise it copies locally.

    Args:
        column_offset: column of the source that is column 0 of the destination.
    """
    assert not destination.dealt, "what is dealt has no whole rectangles to be filled"
    held, wanted = distinct_shards(source), distinct_shards(destination)
    holder = np.arange(len(held.shards))
    a, b = _boxes(source, held.shards), _boxes(destination, wanted.shards)
    if source.dealt:
        holder = held.of_tile[source.pieces["tile"]]
        a = replace(_boxes(source, source.pieces), base=source.pieces["offset"] // source.record_bytes)
    if column_offset:
        shift = column_offset // source.units.columns
        a = a.shifted(-shift, by_rows=source.units.by_rows)
    h, w = np.nonzero(
        _meet(a.inner, a.inner_end, b.inner, b.inner_end) & _meet(a.outer, a.outer_end, b.outer, b.outer_end)
    )
    a, b = a.take(h), b.take(w)
    pair, source_offset, destination_offset, records = _spans(
        a,
        b,
        np.maximum(a.inner, b.inner),
        np.minimum(a.inner_end, b.inner_end),
        np.maximum(a.outer, b.outer),
        np.minimum(a.outer_end, b.outer_end),
    )
    spans = np.zeros(len(pair), dtype=FRAGMENT)
    spans["source_offset"] = source_offset * source.record_bytes
    spans["destination_offset"] = destination_offset * source.record_bytes
    spans["words"] = records * source.record_bytes // 4
    return _traffic(spans, held, holder[h[pair]], wanted, w[pair], hearing)


def _meet(
    begin: NDArray[np.int64], end: NDArray[np.int64], other: NDArray[np.int64], other_end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which of some intervals (rows) have an element in common with which of others (columns).

    An axis is cut into far fewer intervals than there are shards, so each pair is compared once.
    """
    (begin, end, row), (other, other_end, column) = _distinct(begin, end), _distinct(other, other_end)
    met = np.maximum(begin[:, None], other) < np.minimum(end[:, None], other_end)
    return np.asarray(met[:, column][row])


def _distinct(
    begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The distinct ones of some intervals, and which of them each is."""
    _, first, which = np.unique(begin << 32 | end, return_index=True, return_inverse=True)
    return begin[first], end[first], which.reshape(-1)


@dataclass(frozen=True)
class _Boxes:
    """Rectangles in records: `inner` is the contiguous direction, `pitch` its allocated length, `base` where
    the rectangle begins in what its tile holds.
    """

    inner: NDArray[np.int64]
    inner_end: NDArray[np.int64]
    outer: NDArray[np.int64]
    outer_end: NDArray[np.int64]
    pitch: NDArray[np.int64]
    base: NDArray[np.int64]

    def take(self, which: NDArray[np.int64]) -> _Boxes:
        return _Boxes(
            self.inner[which],
            self.inner_end[which],
            self.outer[which],
            self.outer_end[which],
            self.pitch[which],
            self.base[which],
        )

    def shifted(self, records: int, *, by_rows: bool) -> _Boxes:
        """Moved along the columns."""
        if by_rows:
            return replace(self, inner=self.inner + records, inner_end=self.inner_end + records)
        return replace(self, outer=self.outer + records, outer_end=self.outer_end + records)


def _boxes(layout: Layout, shards: NDArray[np.void]) -> _Boxes:
    """SHARD records, or others with their fields, as rectangles of records."""
    units = layout.units

    def axis(name: str, unit: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        first, length, allocated = (
            shards[field].astype(np.int64) for field in (name, f"{name}s", f"padded_{name}s")
        )
        begin = first // unit
        return begin, begin + -(-length // unit), allocated // unit

    rows, columns = axis("row", units.rows), axis("column", units.columns)
    inner, outer = (columns, rows) if units.by_rows else (rows, columns)
    return _Boxes(inner[0], inner[1], outer[0], outer[1], inner[2], np.zeros_like(inner[0]))


@lru_cache(maxsize=256)
def gather(partial: Layout, result: Layout, parts: int, stride: int, own: bool = False) -> Traffic:
    """Fragments that bring the partial results of each piece to its root, one slot per sender in rising
    order.

    Tiles whose index `(t // stride) % parts` alone differs hold partial results of the same block.

    Args:
        own: the root's own part has a slot too, and is copied there; otherwise there are only the others'.
    """
    tiles = np.arange(partial.tiles, dtype=np.int64)
    index = (tiles // stride) % parts
    unit = partial.record_bytes
    columns: list[list[NDArray[np.int64]]] = [[], [], [], [], []]
    for root_index in range(parts):
        senders = tiles if own else tiles[index != root_index]
        roots = senders + (root_index - index[senders]) * stride
        # There may be fewer pieces than roots.
        keep = result.shards[roots]["rows"] > 0
        senders, roots = senders[keep], roots[keep]
        held, piece = _boxes(partial, partial.shards[senders]), _boxes(result, result.shards[roots])
        pair, source_offset, offset, records = _spans(
            held, piece, piece.inner, piece.inner_end, piece.outer, piece.outer_end
        )
        slot = index[senders] - (0 if own else index[senders] > root_index)
        offset = offset * unit + slot[pair] * result.bytes[roots[pair]]
        for column, part in zip(
            columns, (senders[pair], roots[pair], source_offset * unit, offset, records), strict=True
        ):
            column.append(part)
    sender, root, source_offset, offset, records = (np.concatenate(column) for column in columns)
    words = records * unit // 4
    stays = sender == root
    copies = np.zeros(int(stays.sum()), dtype=COPY)
    copies["tile"], copies["words"] = sender[stays], words[stays] // 2
    copies["source_offset"], copies["destination_offset"] = source_offset[stays], offset[stays]
    order = np.lexsort((offset, root, source_offset, sender))
    order = order[~stays[order]]
    fragments = np.zeros(len(order), dtype=FRAGMENT)
    fragments["source"], fragments["source_offset"] = sender[order], source_offset[order]
    fragments["destination_offset"], fragments["words"] = offset[order], words[order]
    fragments["first"], fragments["count"] = np.arange(len(order)), 1
    return Traffic(fragments, root[order], copies)


@dataclass(frozen=True)
class DistinctShards:
    """The distinct non-empty shards of a layout, in order of their first tile; where these are dealt, one for
    each tile.

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
    of_tile = numbers_of(shards)
    tiles = np.flatnonzero(of_tile >= 0)
    if layout.dealt:
        of_tile[tiles] = np.arange(len(tiles))
    number = of_tile[tiles]
    counts = np.bincount(number)
    order = np.argsort(number, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)])
    return DistinctShards(shards[tiles[order[first[:-1]]]], tiles[order], first, of_tile)


def _spans(
    held: _Boxes,
    wanted: _Boxes,
    inner_low: NDArray[np.int64],
    inner_high: NDArray[np.int64],
    outer_low: NDArray[np.int64],
    outer_high: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Contiguous spans of rectangles: (rectangle index, source offset, destination offset, length), all but
    the first in records.

    Lines whose every allocated record travels join into one span.
    """
    length = inner_high - inner_low
    lines = outer_high - outer_low
    whole = (length == held.pitch) & (length == wanted.pitch)
    pieces = np.where(whole, 1, lines)
    records = np.where(whole, length * lines, length)
    pair = np.repeat(np.arange(len(pieces)), pieces)
    line = np.arange(len(pair)) - np.repeat(np.cumsum(pieces) - pieces, pieces)

    def offset(box: _Boxes) -> NDArray[np.int64]:
        base = box.base + (outer_low - box.outer) * box.pitch + (inner_low - box.inner)
        return np.asarray(base[pair] + line * box.pitch[pair], dtype=np.int64)

    return pair, offset(held), offset(wanted), records[pair]


def _traffic(
    spans: NDArray[np.void],
    held: DistinctShards,
    holder: NDArray[np.int64],
    wanted: DistinctShards,
    want: NDArray[np.int64],
    hearing: Hearing,
) -> Traffic:
    """Sort the receivers of each span into remote ones and those that hold it themselves.

    Args:
        spans: FRAGMENT records without tiles.
        holder, want: shard numbers of source and destination of each span.
    """
    most = int((wanted.first[want + 1] - wanted.first[want]).sum())
    fragments, copies = np.empty(len(spans), dtype=FRAGMENT), np.empty(most, dtype=COPY)
    receivers = np.empty(most, dtype=np.int64)
    sources = held.tiles, held.first, holder, held.of_tile
    destinations = wanted.tiles, wanted.first, want
    results = _rows(fragments), receivers, _rows(copies)
    made, heard, kept = divide(_rows(spans), *sources, *destinations, HEARING[hearing], *results)
    return Traffic(fragments[:made], receivers[:heard], copies[:kept])


def _rows(records: NDArray[np.void]) -> NDArray[np.int64]:
    """Records of integers as rows of a matrix, which has them in common."""
    return records.view(np.int64).reshape(len(records), len(records.dtype.names or ()))


def load_of(traffic: Sequence[Traffic], tiles: int) -> Load:
    """Words, fragments and copies at the busiest tiles of a phase with these moves over `tiles` tiles."""
    totals = np.zeros((5, tiles), dtype=np.int64)
    for move in traffic:
        for name, on in (
            ("receiver", move.tiles),
            ("sender", move.fragments["source"]),
            ("copier", move.copies["tile"]),
        ):
            assert on.max(initial=-1) < tiles, f"a {name} is not among {tiles} tiles"
        add_load(_rows(move.fragments), move.tiles, _rows(move.copies), totals)
    received, sent, pieces, copies, copied = totals
    busiest = int(np.argmax(copied)) if tiles else 0
    count = int(copies[busiest]) if tiles else 0
    return Load(
        words=int(max(received.max(initial=0), sent.max(initial=0))),
        pieces=int(pieces.max(initial=0)),
        copies=count,
        copied=ceil_div(int(copied[busiest]), count) if count else 0,
    )
