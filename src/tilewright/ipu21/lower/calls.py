"""Kernel calls per tile: buffers with offsets, then scalars by name, from the layouts of the operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedError
from ..kernels import KERNELS
from ..plan.layout import MICRO
from ..plan.steps import Compute, Plan

Array = NDArray[np.int64]

RECORD_BYTES = 32
"""A row of a panel of 16 halves (or 8 floats)."""
BLOCK_BYTES = 512
"""A panel of weights."""
ONES = 0x3C003C00
"""Two halves of 1."""


@dataclass
class Call:
    """One compute step on all tiles; arrays are indexed by logical tile.

    Attributes:
        kernel: name in the kernel registry.
        active: tiles that make the call.
        operands: (buffer name or None, byte offset per tile) for registers $m2, $m3, ...
        scalars: values per tile by name.
        registers: the same as the registers that follow the operands hold them.
        strides: bytes from one iteration's part of a buffer to the next, per tile, for operands that a loop
            walks through, by position.
    """

    kernel: str
    active: NDArray[np.bool_]
    operands: list[tuple[str | None, Array]]
    scalars: dict[str, Array]
    registers: list[Array]
    strides: dict[int, Array]


def lower_call(plan: Plan, step: Compute) -> Call:
    """Arguments of one compute step for every tile of the plan.

    Raises UnsupportedError if a scalar is outside what the kernel can do.
    """
    shapes = [_Operand.of(plan, step, position) for position in range(len(step.operands))]
    scalars, offsets, active = _LOWERINGS[step.kernel](plan, step, shapes)
    contract = KERNELS[step.kernel].contract
    values = {
        name: np.broadcast_to(np.asarray(value, dtype=np.int64), active.shape)
        for name, value in scalars.items()
    }
    for scalar in contract.scalars:
        used = values[scalar.name][active]
        if len(used):
            try:
                scalar.check(int(used.min()))
                scalar.check(int(used.max()))
            except UnsupportedError as error:
                error.where = step.name
                raise
    packed = dict(values)
    for low, high, shift in contract.packed:
        packed[low] = packed[low] + (packed.pop(high) << shift)
    registers = [packed[scalar.name] for scalar in contract.scalars if scalar.name in packed]
    operands = [
        (name, shape.offset + offsets.get(position, 0))
        for position, (name, shape) in enumerate(zip(step.operands, shapes, strict=True))
    ]
    strides = {
        position: shape.bytes * plan.buffers[name].slots
        for position, (name, shape) in enumerate(zip(step.operands, shapes, strict=True))
        if name is not None and plan.buffers[name].iterations > 1
    }
    return Call(step.kernel, active, operands, values, registers, strides)


@dataclass
class _Operand:
    """An operand's shard, or the window of it that a call means, per tile.

    Attributes:
        row, rows, padded_rows: first row, rows with data, rows in memory.
        column, columns, padded_columns: the same for the columns of the window.
        pitch: columns in memory of the whole shard.
        offset: bytes from the beginning of the buffer to the window.
        bytes: of the whole shard.
    """

    row: Array
    rows: Array
    padded_rows: Array
    column: Array
    columns: Array
    padded_columns: Array
    pitch: Array
    offset: Array
    bytes: Array

    @staticmethod
    def of(plan: Plan, step: Compute, position: int) -> _Operand:
        zero = np.zeros(plan.tiles, dtype=np.int64)
        name = step.operands[position]
        if name is None:
            return _Operand(*(zero for _ in range(9)))
        layout = plan.buffers[name].layout
        fields = {}
        for field in ("row", "rows", "padded_rows", "column", "columns", "padded_columns"):
            fields[field] = zero.copy()
            fields[field][: layout.tiles] = layout.shards[field]
        size = zero.copy()
        size[: layout.tiles] = layout.bytes
        pitch, offset = fields["padded_columns"], zero
        if position in step.windows:
            first, count = step.windows[position]
            units = layout.units
            outer = first // units.columns
            line = 1 if units.by_rows else fields["padded_rows"] // units.rows
            fields["padded_columns"] = np.clip(pitch - first, 0, count)
            fields["columns"] = np.clip(fields["columns"] - first, 0, count)
            fields["column"] = fields["column"] + first
            offset = np.where(fields["padded_columns"] > 0, outer * line * layout.record_bytes, 0)
        return _Operand(
            fields["row"],
            fields["rows"],
            fields["padded_rows"],
            fields["column"],
            fields["columns"],
            fields["padded_columns"],
            pitch,
            offset,
            size,
        )

    @property
    def panels(self) -> Array:
        return self.padded_columns // MICRO

    @property
    def there(self) -> NDArray[np.bool_]:
        return (self.padded_rows > 0) & (self.padded_columns > 0)


Scalars = dict[str, Array | int]
Lowered = tuple[Scalars, dict[int, Array], NDArray[np.bool_]]
"""Scalars by name, offsets beyond the windows by operand, active tiles."""


def _gemm(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    c, a, w = shapes[:3]
    name = step.operands[2]
    assert name is not None
    order = plan.buffers[name].layout.order
    offset = np.zeros(plan.tiles, dtype=np.int64)
    active = c.there & a.there & w.there
    inner = a.padded_columns // MICRO
    if order in ("b16", "b8"):
        group = plan.buffers[name].layout.units.rows
        inner = a.padded_columns // group
        inner_stride: Array | int = BLOCK_BYTES
        column_stride: Array | int = w.padded_rows // group * BLOCK_BYTES
        columns = w.panels
        # One chunk of an operand that lies whole: its first inner group says where it begins.
        offset = np.where(active, (a.column - w.row) // group * BLOCK_BYTES, 0)
    elif order == "a16":
        inner_stride, column_stride, columns = (
            w.padded_rows * RECORD_BYTES,
            BLOCK_BYTES,
            w.padded_rows // MICRO,
        )
    else:
        inner_stride, column_stride, columns = w.pitch * RECORD_BYTES, BLOCK_BYTES, w.panels
    scalars: Scalars = {
        "rows": c.padded_rows,
        "inner": inner,
        "columns": columns,
        "w_inner_stride": inner_stride,
        "w_column_stride": column_stride,
    }
    return scalars, {2: offset}, active


def _gemm_listed(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    c, a, others = shapes[0], shapes[1], shapes[5]
    scalars: Scalars = {"rows": c.padded_rows, "inner": a.padded_columns // MICRO, "columns": others.panels}
    return scalars, {}, c.there & a.there & others.there


def _root(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    out, own = shapes[:2]
    first = (out.column - own.column) // MICRO
    record = plan.buffers[step.output].layout.record_bytes
    offset = (first * own.padded_rows + out.row - own.row) * record
    scalars: Scalars = {
        "rows": out.padded_rows,
        "panels": out.panels,
        "own_stride": own.padded_rows * record,
        "remote_count": int(step.parameters["remote"]),
        "remote_stride": out.bytes,
    }
    return scalars, {1: np.where(out.there, offset, 0)}, out.there


def _row_sums(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    x = shapes[1]
    return {"rows": x.padded_rows, "panels": x.panels, "x_stride": x.padded_rows * RECORD_BYTES}, {}, x.there


def _normalise(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    x = shapes[1]
    scalars: Scalars = {
        "rows": x.padded_rows,
        "panels": x.panels,
        "parts": int(step.parameters["parts"]),
        "inverse": float_bits(1 / step.parameters["columns"]) if "columns" in step.parameters else 0,
        "epsilon": float_bits(float(step.parameters["epsilon"])),
    }
    return scalars, {}, x.there


def _softmax(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    p, s, state = shapes
    scalars: Scalars = {"rows": s.padded_rows, "panels": s.panels, "valid": s.columns}
    if "causal" in step.kernel:
        name = step.operands[1]
        assert name is not None
        layout = plan.buffers[name].layout
        queries, keys = layout.row.segment, layout.column.segment
        scalars["diagonal"] = s.row % queries - s.column % keys + keys - queries
    return scalars, {}, p.there & state.there


def _scale_rows(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    x = shapes[1]
    return {"rows": x.padded_rows, "panels": x.panels}, {}, x.there


def _scale(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    x = shapes[1]
    return {"words": x.bytes // 8, "factor": float_bits(float(step.parameters["factor"]))}, {}, x.there


def _halves(step: Compute, out: _Operand) -> Array:
    """Half panels without those at the end of a head that hold nothing but padding."""
    ends = (out.column + out.padded_columns) % int(step.parameters["width"]) == 0
    return 2 * out.panels - np.where(ends, int(step.parameters["spare"]), 0)


def _merge(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    out, partial, state = shapes
    scalars: Scalars = {
        "rows": out.padded_rows,
        "halves": _halves(step, out),
        "parts": int(step.parameters["parts"]),
        "panel_stride": partial.padded_rows * RECORD_BYTES,
        "part_stride": partial.bytes,
        "state_stride": state.bytes,
    }
    return scalars, {}, out.there


def _merge_own(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    out, own, state = shapes[:3]
    first = np.where(out.there, out.row - own.row, 0)
    panel = np.where(out.there, (out.column - own.column) // MICRO, 0)
    scalars: Scalars = {
        "rows": out.padded_rows,
        "halves": _halves(step, out),
        "own_stride": own.padded_rows * RECORD_BYTES,
        "remote_count": int(step.parameters["remote"]),
    }
    name = step.operands[2]
    assert name is not None
    size = plan.buffers[name].layout.record_bytes
    offset = (panel * own.padded_rows + first) * RECORD_BYTES
    return scalars, {1: offset, 2: first * size}, out.there & state.there


def _transpose(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    x = shapes[1]
    scalars: Scalars = {
        "row_tiles": x.padded_rows // MICRO,
        "column_tiles": x.panels,
        "x_stride": x.padded_rows * RECORD_BYTES,
        "out_stride": x.padded_columns * RECORD_BYTES,
    }
    return scalars, {}, x.there


def _permute(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    out = shapes[0]
    return {"count": out.padded_rows * out.padded_columns}, {}, out.there


def _half_sums(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    """Of the last half panel."""
    state, x = shapes
    offset = (x.panels - 1) * x.padded_rows * RECORD_BYTES + RECORD_BYTES // 2
    return {"rows": x.padded_rows}, {1: np.where(x.there, offset, 0)}, state.there & x.there


def _fill(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    """Zeros behind the rows with data, in one panel; or ones in a record of a transposed operand."""
    x = shapes[0]
    if "block" in step.parameters:
        block, column = int(step.parameters["block"]), int(step.parameters["column"])
        offset = (block * x.padded_columns + column) * RECORD_BYTES
        active = (x.rows > block * MICRO) & (x.padded_columns > column)
        return {"words": RECORD_BYTES // 8, "low": ONES, "high": ONES}, {0: offset}, active
    panel = int(step.parameters["panel"])
    offset = (panel * x.padded_rows + x.rows) * RECORD_BYTES
    active = (x.padded_rows > x.rows) & (x.panels > panel)
    words = (x.padded_rows - x.rows) * (RECORD_BYTES // 8)
    return {"words": words, "low": 0, "high": 0}, {0: offset}, active


def _copy(plan: Plan, step: Compute, shapes: list[_Operand]) -> Lowered:
    x = shapes[1]
    return {"words": x.bytes // 8}, {}, x.there


def float_bits(value: float) -> int:
    """The bits of a float32."""
    return int(np.float32(value).view(np.uint32))


_LOWERINGS: dict[str, Callable[[Plan, Compute, list[_Operand]], Lowered]] = {
    **dict.fromkeys((name for name in KERNELS if name.startswith("gemm")), _gemm),
    **dict.fromkeys((name for name in KERNELS if name.startswith("gemm_listed")), _gemm_listed),
    **{name: _root for name in KERNELS if name.startswith("root")},
    "row_sums_f16": _row_sums,
    "normalise_f16": _normalise,
    "l2_normalise_f16": _normalise,
    "softmax_f16": _softmax,
    "softmax_unsummed_f16": _softmax,
    "softmax_causal_f16": _softmax,
    "half_sums_f16": _half_sums,
    "scale_rows_f16": _scale_rows,
    "scale_f16": _scale,
    "attention_merge_f16": _merge,
    "attention_merge_own_f16": _merge_own,
    "transpose_f16": _transpose,
    "permute_u16": _permute,
    "fill_u64": _fill,
    "copy_u64": _copy,
}
