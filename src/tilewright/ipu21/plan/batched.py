"""Products of two computed operands: sequences x row blocks x inner blocks x column blocks over the tiles.

The right operand becomes the stationary one: [N, K] matrices as they lie, [K, N] matrices after a transpose
of the blocks each tile has received. Partial sums over the inner blocks meet at the roots of their pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from ...arithmetic import ceil_div
from ...graph import Operation
from ...operators.parameter import flag
from . import cost, views
from .judged import Judged, best_first, report_of
from .layout import MICRO, Axis, Layout, Level, is_fewest
from .movement import gather, load_of, retile
from .price import Price
from .steps import Held
from .turns import Turns, check_turns, write_turns

if TYPE_CHECKING:
    from .builder import Builder
    from .planner import Planner

JUDGED = 6
"""How many grids are judged by their real traffic."""


@dataclass(frozen=True)
class Problem:
    """`batch` products of M x K and K x N; `stored_by_columns`: the right operands are stored as [N, K]."""

    batch: int
    m: int
    k: int
    n: int
    stored_by_columns: bool


@dataclass(frozen=True)
class Grid:
    """Side x r x k x c tiles: tile t = ((b*r + i)*k + l)*c + j."""

    problem: Problem
    r: int
    k: int
    c: int
    turns: Turns

    @property
    def tiles(self) -> int:
        return self.turns.side * self.r * self.k * self.c

    @property
    def _batch(self) -> Level:
        return self.turns.level(self.r * self.k * self.c)

    @property
    def _inner(self) -> Level:
        return Level(self.k, self.c)

    @property
    def _columns(self) -> Level:
        return Level(self.c, 1)

    def _rows(self, *further: Level) -> Axis:
        cut = (Level(self.r, self.k * self.c), *further)
        return Axis(self.problem.batch * self.problem.m, 1, cut, self._batch)

    def left(self) -> Layout:
        return Layout("a16", self._rows(), Axis(self.problem.k, MICRO, (self._inner,)), self.tiles)

    def right(self, order: str = "a16") -> Layout:
        """What a tile needs of the right operand."""
        problem, inner, columns = self.problem, (self._inner,), (self._columns,)
        if problem.stored_by_columns:
            row = Axis(problem.batch * problem.n, MICRO, columns, self._batch)
            return Layout(order, row, Axis(problem.k, MICRO, inner), self.tiles)
        row = Axis(problem.batch * problem.k, MICRO, inner, self._batch)
        return Layout(order, row, Axis(problem.n, MICRO, columns), self.tiles)

    def partial(self) -> Layout:
        """What a tile computes: a block of the result, or a partial sum of one."""
        return Layout("a16", self._rows(), Axis(self.problem.n, MICRO, (self._columns,)), self.tiles)

    def result(self) -> Layout:
        """Pieces of the blocks, on the tiles that have partial sums of them."""
        by_columns = ceil_div(self.problem.n, MICRO) // self.c >= self.k
        row, column = ((), (self._inner,)) if by_columns else ((self._inner,), ())
        columns = Axis(self.problem.n, MICRO, (self._columns, *column))
        return Layout("a16", self._rows(*row), columns, self.tiles)

    def describe(self) -> str:
        turns, cut = self.turns, f"{self.turns.side} x {self.r} x {self.c} (batch x rows x columns)"
        return cut + (f", {self.k} inner blocks" if self.k > 1 else "") + turns.describe()

    def partials(self) -> float:
        """Cycles to bring partial sums to their roots."""
        moved = gather(self.partial(), self.result(), self.k, self.c)
        return cost.move(load_of([moved], self.tiles))

    def compute(self) -> dict[str, float]:
        """Kernel cycles of the busiest tile."""
        inner = ceil_div(ceil_div(self.problem.k, MICRO), self.k)
        rows = ceil_div(self.problem.m, self.r)
        columns = ceil_div(ceil_div(self.problem.n, MICRO), self.c)
        stages = {"multiply": float(cost.gemm(rows, inner, columns))}
        if not self.problem.stored_by_columns:
            stages["transpose"] = float(cost.transpose(inner, columns))
        if self.k > 1:
            piece = self.result()
            size = piece.row.largest(), piece.column.largest() // MICRO
            stages["root"] = float(cost.root("root_f16", *size, self.k - 1))
        return stages

    def bytes(self) -> int:
        """On the fullest tile, element rules left aside."""
        copies = 1 if self.problem.stored_by_columns else 2
        gathered = self.k * self.result().bytes if self.k > 1 else self.result().bytes
        sizes = (self.left().bytes, self.partial().bytes, gathered, copies * self.right().bytes)
        return sum(int(size.max()) for size in sizes)


def plan_matmul(planner: Planner, operation: Operation) -> None:
    """A product whose right operand is computed, or used by others too."""
    builder, name = planner.builder, operation.result.name
    left, right = views.batch_operands(planner, operation)
    by_columns = flag(operation.attributes, "transpose_b")
    shape = operation.result.type.shape
    batch = 1 if operation.operands[1].type.rank == 2 else prod(shape[:-2])
    rows = planner.view(left)[0] // batch
    problem = Problem(batch, rows, left.type.shape[-1], shape[-1], by_columns)
    check_turns(operation, batch, builder.tiles)
    a, b = planner.needed(left, None), planner.needed(right, None)
    grids = sorted(_grids(problem, builder.tiles), key=lambda grid: _closed_form(grid, builder.price))
    sources = (builder.source(a), builder.source(b))

    def judge(grid: Grid) -> Judged[Grid]:
        traffic = [
            retile(source.layout, wanted, source.column)
            for source, wanted in zip(sources, (grid.left(), grid.right()), strict=True)
        ]
        tiles = max(grid.tiles, *(source.layout.tiles for source in sources))
        stages = {"receive": cost.move(load_of(traffic, tiles)), **grid.compute()}
        if grid.k > 1:
            stages["partials"] = grid.partials()
        return Judged(grid, stages, grid.bytes())

    judged = best_first(map(judge, grids[:JUDGED]), builder.price)
    builder.report(report_of(name, judged))
    grid = judged[0].grid

    def write(turns: Turns) -> str:
        return _stages(builder, name, replace(grid, turns=turns), a, b)

    out = write_turns(builder, name, grid.turns, grid.result(), write)
    planner.leave(operation.result, Held(out, 0, shape[-1]))


def _stages(builder: Builder, name: str, grid: Grid, a: Held, b: Held) -> str:
    """Write the stages of one turn; the buffer of its result."""
    left, moves = builder.bring(a, grid.left(), f"{name}.left", name)
    right, more = builder.bring(b, grid.right(), f"{name}.right", name)
    builder.exchange(f"{name}.receive", [*moves, *more])
    builder.clear_padding(right)
    cycles = grid.compute()
    if not grid.problem.stored_by_columns:
        transposed = builder.add(f"{name}.transposed", grid.right("a16t"), "scratch", name)
        builder.call(f"{name}.transpose", "transpose_f16", (transposed, right), cycles["transpose"])
        right = transposed
    whole = grid.k == 1
    partial = builder.add(
        name if whole else f"{name}.partial", grid.partial(), "value" if whole else "scratch", name
    )
    builder.call(f"{name}.multiply", "gemm_f16", (partial, left, right, None), cycles["multiply"])
    if whole:
        return partial
    return builder.sum_partials(
        name, partial, grid.result(), grid.k, grid.c, cycles["root"], name=name, role="value"
    )


def _grids(problem: Problem, tiles: int) -> list[Grid]:
    side = min(problem.batch, tiles)
    room = tiles // side
    groups, inner = ceil_div(problem.n, MICRO), ceil_div(problem.k, MICRO)
    found = []
    for c in (parts for parts in range(1, groups + 1) if is_fewest(groups, parts)):
        for k in (parts for parts in range(1, min(inner, room // c) + 1) if is_fewest(inner, parts)):
            least = ceil_div(problem.m, room // (c * k))
            for step in range(8):
                r = ceil_div(problem.m, least * 2**step)
                found.append(Grid(problem, r, k, c, Turns(problem.batch, side)))
    return list(dict.fromkeys(found))


def _closed_form(grid: Grid, price: Price) -> float:
    words = int(grid.left().bytes.max() + grid.right().bytes.max()) // 4
    summed = (grid.k - 1) * int(grid.result().bytes.max()) // 4
    moves = float(cost.exchange(words, 8) + cost.exchange(summed, grid.k))
    return sum(grid.compute().values()) + moves + float(price.of(grid.bytes(), 0))
