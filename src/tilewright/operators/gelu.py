"""Gaussian error linear unit, exact or by its tanh approximation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.tensor_type import TensorType

from .operator import Array, Operator
from .parameter import Attributes, Parameter
from .tolerance import HALF_ULP, Tolerance

CUBIC = 0.044715
"""Coefficient of the cubic term (known: Hendrycks and Gimpel, 2016, arXiv 1606.08415)."""

_ERFC = np.frompyfunc(math.erfc, 1, 1)


def gelu(x: Any, *, approximate: str = "tanh") -> Any:
    """x times the probability that a standard normal variable is below x, elementwise.

    `approximate` is named as in PyTorch: "none" is the definition, x/2 * (1 + erf(x / sqrt 2)); "tanh" is
    x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), within 5e-4 of it.

    On arrays: the float32 result. On traced values: a traced value.
    """
    return OPERATOR(x, approximate=approximate)


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """The result has the operand's shape."""
    return operands[0]


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """Evaluated in float64 and rounded once to float32."""
    x = operands[0].astype(np.float64)
    if attributes["approximate"] == "none":
        # 1 + erf(u) equals erfc(-u); unlike it, this does not cancel for negative u.
        tail = np.asarray(_ERFC(-x / math.sqrt(2)), dtype=np.float64)
        with np.errstate(invalid="ignore"):
            exact = np.where(np.isneginf(x), 0.0, 0.5 * x * tail)
        return exact.astype(np.float32)
    inner = math.sqrt(2 / math.pi) * (x + CUBIC * x * x * x)
    # 1 + tanh(u) equals 2 / (1 + exp(-2u)); unlike it, this does not cancel for negative u.
    with np.errstate(over="ignore"):
        result: Array = (x / (1 + np.exp(-2 * inner))).astype(np.float32)
    return result


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """Float16 throughout: 8 half-ulps of |x|, plus one unit in the last place of numbers near 2^-10.

    The steps (operand, cube, product, sum, scale, tanh, plus one, half, product) each round once; the
    factor x/2 carries the error of 1 + tanh, which is absolute, so the bound follows |x| and not the
    result. Guessed from that count; emulations in float16 stay within it, of the tanh form and of the exact
    form as x/2 * (1 + tanh(x p(x^2))) with a polynomial p (tests/unit/operators/test_numerics.py).
    """
    x = np.abs(operands[0].astype(np.float64))
    return Tolerance(8 * HALF_ULP * x + 2.0**-20, "computed in float16 steps")


OPERATOR = Operator(
    name="gelu",
    operands=("x",),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
    parameters=(Parameter("approximate", "tanh", choices=("tanh", "none")),),
)
