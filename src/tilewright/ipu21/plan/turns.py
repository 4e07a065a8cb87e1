"""Batches larger than the tiles have room for: so many members side by side, turn after turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...arithmetic import ceil_div
from ...errors import UnsupportedError
from ...graph import Operation
from .builder import Builder
from .layout import Layout, Level, spread
from .steps import Retile
from .support import label

MOST_TURNS = 320
"""How many members may follow each other on the same tiles: every turn is written out in the program."""


@dataclass(frozen=True)
class Turns:
    """A batch worked off `side` members at a time.

    Attributes:
        turn: which of them.
    """

    batch: int
    side: int
    turn: int = 0

    @property
    def count(self) -> int:
        return ceil_div(self.batch, self.side)

    def level(self, stride: int) -> Level:
        """The members of this turn as segments of an axis, each on `stride` tiles."""
        return Level(self.batch, stride, first=self.turn * self.side if self.count > 1 else None)

    def each(self) -> Iterator[Turns]:
        return (replace(self, turn=turn) for turn in range(self.count))

    def describe(self) -> str:
        """Behind the description of a grid; empty if one turn is all."""
        return f", in {self.count} turns" if self.count > 1 else ""


def write_turns(
    builder: Builder, name: str, turns: Turns, whole: Layout, write: Callable[[Turns], str]
) -> str:
    """The buffer of all members' results.

    Args:
        whole: what the results are together.
        write: appends the stages of one turn and gives the buffer of its results.
    """
    if turns.count == 1:
        return write(turns)
    layout = spread(whole.row.extent, whole.column.extent, builder.tiles)
    result = builder.add(name, layout, "value", name)
    for turn in turns.each():
        builder.exchange(f"{name}.collect", [Retile(write(turn), result)])
    return result


def check_turns(operation: Operation, batch: int, tiles: int) -> None:
    """Raise UnsupportedError for a batch that would be worked off in more than `MOST_TURNS` turns."""
    if batch > MOST_TURNS * tiles:
        raise UnsupportedError(
            f"{label(operation)}: {batch:,} products of computed operands on {tiles:,} tiles, at most "
            f"{MOST_TURNS} each",
            hint=f"use at least {ceil_div(batch, MOST_TURNS):,} tiles, or a smaller batch",
        )
