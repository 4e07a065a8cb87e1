"""Axes counted from the front or, as negative numbers, from the back."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor_type import TensorType

from .operator import Operator


def axis_from_front(operator: Operator, axis: int, rank: int, operands: Sequence[TensorType]) -> int:
    """`axis` of a tensor of `rank` axes, counted from 0. Raises ShapeError when there is no such axis."""
    if not -rank <= axis < rank:
        raise operator.mismatch(f"there is no axis {axis}", *operands)
    return axis % rank
