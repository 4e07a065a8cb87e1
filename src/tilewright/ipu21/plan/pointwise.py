"""Stages of operations that keep every element where it lies: the root kernels without partial sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...graph import Operation, Value
from . import cost, views
from .grids import bias_layout
from .layout import MICRO, matrix_view
from .steps import Held, Report, WeightUse
from .tasks import activation_of, is_row

if TYPE_CHECKING:
    from .planner import Planner


def plan_gelu(planner: Planner, operation: Operation) -> None:
    """x/2 (1 + erf(x / sqrt 2)), or its approximation by tanh."""
    source = planner.matrix(operation.operands[0], operation.result.name)
    kernel = f"{planner.builder.family('root')}_{activation_of(operation)}"
    _call(planner, operation, source, kernel, None, None)


def plan_add(planner: Planner, operation: Operation) -> None:
    """A sum; a constant row is a bias, everything else a second matrix in the layout of the first."""
    first, second = operation.operands
    shape = operation.result.type.shape
    if first.type.shape != shape or (planner.is_constant(first) and not planner.is_constant(second)):
        first, second = second, first
    if first.type.shape != shape:
        first = views.broadcast(planner, first, operation)
    source = planner.matrix(first, operation.result.name)
    layout = planner.builder.layout(source.buffer)
    if planner.is_constant(second) and is_row(second.type.shape, shape):
        use = WeightUse(
            (planner.constant(second),),
            (1, shape[-1]),
            column_groups=(source.groups,),
            iterations=planner.iterations_of(second),
        )
        bias = planner.builder.weight(second.name, use, bias_layout(layout), operation.result.name)
        _call(planner, operation, source, f"{planner.builder.family('root')}_bias", bias, None)
        return
    other = _alike(planner, second, source, operation)
    _call(planner, operation, source, f"{planner.builder.family('root')}_residual", None, other)


def _alike(planner: Planner, value: Value, source: Held, operation: Operation) -> str:
    """A second operand in the layout of the first."""
    name, shape = operation.result.name, operation.result.type.shape
    layout = planner.builder.layout(source.buffer)
    if planner.is_constant(value):
        rows, columns = matrix_view(shape)
        use = WeightUse(
            (planner.constant(value),),
            (rows, columns),
            column_groups=(source.groups,),
            iterations=planner.iterations_of(value),
            broadcast=shape,
        )
        return planner.builder.weight(value.name, use, layout, name)
    if value.type.shape != shape:
        value = views.broadcast(planner, value, operation)
    if planner.is_free_input(value):
        return planner.place_input(value, layout, source.groups).buffer
    held = planner.needed(value, source.groups)
    return planner.builder.receive(held, layout, "right", name).buffer


def _call(
    planner: Planner, operation: Operation, source: Held, kernel: str, bias: str | None, other: str | None
) -> None:
    builder, name = planner.builder, operation.result.name
    layout = builder.layout(source.buffer)
    out = planner.output_like(operation, source)
    cycles = float(cost.root(kernel, layout.row.largest(), layout.column.largest() // MICRO, 0))
    builder.call(
        f"{name}.{operation.name}", kernel, (out, source.buffer, None, bias, other), cycles, {"remote": 0}
    )
    builder.report(Report(name, layout.describe(), {operation.name: cycles}, int(layout.bytes.max())))
    planner.leave(operation.result, Held(out, 0, source.columns, source.groups))
