"""Layouts: which tile owns which rectangle of a matrix, in which element order.

A layout sees its tensor as a matrix (`view`): the last axis is the columns, all others together the rows.
Each of the two axes is cut into blocks (16 columns of an AMP record, 1 row) and the blocks are dealt out as
evenly as possible, level by level: a second level cuts each part of the first again, so that the pieces of a
finer layout nest inside those of a coarser one. An axis may consist of equal segments (the sequences of a
batch), each of which is cut by itself. Tiles are *logical* and counted from 0.

Inside a shard the elements lie in *records*: contiguous rectangles of an element order (`UNITS`), which
travel whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div

MICRO = 16
"""Columns of an AMP record, and inner elements of a float16 panel."""

SHARD = np.dtype(
    [
        ("row", "<i8"),
        ("rows", "<i8"),
        ("padded_rows", "<i8"),
        ("column", "<i8"),
        ("columns", "<i8"),
        ("padded_columns", "<i8"),
    ]
)
"""One tile's rectangle: first row, logical rows, allocated rows; the same for columns. A tile whose `rows` or
`columns` is 0 owns and allocates nothing."""

PIECE = np.dtype([("tile", "<i8"), ("offset", "<i8"), *SHARD.descr])
"""A rectangle that is contiguous in what a tile holds, from byte `offset` on."""


def matrix_view(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a tensor seen as a matrix: the last axis is the columns, all others the rows."""
    return prod(shape[:-1]), shape[-1] if shape else 1


def is_fewest(blocks: int, parts: int) -> bool:
    """True if no cut into fewer parts leaves as few of so many blocks in the largest."""
    return ceil_div(blocks, ceil_div(blocks, parts)) == parts


@dataclass(frozen=True)
class Units:
    """The records of an element order.

    Attributes:
        rows, columns: extent of a record in elements.
        by_rows: a row of records is contiguous; otherwise a column of records is.
    """

    rows: int
    columns: int
    by_rows: bool = False


UNITS = {
    "a16": Units(1, 16),
    "a16t": Units(16, 1, by_rows=True),
    "b16": Units(16, 16),
    "row16": Units(1, 16),
    "a8": Units(1, 8),
    "b8": Units(8, 16),
    "row8": Units(1, 8),
    "plain": Units(1, 1),
}
"""Records by order: AMP operands of float16 and float32, and `plain` for one item per row and column (the
statistics of a row)."""


