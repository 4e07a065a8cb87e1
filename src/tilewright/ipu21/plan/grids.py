"""Grids of a matrix product: row blocks x column blocks x inner blocks over the tiles, and the layouts they
imply.

Tile t = (i*k + l)*c + j computes, for row block i and column block j, the partial sum over inner block l. The
left operand is multicast to the c tiles that share it. The weights lie in place, one replica per row block,
or are stored once, dealt to the r row blocks, and multicast before use. Each of the k partial sums of a block
is sent to the root of each piece of it: every tile of the group is root of one k-th. Splitting N and K keeps
the rows per tile long, as the matrix unit needs them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .layout import MICRO, Axis, Layout, Level


@dataclass(frozen=True)
class Shape:
    """M x K times K x N in elements of the device's matrices, of 2 or 4 bytes each."""

    m: int
    k: int
    n: int
    element_bytes: int = 2

    def operand(self, row: Axis, column: Axis, tiles: int) -> Layout:
        """A layout of a left operand or a result."""
        return Layout("a16", row, column, tiles, self.element_bytes)

    def weights(self, row: Axis, column: Axis, tiles: int) -> Layout:
        """A layout of weight panels."""
        order = "b16" if self.element_bytes == 2 else "b8"
        return Layout(order, row, column, tiles, self.element_bytes)


@dataclass(frozen=True)
class Grid:
    """r x c x k tiles.

    Attributes:
        rows: nested cuts of the rows; their product is r. Two cuts follow a source that was cut twice, so
            that the blocks are the source's pieces.
        across: into so many parts the k result pieces of a block cut its columns, and into k / across its
            rows.
        within: the last cut of the rows is into blocks of so many pieces of a finer one, which are the result
            pieces; 1 or k / across.
        streamed: weights are stored once and multicast; otherwise every row block has a replica in place.
        chunks: the inner block is worked off in so many parts, one after another.
        turned: the activations are the stationary operand and the columns of the weights stream past them;
            the result comes out transposed and is turned at the roots. For few rows and many columns.
    """

    rows: tuple[int, ...]
    c: int
    k: int
    across: int = 1
    within: int = 1
    streamed: bool = False
    chunks: int = 1
    turned: bool = False

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
        levels[-1] = replace(levels[-1], within=self.within)
        return tuple(levels)

    def describe(self) -> str:
        text = f"{self.r} x {self.c} x {self.k} (rows x columns x inner)"
        if self.chunks > 1:
            text += f", {self.chunks} chunks of the inner extent"
        if self.r > 1:
            text += ", weights " + ("stored once" if self.streamed else f"{self.r} times in place")
        if self.turned:
            text += ", streamed past the activations"
        return text

    @property
    def row_block(self) -> int:
        """Rows that stay together: those of a stationary panel, if the rows are stationary."""
        return MICRO if self.turned else 1


def _inner(shape: Shape, grid: Grid, chunk: int | None) -> Axis:
    levels = [Level(grid.k, grid.c)]
    if chunk is not None and grid.chunks > 1:
        levels.append(Level(grid.chunks, 1, chunk))
    return Axis(shape.k, MICRO, tuple(levels))


def left_layout(shape: Shape, grid: Grid, chunk: int | None = None) -> Layout:
    """What the kernel reads: each tile's rows and inner columns (of one chunk), replicated over the c column
    blocks."""
    rows = Axis(shape.m, grid.row_block, grid.row_levels())
    return shape.operand(rows, _inner(shape, grid, chunk), grid.tiles)


def stored_left_layout(shape: Shape, grid: Grid, *, dealt: bool) -> Layout:
    """The left operand stored once: the c tiles that share a block own equal pieces of its rows.

    Args:
        dealt: they own runs of its panels' rows instead, which travel in fewer fragments; for operands that
            nothing else is done with.
    """
    if dealt:
        return replace(left_layout(shape, grid), dealt=True)
    levels = (*grid.row_levels(), Level(grid.c, 1))
    return shape.operand(Axis(shape.m, 1, levels), _inner(shape, grid, None), grid.tiles)


def weight_layout(shape: Shape, grid: Grid, chunk: int | None = None) -> Layout:
    """Weights as the kernel reads them (of one chunk), one replica per row block: panels, or for a turned
    grid the matrix [N, K].
    """
    if grid.turned:
        columns = Axis(shape.n, MICRO, (Level(grid.c, 1),))
        return shape.operand(columns, _inner(shape, grid, chunk), grid.tiles)
    return shape.weights(_inner(shape, grid, chunk), Axis(shape.n, MICRO, (Level(grid.c, 1),)), grid.tiles)


def stored_weight_layout(shape: Shape, grid: Grid) -> Layout:
    """Weight panels stored once: the r tiles that need the same block own equally many of its panels."""
    return replace(weight_layout(shape, grid), dealt=True)


def partial_layout(shape: Shape, grid: Grid) -> Layout:
    """The kernel's output: a block of C, whole when k = 1, a partial sum otherwise; transposed if turned."""
    rows = Axis(shape.m, grid.row_block, grid.row_levels())
    columns = Axis(shape.n, MICRO, (Level(grid.c, 1),))
    return (
        shape.operand(columns, rows, grid.tiles) if grid.turned else shape.operand(rows, columns, grid.tiles)
    )


def result_layout(shape: Shape, grid: Grid) -> Layout:
    """Where the product ends: the pieces of each block on the k tiles that computed it."""
    *outer, last = grid.row_levels()
    piece = Level(grid.k // grid.across, grid.c * grid.across)
    # Blocks of whole pieces of a finer cut: that cut.
    inner = (last, piece) if grid.within == 1 else (replace(piece, parts=last.parts * piece.parts),)
    row = (*outer, *inner)
    column = (Level(grid.c, 1), Level(grid.across, grid.c))
    rows = Axis(shape.m, grid.row_block, row)
    return shape.operand(rows, Axis(shape.n, MICRO, column), grid.tiles)


def turned_layout(result: Layout) -> Layout:
    """The pieces of a result before they are turned: of the transposed matrix, on the same tiles."""
    return Layout(result.order, result.column, result.row, result.tiles, result.element_bytes)


def bias_layout(result: Layout) -> Layout:
    """A row vector over the columns of a layout."""
    return Layout("row16", Axis(1), result.column, result.tiles, result.element_bytes)


def addend_layout(result: Layout) -> Layout:
    """A row vector over the columns of a result, as it is added to a panel that is not turned yet: for each
    column a record that holds its element 16 times.
    """
    return Layout(result.order, result.column, Axis(MICRO), result.tiles, result.element_bytes)
