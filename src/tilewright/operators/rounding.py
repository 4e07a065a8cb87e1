"""What rounding to float16 costs: the parts that tolerances are made of.

A device is taken to round every operand and every stored number to float16, to nearest, subnormals
included, and to keep statistics (means, sums, maxima) in float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .tolerance import HALF_ULP

Doubles = NDArray[np.float64]

HALF_STEP = 2.0**-25
"""Largest error of rounding a number below float16's normal range: half its smallest step."""

AMP_INNER = 16
"""Inner elements that one panel of the matrix unit sums in float32 before it rounds to float16 (derived)."""

ROUNDING_FACTOR = 4.0
"""The constant c of a product's tolerance: how many standard deviations of the walk of roundings to admit.

Guessed from the statistics of rounding; an emulation of float16 partial sums stays under half of it
(tests/unit/operators/test_numerics.py).
"""


def operand_error(x: NDArray[Any]) -> Doubles:
    """Bound on the error of rounding `x` to float16 once; 0 for 0, never more than the number itself."""
    magnitude = np.abs(x.astype(np.float64))
    error: Doubles = np.minimum(magnitude, np.maximum(HALF_ULP * magnitude, HALF_STEP))
    return error


def moved_error(x: NDArray[Any]) -> Doubles:
    """The very error of rounding `x` to float16: all that may happen to a number that is only moved.

    0 where float16 overflows, so that an infinity does not pass.
    """
    with np.errstate(over="ignore"):
        error = np.abs(x.astype(np.float16).astype(np.float64) - x)
    return np.where(np.isfinite(error), error, 0.0)


def largest_partial_sums(a: Doubles, b: Doubles) -> Doubles:
    """Per element of a[..., M, K] @ b[..., K, N] the largest |sum| over every prefix of the inner extent."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    running = np.zeros((*batch, a.shape[-2], b.shape[-1]))
    largest = np.zeros_like(running)
    for k in range(a.shape[-1]):
        running += a[..., :, k, np.newaxis] * b[..., np.newaxis, k, :]
        np.maximum(largest, np.abs(running), out=largest)
    return largest


def product_factor(inner: int, splits: int) -> float:
    """c * 2^-11 * sqrt(panels + splits): what the largest partial sum of a product is multiplied by.

    One rounding per panel of 16 inner elements and one per partial result of another tile. Roundings are
    independent, so their sum grows as the square root of their number.
    """
    panels = math.ceil(inner / AMP_INNER)
    return ROUNDING_FACTOR * HALF_ULP * math.sqrt(panels + splits)
