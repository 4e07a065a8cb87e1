"""Operations that only say where elements stand: reshape, transpose, slice, concat, broadcasting.

What changes nothing in the matrix a buffer holds is a view of the buffer. Everything else is a list of
element numbers that is rearranged when somebody needs it; views of views are one rearrangement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ...graph import Operation, Value
from ...operators.parameter import integer, integers
from ...tensor_type import TensorType
from .groups import Groups, padded_columns
from .layout import MICRO, Axis, Layout, Level, matrix_view, spread
from .rearrange import real_columns, rearrange
from .steps import Held, Report, WeightUse

if TYPE_CHECKING:
    from .planner import Planner

VIEWS = ("reshape", "transpose", "slice", "concat")

Array = NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """Elements of other values, one after another in the order of `bases`.

    Attributes:
        index: element number for each element of the view, of the view's shape.
    """

    bases: tuple[Value, ...]
    index: Array


def plan_view(planner: Planner, operation: Operation) -> None:
    """Record the view; nothing moves yet unless its operands may change."""
    operands = operation.operands
    if _same_matrix(operation):
        held = planner.lies_or_view(operands[0])
        if isinstance(held, Held):
            planner.leave(operation.result, held)
            planner.keep(operands[0], operation.result)
            return
    window = _window(planner, operation)
    if window is not None:
        planner.leave(operation.result, window)
        planner.keep(operands[0], operation.result)
        return
    view = _compose(planner, operands, _numbers(operation))
    planner.leave_view(operation.result, view)


def _same_matrix(operation: Operation) -> bool:
    x, result = operation.operands[0], operation.result
    return operation.name == "reshape" and matrix_view(x.type.shape) == matrix_view(result.type.shape)


def _window(planner: Planner, operation: Operation) -> Held | None:
    """A slice of whole records of the last axis, as columns of the buffer."""
    if operation.name != "slice":
        return None
    x = operation.operands[0]
    rank = x.type.rank
    axis, start, stop = (integer(operation.attributes, key) for key in ("axis", "start", "stop"))
    held = planner.lies_or_view(x)
    if axis % rank != rank - 1 or not isinstance(held, Held) or held.groups is not None:
        return None
    start, stop, _ = slice(start, stop).indices(x.type.shape[-1])
    if start % MICRO or (stop % MICRO and stop != x.type.shape[-1]):
        return None
    if planner.builder.layout(held.buffer).order != "a16":
        return None
    return Held(held.buffer, held.column + start, stop - start)


def _numbers(operation: Operation) -> Array:
    """Element numbers of the result among the operands' elements, one operand after another."""
    arrays, first = [], 0
    for value in operation.operands:
        arrays.append(first + _counted(value))
        first += value.type.elements
    attributes = operation.attributes
    if operation.name == "reshape":
        return arrays[0].reshape(operation.result.type.shape)
    if operation.name == "transpose":
        return arrays[0].transpose(integers(attributes, "permutation"))
    axis = integer(attributes, "axis")
    if operation.name == "concat":
        return np.concatenate(arrays, axis=axis)
    cut: list[slice] = [slice(None)] * arrays[0].ndim
    cut[axis] = slice(integer(attributes, "start"), integer(attributes, "stop"))
    return arrays[0][tuple(cut)]


def _counted(value: Value) -> Array:
    """The element numbers of a value, of its shape."""
    return np.arange(value.type.elements, dtype=np.int64).reshape(value.type.shape)


def _compose(planner: Planner, operands: tuple[Value, ...], numbers: Array) -> View:
    """A view of views, in terms of values that lie somewhere."""
    bases: list[Value] = []
    first: dict[int, int] = {}
    size = 0
    renumber = []
    for value in operands:
        known = planner.lies_or_view(value)
        inner = known.bases if isinstance(known, View) else (value,)
        local = []
        for base in inner:
            if base.id not in first:
                first[base.id] = size
                bases.append(base)
                size += base.type.elements
            local.append(first[base.id])
        if isinstance(known, View):
            starts = np.cumsum([0, *(base.type.elements for base in inner)])
            flat = known.index.reshape(-1)
            owner = np.searchsorted(starts, flat, side="right") - 1
            renumber.append(flat - starts[owner] + np.array(local)[owner])
        else:
            renumber.append(_counted(value).reshape(-1) + local[0])
    return View(tuple(bases), np.concatenate(renumber)[numbers])


