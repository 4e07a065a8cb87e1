"""Matrix product: a[..., M, K] @ b[K, N] -> [..., M, N]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.tensor_type import TensorType

from .operator import Array, Operator
from .parameter import Attributes
from .tolerance import HALF_ULP, Tolerance

AMP_INNER = 16
"""Inner elements that one panel of the matrix unit sums in float32 before it rounds to float16 (derived)."""

ROUNDING_FACTOR = 4.0
"""The constant c of the tolerance: how many standard deviations of the random walk of roundings to admit.

Guessed from the statistics of rounding; an emulation of float16 partial sums stays under half of it
(tests/unit/operators/test_matmul.py).
"""


def matmul(a: Any, b: Any) -> Any:
    """Matrix product of `a` [..., M, K] and `b` [K, N]: [..., M, N].

    On arrays: the float32 result. On traced values: a traced value. Raises ShapeError when the inner
    extents differ or either has too few axes.
    """
    return OPERATOR(a, b)


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """[..., M, K] and [K, N] give [..., M, N]."""
    a, b = operands
    if a.rank < 2:
        raise OPERATOR.mismatch("a needs at least two axes", a, b)
    if b.rank != 2:
        raise OPERATOR.mismatch("b needs exactly two axes", a, b)
    if a.shape[-1] != b.shape[0]:
        raise OPERATOR.mismatch(f"inner extents {a.shape[-1]} and {b.shape[0]} differ", a, b)
    return TensorType((*a.shape[:-1], b.shape[1]), a.dtype)


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """The product in float32."""
    a, b = operands
    product: Array = np.matmul(a, b)
    return product


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """c * 2^-11 * sqrt(panels + splits) * largest partial sum.

    Operands and every partial sum are rounded to float16; there is one rounding per panel of 16 inner
    elements and one per partial result of another tile. Roundings are independent, so their sum grows as
    the square root of their number. The largest partial sum is taken over every prefix of the inner
    extent, which also covers operands whose products cancel.
    """
    a, b = (operand.astype(np.float64) for operand in operands)
    inner = a.shape[-1]
    running = np.zeros((*a.shape[:-1], b.shape[1]))
    largest = 0.0
    for k in range(inner):
        running += a[..., k : k + 1] * b[k]
        largest = max(largest, float(np.max(np.abs(running))))
    panels = math.ceil(inner / AMP_INNER)
    bound = ROUNDING_FACTOR * HALF_ULP * math.sqrt(panels + splits) * largest
    return Tolerance(bound, f"float16 partial sums over {panels} panels and {splits} splits")


OPERATOR = Operator(
    name="matmul",
    operands=("a", "b"),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
)
