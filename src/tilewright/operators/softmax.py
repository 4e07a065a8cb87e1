"""Softmax over the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.tensor_type import TensorType

from .operator import Array, Operator
from .parameter import Attributes
from .rounding import HALF_STEP, Doubles, operand_error
from .tolerance import HALF_ULP, Tolerance

EXPONENTIAL_ERROR = 2 * HALF_ULP
"""Relative error of an exponential in float16: one unit in the last place (assumed: the machine's results
are said to be that good, and were not measured)."""


def softmax(x: Any) -> Any:
    """exp(x) / sum of exp(x) over the last axis, for x [..., C].

    On arrays: the float32 result. On traced values: a traced value.
    """
    return OPERATOR(x)


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """The result has the operand's shape."""
    (x,) = operands
    if x.rank == 0:
        raise OPERATOR.mismatch("x needs at least one axis", x)
    return x


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """Evaluated in float64 and rounded once to float32."""
    result: Array = np.exp(log_softmax(operands[0].astype(np.float64))).astype(np.float32)
    return result


def log_softmax(scores: Doubles) -> Doubles:
    """Logarithms of the softmax over the last axis; NaN where a row is minus infinity throughout."""
    with np.errstate(invalid="ignore"):
        shifted = scores - np.max(scores, axis=-1, keepdims=True)
        result: Doubles = shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))
    return result


def rounded_score_error(scores: Doubles) -> Doubles:
    """Error of scores through the exponential: their distance from the row's largest, rounded to float16,
    and the exponential itself, as an error of the exponent. 0 for scores of minus infinity."""
    with np.errstate(invalid="ignore"):
        error = HALF_ULP * np.abs(scores - np.max(scores, axis=-1, keepdims=True)) + EXPONENTIAL_ERROR
    return np.where(np.isfinite(scores), error, 0.0)


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """Scores rounded to float16, so are their distances from the largest, exponentials and results.

    With d an error of the scores, a result is multiplied by at most exp(d + log sum p exp(d)), the sum over
    the row's results p. Exponentials below float16's normal range, at most all of them, lose 2^-25 each,
    beside a largest one of 1. The sum is float32.
    """
    x = operands[0].astype(np.float64)
    logarithm = log_softmax(x)
    result = np.exp(logarithm)
    error = np.where(np.isfinite(x), operand_error(x), 0.0) + rounded_score_error(x)
    with np.errstate(invalid="ignore"):
        grown = np.exp(logarithm + error)
        common = np.log(np.sum(grown, axis=-1, keepdims=True))
        bound = np.exp(logarithm + error + common) - result
    bound += (2 * HALF_ULP + x.shape[-1] * HALF_STEP) * result + 3 * HALF_STEP
    return Tolerance(bound, "scores, exponentials and results rounded to float16")


OPERATOR = Operator(
    name="softmax",
    operands=("x",),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
)
