"""Elementwise sum with NumPy's broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.tensor_type import TensorType

from .broadcasting import broadcast
from .operator import Array, Operator
from .parameter import Attributes
from .tolerance import HALF_ULP, Tolerance


def add(a: Any, b: Any) -> Any:
    """Elementwise `a + b`, axes aligned at the end, extents of 1 repeated.

    On arrays: the float32 result. On traced values: a traced value. Raises ShapeError when two extents
    differ and neither is 1.
    """
    return OPERATOR(a, b)


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """NumPy's broadcast of both shapes."""
    a, b = operands
    return TensorType(broadcast(OPERATOR, a.shape, b.shape, operands), a.dtype)


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """The sum in float32."""
    a, b = operands
    total: Array = np.add(a, b)
    return total


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """Both operands and the sum are each rounded once to float16: |a| + |b| + |a + b| half-ulps.

    Results below float16's normal range lose at most half its smallest step, 2^-25, three times.
    """
    a, b = (operand.astype(np.float64) for operand in operands)
    bound = HALF_ULP * (np.abs(a) + np.abs(b) + np.abs(a + b)) * (1 + HALF_ULP) + 3 * 2.0**-25
    return Tolerance(bound, "operands and sum each rounded once to float16")


OPERATOR = Operator(
    name="add",
    operands=("a", "b"),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
)
