"""Stages of attention: bring queries, keys and values, score, raise, add up values, and merge the results of
key blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from ...graph import Operation, Value
from ...operators.parameter import flag, integer, number
from . import cost, views
from .attention_choice import choose
from .attention_grid import Grid
from .attention_work import Problem, Sources
from .groups import Groups, groups_of
from .head_line import HeadLine, HeadRun
from .judged import report_of
from .layout import MICRO, Layout
from .steps import Gather, Held, Retile
from .turns import Turns, check_turns, write_turns

if TYPE_CHECKING:
    from .builder import Move
    from .planner import Planner


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
