"""Kernel calls per tile: buffers with offsets, then scalars, in the order of the call registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.gemm import PANEL_BYTES
from ..plan.layout import MICRO
from ..plan.movement import RECORD_BYTES
from ..plan.steps import Compute, Plan

Array = NDArray[np.int64]


@dataclass
class Call:
    """One compute step on all tiles; arrays are indexed by logical tile.

    Attributes:
        kernel: name in the kernel registry.
        active: tiles that make the call.
        operands: (buffer name, byte offset per tile) for registers m2, m3, ...
        scalars: values per tile for the registers that follow.
    """

    kernel: str
    active: NDArray[np.bool_]
    operands: list[tuple[str, Array]]
    scalars: list[Array]


def lower_call(plan: Plan, step: Compute) -> Call:
    """Arguments of one compute step for every tile of the plan."""
    return _LOWERINGS[step.kernel](plan, step)


def _padded(plan: Plan, name: str) -> tuple[Array, Array, Array]:
    """Allocated rows, panels and bytes of a buffer's shard per tile (zero past its layout)."""
    layout = plan.buffers[name].layout
    rows, panels, size = (np.zeros(plan.tiles, dtype=np.int64) for _ in range(3))
    rows[: layout.tiles] = layout.shards["padded_rows"]
    panels[: layout.tiles] = layout.shards["padded_columns"] // MICRO
    size[: layout.tiles] = layout.bytes
    return rows, panels, size


def _gemm(plan: Plan, step: Compute) -> Call:
    rows, columns, size = _padded(plan, step.output)
    _, inner, left = _padded(plan, step.inputs[0])
    zero = np.zeros(plan.tiles, dtype=np.int64)
    return Call(
        step.kernel,
        (size > 0) & (left > 0),
        [(step.output, zero), (step.inputs[0], zero), (step.inputs[1], zero)],
        [zero, rows, inner | columns << 16, zero + PANEL_BYTES, inner * PANEL_BYTES],
    )


def _reduce(plan: Plan, step: Compute) -> Call:
    partial_name, gathered_name = step.inputs
    partial, result = plan.buffers[partial_name].layout, plan.buffers[step.output].layout
    rows, panels, size = _padded(plan, step.output)
    own, stride = np.zeros(plan.tiles, dtype=np.int64), np.zeros(plan.tiles, dtype=np.int64)
    held, piece = partial.shards[: result.tiles], result.shards
    first = (piece["column"] - held["column"]) // MICRO
    own[: result.tiles] = (first * held["padded_rows"] + piece["row"] - held["row"]) * RECORD_BYTES
    stride[: result.tiles] = held["padded_rows"] * RECORD_BYTES
    own[size == 0] = 0
    remote = np.full(plan.tiles, step.parameters["remote"], dtype=np.int64)
    zero = np.zeros(plan.tiles, dtype=np.int64)
    return Call(
        step.kernel,
        size > 0,
        [(step.output, zero), (partial_name, own), (gathered_name, zero)],
        [remote, rows * (RECORD_BYTES // 8), panels, stride, size],
    )


def _add_row(plan: Plan, step: Compute) -> Call:
    rows, panels, size = _padded(plan, step.output)
    zero = np.zeros(plan.tiles, dtype=np.int64)
    return Call(
        step.kernel,
        size > 0,
        [(step.output, zero), (step.inputs[0], zero), (step.inputs[1], zero)],
        [rows, panels],
    )


def _pointwise(plan: Plan, step: Compute) -> Call:
    _, _, size = _padded(plan, step.output)
    zero = np.zeros(plan.tiles, dtype=np.int64)
    return Call(step.kernel, size > 0, [(name, zero) for name in (step.output, *step.inputs)], [size // 8])


_LOWERINGS: dict[str, Callable[[Plan, Compute], Call]] = {
    "gemm_f16": _gemm,
    "reduce_f16": _reduce,
    "add_row_f16": _add_row,
    "add_f16": _pointwise,
    "gelu_f16": _pointwise,
}