@dataclass(frozen=True)
class Level:
    """One cut of an axis: into `parts`; tile t holds part `(t // stride) % parts`, or part `index` on every
    tile if that is given (a window that all tiles see at one time), or part `first + t // stride` if that is
    given (parts worked off in turns; there may be none left for some tiles).

    Attributes:
        within: every part is so many consecutive ones of the cut into `within` times as many.
        half: the last part is as large as all others together.
        mirrored: groups of tiles that begin with an odd tile hold the parts in reverse. Of an odd number of
            parts with stride 1 the last one is then always with the tile whose partner is in another group.
    """

    parts: int
    stride: int
    index: int | None = None
    first: int | None = None
    within: int = 1
    half: bool = False
    mirrored: bool = False

    @property
    def shares(self) -> int:
        """Equal shares that the blocks are dealt into."""
        return 2 * (self.parts - 1) if self.half else self.within * self.parts

    def part_of(self, tiles: NDArray[np.int64]) -> NDArray[np.int64]:
        """The part each tile holds."""
        if self.index is not None:
            return np.full(len(tiles), self.index, dtype=np.int64)
        if self.first is not None:
            return self.first + tiles // self.stride
        index = (tiles // self.stride) % self.parts
        if self.mirrored:
            return np.where((tiles - index * self.stride) % 2, self.parts - 1 - index, index)
        return index

    def shares_of(self, part: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first share of each part, and one past its last."""
        first = self.within * part
        if self.half:
            return first, np.where(part + 1 == self.parts, self.shares, part + 1)
        return first, first + self.within

    def largest(self, blocks: int) -> int:
        """Blocks of the largest part of so many."""
        short, long = divmod(blocks, self.shares)
        if self.half:
            return max(short + min(1, long), self._last(short, long))
        return self.within * short + min(self.within, long)

    def smallest(self, blocks: int) -> int:
        """Blocks of the smallest part of so many."""
        short, long = divmod(blocks, self.shares)
        if self.half:
            return min(short + (long >= self.parts - 1), self._last(short, long))
        return self.within * short + max(long - self.within * (self.parts - 1), 0)

    def _last(self, short: int, long: int) -> int:
        """Blocks of the part that is a half, if the first `long` shares have one more than `short`."""
        others = self.parts - 1
        return others * short + max(long - others, 0)


@dataclass(frozen=True)
class Line:
    """Blocks of columns one under another, `rows` rows each, in one line that is dealt to groups of tiles.
    What a tile gets may begin and end within a block, so that no rectangle is all of it: a cut by a line
    gives of its blocks the one whose number leaves `residue` when divided by `runs`. With as many runs as a
    tile can have blocks, that is each block once, and a block is in the same run on all of its tiles.

    Attributes:
        cuts: where on the line what each tile of a group gets begins, and the end of the line.
        across: the axis is that of the columns, in blocks; otherwise that of the rows of a block.
    """

    blocks: int
    rows: int
    cuts: tuple[int, ...]
    runs: int = 1
    residue: int = 0
    across: bool = False

    def dealt(self, tiles: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What each tile gets of this axis: the first, and how many; none where it has no such block."""
        first, stop = self._bounds(tiles)
        block = first // self.rows
        block = block + (self.residue - block) % self.runs
        begin = np.maximum(first, block * self.rows)
        rows = np.maximum(np.minimum(stop, (block + 1) * self.rows) - begin, 0)
        if self.across:
            return block, (rows > 0).astype(np.int64)
        return np.where(rows > 0, begin - block * self.rows, 0), rows

    @property
    def parts(self) -> int:
        """Tiles of a group."""
        return len(self.cuts) - 1

    def most_blocks(self) -> int:
        """Blocks of the tile that has most."""
        first, stop = self._bounds(np.arange(self.parts))
        return int((ceil_div(stop, self.rows) - first // self.rows).max())

    def _bounds(self, tiles: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        part, cuts = tiles % self.parts, np.array(self.cuts)
        return cuts[part], cuts[part + 1]


@dataclass(frozen=True)
class Axis:
    """An axis of `extent` elements in blocks of `block`, cut by nested levels.

    Every part owns whole blocks; the last block may be partly padding.

    Attributes:
        segments: cuts the axis into equal segments first, whatever the block; their number divides `extent`.
        line: cuts the axis instead of `levels`; the other axis has to be cut by the same.
    """

    extent: int
    block: int = 1
    levels: tuple[Level, ...] = ()
    segments: Level | None = None
    line: Line | None = None

    def __post_init__(self) -> None:
        # A cut into one part is none; without it, equal layouts compare equal.
        object.__setattr__(self, "levels", tuple(level for level in self.levels if level.parts > 1))
        if self.segments is not None and self.segments.parts == 1:
            object.__setattr__(self, "segments", None)
        if self.segments is not None and self.extent % self.segments.parts:
            raise AssertionError(f"{self.extent} elements do not make {self.segments.parts} equal segments")

    @property
    def parts(self) -> int:
        """Number of parts over all levels and segments."""
        count = self.segments.parts if self.segments else 1
        if self.line is not None:
            count *= self.line.parts
        for level in self.levels:
            count *= level.parts
        return count

    def resolve(
        self, tiles: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(start, logical length, allocated length) in elements for each tile.

        Blocks are dealt as evenly as possible: with b blocks over p shares, share j starts at block
        j*(b div p) + min(j, b mod p) and the first b mod p shares get one more; a part of a level is one or
        several consecutive shares (`Level.shares_of`).
        """
        start, length = self._dealt(tiles)
        begin = start * self.block
        end = np.minimum(begin + length * self.block, self.segment)
        logical = np.maximum(end - begin, 0)
        if self.segments is not None:
            segment = self.segments.part_of(tiles)
            logical = np.where(segment < self.segments.parts, logical, 0)
            begin = begin + np.minimum(segment, self.segments.parts - 1) * self.segment
        return begin, logical, np.where(logical > 0, length * self.block, 0)

    def _dealt(self, tiles: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First block of a segment, and number of blocks, for each tile."""
        if self.line is not None:
            return self.line.dealt(tiles)
        start = np.zeros(len(tiles), dtype=np.int64)
        length = np.full(len(tiles), ceil_div(self.segment, self.block), dtype=np.int64)
        for level in self.levels:
            j, stop = level.shares_of(level.part_of(tiles))
            short, long = np.divmod(length, level.shares)
            begin = j * short + np.minimum(j, long)
            start, length = start + begin, stop * short + np.minimum(stop, long) - begin
        return start, length

    @property
    def segment(self) -> int:
        """Elements of one segment."""
        return self.extent // self.segments.parts if self.segments else self.extent

    def largest(self) -> int:
        """Allocated length of the largest part, in elements."""
        if self.line is not None:
            return int(self.line.dealt(np.arange(self.line.parts))[1].max()) * self.block
        blocks = ceil_div(self.segment, self.block)
        for level in self.levels:
            blocks = level.largest(blocks)
        return blocks * self.block

    def smallest(self) -> int:
        """Blocks of the smallest part; 0 if some part is empty."""
        if self.line is not None:
            return int(self.line.dealt(np.arange(self.line.parts))[1].min())
        blocks = ceil_div(self.segment, self.block)
        for level in self.levels:
            blocks = level.smallest(blocks)
        return blocks


@dataclass(frozen=True)
class Layout:
    """Element order, the cut of both axes, and how many tiles take part.

    Attributes:
        order: name of the element order inside a shard (`tilewright.package.orders`).
        row, column: the cut of each axis of the matrix view.
        tiles: logical tiles 0..tiles-1 hold a (possibly empty) shard. Tiles with equal coordinates on every
            level of both axes hold replicas.
        element_bytes: bytes per element on the device.
        dealt: tiles that would hold replicas share one instead: its records, in the order of memory, are
            dealt to them as evenly as possible, a run to each; those of a block of rows stay together.
    """

    order: str
    row: Axis
    column: Axis
    tiles: int
    element_bytes: int = 2
    dealt: bool = False

    @cached_property
    def shards(self) -> NDArray[np.void]:
        """SHARD record of each logical tile, indexed by tile; of what it shares, if that is dealt."""
        shards = self._rectangles
        if self.dealt:
            shards = shards.copy()
            _empty(shards, self.runs[1] == 0)
        return shards

    @cached_property
    def _rectangles(self) -> NDArray[np.void]:
        tiles = np.arange(self.tiles, dtype=np.int64)
        shards = np.zeros(self.tiles, dtype=SHARD)
        shards["row"], shards["rows"], shards["padded_rows"] = self.row.resolve(tiles)
        shards["column"], shards["columns"], shards["padded_columns"] = self.column.resolve(tiles)
        _empty(shards, (shards["rows"] == 0) | (shards["columns"] == 0))
        return shards

    @cached_property
    def runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(first, number) of the records that each tile gets of a rectangle that is dealt."""
        assert not self.units.by_rows, f"{self.order} has no columns of records"
        assert self.column.block == self.units.columns, "a column of records would hold nothing but padding"
        shards = self._rectangles
        number = numbers_of(shards)
        order = np.argsort(number, kind="stable")
        holders = np.bincount(number + 1)
        place = np.empty(self.tiles, dtype=np.int64)
        place[order] = np.arange(self.tiles) - np.repeat(np.cumsum(holders) - holders, holders)
        blocks = (shards["padded_rows"] // self.row.block) * (shards["padded_columns"] // self.units.columns)
        short, long = np.divmod(blocks, holders[number + 1])
        each = self.row.block // self.units.rows
        return each * (place * short + np.minimum(place, long)), each * (short + (place < long))

    @cached_property
    def pieces(self) -> NDArray[np.void]:
        """PIECE records of all that tiles hold, tile by tile: one, or, of a run, the end of a column of
        records, whole columns, and the beginning of one.
        """
        shards = self.shards
        tile = np.flatnonzero(shards["rows"] > 0)
        if not self.dealt:
            return _pieces(tile, np.zeros_like(tile), shards[tile])
        shards, first, count = shards[tile], self.runs[0][tile], self.runs[1][tile]
        height = shards["padded_rows"] // self.units.rows
        line, low = np.divmod(first, height)
        stop, rest = np.divmod(first + count, height)
        begin = line + (low > 0)
        head = np.where(low > 0, np.minimum(height - low, count), 0)
        body = np.maximum(stop - begin, 0) * height
        tail = count - head - body
        found = []
        for records, before, rows, columns in (
            (head, np.zeros_like(head), (low, head), (line, np.ones_like(line))),
            (body, head, (np.zeros_like(low), height), (begin, stop - begin)),
            (tail, head + body, (np.zeros_like(low), rest), (stop, np.ones_like(stop))),
        ):
            there = records > 0
            part = shards[there]
            for name, unit, (at, length) in (
                ("row", self.units.rows, rows),
                ("column", self.units.columns, columns),
            ):
                at, length = unit * at[there], unit * length[there]
                part[f"{name}s"] = np.minimum(part[f"{name}s"] - at, length)
                part[f"padded_{name}s"] = length
                part[name] += at
            found.append(_pieces(tile[there], before[there] * self.record_bytes, part))
        pieces = np.concatenate(found)
        return pieces[np.lexsort((pieces["offset"], pieces["tile"]))]

    @cached_property
    def bytes(self) -> NDArray[np.int64]:
        """Bytes each tile allocates for what it holds, indexed by tile."""
        if self.dealt:
            return self.runs[1] * self.record_bytes
        shards = self.shards
        return np.asarray(
            shards["padded_rows"] * shards["padded_columns"] * self.element_bytes, dtype=np.int64
        )

    def same_shards(self, other: Layout) -> bool:
        """True if every tile holds the same rectangle, allocated alike, in the same order."""
        return (
            self.order == other.order
            and self.tiles == other.tiles
            and self.dealt == other.dealt
            and self.view == other.view
            and bool(np.array_equal(self.shards, other.shards))
        )

    @property
    def pads_rows(self) -> bool:
        """True if some tile's rows end with padding."""
        return bool(np.any(self.shards["padded_rows"] > self.shards["rows"]))

    @property
    def complete(self) -> bool:
        """True if somebody holds every element in a rectangle of its own: there are no windows and no turns,
        and nothing is dealt.
        """
        if self.row.line is not None or self.dealt:
            return False
        cuts = (*self.row.levels, *self.column.levels, self.row.segments, self.column.segments)
        return all(cut is None or (cut.index is None and cut.first is None) for cut in cuts)

    @property
    def units(self) -> Units:
        return UNITS[self.order]

    @property
    def record_bytes(self) -> int:
        """Bytes of one record."""
        return self.units.rows * self.units.columns * self.element_bytes

    @property
    def view(self) -> tuple[int, int]:
        return self.row.extent, self.column.extent

    def describe(self) -> str:
        """One line for reports: order, view, cuts."""
        cuts = []
        for name, axis in (("rows", self.row), ("columns", self.column)):
            cut = [str(level.parts) for level in ([axis.segments] if axis.segments else []) + [*axis.levels]]
            if axis.line is not None:
                cut.append(f"a line of {axis.line.parts}")
            levels = " x ".join(cut)
            cuts.append(f"{name} {axis.extent}" + (f" / {levels}" if levels else ""))
        return f"{self.order} [{', '.join(cuts)}] on {self.tiles} tiles" + (", dealt" if self.dealt else "")


def _empty(shards: NDArray[np.void], which: NDArray[np.bool_]) -> None:
    for field in ("rows", "padded_rows", "columns", "padded_columns"):
        shards[field][which] = 0


def _pieces(tile: NDArray[np.int64], offset: NDArray[np.int64], part: NDArray[np.void]) -> NDArray[np.void]:
    pieces = np.zeros(len(tile), dtype=PIECE)
    pieces["tile"], pieces["offset"] = tile, offset
    for field in SHARD.names or ():
        pieces[field] = part[field]
    return pieces


def numbers_of(shards: NDArray[np.void]) -> NDArray[np.int64]:
    """A number for each shard: equal ones have the same, rising in the order of their first tile; -1 for
    empty ones.
    """
    tiles = np.flatnonzero(shards["rows"] > 0)
    number = np.zeros(len(tiles), dtype=np.int64)
    first = np.zeros(0, dtype=np.int64)
    for field in SHARD.names or ():
        # Field by field: much faster than comparing records, and no number of either needs more bits.
        _, first, number = np.unique(
            number << 40 | shards[field][tiles], return_index=True, return_inverse=True
        )
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    numbers = np.full(len(shards), -1, dtype=np.int64)
    numbers[tiles] = rank[number.reshape(-1)]
    return numbers


def spread(rows: int, columns: int, tiles: int) -> Layout:
    """A matrix stored once, rows dealt over all tiles: for values whose consumers do not ask for more."""
    parts = min(tiles, rows)
    return Layout(
        order="a16",
        row=Axis(rows, 1, (Level(parts, 1),)),
        column=Axis(columns, MICRO),
        tiles=parts,
    )


def uniform(tiles: int, items: int, item_bytes: int) -> Layout:
    """The same number of items on every tile."""
    return Layout("plain", Axis(tiles * items, items, (Level(tiles, 1),)), Axis(1), tiles, item_bytes)


@dataclass(frozen=True)
class Source:
    """Columns `column` .. `column + columns` of a matrix that lies in a layout."""

    layout: Layout
    column: int
    columns: int

    @property
    def whole(self) -> bool:
        """True if it is all columns."""
        return self.column == 0 and self.columns == self.layout.column.extent

    def lies_in(self, layout: Layout) -> bool:
        """True if nothing has to move for the columns to lie in a layout."""
        return self.whole and self.layout.same_shards(layout)

    def layout_of_its_own(self) -> Layout:
        """A layout for a buffer that holds just these columns."""
        if self.whole:
            return self.layout
        layout = spread(self.layout.row.extent, self.columns, self.layout.tiles)
        return replace(layout, element_bytes=self.layout.element_bytes)
