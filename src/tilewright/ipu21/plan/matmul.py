"""Plans for a float16 matrix product: a grid of row blocks x column blocks x inner blocks over the tiles.

Tile t = (i*k + l)*c + j computes, for row block i and column block j, the partial sum over inner block l.
The left operand is multicast to the c tiles that share it, the weights lie in place (replicated over row
blocks), and each of the k partial sums of a block is sent to the root of each piece of it: every tile of the
group is root of one k-th. Splitting N and K keeps the rows per tile long, as the matrix unit needs them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..kernels.gemm import MINIMUM_ROWS
from ..kernels.gemm import cycles as gemm_cycles
from ..kernels.reduce import cycles as reduce_cycles
from . import cost
from .layout import MICRO, Axis, Layout, Level
from .movement import gather, load_of, retile

JUDGED = 10
"""How many grids are judged by their real traffic."""
POINTWISE = 2.0
"""Cycles per element of the element-wise operations that follow a product (from the kernels' formulas)."""


@dataclass(frozen=True)
class Grid:
    """r x c x k tiles.

    Attributes:
        rows: nested cuts of the rows; their product is r. Two cuts follow a source that was cut twice, so
            that the blocks are the source's pieces.
        by_columns: result pieces are cut along columns, not rows.
    """

    rows: tuple[int, ...]
    c: int
    k: int
    by_columns: bool

    @property
    def r(self) -> int:
        return math.prod(self.rows)

    @property
    def tiles(self) -> int:
        return self.r * self.c * self.k

    def row_levels(self) -> tuple[Level, ...]:
        """The row blocks as cuts over the grid's tiles, outermost first."""
        levels = []
        stride = self.tiles
        for parts in self.rows:
            stride //= parts
            levels.append(Level(parts, stride))
        return tuple(levels)

    def describe(self) -> str:
        return f"{self.r} x {self.c} x {self.k} (rows x columns x inner)"


@dataclass(frozen=True)
class Shape:
    """M x K times K x N, in elements."""

    m: int
    k: int
    n: int


def left_layout(shape: Shape, grid: Grid) -> Layout:
    """What the kernel reads: each tile's rows and inner columns, replicated over the c column blocks."""
    return Layout(
        "a16",
        Axis(shape.m, 1, grid.row_levels(), MINIMUM_ROWS),
        Axis(shape.k, MICRO, (Level(grid.k, grid.c),)),
        grid.tiles,
    )


def stored_left_layout(shape: Shape, grid: Grid) -> Layout:
    """The left operand stored once: the c tiles that share a block own equal pieces of its rows."""
    if grid.c == 1:
        return left_layout(shape, grid)
    return Layout(
        "a16",
        Axis(shape.m, 1, (*grid.row_levels(), Level(grid.c, 1))),
        Axis(shape.k, MICRO, (Level(grid.k, grid.c),)),
        grid.tiles,
    )


def weight_layout(shape: Shape, grid: Grid) -> Layout:
    """Weight panels in place, one replica per row block."""
    return Layout(
        "b16",
        Axis(shape.k, MICRO, (Level(grid.k, grid.c),)),
        Axis(shape.n, MICRO, (Level(grid.c, 1),)),
        grid.tiles,
    )


def partial_layout(shape: Shape, grid: Grid) -> Layout:
    """The kernel's output: a block of C, whole when k = 1, a partial sum otherwise."""
    return Layout(
        "a16",
        Axis(shape.m, 1, grid.row_levels(), MINIMUM_ROWS),
        Axis(shape.n, MICRO, (Level(grid.c, 1),)),
        grid.tiles,
    )


def result_layout(shape: Shape, grid: Grid) -> Layout:
    """Where the product ends: the pieces of each block on the k tiles that computed it."""
    if grid.k == 1:
        return partial_layout(shape, grid)
    row = grid.row_levels()
    column = (Level(grid.c, 1),)
    piece = Level(grid.k, grid.c)
    return Layout(
        "a16",
        Axis(shape.m, 1, row if grid.by_columns else (*row, piece)),
        Axis(shape.n, MICRO, (*column, piece) if grid.by_columns else column),
        grid.tiles,
    )


@dataclass(frozen=True)
class Candidates:
    """All grids of a product with their predicted cycles and bytes per tile; parallel arrays."""

    r: NDArray[np.int64]
    c: NDArray[np.int64]
    k: NDArray[np.int64]
    by_columns: NDArray[np.bool_]
    cycles: NDArray[np.float64]
    bytes: NDArray[np.int64]
    source: Layout | None

    def ranking(self, price: float, count: int) -> list[Grid]:
        """The `count` grids with the least cycles + price * bytes; ties go to fewer tiles, larger k and c."""
        score = self.cycles + price * self.bytes
        order = np.lexsort((-self.c, -self.k, self.r * self.c * self.k, score))
        return [
            make_grid(int(self.r[i]), int(self.c[i]), int(self.k[i]), bool(self.by_columns[i]), self.source)
            for i in order[:count]
        ]


def make_grid(r: int, c: int, k: int, by_columns: bool, source: Layout | None) -> Grid:
    """A grid of r row blocks, cut as the source's rows are if those are r pieces."""
    rows: tuple[int, ...] = (r,)
    if source is not None and source.row.parts == r:
        rows = tuple(level.parts for level in source.row.levels) or (1,)
    return Grid(rows, c, k, by_columns)


@dataclass(frozen=True)
class Stages:
    """Predicted cycles of the stages of one product, by name; scalars or arrays."""

    receive: NDArray[np.float64]
    gemm: NDArray[np.float64]
    partials: NDArray[np.float64]
    reduce: NDArray[np.float64]


def stages(
    shape: Shape,
    r: NDArray[np.int64],
    c: NDArray[np.int64],
    k: NDArray[np.int64],
    receives: NDArray[np.bool_],
) -> Stages:
    """Cycles of each stage for grids given as arrays; `receives`: the left operand has to move."""
    rows = ceil_div(shape.m, r)
    padded = np.maximum(rows, MINIMUM_ROWS)
    inner = ceil_div(ceil_div(shape.k, MICRO), k)
    columns = ceil_div(ceil_div(shape.n, MICRO), c)
    piece = ceil_div(rows * columns, k)
    return Stages(
        receive=cost.exchange(np.where(receives, rows * inner * 8, 0), inner * np.maximum(c, 2)),
        gemm=np.asarray(gemm_cycles(padded, inner, columns), dtype=np.float64),
        partials=cost.exchange((k - 1) * piece * 8, (k - 1) * columns),
        reduce=np.where(k > 1, reduce_cycles(k - 1, piece * 4, 1), 0.0),
    )


def must_receive(shape: Shape, grid: Grid, source: Layout | None) -> bool:
    """True if the left operand does not already lie where the kernel reads it.

    `source` is the layout it has; None if it is an input that can still be stored as the product wants it.
    """
    if source is None:
        return grid.c > 1
    return source.tiles != grid.tiles or not source.same_shards(left_layout(shape, grid))


def grid_stages(shape: Shape, grid: Grid, source: Layout | None) -> Stages:
    """Cycles of each stage for one grid, from the traffic it really causes. `source`: see `must_receive`."""
    left, partial, result = left_layout(shape, grid), partial_layout(shape, grid), result_layout(shape, grid)
    receive = partials = reduce = 0.0
    if must_receive(shape, grid, source):
        held = source or stored_left_layout(shape, grid)
        receive = cost.move(load_of(retile(held, left), max(held.tiles, left.tiles)))
    if grid.k > 1:
        partials = cost.move(load_of(gather(partial, result, grid.k, grid.c), grid.tiles))
        words, panels = result.row.largest() * MICRO // 4, result.column.largest() // MICRO
        reduce = float(cost.CALL + reduce_cycles(grid.k - 1, words, panels))
    gemm = gemm_cycles(left.row.largest(), left.column.largest() // MICRO, partial.column.largest() // MICRO)
    return Stages(*(np.asarray(cycles) for cycles in (receive, float(cost.CALL + gemm), partials, reduce)))


def owned_elements(shape: Shape, grid: Grid) -> int:
    """Elements of the result on the tile that owns most."""
    return int(result_layout(shape, grid).bytes.max()) // 2


@lru_cache(maxsize=256)
def choose(shape: Shape, tiles: int, *, source: Layout | None, pointwise: int, price: float) -> Grid:
    """The best of the most promising grids, judged by the traffic each really causes.

    Args:
        source, pointwise: see `candidates`.
        price: cycles worth one byte of tile memory.
    """
    every = candidates(shape, tiles, source=source, pointwise=pointwise)

    def score(grid: Grid) -> float:
        exact = grid_stages(shape, grid, source)
        cycles = float(exact.receive + exact.gemm + exact.partials + exact.reduce)
        return cycles + pointwise * owned_elements(shape, grid) * POINTWISE + price * held_bytes(shape, grid)

    return min(every.ranking(price, JUDGED), key=score)


def held_bytes(shape: Shape, grid: Grid) -> int:
    """Bytes of weights, operand and partial sums on the fullest tile, element rules left aside."""
    partial = int(partial_layout(shape, grid).bytes.max())
    gathered = int(result_layout(shape, grid).bytes.max()) * grid.k if grid.k > 1 else 0
    return (
        int(weight_layout(shape, grid).bytes.max() + left_layout(shape, grid).bytes.max())
        + partial
        + gathered
    )


def candidates(shape: Shape, tiles: int, *, source: Layout | None, pointwise: int) -> Candidates:
    """Every grid of at most `tiles` tiles.

    Args:
        source: where the left operand lies, see `must_receive`.
        pointwise: how many element-wise operations follow on the result's owners; they favour grids that
            spread the result widely.
    """
    k_groups, n_groups = ceil_div(shape.k, MICRO), ceil_div(shape.n, MICRO)
    triples = []
    for c in range(1, min(n_groups, tiles) + 1):
        for k in range(1, min(k_groups, tiles // c) + 1):
            r = np.arange(1, min(shape.m, tiles // (c * k)) + 1, dtype=np.int64)
            triples.append(np.stack([r, np.full_like(r, c), np.full_like(r, k)]))
    r, c, k = np.concatenate(triples, axis=1)
    rows = ceil_div(shape.m, r)
    columns = ceil_div(n_groups, c)
    by_columns = (rows < k) & (columns >= k)
    # Only a grid whose operand has no replicas can find it in place.
    receives = c > 1
    for index in np.flatnonzero(~receives):
        receives[index] = must_receive(
            shape, make_grid(int(r[index]), 1, int(k[index]), False, source), source
        )
    predicted = stages(shape, r, c, k, receives)
    owned = ceil_div(rows * columns, k) * MICRO
    cycles = (
        predicted.receive
        + predicted.gemm
        + predicted.partials
        + predicted.reduce
        + pointwise * owned * POINTWISE
    )
    padded = np.maximum(rows, MINIMUM_ROWS)
    inner = ceil_div(k_groups, k)
    held = (
        inner * columns * 512 + padded * (inner + columns) * 32 + np.where(k > 1, 2 * rows * columns * 32, 0)
    )
    return Candidates(r, c, k, by_columns, cycles, held, source)
