"""The search for the grid of a product with constant weights: closed forms for every grid, the real
traffic for the best of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from . import cost, normalise
from .grids import (
    Grid,
    Shape,
    addend_layout,
    left_layout,
    partial_layout,
    result_layout,
    stored_left_layout,
    stored_weight_layout,
    turned_layout,
    weight_layout,
)
from .judged import Judged, best_first, closest
from .layout import MICRO, Layout, Source, is_fewest
from .movement import gather, load_of, retile
from .price import Price

JUDGED = 8
"""How many grids are judged by their real traffic."""
EXPECTED = 5
"""How many are, to tell what a product will take that is not planned yet."""
TURNED = 4
"""How many turned grids may be judged beside them: closed forms err differently about the two kinds."""
CHUNKS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32)
"""Into how many parts the inner block may be cut."""
ROW_CHOICES = 12
"""Row counts per (c, k) that are looked at: the largest, and ever smaller ones."""


@dataclass(frozen=True)
class Query:
    """What a product is asked for.

    Attributes:
        shape: of the device's matrices.
        source: where the left operand lies; None if it is an input that may be stored as the product wants.
        root: kernel that finishes the result where its partial sums meet.
        alone: the same where there is one sum, which starts from the bias.
        finish: the same for sums that are there already, bias included; empty if nothing is left to do.
        turned: the same where transposed partial sums meet; empty if they cannot be finished there.
        left_once: nothing else uses the left operand.
        pointwise: True if the root kernel has work even without partial sums.
        residual: True if a second matrix of the result's shape is brought to the roots.
        beside: where that matrix lies; None if that is not known.
        biased: a row is added to the product.
        iterations: of the loop around it: so many sets of weights are kept.
        stored_once: the right operand is an input, which arrives on one tile only.
    """

    shape: Shape
    source: Source | None
    root: str
    alone: str
    finish: str
    pointwise: bool
    residual: bool
    iterations: int
    stored_once: bool
    beside: Source | None = None
    turned: str = ""
    biased: bool = False
    left_once: bool = False

    def before_turning(self, grid: Grid) -> str:
        """The kernel that finishes transposed sums where they meet; empty if that comes after turning, as
        where roots have several panels: each would need the bias.
        """
        panels = ceil_div(ceil_div(self.shape.m, MICRO), grid.r)
        return self.turned if grid.k > 1 and ceil_div(panels, grid.k // grid.across) == 1 else ""


@dataclass(frozen=True)
class Candidates:
    """Grids with their predicted cycles and bytes per tile; parallel arrays."""

    r: NDArray[np.int64]
    c: NDArray[np.int64]
    k: NDArray[np.int64]
    chunks: NDArray[np.int64]
    streamed: NDArray[np.bool_]
    across: NDArray[np.int64]
    cycles: NDArray[np.float64]
    bytes: NDArray[np.int64]
    kept: NDArray[np.int64]
    turned: NDArray[np.bool_]
    source: Source | None

    def ranking(self, price: Price, count: int) -> list[tuple[Grid, float, int]]:
        """The `count` grids that cost least, bytes at their price, with their cycles and bytes; ties go to
        fewer tiles, larger k and c, weights in place, fewer chunks."""
        score = self.cycles + price.of(self.bytes, self.kept)
        near = np.argpartition(score, min(8 * count, len(score) - 1))[: 8 * count]
        keys = (self.turned, self.chunks, self.streamed, -self.c, -self.k, self.r * self.c * self.k, score)
        order = near[np.lexsort([key[near] for key in keys])]
        return [(self._grid(i), float(self.cycles[i]), int(self.bytes[i])) for i in order[:count]]

    def promising(self, price: Price, count: int) -> list[Grid]:
        """The grids that are worth judging: the best, among them `count` that are not turned unless too many
        turned ones are better.
        """
        best = [grid for grid, _, _ in self.ranking(price, count + TURNED)]
        straight = [grid for grid in best if not grid.turned]
        return [grid for grid in best if grid.turned or grid in straight[:count]]

    def _grid(self, i: int) -> Grid:
        grid = make_grid(self.source, int(self.r[i]), int(self.c[i]), int(self.k[i]))
        return replace(
            grid,
            across=int(self.across[i]),
            streamed=bool(self.streamed[i]),
            chunks=int(self.chunks[i]),
            turned=bool(self.turned[i]),
        )


def make_grid(source: Source | None, r: int, c: int, k: int) -> Grid:
    """A grid of r row blocks, cut as the source's rows are if those are r pieces."""
    row = source.layout.row if source is not None else None
    if row is not None and row.segments is None and row.parts == r and row.levels:
        return Grid(tuple(level.parts for level in row.levels), c, k)
    return Grid((r,), c, k)


