"""Matrix product: a[..., M, K] @ b[..., K, N] -> [..., M, N]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.tensor_type import TensorType

from .broadcasting import broadcast
from .operator import Array, Operator
from .parameter import Attributes, Parameter, flag
from .rounding import AMP_INNER, HALF_STEP, largest_partial_sums, product_factor
from .tolerance import Tolerance


def matmul(a: Any, b: Any, *, transpose_b: bool = False) -> Any:
    """Matrix product of `a` [..., M, K] and `b` [..., K, N]: [..., M, N].

    With `transpose_b`, `b` is [..., N, K], as weights of PyTorch's linear layers and keys of attention are.
    The axes before the last two are batch axes and broadcast as NumPy's.

    On arrays: the float32 result. On traced values: a traced value. Raises ShapeError when the inner
    extents differ, batch axes do not broadcast, or either has too few axes.
    """
    return OPERATOR(a, b, transpose_b=transpose_b)


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """[..., M, K] and [..., K, N] (or [..., N, K]) give [..., M, N]."""
    a, b = operands
    for name, operand in (("a", a), ("b", b)):
        if operand.rank < 2:
            raise OPERATOR.mismatch(f"{name} needs at least two axes", a, b)
    inner, columns = reversed(b.shape[-2:]) if flag(attributes, "transpose_b") else b.shape[-2:]
    if a.shape[-1] != inner:
        raise OPERATOR.mismatch(f"inner extents {a.shape[-1]} and {inner} differ", a, b)
    batch = broadcast(OPERATOR, a.shape[:-2], b.shape[:-2], operands, after=2)
    return TensorType((*batch, a.shape[-2], columns), a.dtype)


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """The product in float32."""
    a, b = operands
    product: Array = np.matmul(a, b.swapaxes(-1, -2) if flag(attributes, "transpose_b") else b)
    return product


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """c * 2^-11 * sqrt(panels + splits) * largest partial sum.

    Operands and every partial sum are rounded to float16. The largest partial sum is taken over every
    prefix of the inner extent and all of the result, which also covers operands whose products cancel.
    Operands below float16's normal range lose up to 2^-25 each, partial sums too.
    """
    a, b = (operand.astype(np.float64) for operand in operands)
    if flag(attributes, "transpose_b"):
        b = b.swapaxes(-1, -2)
    inner = a.shape[-1]
    panels = math.ceil(inner / AMP_INNER)
    largest = float(np.max(largest_partial_sums(a, b)))
    smallest = HALF_STEP * (
        np.sum(np.abs(a), axis=-1, keepdims=True)
        + np.sum(np.abs(b), axis=-2, keepdims=True)
        + panels
        + splits
    )
    bound = product_factor(inner, splits) * largest + smallest
    return Tolerance(bound, f"float16 partial sums over {panels} panels and {splits} splits")


OPERATOR = Operator(
    name="matmul",
    operands=("a", "b"),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
    parameters=(Parameter("transpose_b", False),),
)
