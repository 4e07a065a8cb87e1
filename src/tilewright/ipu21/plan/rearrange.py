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

from ...arithmetic import align_up
from ...errors import UnsupportedError
from ...package.orders import element_index
from . import cost
from .groups import Groups
from .layout import MICRO, Axis, Layout, Level
from .movement import COPY, FRAGMENT, Traffic
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
    rows, columns = layout.view
    tile = np.full((rows, columns), -1, dtype=np.int64)
    offset = np.zeros((rows, columns), dtype=np.int64)
    shards = layout.shards
    for holder in range(layout.tiles - 1, -1, -1):
        shard = shards[holder]
        if not shard["rows"]:
            continue
        r, c = int(shard["row"]), int(shard["column"])
        extents = (int(shard["rows"]), int(shard["columns"]))
        where = (slice(r, r + extents[0]), slice(c, c + extents[1]))
        tile[where] = holder
        offset[where] = element_index(
            layout.order, *extents, int(shard["padded_rows"]), int(shard["padded_columns"])
        )
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
    source = np.concatenate([np.full(len(part.tile), n) for n, part in enumerate(located)])
    tile = np.concatenate([part.tile for part in located])
    offset = np.concatenate([part.offset for part in located])
    out = builder.add(name, layout, "value", owner)
    # Per destination tile: flat position in the shard -> element of the sources, -1 for none.
    wanted = [_shard_elements(layout, t, index) for t in range(layout.tiles)]
    if all(_keeps_records(elements, tile, offset, source) for elements in wanted):
        moves = _fetch(builder, sources, out, wanted, (source, tile, offset), MICRO)
        builder.exchange(f"{owner}.rearrange", moves)
        return out
    tables: dict[int, bytes] = {}
    staged: list[Array] = []
    longest = 0
    for t, elements in enumerate(wanted):
        if not len(elements):
            staged.append(np.zeros(0, dtype=np.int64))
            continue
        there = elements >= 0
        known = elements[there]
        # Which words, in an order in which neighbours stay neighbours.
        key = ((source[known] << 44) | (tile[known] << 24)) + offset[known] // PER_WORD
        words, slot = np.unique(key, return_inverse=True)
        table = np.full(len(elements), NOTHING, dtype=np.uint16)
        if len(words) * PER_WORD > STAGED_ELEMENTS:
            raise UnsupportedError(
                f"{owner}: a tile would need {len(words) * WORD_BYTES:,} bytes of others to rearrange its "
                f"part, at most {STAGED_ELEMENTS * ELEMENT_BYTES:,} can be addressed",
                hint="use more tiles, or smaller extents",
            )
        table[there] = slot.reshape(-1) * PER_WORD + offset[known] % PER_WORD
        tables[t] = table.tobytes()
        representative = np.full(len(words), -1, dtype=np.int64)
        representative[slot.reshape(-1)] = known
        staged.append(representative)
        longest = max(longest, len(words))
    staging = builder.add(
        f"{owner}.staging", _uniform(layout.tiles, max(longest, 1), WORD_BYTES), "scratch", owner
    )
    moves = _fetch(builder, sources, staging, staged, (source, tile, offset), PER_WORD)
    builder.exchange(f"{owner}.fetch", moves)
    count = max(len(elements) for elements in wanted)
    entries = _uniform(layout.tiles, align_up(count, PER_WORD), ELEMENT_BYTES)
    table_buffer = builder.add(f"{owner}.table", entries, "table", owner)
    builder.plan.tables[table_buffer] = tables
    cycles = float(cost.kernel("permute_u16", count=count))
    builder.call(f"{owner}.permute", "permute_u16", (out, staging, table_buffer), cycles)
    return out


def _uniform(tiles: int, items: int, item_bytes: int) -> Layout:
    """The same number of items on every tile."""
    return Layout("plain", Axis(tiles * items, items, (Level(tiles, 1),)), Axis(1), tiles, item_bytes)


def _shard_elements(layout: Layout, tile: int, index: Array) -> Array:
    """Elements of the sources by position in a tile's shard, -1 for none."""
    shard = layout.shards[tile]
    extents = tuple(int(shard[field]) for field in ("rows", "columns", "padded_rows", "padded_columns"))
    elements = np.full(extents[2] * extents[3], -1, dtype=np.int64)
    if len(elements):
        r, c = int(shard["row"]), int(shard["column"])
        where = element_index(layout.order, *extents)
        elements[where] = index[r : r + extents[0], c : c + extents[1]]
    return elements


def _keeps_records(elements: Array, tile: Array, offset: Array, source: Array) -> bool:
    """True if every record of a shard is a record of a source, padding included."""
    if not len(elements):
        return True
    records = elements.reshape(-1, MICRO)
    if (records < 0).any():
        return False
    places = offset[records]
    steps = places == places[:, :1] + np.arange(MICRO)
    same = (tile[records] == tile[records[:, :1]]) & (source[records] == source[records[:, :1]])
    return bool(steps.all() and same.all() and (places[:, 0] % MICRO == 0).all())


def _fetch(
    builder: Builder,
    sources: Sequence[Held],
    destination: str,
    wanted: list[Array],
    where: tuple[Array, Array, Array],
    unit: int,
) -> list[Move]:
    """Moves of units of `unit` elements: position i of a tile's list lies i units into its destination.

    The elements of a list name any element of the unit they stand for, or one per element of it.
    """
    source, tile, offset = where
    columns: list[list[Array]] = [[], [], [], [], [], []]
    for t, elements in enumerate(wanted):
        if unit == MICRO:
            elements = elements[::MICRO]
        count = len(elements)
        if not count:
            continue
        begin = offset[elements] // unit
        breaks = np.flatnonzero(
            (np.diff(begin) != 1) | (np.diff(tile[elements]) != 0) | (np.diff(source[elements]) != 0)
        )
        first = np.concatenate([[0], breaks + 1])
        length = np.diff(np.append(first, count))
        for column, part in zip(
            columns,
            (
                source[elements[first]],
                tile[elements[first]],
                begin[first],
                first,
                length,
                np.full(len(first), t, dtype=np.int64),
            ),
            strict=True,
        ):
            column.append(part)
    return _as_moves(sources, destination, columns, unit)


def _as_moves(sources: Sequence[Held], destination: str, columns: list[list[Array]], unit: int) -> list[Move]:
    if not columns[0]:
        return []
    source, sender, begin, first, length, receiver = (np.concatenate(column) for column in columns)
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
