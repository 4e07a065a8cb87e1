"""Attention as query blocks x key blocks x heads over the tiles.

A tile works on sequence b, head group g, query block i of q and key block j of s: scores, their exponentials
relative to the block's own maximum, and their product with the values. The s partial results of a query block
are merged by their maxima and sums, each of the s tiles taking a part of the rows, or of rows and columns.
Partner tiles share what they have in common in half the time: tile ((b*h + g)*q + i)*s + j shares its
queries, tile ((b*h + g)*s + j)*q + i its keys and values.

An odd s leaves in every group one *lone* tile, whose partner wants other queries. Where the planner may say
how the queries are stored, half of them are on the lone tile: it hears the other half word by word while the
others hear all of them two words at a time. What it holds it copies when all have arrived; as it has the
fewest keys, there is time for that while the others compute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...arithmetic import ceil_div
from .attention_work import Problem, Work
from .layout import MICRO, Axis, Layout, Level
from .turns import Turns


@dataclass(frozen=True)
class Grid(Work):
    """Sequences side by side, and parts of the heads, the queries and the keys.

    Attributes:
        shares_keys: neighbours work on the same keys; otherwise on the same queries.
        lone_half: the lone tile of every group stores half of the queries.
        across: into so many parts the result pieces of a query block cut the columns of its head, and into
            key_parts / across its rows.
    """

    problem: Problem
    head_parts: int
    query_parts: int
    key_parts: int
    turns: Turns
    shares_keys: bool = False
    lone_half: bool = False
    across: int = 1

    @property
    def tiles(self) -> int:
        return self.turns.side * self.head_parts * self.query_parts * self.key_parts

    @property
    def heads(self) -> int:
        """Heads of the busiest tile."""
        return ceil_div(self.problem.heads, self.head_parts)

    def describe(self) -> str:
        return (
            f"{self.turns.side} sequences x {self.head_parts} head groups x {self.query_parts} "
            f"query blocks x {self.key_parts} key blocks"
            f"{', keys shared by neighbours' if self.shares_keys else ''}"
            f"{', half of the queries stored on lone tiles' if self.lone_half else ''}"
            f"{f', merged in {self.across} parts of the columns' if self.across > 1 else ''}"
            f"{self.turns.describe()}"
        )

    @property
    def lone(self) -> bool:
        """True where a group of tiles that need the same queries has a tile without partner."""
        return not self.shares_keys and self.key_parts % 2 == 1 and self.key_parts > 1

    @property
    def copies_own(self) -> bool:
        """True if lone tiles copy what they hold of the queries, behind the exchange: if they hold half, or
        have time for it.
        """
        keys = self.key_rows()
        return self.lone_half or (self.lone and keys.smallest() < keys.largest() // MICRO)

    def _sequences(self) -> Level:
        return self.turns.level(self.head_parts * self.query_parts * self.key_parts)

    def head_columns(self, width: int, columns: int) -> Axis:
        # The only head needs no padding between heads.
        cut = Level(self.head_parts, self.query_parts * self.key_parts)
        heads = self.problem.heads
        return Axis(heads * width if heads > 1 else columns, width, (cut,))

    @property
    def queries(self) -> Level:
        """The cut into query blocks."""
        return Level(self.query_parts, 1 if self.shares_keys else self.key_parts)

    @property
    def pieces(self) -> Level:
        """The cut into key blocks."""
        if self.shares_keys:
            return Level(self.key_parts, self.query_parts)
        return Level(self.key_parts, 1, mirrored=self.lone)

    @property
    def result_rows(self) -> Level:
        """The cut of the rows of a query block into those of its result pieces."""
        pieces = self.pieces
        return replace(pieces, parts=self.key_parts // self.across, stride=pieces.stride * self.across)

    def result(self) -> Layout:
        """The merged output: a piece of its query block on each of the tiles that worked on it."""
        whole = self.output(self.result_rows)
        if self.across == 1:
            return whole
        cut = Level(self.across, self.pieces.stride)
        return replace(whole, column=replace(whole.column, block=MICRO, levels=(*whole.column.levels, cut)))

    def result_state(self) -> Layout:
        """Largest scores and sums of the rows of a result piece."""
        return self.state(self.result_rows)

    def result_piece(self) -> tuple[int, int]:
        """Rows and panels per head of the largest result piece."""
        rows = self.result_rows.largest(self.query_rows().largest())
        return rows, ceil_div(self.problem.value_width // MICRO, self.across)

    def query_rows(self, *further: Level) -> Axis:
        cut = (self.queries, *further)
        return Axis(self.problem.batch * self.problem.queries, 1, cut, self._sequences())

    def key_rows(self, *further: Level) -> Axis:
        cut = (self.pieces, *further)
        return Axis(self.problem.batch * self.problem.keys, MICRO, cut, self._sequences())

    def stored_query(self) -> Layout:
        return replace(self.query(), row=self.query_rows(replace(self.pieces, half=self.lone_half)))

    def stored(self, layout: Layout) -> Layout:
        """Keys or values stored once: the query blocks that need them own pieces."""
        return replace(layout, row=self.key_rows(self.queries))

    def mask(self, rows: int) -> Layout:
        row = Axis(rows, 1, (self._sequences(),)) if rows > 1 else Axis(1)
        return Layout("a16", row, Axis(self.problem.keys, MICRO, (self.pieces,)), self.tiles)
