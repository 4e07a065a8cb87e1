"""Stages of a softmax over whole rows: exponentials relative to the row's maximum, divided by their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...graph import Operation
from . import cost
from .layout import MICRO, Axis, Layout
from .steps import Held, Report

if TYPE_CHECKING:
    from .planner import Planner

STATE_BYTES = 8
"""Maximum and sum of a row, float32."""


def plan_softmax(planner: Planner, operation: Operation) -> None:
    """Rows that lie in pieces are brought together first."""
    builder, name = planner.builder, operation.result.name
    held = planner.needed(operation.operands[0], None)
    if held.groups is not None:
        # A single group ends with the row; behind it lies padding, which is no part of the softmax.
        held = Held(held.buffer, held.column, held.groups.width)
    source = builder.source(held)
    layout = source.layout
    if layout.column.parts > 1 or not source.whole or layout.order != "a16":
        layout = builder.spread(layout.row.extent, held.columns)
        held = builder.receive(held, layout, "operand", name)
    out = planner.output_like(operation, held)
    state = builder.add(
        f"{name}.state",
        Layout("plain", layout.row, Axis(1), layout.tiles, STATE_BYTES),
        "scratch",
        name,
    )
    rows, panels = layout.row.largest(), layout.column.largest() // MICRO
    stages = {
        "exponentials": float(cost.kernel("softmax_f16", rows=rows, panels=panels, valid=panels * MICRO)),
        "divide": float(cost.kernel("scale_rows_f16", rows=rows, panels=panels)),
    }
    operands = (out, held.buffer, state)
    builder.call(f"{name}.exponentials", "softmax_f16", operands, stages["exponentials"])
    builder.call(f"{name}.divide", "scale_rows_f16", (out, out, state), stages["divide"])
    builder.report(Report(name, layout.describe(), stages, int(layout.bytes.max())))
    planner.leave(operation.result, Held(out, 0, held.columns))
