"""Layer normalisation over the last axis, with a scale and an offset per column."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.tensor_type import TensorType

from .operator import Array, Operator
from .parameter import SMALLEST_EPSILON, Attributes, Parameter, number
from .rounding import HALF_STEP, operand_error
from .tolerance import HALF_ULP, Tolerance

SINGLE_ULP = 2.0**-24
"""Largest relative error of rounding a number to float32."""


def layer_norm(x: Any, gamma: Any, beta: Any, *, epsilon: float = 1e-5) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance over the last axis.

    x [..., C], gamma [C], beta [C] -> [..., C]. The variance is that of the row itself (divided by C).
    On arrays: the float32 result. On traced values: a traced value.
    """
    return OPERATOR(x, gamma, beta, epsilon=epsilon)


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """The result has the shape of x; gamma and beta have one element per column."""
    x, gamma, beta = operands
    if x.rank == 0:
        raise OPERATOR.mismatch("x needs at least one axis", *operands)
    for name, operand in (("gamma", gamma), ("beta", beta)):
        if operand.shape != x.shape[-1:]:
            raise OPERATOR.mismatch(f"{name} should have the shape [{x.shape[-1]}]", *operands)
    return x


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """Evaluated in float64 and rounded once to float32."""
    x, gamma, beta = (operand.astype(np.float64) for operand in operands)
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    normalised = centred / np.sqrt(variance + number(attributes, "epsilon"))
    result: Array = (normalised * gamma + beta).astype(np.float32)
    return result


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """Operands rounded to float16, mean and variance in float32, then float16 steps.

    The deviation of a row is the length of its centred numbers, so it errs by no more than the root mean
    square of their errors; that, and the smallest it can become, bound the normalised number. Its scale,
    its offset and itself are then rounded to float16 once each (relative to |x|, |mean| and the number),
    gamma, the product, beta and the sum once more. A variance taken as E[x^2] - mean^2 in float32 errs by
    some 2^-24 of E[x^2].
    """
    x, gamma, beta = (operand.astype(np.float64) for operand in operands)
    columns = x.shape[-1]
    mean = np.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    deviation = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + number(attributes, "epsilon"))
    squares = np.mean(x**2, axis=-1, keepdims=True)

    rounded = operand_error(x)
    centred_error = rounded + np.mean(rounded, axis=-1, keepdims=True)
    deviation_error = np.sqrt(np.mean(rounded**2, axis=-1, keepdims=True))
    deviation_error += (4 + np.sqrt(columns)) * SINGLE_ULP * squares / deviation
    smallest = np.maximum(deviation - deviation_error, np.sqrt(number(attributes, "epsilon")))

    normalised = np.abs(centred) / deviation
    normalised_error = (centred_error + normalised * deviation_error) / smallest
    normalised_error += HALF_ULP * ((np.abs(x) + np.abs(mean)) / smallest + normalised) + HALF_STEP
    scaled = np.abs(gamma) * normalised
    bound = np.abs(gamma) * normalised_error + normalised * operand_error(gamma) + operand_error(beta)
    bound += HALF_ULP * (2 * scaled + np.abs(beta)) + 2 * HALF_STEP
    return Tolerance(bound, "float32 statistics, then float16 steps")


OPERATOR = Operator(
    name="layer_norm",
    operands=("x", "gamma", "beta"),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
    parameters=(Parameter("epsilon", 1e-5, minimum=SMALLEST_EPSILON),),
)
