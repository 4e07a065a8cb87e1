"""Stages of a matrix product with constant weights: receive, multiply, gather partial sums, finish at the
roots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...arithmetic import align_up
from . import cost, matmul
from .grids import (
    Grid,
    Shape,
    addend_layout,
    bias_layout,
    left_layout,
    partial_layout,
    result_layout,
    stored_left_layout,
    stored_weight_layout,
    turned_layout,
    weight_layout,
)
from .groups import Groups, padded_columns
from .judged import Judged, report_of
from .layout import MICRO, Layout
from .steps import Gather, Held, Retile, WeightUse
from .tasks import Product

if TYPE_CHECKING:
    from .builder import Move
    from .planner import Planner


@dataclass(frozen=True)
class _Columns:
    """The columns of one right operand in the joined product."""

    first: int
    columns: int
    groups: Groups | None


def root_kernel(product: Product, family: str, *, summed: bool) -> str:
    """The root kernel that finishes a product.

    Args:
        summed: partial sums meet there; otherwise the only sum has started from the bias.
    """
    return (
        family
        + ("_bias" if summed and any(product.biases) else "")
        + ("_residual" if product.residual else "")
        + (f"_{product.activation}" if product.activation else "")
    )


def _turned_kernel(product: Product) -> str:
    """The root kernel that finishes transposed partial sums; empty if a residual comes later, which is not
    transposed. The bias is a matrix there.
    """
    if product.residual:
        return ""
    bias = ("_addend" if product.activation else "_residual") if any(product.biases) else ""
    return "root_f16" + bias + (f"_{product.activation}" if product.activation else "")


def _finish_kernel(product: Product, family: str) -> str:
    """The root kernel for sums that are there already; empty if it has nothing to do."""
    kernel = root_kernel(product, family, summed=True)
    return "" if kernel == family else kernel


def plan_product(planner: Planner, product: Product) -> None:
    """Choose a grid and write the stages."""
    builder = planner.builder
    left = planner.lies(product.left)
    groups = left.groups if left else planner.wanted_groups(product.left)
    parts = _columns(planner, product)
    query = _query(planner, product, groups, parts)
    if left:
        query = replace(query, source=builder.source(left))
    beside = planner.lies_or_view(product.residual) if product.residual else None
    if isinstance(beside, Held) and beside.groups == parts[0].groups:
        query = replace(query, beside=builder.source(beside))
    shape = query.shape
    judged = matmul.choose(query, builder.tiles, builder.price, _ahead(planner, product, parts))
    grid = judged[0].grid
    builder.report(report_of(", ".join(value.name for value in product.results), judged))
    if left is None:
        stored = left_layout(shape, grid)
        if matmul.must_receive(query, grid):
            stored = stored_left_layout(shape, grid, dealt=query.left_once)
        left = planner.place_input(product.left, stored, groups)
    _Stages(planner, product, query, judged[0], left, parts).write()


def _ahead(planner: Planner, product: Product, parts: list[_Columns]) -> matmul.Ahead | None:
    """What takes the result of a product, if that is one product."""
    consumer = planner.consumer_of(product.results[0]) if len(product.results) == 1 else None
    if consumer is None:
        return None
    follower = consumer.product
    query = _query(planner, follower, parts[0].groups, _columns(planner, follower))
    return matmul.Ahead(query, len(consumer.norms))


def _query(planner: Planner, product: Product, groups: Groups | None, parts: list[_Columns]) -> matmul.Query:
    """What a product asks for, wherever its left operand lies, whose columns are padded as `groups` says."""
    builder = planner.builder
    rows, columns = planner.view(product.left)
    columns = padded_columns(columns, groups)
    return matmul.Query(
        Shape(rows, columns, parts[-1].first + parts[-1].columns, builder.element_bytes),
        None,
        root_kernel(product, builder.family("root"), summed=True),
        root_kernel(product, builder.family("root"), summed=False),
        _finish_kernel(product, builder.family("root")),
        pointwise=bool(product.activation or product.residual),
        residual=product.residual is not None,
        iterations=planner.iterations_of(product.rights[0]),
        stored_once=not planner.is_constant(product.rights[0]),
        turned=_turned_kernel(product),
        biased=any(product.biases),
        left_once=planner.is_used_once(product.left),
    )


def _columns(planner: Planner, product: Product) -> list[_Columns]:
    parts: list[_Columns] = []
    first = 0
    for value in product.results:
        width = value.type.shape[-1]
        groups = planner.wanted_groups(value)
        if groups is None and len(product.results) > 1 and width % MICRO:
            groups = Groups(1, width, align_up(width, MICRO))
        parts.append(_Columns(first, padded_columns(width, groups), groups))
        first += parts[-1].columns
    return parts


@dataclass
class _Stages:
    planner: Planner
    product: Product
    query: matmul.Query
    best: Judged[Grid]
    left: Held
    parts: list[_Columns]

    @property
    def grid(self) -> Grid:
        return self.best.grid

    def write(self) -> None:
        out = self._turned() if self.grid.turned else self._straight()
        for value, part in zip(self.product.results, self.parts, strict=True):
            self.planner.leave(value, Held(out, part.first, part.columns, part.groups))

    @property
    def _joined(self) -> str:
        return ".".join(value.name for value in self.product.results)

    def _straight(self) -> str:
        """Multiply, add up, and finish; the buffer of the results."""
        builder, product, grid, shape = self.planner.builder, self.product, self.grid, self.query.shape
        name, owner = product.name, product.name
        weights = self._weights()
        result = result_layout(shape, grid)
        whole = grid.k == 1
        finished = whole and not self.query.pointwise
        partial = builder.add(
            self._joined if whole else f"{name}.partial",
            partial_layout(shape, grid),
            "value" if whole else "scratch",
            owner,
        )
        start = self._bias(bias_layout(partial_layout(shape, grid))) if whole else None
        if grid.streamed and self.query.iterations > 1:
            weights = builder.current(weights, name)
        for chunk in range(grid.chunks):
            self._multiply(chunk, partial, weights, start)
        return partial if finished else self._finish(partial, partial if whole else None, result)

    def _turned(self) -> str:
        """Multiply with the operands exchanged, add up, turn the result, and finish it."""
        builder, product, grid, shape = self.planner.builder, self.product, self.grid, self.query.shape
        name = product.name
        weights = self._weights()
        left, moves = self._left(0)
        builder.exchange(f"{name}.receive", moves)
        builder.clear_padding(left)
        result = result_layout(shape, grid)
        partial = builder.add(f"{name}.partial", partial_layout(shape, grid), "scratch", name)
        stages = self.best.cycles
        builder.call(f"{name}.multiply", "gemm_f16", (partial, weights, left, None), stages["multiply"])
        residual, moves = self._residual(result)
        summed, finished = partial, self.query.before_turning(grid)
        if grid.k > 1:
            summed = builder.sum_partials(
                name,
                partial,
                turned_layout(result),
                grid.k,
                grid.c,
                stages["root"],
                name=f"{name}.summed",
                role="scratch",
                moves=moves,
                kernel=finished or "root_f16",
                addend=self._bias(addend_layout(result), turned=True) if finished else None,
            )
        else:
            builder.exchange(f"{name}.residual", moves)
        out = builder.add(self._joined, result, "value", name)
        builder.call(f"{name}.turn", "transpose_f16", (out, summed), stages["turn"])
        if self.query.finish and not finished:
            finishing = (out, out, None, self._bias(bias_layout(result)), residual)
            builder.call(f"{name}.finish", self.query.finish, finishing, stages["finish"], {"remote": 0})
        return out

    def _left(self, chunk: int) -> tuple[str, list[Move]]:
        """The left operand where the kernel reads it, and what has to move for that."""
        if not matmul.must_receive(self.query, self.grid):
            return self.left.buffer, []
        suffix = f".{chunk}" if self.grid.chunks > 1 else ""
        layout = left_layout(self.query.shape, self.grid, chunk)
        name = self.product.name
        return self.planner.builder.bring(self.left, layout, f"{name}.left{suffix}", name)

    def _residual(self, result: Layout) -> tuple[str | None, list[Move]]:
        """The matrix to be added in the layout of the result, if there is one, and what has to move."""
        if self.product.residual is None:
            return None, []
        held = self.planner.needed(self.product.residual, self.parts[0].groups)
        name = self.product.name
        return self.planner.builder.bring(held, result, f"{name}.residual", name)

    def _weights(self) -> str:
        """The buffer with all weights, in place or stored once."""
        product, grid, shape = self.product, self.grid, self.query.shape
        layout = stored_weight_layout(shape, grid) if grid.streamed else weight_layout(shape, grid)
        right = product.rights[0]
        if self.planner.is_free_input(right):
            return self.planner.place_input(right, layout, None).buffer
        use = WeightUse(
            tuple(self.planner.constant(value) for value in product.rights),
            (product.left.type.shape[-1], sum(value.type.shape[-1] for value in product.results)),
            transposed=product.transposed,
            row_groups=self.left.groups,
            column_groups=tuple(part.groups for part in self.parts),
            iterations=self.query.iterations,
            turned=grid.turned,
        )
        return self.planner.builder.weight(right.name, use, layout, product.name)

    def _bias(self, layout: Layout, *, turned: bool = False) -> str | None:
        """The buffer of all biases in a row, or each repeated in a column; None if there are none."""
        product = self.product
        if not any(product.biases):
            return None
        present = next(value for value in product.biases if value is not None)
        use = WeightUse(
            tuple(self.planner.constant(value) if value else "" for value in product.biases),
            (MICRO if turned else 1, sum(value.type.shape[-1] for value in product.results)),
            repeated=turned,
            column_groups=tuple(part.groups for part in self.parts),
            widths=tuple(value.type.shape[-1] for value in product.results),
            iterations=self.planner.iterations_of(present),
            turned=turned,
        )
        return self.planner.builder.weight(present.name, use, layout, product.name)

    def _multiply(self, chunk: int, partial: str, weights: str, start: str | None) -> None:
        builder, grid, shape, name = self.planner.builder, self.grid, self.query.shape, self.product.name
        suffix = f".{chunk}" if grid.chunks > 1 else ""
        left, moves = self._left(chunk)
        panels, listed = weights, matmul.lists_panels(self.query, grid)
        if grid.streamed:
            panels = builder.add(f"{name}.panels{suffix}", weight_layout(shape, grid, chunk), "scratch", name)
            moves = [*moves, Retile(weights, panels, part="others" if listed else "all")]
        builder.exchange(f"{name}.receive{suffix}", moves)
        member = "" if start is None else "_row"
        if chunk:
            member, start = "_add", partial
        kernel = builder.family(f"gemm{'_listed' * listed}{member}")
        operands: tuple[str | None, ...] = (partial, left, panels, start)
        if listed:
            places = builder.listing(f"{name}.places{suffix}", weights, panels, name)
            operands = (partial, left, places, start, weights, panels)
        layout = builder.layout(left)
        cycles = cost.gemm(
            layout.row.largest(),
            layout.column.largest() // MICRO,
            builder.layout(partial).column.largest() // MICRO,
            builder.element_bytes,
            listed=listed,
        )
        builder.call(f"{name}.multiply{suffix}", kernel, operands, float(cycles))

    def _finish(self, partial: str, in_place: str | None, result: Layout) -> str:
        builder, product, grid = self.planner.builder, self.product, self.grid
        name = product.name
        moves: list[Move] = []
        gathered = None
        out = in_place or builder.add(self._joined, result, "value", name)
        if grid.k > 1:
            gathered = builder.add(f"{name}.gathered", result, "scratch", name, slots=grid.k - 1)
            moves.append(Gather(partial, gathered, out, grid.k, grid.c))
        residual, brought = self._residual(result)
        builder.exchange(f"{name}.partials", [*moves, *brought])
        bias = self._bias(bias_layout(result)) if grid.k > 1 else None
        kernel = root_kernel(product, builder.family("root"), summed=grid.k > 1)
        cycles = cost.root(kernel, result.row.largest(), result.column.largest() // MICRO, grid.k - 1)
        builder.call(
            f"{name}.root",
            kernel,
            (out, partial, gathered, bias, residual),
            float(cycles),
            {"remote": grid.k - 1},
        )
        return out
