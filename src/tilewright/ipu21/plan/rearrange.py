"""Any rearrangement of elements: whole records travel straight to their place where the rearrangement keeps
them; everything else travels in 8-byte words to a staging buffer, from which a kernel picks single elements
by a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedError
from ...package.orders import element_offset
from . import cost
from .groups import Groups
from .layout import MICRO, SHARD, Layout, uniform
from .movement import COPY, FRAGMENT, Traffic, distinct_shards
from .steps import Fetch, Held

if TYPE_CHECKING:
    from .builder import Builder, Move

WORD_BYTES = 8
ELEMENT_BYTES = 2
PER_WORD = WORD_BYTES // ELEMENT_BYTES
NOTHING = 0xFFFF
"""Table entry of an element that becomes zero."""
STAGED_ELEMENTS = NOTHING
"""Elements of a staging buffer that a table can name."""

Array = NDArray[np.int64]


@dataclass(frozen=True)
class _Elements:
    """Where each element of a value lies: tile and element offset in its shard, by flat index."""

    tile: Array
    offset: Array


def locate(layout: Layout, held: Held) -> _Elements:
    """Tile and element offset of every element of a value, padding of groups left out."""
    distinct = distinct_shards(layout)
    shards = {name: distinct.shards[name].astype(np.int64) for name in SHARD.names or ()}
    # One entry for each element of each shard, row by row.
    sizes = shards["rows"] * shards["columns"]
    shard = np.repeat(np.arange(len(sizes)), sizes)
    row, column = np.divmod(
        np.arange(len(shard)) - (np.cumsum(sizes) - sizes)[shard], shards["columns"][shard]
    )
    place = (shards["row"][shard] + row, shards["column"][shard] + column)
    tile = np.full(layout.view, -1, dtype=np.int64)
    offset = np.zeros(layout.view, dtype=np.int64)
    tile[place] = distinct.tiles[distinct.first[shard]]
    padded = (shards["padded_rows"][shard], shards["padded_columns"][shard])
    offset[place] = element_offset(layout.order, row, column, *padded)
    chosen = held.column + real_columns(held.columns, held.groups)
    return _Elements(tile[:, chosen].reshape(-1), offset[:, chosen].reshape(-1))


def real_columns(columns: int, groups: Groups | None) -> Array:
    """Device columns that carry data."""
    if groups is None:
        return np.arange(columns, dtype=np.int64)
    group, inside = np.divmod(np.arange(groups.count * groups.width, dtype=np.int64), groups.width)
    return group * groups.padded + inside


def rearrange(
    builder: Builder,
    sources: Sequence[Held],
    index: Array,
    layout: Layout,
    name: str,
    owner: str,
) -> str:
    """A new buffer in `layout` whose element (i, j) is element index[i, j] of the sources' elements one after
    another, in the order of their rows; -1 is zero.

    Args:
        layout: A16, every shard on one tile.
    """
    located = [locate(builder.layout(held.buffer), held) for held in sources]
    origin = _Origin(
        np.concatenate([np.full(len(part.tile), n) for n, part in enumerate(located)]),
        np.concatenate([part.tile for part in located]),
        np.concatenate([part.offset for part in located]),
    )
    out = builder.add(name, layout, "value", owner)
    wanted = _wanted(layout, index)
    records = wanted.elements.reshape(-1, MICRO)
    if _keeps_records(records, origin):
        whole = _Wanted(wanted.tile[::MICRO], wanted.position[::MICRO] // MICRO, records[:, 0])
        builder.exchange(f"{owner}.rearrange", _fetch(sources, out, whole, origin, MICRO))
        return out
    words, table = _staged(wanted, origin)
    longest = int(words.position.max(initial=0)) + 1
    if longest * PER_WORD > STAGED_ELEMENTS:
        raise UnsupportedError(
            f"{owner}: a tile would need {longest * WORD_BYTES:,} bytes of others to rearrange its part, "
            f"at most {STAGED_ELEMENTS * ELEMENT_BYTES:,} can be addressed",
            hint="use more tiles, or smaller extents",
        )
    staging = builder.add(f"{owner}.staging", uniform(layout.tiles, longest, WORD_BYTES), "scratch", owner)
    builder.exchange(f"{owner}.fetch", _fetch(sources, staging, words, origin, PER_WORD))
    ends = np.cumsum(np.bincount(wanted.tile, minlength=layout.tiles))
    parts = np.split(table, ends[:-1])
    count = max(len(part) for part in parts)
    entries = uniform(layout.tiles, count, ELEMENT_BYTES)
    table_buffer = builder.add(f"{owner}.table", entries, "table", owner)
    builder.plan.tables[table_buffer] = {t: part.tobytes() for t, part in enumerate(parts) if len(part)}
    cycles = float(cost.kernel("permute_u16", count=count))
    builder.call(f"{owner}.permute", "permute_u16", (out, staging, table_buffer), cycles)
    return out


@dataclass(frozen=True)
class _Origin:
    """Where each element of the sources lies, all sources one after another."""

    source: Array
    tile: Array
    offset: Array


@dataclass(frozen=True)
class _Wanted:
    """What tiles want, tile by tile: at `position` of `tile`'s buffer, in units, the unit that contains
    element `elements` of the sources; -1 for none."""

    tile: Array
    position: Array
    elements: Array


def _wanted(layout: Layout, index: Array) -> _Wanted:
    """Element for element, padding included."""
    there = locate(layout, Held("", 0, layout.column.extent))
    sizes = layout.bytes // ELEMENT_BYTES
    first = np.cumsum(sizes) - sizes
    tile = np.repeat(np.arange(layout.tiles), sizes)
    elements = np.full(len(tile), -1, dtype=np.int64)
    elements[first[there.tile] + there.offset] = index.reshape(-1)
    return _Wanted(tile, np.arange(len(tile)) - first[tile], elements)


def _staged(wanted: _Wanted, origin: _Origin) -> tuple[_Wanted, NDArray[np.uint16]]:
    """The words in which everything wanted lies, each once per tile, and where in them each element is."""
    there = wanted.elements >= 0
    elements = wanted.elements[there]
    word, rest = np.divmod(origin.offset[elements], PER_WORD)
    # One number per tile and word, in an order in which neighbours stay neighbours.
    key = wanted.tile[there]
    for part in (origin.source[elements], origin.tile[elements], word):
        key = key * (int(part.max(initial=0)) + 1) + part
    _, chosen, inverse = np.unique(key, return_index=True, return_inverse=True)
    tile = wanted.tile[there][chosen]
    count = np.bincount(tile, minlength=1)
    slot = np.arange(len(tile)) - (np.cumsum(count) - count)[tile]
    table = np.full(len(wanted.elements), NOTHING, dtype=np.uint16)
    table[there] = ((slot[inverse.reshape(-1)] * PER_WORD + rest) & NOTHING).astype(np.uint16)
    return _Wanted(tile, slot, elements[chosen]), table


def _keeps_records(records: Array, origin: _Origin) -> bool:
    """True if every record of a shard is a record of a source, padding included."""
    if (records < 0).any():
        return False
    places, tile, source = origin.offset[records], origin.tile[records], origin.source[records]
    steps = places == places[:, :1] + np.arange(MICRO)
    same = (tile == tile[:, :1]) & (source == source[:, :1])
    return bool(steps.all() and same.all() and (places[:, 0] % MICRO == 0).all())


def _fetch(
    sources: Sequence[Held], destination: str, wanted: _Wanted, origin: _Origin, unit: int
) -> list[Move]:
    """Moves of units of `unit` elements."""
    if not len(wanted.elements):
        return []
    source, sender = origin.source[wanted.elements], origin.tile[wanted.elements]
    begin = origin.offset[wanted.elements] // unit
    # Neighbours on both sides travel together.
    goes_on = np.diff(begin) == 1
    for same in (source, sender, wanted.tile):
        goes_on &= np.diff(same) == 0
    first = np.concatenate([[0], np.flatnonzero(~goes_on) + 1])
    length = np.diff(np.append(first, len(begin)))
    columns = (source[first], sender[first], begin[first], wanted.position[first], length, wanted.tile[first])
    return _as_moves(sources, destination, columns, unit)


def _as_moves(sources: Sequence[Held], destination: str, columns: tuple[Array, ...], unit: int) -> list[Move]:
    source, sender, begin, first, length, receiver = columns
    size = unit * ELEMENT_BYTES
    moves: list[Move] = []
    for number, held in enumerate(sources):
        mine = source == number
        if not mine.any():
            continue
        remote, local = mine & (sender != receiver), mine & (sender == receiver)
        order = np.flatnonzero(remote)[
            np.lexsort((first[remote], receiver[remote], begin[remote], sender[remote]))
        ]
        fragments = np.zeros(len(order), dtype=FRAGMENT)
        fragments["source"], fragments["source_offset"] = sender[order], begin[order] * size
        fragments["destination_offset"], fragments["words"] = first[order] * size, length[order] * size // 4
        fragments["first"], fragments["count"] = np.arange(len(order)), 1
        copies = np.zeros(int(local.sum()), dtype=COPY)
        copies["tile"], copies["words"] = receiver[local], length[local] * size // 8
        copies["source_offset"], copies["destination_offset"] = begin[local] * size, first[local] * size
        moves.append(Fetch(held.buffer, destination, Traffic(fragments, receiver[order], copies)))
    return moves