def materialise(planner: Planner, value: Value, view: View, groups: Groups | None) -> Held:
    """Bring a view into a buffer of its own, spread over all tiles."""
    rows, columns = matrix_view(value.type.shape)
    index = np.full((rows, padded_columns(columns, groups)), -1, dtype=np.int64)
    index[:, real_columns(index.shape[1], groups)] = view.index.reshape(rows, columns)
    layout = spread_widely(rows, index.shape[1], planner.builder.tiles)
    sources = [planner.needed(base, planner.groups_as_held(base)) for base in view.bases]
    buffer = rearrange(planner.builder, sources, index, layout, value.name, value.name)
    planner.builder.report(Report(value.name, f"rearranged into {layout.describe()}", {}, 0))
    return Held(buffer, 0, index.shape[1], groups)


def spread_widely(rows: int, columns: int, tiles: int) -> Layout:
    """As `spread`, with columns cut too where the rows alone would leave most tiles idle."""
    groups = ceil_div(columns, MICRO)
    across = min(groups, tiles // rows) if rows < tiles else 1
    if across == 1:
        return spread(rows, columns, tiles)
    return Layout(
        "a16",
        Axis(rows, 1, (Level(rows, across),)),
        Axis(columns, MICRO, (Level(across, 1),)),
        rows * across,
    )


def regrouped(planner: Planner, value: Value, groups: Groups | None) -> Held:
    """A value with its columns padded in another way."""
    return materialise(planner, value, View((value,), _counted(value)), groups)


def stored_constant(planner: Planner, value: Value, groups: Groups | None) -> Held:
    """A constant that is an operand like any other: spread over all tiles."""
    rows, columns = matrix_view(value.type.shape)
    iterations = planner.iterations_of(value)
    use = WeightUse(
        (planner.constant(value),),
        (rows, columns),
        column_groups=(groups,),
        broadcast=value.type.shape,
        iterations=iterations,
    )
    layout = spread(rows, padded_columns(columns, groups), planner.builder.tiles)
    buffer = planner.builder.weight(value.name, use, layout, value.name)
    if iterations > 1:
        buffer = planner.builder.current(buffer, value.name)
    return planner.builder.held(buffer, groups=groups)


def stacked(planner: Planner, values: tuple[Value, ...], operation: Operation) -> Value:
    """Vectors of one length as the rows of a value of its own."""
    shape = (len(values), values[0].type.elements)
    name = f"{operation.result.name}.{values[0].name}"
    rows = Value(planner.fresh_id(), TensorType(shape, values[0].type.dtype), name)
    numbers = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    planner.leave_view(rows, _compose(planner, values, numbers))
    return rows


def broadcast(planner: Planner, value: Value, operation: Operation) -> Value:
    """A value as the operation's result shape has it."""
    return _derived(planner, value, operation.result.type.shape, operation)


def batch_operands(planner: Planner, operation: Operation) -> tuple[Value, Value]:
    """The operands of a product with equal batch axes."""
    a, b = operation.operands
    if len(b.type.shape) == 2:
        return a, b
    batch = operation.result.type.shape[:-2]
    return (
        _derived(planner, a, (*batch, *a.type.shape[-2:]), operation),
        _derived(planner, b, (*batch, *b.type.shape[-2:]), operation),
    )


def attention_operands(planner: Planner, operation: Operation) -> tuple[Value, ...]:
    """Queries, keys and values of an attention with equal batch axes, and its mask with one row or as many
    as there are sequences.
    """
    q, k, v = operation.operands[:3]
    batch = operation.result.type.shape[:-2]
    operands = tuple(
        _derived(planner, value, (*batch, *value.type.shape[-2:]), operation) for value in (q, k, v)
    )
    if len(operation.operands) == 3:
        return operands
    mask = operation.operands[3]
    shared = all(extent == 1 for extent in mask.type.shape[:-1])
    shape = (k.type.shape[-2],) if shared else (*batch, k.type.shape[-2])
    return (*operands, _derived(planner, mask, shape, operation))


def _derived(planner: Planner, value: Value, shape: tuple[int, ...], operation: Operation) -> Value:
    """`value` broadcast to `shape`, as a value of its own."""
    if value.type.shape == shape:
        return value
    # Axes of 1 that the shape has not are dropped.
    kept = value.type.shape[max(0, value.type.rank - len(shape)) :]
    index = np.broadcast_to(_counted(value).reshape(kept), shape)
    name = f"{operation.result.name}.{value.name}"
    derived = Value(planner.fresh_id(), TensorType(shape, value.type.dtype), name)
    if matrix_view(value.type.shape) == matrix_view(shape):
        planner.alias(derived, value)
        return derived
    planner.leave_view(derived, _compose(planner, (value,), index))
    return derived
