"""NumPy's broadcasting, with errors that name the operator, the axis and all operands."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor_type import TensorType

from .operator import Operator


def broadcast(
    operator: Operator,
    left: tuple[int, ...],
    right: tuple[int, ...],
    operands: Sequence[TensorType],
    *,
    after: int = 0,
) -> tuple[int, ...]:
    """Shape of both together, axes aligned at the end, extents of 1 repeated.

    `after` is the number of axes of the operands that follow these, so that the error counts axes of the
    operand. Raises ShapeError when two extents differ and neither is 1.
    """
    rank = max(len(left), len(right))
    left = (1,) * (rank - len(left)) + left
    right = (1,) * (rank - len(right)) + right
    for axis, (x, y) in enumerate(zip(left, right, strict=True)):
        if x != y and 1 not in (x, y):
            reason = f"extents {x} and {y} of axis {axis - rank - after} do not broadcast"
            raise operator.mismatch(reason, *operands)
    return tuple(map(max, left, right))
