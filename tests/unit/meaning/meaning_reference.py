"""Outside truth for the number formats: NumPy for nearest rounding, exact fractions for directed modes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

NEAREST, UP, DOWN, ZERO = 0, 1 << 16, 2 << 16, 3 << 16
"""Values of $FP_CTL with each rounding mode."""


def half(bits: int) -> np.float16:
    return np.uint16(bits).view(np.float16)


def half_bits(value: np.float16) -> int:
    return int(np.float16(value).view(np.uint16))


def single(bits: int) -> np.float32:
    return np.uint32(bits).view(np.float32)


def single_bits(value: np.float32) -> int:
    return int(np.float32(value).view(np.uint32))


def directed(exact: Fraction, control: int, kind: type[np.floating]) -> np.floating:
    """The neighbour of an exact value in a format that the rounding mode asks for (finite results only)."""
    near = kind(float(exact))
    difference = Fraction(float(near)) - exact
    if control == UP or (control == ZERO and exact < 0):
        return np.nextafter(near, kind(np.inf)) if difference < 0 else near
    return np.nextafter(near, kind(-np.inf)) if difference > 0 else near
