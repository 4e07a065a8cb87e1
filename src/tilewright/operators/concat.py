"""Tensors one after the other along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.tensor_type import TensorType

from .axes import axis_from_front
from .operator import Array, Operator
from .parameter import Attributes, Parameter, integer
from .rounding import moved_error
from .tolerance import Tolerance


def concat(*parts: Any, axis: int) -> Any:
    """All `parts`, in order, along `axis` (negative: counted from the end); other extents are equal.

    On arrays: the float32 result. On traced values: a traced value.
    """
    return OPERATOR(*parts, axis=axis)


def settle(attributes: Attributes, /, *operands: TensorType) -> dict[str, int]:
    """The axis counted from the front."""
    return {"axis": axis_from_front(OPERATOR, integer(attributes, "axis"), operands[0].rank, operands)}


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """The extents along the axis add up."""
    axis = integer(attributes, "axis")
    first = operands[0].shape
    for index, part in enumerate(operands):
        if part.rank != len(first):
            raise OPERATOR.mismatch(f"part{index} has another number of axes than part0", *operands)
        for other, (x, y) in enumerate(zip(first, part.shape, strict=True)):
            if other != axis and x != y:
                raise OPERATOR.mismatch(f"extents {x} and {y} of axis {other} differ", *operands)
    total = sum(part.shape[axis] for part in operands)
    return TensorType((*first[:axis], total, *first[axis + 1 :]), operands[0].dtype)


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """The parts in one array."""
    return np.concatenate(operands, axis=integer(attributes, "axis"))


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """Nothing but the operands' rounding to float16; exact when they are float16 numbers already."""
    moved = np.concatenate([moved_error(part) for part in operands], axis=integer(attributes, "axis"))
    return Tolerance(moved, "moved, rounded to float16 once")


OPERATOR = Operator(
    name="concat",
    operands=("part",),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
    parameters=(Parameter("axis", 0, required=True),),
    variadic=True,
    settle_rule=settle,
)
