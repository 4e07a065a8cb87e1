"""Stages of row normalisations whose rows lie spread over tiles: sums of each piece, an exchange of the
sums among the tiles that share rows, and the normalisation in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...graph import Operation
from ...operators.parameter import number
from . import cost
from .groups import padded_columns
from .layout import MICRO, Axis, Layout
from .steps import Held, Report, Retile, WeightUse
from .views import spread_widely, stacked

if TYPE_CHECKING:
    from .planner import Planner

SUMS_BYTES = 8
"""Sum and sum of squares of a row, float32."""
LEAST_LENGTH = 2.0**-15
"""Of a row that is divided by its length; what the kernel takes."""


def plan_layer_norm(planner: Planner, operation: Operation) -> None:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta."""
    x = operation.operands[0]
    source = _operand(planner, operation)
    _plan(
        planner,
        operation,
        source,
        "normalise_f16",
        _affine(planner, operation, source),
        columns=x.type.shape[-1],
        epsilon=number(operation.attributes, "epsilon"),
    )


def _affine(planner: Planner, operation: Operation, source: Held) -> str:
    """The buffer of scale and offset, two rows: on each tile those of the columns it has."""
    gamma, beta = operation.operands[1:]
    builder, name = planner.builder, operation.result.name
    layout = builder.layout(source.buffer)
    wanted = Layout("a16", Axis(2), layout.column, layout.tiles)
    walked = planner.iterations_of(gamma), planner.iterations_of(beta)
    if planner.is_constant(gamma) and planner.is_constant(beta) and walked[0] == walked[1]:
        use = WeightUse(
            (planner.constant(gamma), planner.constant(beta)),
            (2, gamma.type.shape[-1]),
            stacked=True,
            column_groups=(source.groups,),
            iterations=walked[0],
        )
        return builder.weight(gamma.name, use, wanted, name)
    rows = planner.needed(stacked(planner, (gamma, beta), operation), source.groups)
    return builder.receive(rows, wanted, "affine", name).buffer


def plan_l2_normalize(planner: Planner, operation: Operation) -> None:
    """x / max(|x|, epsilon)."""
    source = _operand(planner, operation)
    # Smaller bounds mean the same in half precision: a row of this length is all zeros.
    epsilon = max(number(operation.attributes, "epsilon"), LEAST_LENGTH)
    _plan(planner, operation, source, "l2_normalise_f16", None, epsilon=epsilon)


def expected(layout: Layout) -> float:
    """Cycles of a normalisation of what lies in a layout, about."""
    parts, rows = layout.column.parts, layout.row.largest()
    exchanged = float(cost.exchange(parts * rows * SUMS_BYTES // 4, parts)) if parts > 1 else 0.0
    return sum(_kernel_cycles(layout, "normalise_f16"), exchanged)


def _kernel_cycles(layout: Layout, kernel: str) -> tuple[float, float]:
    """Of the sums over each piece of a row, and of the normalisation by `kernel`."""
    rows, panels = layout.row.largest(), layout.column.largest() // MICRO
    return (
        float(cost.kernel("row_sums_f16", rows=rows, panels=panels)),
        float(cost.kernel(kernel, rows=rows, panels=panels, parts=layout.column.parts)),
    )


def _operand(planner: Planner, operation: Operation) -> Held:
    """The value to normalise; an input is spread so that all tiles have a part, of few rows each."""
    x = operation.operands[0]
    if planner.is_free_input(x):
        rows, columns = planner.view(x)
        groups = planner.wanted_groups(x)
        layout = spread_widely(rows, padded_columns(columns, groups), planner.builder.tiles)
        planner.place_input(x, planner.spread_for(operation.result, layout), groups)
    held = planner.matrix(x, operation.result.name)
    layout = planner.builder.layout(held.buffer)
    if layout.column.smallest():
        return held
    # Some tiles would have rows, but no columns of them to sum up.
    wanted = spread_widely(layout.row.extent, held.columns, planner.builder.tiles)
    return planner.builder.receive(held, wanted, "operand", operation.result.name)


def _plan(
    planner: Planner,
    operation: Operation,
    source: Held,
    kernel: str,
    affine: str | None,
    **parameters: float,
) -> None:
    builder, name = planner.builder, operation.result.name
    layout = builder.layout(source.buffer)
    parts = layout.column.parts
    pieces = Axis(parts, 1, layout.column.levels, layout.column.segments)
    sums = builder.add(
        f"{name}.sums",
        Layout("plain", layout.row, pieces, layout.tiles, SUMS_BYTES),
        "scratch",
        name,
    )
    summing, applying = _kernel_cycles(layout, kernel)
    first = len(builder.plan.steps)
    builder.call(f"{name}.sums", "row_sums_f16", (sums, source.buffer), summing)
    everything = sums
    if parts > 1:
        whole = Layout("plain", layout.row, Axis(parts), layout.tiles, SUMS_BYTES)
        everything = builder.add(f"{name}.statistics", whole, "scratch", name)
        builder.exchange(f"{name}.statistics", [Retile(sums, everything)])
    out = planner.output_like(operation, source)
    operands = (out, source.buffer, everything, affine)
    builder.call(f"{name}.apply", kernel, operands, applying, {"parts": parts, **parameters})
    steps = {step.name.removeprefix(f"{name}."): step.cycles for step in builder.plan.steps[first:]}
    builder.report(Report(name, f"{parts} pieces of each row, {layout.describe()}", steps, 0))
    planner.leave(operation.result, Held(out, 0, source.columns, source.groups))