@lru_cache(maxsize=512)
def choose(query: Query, tiles: int, price: Price, ahead: Ahead | None = None) -> tuple[Judged[Grid], ...]:
    """The most promising grids, judged by the traffic each really causes, best first.

    Args:
        price: what memory is worth.
        ahead: what follows; the best few are compared with that in view.
    """
    every = candidates(query, tiles)
    grids = every.promising(price, JUDGED)
    grids += [grid for grid in (_beside(query, grid) for grid in grids) if grid]
    judged = best_first((judge(query, grid) for grid in grids), price)
    near, others = closest(judged, price)
    if len(near) == 1 or ahead is None:
        return judged
    compared = [replace(item, ahead=ahead.cycles(query, item.grid, tiles, price)) for item in near]
    return (*best_first(compared, price), *others)


def _beside(query: Query, grid: Grid) -> Grid | None:
    """The grid with its row blocks made of whole pieces of the residual, if its own pieces then are those: a
    residual that has come through a grid with fewer row blocks is there already.
    """
    if query.beside is None or grid.turned or len(grid.rows) > 1:
        return None
    levels = query.beside.layout.row.levels
    blocks, pieces = levels[0].parts if levels else 1, query.beside.layout.row.parts
    down = grid.k // grid.across
    if blocks == 1 or grid.r % blocks or grid.r == blocks or grid.r * down != pieces:
        return None
    changed = replace(grid, rows=(blocks, grid.r // blocks), within=down)
    return changed if query.beside.lies_in(result_layout(query.shape, changed)) else None


@dataclass(frozen=True)
class Ahead:
    """What follows a product.

    Attributes:
        query: the product that takes the result as its left operand; `source` is not known yet.
        norms: how many normalisations of rows come before it.
    """

    query: Query
    norms: int

    def cycles(self, query: Query, grid: Grid, tiles: int, price: Price) -> float:
        """Cycles of it, about, behind a grid."""
        layout = result_layout(query.shape, grid)
        source = Source(layout, 0, self.query.shape.k)
        return self.norms * normalise.expected(layout) + _expected(
            replace(self.query, source=source), tiles, price
        )


@lru_cache(maxsize=512)
def _expected(query: Query, tiles: int, price: Price) -> float:
    """Cycles of a product by the best of the grids that are best if the left operand may lie anywhere, their
    rows cut as those of the source."""
    anywhere = candidates(replace(query, source=None), tiles).promising(price, EXPECTED)
    grids = [replace(grid, rows=make_grid(query.source, grid.r, grid.c, grid.k).rows) for grid in anywhere]
    return min(item.total for item in (judge(query, grid) for grid in grids))


def must_receive(query: Query, grid: Grid) -> bool:
    """True if the left operand does not already lie where the kernel reads it."""
    if query.source is None:
        return grid.c > 1 or grid.chunks > 1
    return grid.chunks > 1 or not query.source.lies_in(left_layout(query.shape, grid))


def lists_panels(query: Query, grid: Grid) -> bool:
    """True if a tile's own part of weights that are stored once stays where it is, and the kernel finds the
    panels by a list.
    """
    return grid.streamed and _may_list(query, grid.chunks) and _all_have_some(query.shape, grid)


@lru_cache(maxsize=512)
def _all_have_some(shape: Shape, grid: Grid) -> bool:
    """True if every tile that needs weights has some of its own where they are stored once."""
    stored, wanted = stored_weight_layout(shape, grid), weight_layout(shape, grid)
    return bool(np.array_equal(stored.bytes > 0, wanted.bytes > 0))


def _may_list(query: Query, chunks: int) -> bool:
    """True if a list of panels is possible and known to pay: not for what is cut into chunks, of which tiles
    have unequal parts, nor in loops, where the search for what fits ends with slower plans (measured).
    """
    return chunks == 1 and query.iterations == 1 and query.shape.element_bytes == 2


def _received(query: Query, grid: Grid, chunk: int = 0) -> float:
    """Cycles of the phase before (a chunk of) the product, which brings the left operand and streamed
    weights."""
    shape, tiles = query.shape, grid.tiles
    traffic = []
    if must_receive(query, grid):
        stored_left = stored_left_layout(shape, grid, dealt=query.left_once)
        source = query.source or Source(stored_left, 0, shape.k)
        traffic.append(retile(source.layout, left_layout(shape, grid, chunk), source.column))
        tiles = max(tiles, source.layout.tiles)
    if grid.streamed:
        stored, wanted = stored_weight_layout(shape, grid), weight_layout(shape, grid, chunk)
        if lists_panels(query, grid):
            traffic.append(retile(stored, wanted, hearing="none").sent)
        else:
            traffic.append(retile(stored, wanted))
    return cost.move(load_of(traffic, tiles)) if traffic else 0.0


def judge(query: Query, grid: Grid) -> Judged[Grid]:
    """Cycles of each stage and bytes for one grid."""
    if grid.turned:
        return _judge_turned(query, grid)
    shape = query.shape
    partial, result = partial_layout(shape, grid), result_layout(shape, grid)
    stages = {"receive": 0.0, "multiply": 0.0, "partials": 0.0, "root": 0.0}
    for chunk in range(grid.chunks):
        left = left_layout(shape, grid, chunk)
        stages["receive"] += _received(query, grid, chunk)
        inner, columns = left.column.largest() // MICRO, partial.column.largest() // MICRO
        listed = lists_panels(query, grid)
        stages["multiply"] += float(
            cost.gemm(left.row.largest(), inner, columns, shape.element_bytes, listed=listed)
        )
    if grid.streamed and query.iterations > 1:
        size = int(stored_weight_layout(shape, grid).bytes.max())
        stages["receive"] += float(cost.kernel("copy_u64", words=size // 8))
    if grid.k > 1:
        stages["partials"] = _partials(query, grid, partial, result)
    if grid.k > 1 or query.pointwise:
        rows, panels = result.row.largest(), result.column.largest() // MICRO
        kernel = query.root if grid.k > 1 else query.alone
        stages["root"] = float(cost.root(kernel, rows, panels, grid.k - 1))
    return Judged(grid, stages, *held_bytes(query, grid))


def _judge_turned(query: Query, grid: Grid) -> Judged[Grid]:
    shape = query.shape
    left, partial, result = left_layout(shape, grid), partial_layout(shape, grid), result_layout(shape, grid)
    pieces = turned_layout(result)
    stages = {"receive": _received(query, grid)}
    channels, inner = partial.row.largest(), left.column.largest() // MICRO
    stages["multiply"] = float(cost.gemm(channels, inner, partial.column.largest() // MICRO))
    rows, panels = pieces.row.largest(), pieces.column.largest() // MICRO
    finished = query.before_turning(grid)
    if grid.k > 1:
        stages["partials"] = _partials(query, grid, partial, pieces)
        stages["root"] = float(cost.root(finished or "root_f16", rows, panels, grid.k - 1))
    stages["turn"] = float(cost.transpose(rows // MICRO, panels))
    if query.finish and not finished:
        stages["finish"] = float(cost.root(query.finish, panels * MICRO, rows // MICRO, 0))
    return Judged(grid, stages, *held_bytes(query, grid))


def _partials(query: Query, grid: Grid, partial: Layout, pieces: Layout) -> float:
    """Cycles to bring partial sums to the roots of their pieces, and a residual, which is expected to come
    from about as many tiles if it is not known where it lies.
    """
    traffic, tiles, words = [gather(partial, pieces, grid.k, grid.c)], grid.tiles, 0
    if query.beside is not None:
        result, beside = result_layout(query.shape, grid), query.beside
        if not beside.lies_in(result):
            traffic.append(retile(beside.layout, result, beside.column))
            tiles = max(tiles, beside.layout.tiles)
    elif query.residual:
        words = int(pieces.bytes.max()) // 4
    return cost.move(load_of(traffic, tiles)) + cost.SCHEDULE_LENGTH * words


def held_bytes(query: Query, grid: Grid) -> tuple[int, int]:
    """Bytes of weights, operand and partial sums on the fullest tile, element rules left aside, and those of
    weights that are kept."""
    shape = query.shape
    partial = int(partial_layout(shape, grid).bytes.max())
    gathered = int(result_layout(shape, grid).bytes.max()) * grid.k if grid.k > 1 else 0
    left = int(left_layout(shape, grid, 0).bytes.max())
    if grid.streamed:
        stored = int(stored_weight_layout(shape, grid).bytes.max())
        kept = stored * query.iterations
        panels = int(weight_layout(shape, grid, 0).bytes.max()) + (stored if query.iterations > 1 else 0)
    else:
        kept, panels = int(weight_layout(shape, grid).bytes.max()) * query.iterations, 0
    if grid.turned and query.biased and query.before_turning(grid):
        kept += int(addend_layout(result_layout(shape, grid)).bytes.max()) * query.iterations
    own = 0
    if must_receive(query, grid):
        own = int(stored_left_layout(shape, grid, dealt=query.left_once).bytes.max())
    return kept + panels + left + own + partial + gathered, kept


@lru_cache(maxsize=64)
def candidates(query: Query, tiles: int) -> Candidates:
    """Every grid of at most `tiles` tiles that could be best, in closed form."""
    r, c, k = _triples(query.shape, tiles)
    columns: list[tuple[Any, ...]] = []
    k_groups = ceil_div(query.shape.k, MICRO)
    for chunks in CHUNKS:
        fits = ceil_div(k_groups, k) >= chunks
        for streamed in (False, True):
            # One row block needs no replicas, and so nothing to stream.
            which = np.flatnonzero(fits & ((r > 1) if streamed else (r == 1) | (not query.stored_once)))
            if len(which):
                columns.append(_closed_form(query, r[which], c[which], k[which], chunks, streamed))
    if query.shape.element_bytes == 2 and not query.stored_once:
        columns.append(_turned_form(query, tiles))
    r, c, k, chunk_counts, streams, across, cycles, held, kept, turned = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    return Candidates(r, c, k, chunk_counts, streams, across, cycles, held, kept, turned, query.source)


def _turned_form(query: Query, tiles: int) -> tuple[Any, ...]:
    """Turned grids in closed form; the same columns as `_closed_form`.

    There may be fewer 16 x 16 blocks than roots; then some roots have none. Not so with a residual, behind
    which a normalisation is likely, which wants a part of every row on every root.
    """
    shape = query.shape
    m_groups, k_groups, n_groups = (ceil_div(extent, MICRO) for extent in (shape.m, shape.k, shape.n))
    triples = [
        (r, c, k)
        for r in _cuts(m_groups)
        for c in range(1, n_groups + 1)
        for k in _cuts(k_groups)
        if r * c * k <= tiles
        and _is_fewest_even(n_groups, c)
        and (not query.residual or _fills(m_groups // r, n_groups // c, k))
    ]
    r, c, k = (np.array(column, dtype=np.int64) for column in zip(*triples, strict=True))
    panels, blocks, inner = ceil_div(m_groups, r), ceil_div(n_groups, c), ceil_div(k_groups, k)
    across = _across(panels, blocks, k, (m_groups // r, n_groups // c) if query.residual else None)
    piece_blocks, piece_panels = ceil_div(blocks, across), ceil_div(panels, k // across)
    words = panels * MICRO * inner * 8 // np.where(c % 2 == 0, 2, 1)
    cycles = cost.exchange(words, inner * np.maximum(c, 2)) + cost.gemm(blocks * MICRO, inner, panels)
    pieces = piece_blocks * MICRO, piece_panels, k - 1
    sums = cost.root("root_f16", *pieces)
    finished = (k > 1) & (piece_panels == 1) & bool(query.turned)
    if query.turned:
        sums = np.where(finished, cost.root(query.turned, *pieces), sums)
    moved = cost.exchange(
        (k - 1 + query.residual) * piece_blocks * piece_panels * 128, (k - 1) * piece_panels
    )
    cycles = cycles + np.where(k > 1, sums + moved, 0) + cost.transpose(piece_blocks, piece_panels)
    if query.finish:
        finishing = cost.root(query.finish, piece_panels * MICRO, piece_blocks, 0)
        cycles = cycles + np.where(finished, 0, finishing)
    kept = (blocks * inner + finished * query.biased * piece_blocks) * 512 * query.iterations
    held = kept + panels * inner * 512 + panels * blocks * 512 + 2 * piece_blocks * piece_panels * 512 * k
    ones = np.ones(len(r), dtype=np.int64)
    return r, c, k, ones, ones == 0, across, cycles, held.astype(np.int64), kept, ones == 1


def _fills(panels: int, blocks: int, k: int) -> bool:
    """True if k roots can cut so many panels and blocks so that each has some."""
    return any(k % across == 0 and panels >= k // across for across in range(1, min(blocks, k) + 1))


def _across(
    panels: NDArray[np.int64],
    blocks: NDArray[np.int64],
    k: NDArray[np.int64],
    least: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
) -> NDArray[np.int64]:
    """The cut across the columns that leaves the smallest pieces to k roots; of equal ones that with the
    longest pieces, which travel in the fewest fragments.

    Args:
        least: panels and blocks of the smallest block, if every root has to have some.
    """
    best, area = np.ones_like(k), np.full(len(k), np.iinfo(np.int64).max)
    for across in range(1, int(k.max()) + 1):
        left = ceil_div(blocks, across) * ceil_div(panels, np.maximum(k // across, 1))
        allowed = k % across == 0
        if least is not None:
            allowed &= (least[1] >= across) & (least[0] >= k // across)
        better = allowed & (left < area)
        best, area = np.where(better, across, best), np.where(better, left, area)
    return best


def _cuts(blocks: int) -> list[int]:
    """Of the cuts that leave equally many blocks, the one with the fewest parts."""
    return [parts for parts in range(1, blocks + 1) if is_fewest(blocks, parts)]


def _triples(shape: Shape, tiles: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Grids: all c and k, and for each the row counts that make a difference."""
    k_groups, n_groups = ceil_div(shape.k, MICRO), ceil_div(shape.n, MICRO)
    pairs = [
        (c, k)
        for c in range(1, n_groups + 1)
        for k in range(1, min(k_groups, tiles // c) + 1)
        # Of the cuts that leave equally many groups, the one with the fewest parts is enough.
        if _is_fewest_even(n_groups, c) and (is_fewest(k_groups, k) or k_groups > 64)
    ]
    c, k = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    rows = ceil_div(shape.m, tiles // (c * k))
    grids = []
    for step in range(ROW_CHOICES):
        # Rows per tile grow in steps of an eighth; r is the least that gives them.
        wanted = np.maximum(rows + step, (rows * 1.125**step).astype(np.int64))
        grids.append(np.stack([ceil_div(shape.m, wanted), c, k]))
    r, c, k = np.unique(np.concatenate(grids, axis=1), axis=1)
    return r, c, k


def _is_fewest_even(blocks: int, parts: int) -> bool:
    """The same, and one part more where that makes their number even: partner tiles then share operands."""
    return is_fewest(blocks, parts) or (parts % 2 == 0 and is_fewest(blocks, parts - 1))


def _closed_form(
    query: Query,
    r: NDArray[np.int64],
    c: NDArray[np.int64],
    k: NDArray[np.int64],
    chunks: int,
    streamed: bool,
) -> tuple[Any, ...]:
    shape = query.shape
    rows = ceil_div(shape.m, r)
    inner = ceil_div(ceil_div(shape.k, MICRO), k)
    columns = ceil_div(ceil_div(shape.n, MICRO), c)
    by_columns = (shape.m // r < k) & (ceil_div(shape.n, MICRO) // c >= k)
    piece_rows = np.where(by_columns, rows, ceil_div(rows, k))
    piece_columns = np.where(by_columns, ceil_div(columns, k), columns)
    piece = piece_rows * piece_columns
    # Only a grid whose operand has no replicas can find it in place.
    receives = (c > 1) | (chunks > 1)
    if query.source is not None:
        for index in np.flatnonzero(~receives):
            grid = make_grid(query.source, int(r[index]), 1, int(k[index]))
            receives[index] = must_receive(query, grid)
    paired = np.where(c % 2 == 0, 2, 1)
    scale = shape.element_bytes // 2
    listed = streamed and _may_list(query, chunks)
    weights = streamed * inner * columns * 128
    if listed:
        # Without the part that is there.
        weights = weights * (r - 1) // r
    words = scale * (np.where(receives, rows * inner * 8 // paired, 0) + weights)
    fragments = inner * np.maximum(c, 2) * receives + streamed * (inner * columns // 2 + 1)
    cycles = chunks * cost.exchange(words / chunks, fragments / chunks)
    cycles = cycles + chunks * cost.gemm(
        rows, ceil_div(inner, chunks), columns, shape.element_bytes, listed=listed
    )
    cycles = cycles + cost.exchange(
        (k - 1 + query.residual * (k > 1)) * piece * 8 * scale, (k - 1) * piece_columns
    )
    summed = cost.root(query.root, piece_rows, piece_columns, k - 1)
    alone = cost.root(query.alone, rows, columns, 0) if query.pointwise else 0
    cycles = cycles + np.where(k > 1, summed, alone)
    part = ceil_div(inner, chunks)
    if streamed:
        stored = scale * inner * columns * 512 / r
        kept = stored * query.iterations
        panels = scale * part * columns * 512 + (stored if query.iterations > 1 else 0)
        if query.iterations > 1:
            cycles = cycles + cost.kernel("copy_u64", words=(stored // 8).astype(np.int64))
    else:
        kept, panels = scale * inner * columns * 512.0 * query.iterations, np.zeros(len(r))
    values = rows * (part + columns) * 32 + receives * rows * inner * 32 // c
    held = kept + panels + scale * (values + np.where(k > 1, piece * 32 * k, 0))
    count = len(r)
    return (
        r,
        c,
        k,
        np.full(count, chunks, dtype=np.int64),
        np.full(count, streamed),
        np.where(by_columns, k, 1),
        cycles,
        held.astype(np.int64),
        kept.astype(np.int64),
        np.zeros(count, dtype=bool),
    )
