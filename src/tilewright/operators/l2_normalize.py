"""Division of every row by its length."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.tensor_type import TensorType

from .operator import Array, Operator
from .parameter import SMALLEST_EPSILON, Attributes, Parameter, number
from .rounding import HALF_STEP, operand_error
from .tolerance import HALF_ULP, Tolerance


def l2_normalize(x: Any, *, epsilon: float = 1e-12) -> Any:
    """x / max(length of x over the last axis, epsilon), for x [..., C].

    On arrays: the float32 result. On traced values: a traced value.
    """
    return OPERATOR(x, epsilon=epsilon)


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """The result has the operand's shape."""
    (x,) = operands
    if x.rank == 0:
        raise OPERATOR.mismatch("x needs at least one axis", x)
    return x


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """Evaluated in float64 and rounded once to float32."""
    x = operands[0].astype(np.float64)
    result: Array = (x / _length(x, number(attributes, "epsilon"))).astype(np.float32)
    return result


def _length(x: Any, epsilon: float) -> Any:
    return np.maximum(np.sqrt(np.sum(x * x, axis=-1, keepdims=True)), epsilon)


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """Operand, factor and result rounded to float16, the length in float32.

    A length errs by no more than the length of the errors of its components.
    """
    x = operands[0].astype(np.float64)
    epsilon = number(attributes, "epsilon")
    rounded = operand_error(x)
    length = _length(x, epsilon)
    length_error = np.sqrt(np.sum(rounded**2, axis=-1, keepdims=True))
    # Rounding may take a row that float16 cannot tell from zero to zero; nothing is sure of it then.
    smallest = np.maximum(length - length_error, epsilon)
    result = np.abs(x) / length
    bound = (rounded + result * length_error) / smallest + 2 * HALF_ULP * result + HALF_STEP
    return Tolerance(bound, "float32 length, operand, factor and result rounded to float16")


OPERATOR = Operator(
    name="l2_normalize",
    operands=("x",),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
    parameters=(Parameter("epsilon", 1e-12, minimum=SMALLEST_EPSILON),),
)
