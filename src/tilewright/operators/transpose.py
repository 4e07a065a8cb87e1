"""Axes in another order."""

from __future__ import annotations

from typing import Any

from tilewright.tensor_type import TensorType

from .axes import axis_from_front
from .operator import Array, Operator
from .parameter import Attributes, Parameter, integers
from .rounding import moved_error
from .tolerance import Tolerance


def transpose(x: Any, *, permutation: tuple[int, ...] | list[int] = ()) -> Any:
    """Axis i of the result is axis `permutation[i]` of `x`; by default the axes in reverse.

    On arrays: the float32 result, a copy. On traced values: a traced value.
    """
    return OPERATOR(x, permutation=permutation)


def settle(attributes: Attributes, /, *operands: TensorType) -> dict[str, tuple[int, ...]]:
    """The permutation in full, counted from 0."""
    (x,) = operands
    given = integers(attributes, "permutation") or tuple(reversed(range(x.rank)))
    permutation = tuple(axis_from_front(OPERATOR, axis, x.rank, operands) for axis in given)
    if sorted(permutation) != list(range(x.rank)):
        raise OPERATOR.mismatch(f"{list(given)} is no order of {x.rank} axes", x)
    return {"permutation": permutation}


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """The extents in the new order."""
    (x,) = operands
    return TensorType(tuple(x.shape[axis] for axis in integers(attributes, "permutation")), x.dtype)


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """A copy with the axes in the new order."""
    return operands[0].transpose(integers(attributes, "permutation")).copy()


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """Nothing but the operand's rounding to float16; exact when it is a float16 number already."""
    moved = moved_error(operands[0]).transpose(integers(attributes, "permutation"))
    return Tolerance(moved, "moved, rounded to float16 once")


OPERATOR = Operator(
    name="transpose",
    operands=("x",),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
    parameters=(Parameter("permutation", ()),),
    settle_rule=settle,
)
