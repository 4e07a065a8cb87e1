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

Where the padding of a head of values has room, the product with the values also sums the exponentials: each
group of 16 keys has a column there that is 1 for these keys. So every sum of 16 is made in float32 and
rounded once, and the softmax, whose vector unit is what limits it, has less to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from ...arithmetic import ceil_div
from ...graph import Operation, Value
from ...operators.parameter import flag, integer, number
from . import cost, views
from .attention_work import Problem, Sources, Work, head_cycles
from .groups import Groups, groups_of
from .head_line import HeadLine, HeadRun, judge_line, line_of
from .judged import Judged, best_first, report_of
from .layout import MICRO, Axis, Layout, Level, Source, is_fewest
from .movement import Hearing, Load, Traffic, gather, load_of, retile
from .price import Price
from .steps import Gather, Held, Retile
from .turns import Turns, check_turns, write_turns

if TYPE_CHECKING:
    from .builder import Move
    from .planner import Planner

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


def head_groups(operation: Operation) -> tuple[Groups | None, Groups | None]:
    """How the columns of queries/keys and of values/result have to be padded."""
    heads = integer(operation.attributes, "heads")
    q, _, v = operation.operands[:3]
    narrow, wide = (groups_of(heads, x.type.shape[-1] // heads, MICRO) for x in (q, v))
    return narrow, wide


def plan_attention(planner: Planner, operation: Operation) -> None:
    """Choose a grid and write the stages."""
    operands = views.attention_operands(planner, operation)
    q, k, v = operands[:3]
    heads = integer(operation.attributes, "heads")
    batch = prod(q.type.shape[:-2])
    check_turns(operation, batch, planner.builder.tiles)
    problem = Problem(
        batch,
        heads,
        q.type.shape[-2],
        k.type.shape[-2],
        q.type.shape[-1] // heads,
        v.type.shape[-1] // heads,
        flag(operation.attributes, "causal"),
    )
    narrow, wide = head_groups(operation)
    held = [
        None if planner.is_free_input(value) else planner.needed(value, groups)
        for value, groups in ((q, narrow), (k, narrow), (v, wide))
    ]
    sources = Sources(*(None if item is None else planner.builder.source(item) for item in held))
    judged = choose(problem, sources, planner.builder.tiles, planner.builder.price)
    planner.builder.report(report_of(operation.result.name, judged))
    grid, cycles = judged[0].grid, judged[0].cycles
    if isinstance(grid, HeadLine) or grid.turns.count > 1:
        # All runs or turns read an input, so none of them can say how it is stored.
        held = [planner.needed(x, own) for x, own in ((q, narrow), (k, narrow), (v, wide))]
    if isinstance(grid, HeadLine):
        result = _write_line(planner, operation, operands, grid, cycles, (narrow, wide), held)
        planner.leave(operation.result, planner.builder.held(result, groups=wide))
        return

    def write(turns: Turns) -> str:
        own = replace(grid, turns=turns)
        return _Stages(planner, operation, operands, own, cycles, (narrow, wide), held).write()

    result = write_turns(planner.builder, operation.result.name, grid.turns, grid.output(), write)
    planner.leave(operation.result, planner.builder.held(result, groups=wide))


def _write_line(
    planner: Planner,
    operation: Operation,
    operands: tuple[Value, ...],
    line: HeadLine,
    cycles: dict[str, float],
    groups: tuple[Groups | None, Groups | None],
    held: list[Held | None],
) -> str:
    """The buffer of the result, collected from all runs."""
    builder, name = planner.builder, operation.result.name
    shares = {stage: share / line.runs for stage, share in cycles.items()}
    stages = [
        _Stages(planner, operation, operands, run, shares, groups, held, f".{index}")
        for index, run in enumerate(line.each())
    ]
    brought = [run.bring() for run in stages]
    mask, moves = stages[0].mask()
    builder.exchange(f"{name}.receive", [*(move for _, moved, _ in brought for move in moved), *moves])
    results = [run.compute(*buffers, mask) for run, (buffers, _, _) in zip(stages, brought, strict=True)]
    result = builder.add(name, line.collected(), "value", name)
    builder.exchange(f"{name}.collect", [Retile(each, result) for each in results])
    return result


@dataclass
class _Stages:
    """The stages of one grid, or of one run of heads in a line.

    Attributes:
        cycles: of each kind of stage.
        held: queries, keys and values that lie somewhere already.
        suffix: of the names of what belongs to a run.
    """

    planner: Planner
    operation: Operation
    operands: tuple[Value, ...]
    grid: Grid | HeadRun
    cycles: dict[str, float]
    groups: tuple[Groups | None, Groups | None]
    held: list[Held | None]
    suffix: str = ""

    @property
    def name(self) -> str:
        return self.operation.result.name

    def write(self) -> str:
        """The buffer of the result."""
        (query, key, value), moves, own = self.bring()
        mask, brought = self.mask()
        builder, name = self.planner.builder, self.name
        builder.exchange(f"{name}.receive", moves + brought)
        builder.exchange(f"{name}.own", own, self.cycles.get("own"))
        return self.compute(query, key, value, mask)

    def compute(self, query: str, key: str, value: str, mask: str | None) -> str:
        """The buffer of the result, from operands where the kernels read them."""
        builder, grid, name = self.planner.builder, self.grid, self.name
        builder.clear_padding(key)
        builder.clear_padding(value)
        transposed = value
        if builder.layout(value).order == "a16":
            transposed = self._transpose(value)
        query, key = self._scaled(query, key)
        if "sums" in self.cycles:
            self._write_ones(transposed)
        alone = grid.key_parts == 1
        whole = alone and not self.suffix
        label = f"{name}{self.suffix}" if alone else f"{name}.partial"
        output = builder.add(label, grid.output(), "value" if whole else "scratch", name)
        state = builder.add(f"{name}.state{self.suffix}", grid.state(), "scratch", name)
        for head in range(grid.heads):
            self._head(head, query, key, transposed, mask, output, state)
        if isinstance(grid, HeadRun) or alone:
            return self._divide(output, state)
        return self._merge(grid, output, state)

    def bring(self) -> tuple[tuple[str, str, str], list[Move], list[Move]]:
        """Queries, keys and values where the kernels read them; what moves for that, and is copied behind."""
        grid, builder, name = self.grid, self.planner.builder, self.name
        # Stored transposed, it is of no use to others.
        alone = self.held[2] is None and self.planner.is_used_once(self.operands[2])
        value_order = "a16t" if alone else "a16"
        wanted = [grid.query(), grid.key(), grid.value(value_order)]
        groups = (self.groups[0], self.groups[0], self.groups[1])
        moves: list[Move] = []
        own: list[Move] = []
        buffers: list[str] = []
        for index, what in enumerate(("query", "key", "value")):
            held = self.held[index]
            if held is None:
                operand = self.operands[index]
                held = self.planner.lies(operand) or self.planner.place_input(
                    operand, self._stored(wanted[index], what), groups[index]
                )
            buffer, moved = builder.bring(held, wanted[index], f"{name}.{what}{self.suffix}", name)
            buffers.append(buffer)
            if grid.copies_own and what == "query" and moved:
                moved = [Retile(held.buffer, buffer, held.column, "sent")]
                own = [Retile(held.buffer, buffer, held.column, "kept")]
            moves += moved
        return (buffers[0], buffers[1], buffers[2]), moves, own

    def _stored(self, wanted: Layout, what: str) -> Layout:
        """How an operand is stored where nobody else says."""
        assert isinstance(self.grid, Grid), "runs of a line read what lies somewhere"
        return self.grid.stored_query() if what == "query" else self.grid.stored(wanted)

    def mask(self) -> tuple[str | None, list[Move]]:
        """The mask where the kernels read it, if there is one, and what moves for that."""
        if len(self.operands) <= 3:
            return None, []
        builder, name = self.planner.builder, self.name
        held = self.planner.matrix(self.operands[3], name)
        rows = builder.layout(held.buffer).row.extent
        return builder.bring(held, self.grid.mask(rows), f"{name}.mask", name)

    def _transpose(self, value: str) -> str:
        builder, grid = self.planner.builder, self.grid
        label = f"{self.name}.transposed{self.suffix}"
        transposed = builder.add(label, grid.value("a16t"), "scratch", self.name)
        keys, columns = grid.key_rows().largest() // MICRO, builder.layout(value).column.largest() // MICRO
        cycles = float(cost.transpose(keys, columns))
        builder.call(f"{self.name}.transpose{self.suffix}", "transpose_f16", (transposed, value), cycles)
        return transposed

    def _write_ones(self, values: str) -> None:
        """Columns of ones in the padding of every head, one for each group of 16 keys."""
        problem, blocks = self.grid.problem, self.grid.key_rows().largest() // MICRO
        cycles = self.cycles["ones"] / (self.grid.heads * blocks)
        for head in range(self.grid.heads):
            first = (head + 1) * problem.value_width - MICRO // 2
            for block in range(blocks):
                parameters = {"block": block, "column": first + block}
                self.planner.builder.call(f"{self.name}.ones", "fill_u64", (values,), cycles, parameters)

    def _scaled(self, query: str, key: str) -> tuple[str, str]:
        """Queries and keys, those of them that are fewer on a tile times the scale."""
        width = self.operation.operands[0].type.shape[-1] // self.grid.problem.heads
        scale = number(self.operation.attributes, "scale") or width**-0.5
        if scale == 1.0:
            return query, key
        layout = self.planner.builder.layout
        if layout(key).bytes.max() < layout(query).bytes.max():
            return query, self._times(key, scale)
        return self._times(query, scale), key

    def _times(self, operand: str, scale: float) -> str:
        """An operand times a factor: in place unless it is the value itself."""
        builder, layout = self.planner.builder, self.planner.builder.layout(operand)
        scaled = operand
        if builder.plan.buffers[operand].role != "scratch":
            scaled = builder.add(f"{self.name}.scaled{self.suffix}", layout, "scratch", self.name)
        words = int(layout.bytes.max()) // 8
        cycles = float(cost.kernel("scale_f16", words=words))
        builder.call(
            f"{self.name}.scale{self.suffix}", "scale_f16", (scaled, operand), cycles, {"factor": scale}
        )
        return scaled

    def _head(
        self,
        head: int,
        query: str,
        key: str,
        value: str,
        mask: str | None,
        output: str,
        state: str,
    ) -> None:
        """Scores, softmax and the product with the values for one head of every tile."""
        builder, grid, name = self.planner.builder, self.grid, self.name
        problem = grid.problem
        suffix = f".{head}" if grid.heads > 1 else self.suffix
        narrow = (head * problem.width, problem.width)
        wide = (head * problem.value_width, problem.value_width)
        scores = builder.add(f"{name}.scores{suffix}", grid.scores(), "scratch", name)
        builder.call(
            f"{name}.scores{suffix}",
            "gemm_f16" if mask is None else "gemm_row_f16",
            (scores, query, key, mask),
            self.cycles["scores"] / grid.heads,
            windows={1: narrow, 2: narrow},
        )
        summed = "sums" in self.cycles
        plain = "softmax_unsummed_f16" if summed else "softmax_f16"
        builder.call(
            f"{name}.softmax{suffix}",
            "softmax_causal_f16" if problem.causal else plain,
            (scores, scores, state),
            self.cycles["softmax"] / grid.heads,
            windows={2: (head, 1)},
        )
        builder.call(
            f"{name}.values{suffix}",
            "gemm_f16",
            (output, scores, value, None),
            self.cycles["values"] / grid.heads,
            windows={0: wide, 2: wide},
        )
        if summed:
            builder.call(
                f"{name}.sums{suffix}",
                "half_sums_f16",
                (state, output),
                self.cycles["sums"] / grid.heads,
                windows={0: (head, 1), 1: wide},
            )

    def _divide(self, output: str, state: str) -> str:
        """The result, in place, where all keys are on one tile."""
        grid, width = self.grid, self.grid.problem.value_width
        for head in range(grid.heads):
            wide = (head * width, width)
            self.planner.builder.call(
                f"{self.name}.divide{f'.{head}' if grid.heads > 1 else self.suffix}",
                "scale_rows_f16",
                (output, output, state),
                self.cycles["merge"] / grid.heads,
                windows={0: wide, 1: wide, 2: (head, 1)},
            )
        return output

    def _merge(self, grid: Grid, output: str, state: str) -> str:
        """The buffer of the merged result.

        With one head per tile the root's own part is read where it was computed; with several it comes with
        the others'.
        """
        builder, name = self.planner.builder, self.name
        parts, several, width = grid.key_parts, grid.heads > 1, grid.problem.value_width
        result = builder.add(name, grid.result(), "value", name)
        slots = parts if several else parts - 1
        outputs = builder.add(f"{name}.outputs", grid.result(), "scratch", name, slots=slots)
        states = builder.add(f"{name}.states", grid.result_state(), "scratch", name, slots=slots)
        moves = [
            Gather(output, outputs, result, parts, grid.pieces.stride, own=several),
            Gather(state, states, states, parts, grid.pieces.stride, own=several),
        ]
        builder.exchange(f"{name}.partials", moves)
        if not several:
            builder.call(
                f"{name}.merge",
                "attention_merge_own_f16",
                (result, output, state, outputs, states),
                self.cycles["merge"],
                {"remote": parts - 1, "spare": grid.problem.spare, "width": width},
            )
            return result
        for head in range(grid.heads):
            wide = (head * width, width)
            builder.call(
                f"{name}.merge.{head}",
                "attention_merge_f16",
                (result, outputs, states),
                self.cycles["merge"] / grid.heads,
                {"parts": parts, "spare": grid.problem.spare, "width": width},
                {0: wide, 1: wide, 2: (head, 1)},
            )
        return result
