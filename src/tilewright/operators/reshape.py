"""The same elements in the same order, in another shape."""

from __future__ import annotations

import math
from typing import Any

from tilewright.tensor_type import TensorType

from .operator import Array, Operator
from .parameter import Attributes, Parameter, integers
from .rounding import moved_error
from .tolerance import Tolerance


def reshape(x: Any, *, shape: int | tuple[int, ...] | list[int]) -> Any:
    """The elements of `x`, last axis fastest, in `shape`; one extent may be -1 and follows from the others.

    On arrays: the float32 result, a copy. On traced values: a traced value.
    """
    return OPERATOR(x, shape=(shape,) if isinstance(shape, int) else shape)


def settle(attributes: Attributes, /, *operands: TensorType) -> dict[str, tuple[int, ...]]:
    """The shape without -1."""
    (x,) = operands
    shape = integers(attributes, "shape")
    if any(extent < 1 and extent != -1 for extent in shape):
        raise OPERATOR.mismatch(f"shape {list(shape)} has an extent that is not at least 1 or -1", x)
    known = math.prod(extent for extent in shape if extent != -1)
    if shape.count(-1) > 1 or x.elements % known or (-1 not in shape and x.elements != known):
        raise OPERATOR.mismatch(f"{x.elements} elements cannot have the shape {list(shape)}", x)
    return {"shape": tuple(x.elements // known if extent == -1 else extent for extent in shape)}


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """The shape asked for."""
    return TensorType(integers(attributes, "shape"), operands[0].dtype)


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """A copy in the shape."""
    return operands[0].reshape(integers(attributes, "shape")).copy()


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """Nothing but the operand's rounding to float16; exact when it is a float16 number already."""
    moved = moved_error(operands[0]).reshape(integers(attributes, "shape"))
    return Tolerance(moved, "moved, rounded to float16 once")


OPERATOR = Operator(
    name="reshape",
    operands=("x",),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
    parameters=(Parameter("shape", (), required=True),),
    settle_rule=settle,
)
