"""The search for the grid of an attention: closed forms for all, the real traffic for the best of them.

Where the padding of a head of values has room, the product with the values also sums the exponentials: each
group of 16 keys has a column there that is 1 for these keys. So every sum of 16 is made in float32 and
rounded once, and the softmax, whose vector unit is what limits it, has less to do.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from ...arithmetic import ceil_div
from . import cost
from .attention_grid import Grid
from .attention_work import Problem, Sources, head_cycles
from .head_line import HeadLine, judge_line, line_of
from .judged import Judged, best_first
from .layout import MICRO, Source, is_fewest
from .movement import Hearing, Load, Traffic, gather, load_of, retile
from .price import Price
from .turns import Turns

JUDGED = 12
"""How many grids are judged by their real traffic."""
BLOCK_KEYS = 128
"""Keys of a block, where there are tiles enough: weights of a block are not normalised yet, and their sums
of values are rounded to float16 after every 16 keys, so errors grow with the size of a block (twice as
large with 512 as with 208, simulated).
"""

LONE_WORDS = 1.12
"""What a word counts in a phase where lone tiles hear singly what others hear in pairs: rows are 7 to 16 %
longer than their bound (fitted to the scheduler).
"""


@lru_cache(maxsize=128)
def choose(
    problem: Problem, sources: Sources, tiles: int, price: Price
) -> tuple[Judged[Grid | HeadLine], ...]:
    """The most promising grids, judged by the traffic each really causes, best first."""
    grids = _grids(problem, tiles)
    if sources.query is None:
        grids += [replace(grid, lone_half=True) for grid in grids if grid.lone]
    grids = [min(_merged(grid), key=lambda grid: _closed_form(grid, price)) for grid in grids]
    ranked = sorted(grids, key=lambda grid: _closed_form(grid, price))
    judged: list[Judged[Grid | HeadLine]] = [judge(grid, sources) for grid in ranked[:JUDGED]]
    line = line_of(problem, tiles)
    if line is not None and (problem.keys <= BLOCK_KEYS or not _accurate(grids)):
        judged.append(judge_line(line, sources))
    return best_first(judged, price)


def _grids(problem: Problem, tiles: int) -> list[Grid]:
    found = []
    key_blocks = ceil_div(problem.keys, MICRO)
    for per_tile in sorted({ceil_div(problem.heads, parts) for parts in range(1, problem.heads + 1)}):
        head_parts = ceil_div(problem.heads, per_tile)
        side = min(problem.batch, tiles // head_parts)
        if side < problem.batch and head_parts > 1:
            continue
        room = tiles // (side * head_parts)
        for key_parts in range(1, min(key_blocks, room) + 1):
            if not is_fewest(key_blocks, key_parts):
                continue
            rows = ceil_div(problem.queries, room // key_parts)
            for more in (0, 1, 2, 4, 8, 16):
                parts = ceil_div(problem.queries, rows + more)
                grid = Grid(problem, head_parts, parts, key_parts, Turns(problem.batch, side))
                found += [grid, replace(grid, shares_keys=True)]
    found = list(dict.fromkeys(found))
    return _accurate(found) or found


def _merged(grid: Grid) -> list[Grid]:
    """A grid with every way to cut its result that leaves each column part whole panels of the only head.

    Groups with a lone tile hold their parts in reverse by turns, which two cuts at once do not say.
    """
    panels = grid.problem.value_width // MICRO
    cuts = range(1, panels + 1) if grid.heads == 1 and not grid.lone else (1,)
    return [
        replace(grid, across=parts) for parts in cuts if grid.key_parts % parts == 0 and panels % parts == 0
    ]


def _accurate(grids: list[Grid]) -> list[Grid]:
    return [grid for grid in grids if grid.key_rows().largest() <= BLOCK_KEYS]


def _compute(grid: Grid) -> dict[str, float]:
    """Kernel cycles of the busiest tile."""
    value_width = grid.problem.value_width // MICRO
    keys = grid.key_rows().largest() // MICRO
    return {
        "transpose": grid.heads * float(cost.transpose(keys, value_width)),
        **_key_block(grid, keys, summed_by_product(grid)),
        "merge": grid.heads * float(_merge_cycles(grid, *grid.result_piece())),
    }


def _key_block(grid: Grid, keys: int, summed: bool) -> dict[str, float]:
    """Kernel cycles of a tile with so many groups of 16 keys, from scores to values.

    Args:
        summed: exponentials are summed by the product.
    """
    each = head_cycles(grid.problem, grid.query_rows().largest(), keys, summed=summed)
    return {name: grid.heads * float(cycles) for name, cycles in each.items()}


def summed_by_product(grid: Grid) -> bool:
    """True where the product with the values had better sum the exponentials too.

    It can where half a panel of a head is padding, of zeros, with a column for every group of 16 keys. What
    the result has there the merge makes zeros again.
    """
    problem, keys = grid.problem, grid.key_rows().largest() // MICRO
    is_free = problem.spare > 0 and problem.heads > 1 and keys <= MICRO // 2
    if not is_free or problem.causal or grid.key_parts == 1:
        return False
    plain, other = (sum(_key_block(grid, keys, summed).values()) for summed in (False, True))
    return other < plain


def _late(grid: Grid, copies: float) -> float:
    """Cycles by which lone tiles are done later than others that work on more keys, if they copy so long."""
    keys = grid.key_rows()
    most, least = (
        sum(_key_block(grid, blocks, summed_by_product(grid)).values())
        for blocks in (keys.largest() // MICRO, keys.smallest())
    )
    return max(copies - (most - least), 0.0)


def _merge_cycles(grid: Grid, rows: int, panels: int) -> Any:
    if grid.key_parts == 1:
        return cost.kernel("scale_rows_f16", rows=rows, panels=panels)
    halves = 2 * panels - grid.problem.spare
    if grid.heads == 1:
        return cost.kernel(
            "attention_merge_own_f16", rows=rows, halves=halves, remote_count=grid.key_parts - 1
        )
    return cost.kernel("attention_merge_f16", rows=rows, halves=halves, parts=grid.key_parts)


def _bytes(grid: Grid) -> int:
    problem, heads = grid.problem, grid.heads
    rows, keys = grid.query_rows().largest(), grid.key_rows().largest()
    operands = heads * (rows * problem.width + keys * (problem.width + 2 * problem.value_width))
    return 2 * (operands + rows * keys + 2 * heads * rows * problem.value_width)


def _closed_form(grid: Grid, price: Price) -> float:
    problem, heads = grid.problem, grid.heads
    rows, keys = grid.query_rows().largest(), grid.key_rows().largest()
    paired_keys = grid.shares_keys and grid.query_parts % 2 == 0
    paired_queries = not grid.shares_keys and (grid.key_parts % 2 == 0 or grid.lone_half)
    received = heads * rows * problem.width // (4 if paired_queries else 2)
    received += heads * keys * (problem.width + problem.value_width) // (4 if paired_keys else 2)
    merged_rows, panels = grid.result_piece()
    merged = heads * merged_rows * (panels * MICRO + 4) // 2 * (grid.key_parts - 1)
    moves = cost.exchange(received, heads * 12) + cost.exchange(merged, grid.key_parts * 4)
    if grid.lone_half:
        panels = heads * problem.width // MICRO
        moves += _late(grid, cost.copies(Load(0, 0, panels, rows * MICRO // 8)))
    return sum(_compute(grid).values()) + float(moves) + float(price.of(_bytes(grid), 0))


def _receive_traffic(grid: Grid, sources: Sources) -> list[Traffic]:
    query, key, value = grid.query(), grid.key(), grid.value()
    stored = (grid.stored_query(), grid.stored(key), grid.stored(value))
    queries: Hearing = "paired" if grid.copies_own else "all"
    traffic = []
    for source, layout, wanted, hearing in zip(
        (sources.query, sources.key, sources.value),
        stored,
        (query, key, value),
        (queries, "all", "all"),
        strict=True,
    ):
        known = source or Source(layout, 0, layout.column.extent)
        if not known.lies_in(wanted):
            traffic.append(retile(known.layout, wanted, known.column, hearing=hearing))
    return traffic


def judge(grid: Grid, sources: Sources) -> Judged[Grid]:
    """Cycles by stage, from the traffic the grid really causes."""
    traffic = _receive_traffic(grid, sources)
    count = max(grid.tiles, sources.tiles)
    moves_queries = sources.query is None or not sources.query.lies_in(grid.query())
    kept = [move.kept for move in traffic[:1]] if grid.copies_own and moves_queries else []
    moving = [move.sent for move in traffic[: len(kept)]] + traffic[len(kept) :]
    load = load_of(moving, count)
    neighbours = grid.query_parts if grid.shares_keys else grid.key_parts
    if neighbours % 2 and neighbours > 1:
        load = replace(load, words=int(LONE_WORDS * load.words))
    stages = {"receive": cost.move(load), **_compute(grid)}
    if kept:
        stages["own"] = _late(grid, cost.copies(load_of(kept, count)))
    if grid.key_parts > 1:
        parts = [
            gather(whole, piece, grid.key_parts, grid.pieces.stride, own=grid.heads > 1)
            for whole, piece in (
                (grid.output(), grid.result()),
                (grid.state(), grid.result_state()),
            )
        ]
        stages["partials"] = cost.move(load_of(parts, grid.tiles))
    if sources.value is None:
        del stages["transpose"]
    return Judged(grid, stages, _bytes(grid))
