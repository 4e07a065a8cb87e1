"""Heads of attention one under another in a line, which is dealt to the tiles of a sequence.

Query blocks of equal size leave tiles idle where heads and blocks do not divide them: 64 sequences of 12
heads leave a fifth of 1,472 tiles. The queries of all heads of a sequence, one head's after another's, divide
among any number of tiles; a tile then works on the end of one head and the beginning of the next, or on
several. What belongs to a head is a *run* of its own (see `Line`), with its operands, all keys, its scores
and its result; the results of all runs are collected at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import align_up, ceil_div
from . import cost
from .attention_work import Problem, Sources, Work, head_cycles
from .judged import Judged
from .layout import MICRO, Axis, Layout, Level, Line, Source, spread
from .movement import load_of, retile


@dataclass(frozen=True)
class HeadRun(Work):
    """One head of every tile, with the queries that the tile has of it."""

    problem: Problem
    line: Line
    heads = 1
    key_parts = 1
    copies_own = False

    @property
    def tiles(self) -> int:
        return self.problem.batch * self.line.parts

    def _sequences(self) -> Level:
        return Level(self.problem.batch, self.line.parts)

    def head_columns(self, width: int, columns: int) -> Axis:
        return Axis(self.problem.heads * width, width, line=replace(self.line, across=True))

    def query_rows(self, *further: Level) -> Axis:
        assert not further, "all keys are on one tile: there is nothing to merge"
        rows = self.problem.batch * self.problem.queries
        return Axis(rows, 1, segments=self._sequences(), line=self.line)

    def key_rows(self, *further: Level) -> Axis:
        assert not further, "keys are whole"
        return Axis(self.problem.batch * self.problem.keys, MICRO, segments=self._sequences())

    def mask(self, rows: int) -> Layout:
        row = Axis(rows, 1, segments=self._sequences()) if rows > 1 else Axis(1)
        return Layout("a16", row, Axis(self.problem.keys, MICRO), self.tiles)


@dataclass(frozen=True)
class HeadLine:
    """All sequences side by side, each on as many tiles as the line has parts."""

    problem: Problem
    line: Line

    @cached_property
    def runs(self) -> int:
        """Heads of the tile that works on most."""
        return self.line.most_blocks()

    @property
    def parts(self) -> int:
        """Tiles of a sequence."""
        return self.line.parts

    def each(self) -> Iterator[HeadRun]:
        """The runs."""
        for residue in range(self.runs):
            yield HeadRun(self.problem, replace(self.line, runs=self.runs, residue=residue))

    @property
    def tiles(self) -> int:
        return self.problem.batch * self.parts

    def collected(self) -> Layout:
        """The result of all runs: whole rows, dealt to the tiles."""
        problem = self.problem
        return spread(problem.batch * problem.queries, problem.heads * problem.value_width, self.tiles)

    def describe(self) -> str:
        return f"{self.problem.batch} sequences x {self.parts} parts of all heads in a line"


def line_of(problem: Problem, tiles: int) -> HeadLine | None:
    """The line, dealt so that the tile with most to do has as little as possible; None with one head, or
    where sequences have less than two tiles each."""
    parts = tiles // problem.batch
    if problem.heads == 1 or parts < 2:
        return None
    rows = np.arange(problem.queries + 1)
    cycles = np.where(rows > 0, sum(_stages(problem, rows).values()), 0)
    # What one head takes at least and all heads at most, and the least in between that is enough.
    low, high = 0, problem.heads * int(cycles[-1])
    while high - low > 1:
        middle = (low + high) // 2
        if len(_dealt(problem, cycles, middle)) <= parts + 1:
            high = middle
        else:
            low = middle
    return HeadLine(problem, Line(problem.heads, problem.queries, tuple(_dealt(problem, cycles, high))))


def _dealt(problem: Problem, cycles: NDArray[Any], most: int) -> list[int]:
    """Cuts of the line between parts that take `most` cycles each, or of single rows that take more.

    Args:
        cycles: what 0, 1, ... queries of a head take.
    """
    cuts, at, rows = [0], 0, problem.queries
    end = problem.heads * rows
    while at < end:
        left, begin = most, at
        while at < end:
            room = rows - at % rows
            fits = int(np.searchsorted(cycles, left, side="right")) - 1
            at += max(min(fits, room), int(at == begin))
            if fits < room:
                break
            left -= int(cycles[room])
        cuts.append(at)
    return cuts


def judge_line(line: HeadLine, sources: Sources) -> Judged[HeadLine]:
    """Cycles by stage, from the traffic the line really causes."""
    problem, runs = line.problem, list(line.each())
    traffic = []
    for source, width, wanted in (
        (sources.query, problem.width, [run.query() for run in runs]),
        (sources.key, problem.width, [run.key() for run in runs]),
        (sources.value, problem.value_width, [run.value() for run in runs]),
    ):
        extent = wanted[0].row.extent, problem.heads * width
        known = source or Source(spread(*extent, line.tiles), 0, extent[1])
        traffic += [retile(known.layout, layout, known.column) for layout in wanted]
    collected = [retile(run.output(), line.collected()) for run in runs]
    stages = {"receive": cost.move(load_of(traffic, max(line.tiles, sources.tiles))), **_compute(line)}
    stages["collect"] = cost.move(load_of(collected, line.tiles))
    return Judged(line, stages, _bytes(line))


def _rows(line: HeadLine) -> NDArray[np.int64]:
    """[runs, parts]: queries of each head that a tile works on."""
    return np.stack([run.line.dealt(np.arange(line.parts))[1] for run in line.each()])


def _stages(problem: Problem, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Kernel cycles for so many queries of a head."""
    keys, value_width = ceil_div(problem.keys, MICRO), problem.value_width // MICRO
    return {
        "transpose": np.full(rows.shape, cost.transpose(keys, value_width)),
        **head_cycles(problem, rows, keys),
        "merge": cost.kernel("scale_rows_f16", rows=rows, panels=value_width),
    }


def _compute(line: HeadLine) -> dict[str, float]:
    """Kernel cycles of the busiest tile."""
    rows = _rows(line)
    stages = _stages(line.problem, rows)
    by_tile = {name: np.where(rows > 0, cycles, 0).sum(axis=0) for name, cycles in stages.items()}
    busiest = int(np.argmax(sum(by_tile.values())))
    return {name: float(cycles[busiest]) for name, cycles in by_tile.items()}


def _bytes(line: HeadLine) -> int:
    problem, rows = line.problem, _rows(line)
    keys = align_up(problem.keys, MICRO)
    operands = rows * problem.width + keys * (problem.width + 2 * problem.value_width)
    held = np.where(rows > 0, operands + rows * (keys + 2 * problem.value_width), 0)
    return 2 * int(held.sum(axis=0).max())
