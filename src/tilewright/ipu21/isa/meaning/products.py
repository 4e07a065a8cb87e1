"""The matrix unit: sums of products.

Weight arrays: `weights[64 * phase + 16 * element + lane_of(unit)]` holds the half weights as float32.
"""

from __future__ import annotations

from ...machine.matrix_unit import SUMS_OF_SINGLES
from .arrays import Singles, single_at
from .bits import nearest_single, single_value


def lane_of(unit: int) -> int:
    """A unit's place in the order in which results leave: two units of each set at a time (known)."""
    return 4 * ((unit & 7) >> 1) + 2 * (unit >> 3) + (unit & 1)


def add_product(total: float, x: float, weight: float) -> float:
    """One product more in the sum of an instruction, see `SUMS_OF_SINGLES`.

    Products of halves and of FP8 are exact as float32.
    """
    if SUMS_OF_SINGLES:
        return single_value(nearest_single(total + x * weight))
    return total + x * weight


def dot_of_halves(a: float, b: float, c: float, d: float, weights: Singles, place: int) -> float:
    """Four halves times a weight entry, whose first element is at `place`."""
    dot = a * single_at(weights, place)
    dot = add_product(dot, b, single_at(weights, place + 16))
    dot = add_product(dot, c, single_at(weights, place + 32))
    return add_product(dot, d, single_at(weights, place + 48))
