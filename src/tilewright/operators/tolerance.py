"""How close is close enough: a bound per element, and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

HALF_ULP = 2.0**-11
"""Largest relative error of rounding a number to float16 (11 significant bits, round to nearest)."""


@dataclass(frozen=True)
class Tolerance:
    """|actual - expected| may be at most `absolute` (a number, or one per element), for `reason`.

    The bound comes from the operands or the expected result, never from the actual one, so that a wrong
    result cannot widen it.
    """

    absolute: float | NDArray[np.float64]
    reason: str

    def violation(self, actual: NDArray[Any], expected: NDArray[Any]) -> str | None:
        """None when every element is within the bound, else one line about the worst one.

        A NaN must meet a NaN and an infinity the same infinity: they never pass by being skipped.
        """
        if actual.shape != expected.shape:
            return f"shape {actual.shape} where {expected.shape} was expected"
        if actual.size == 0:
            return None
        got, want = actual.astype(np.float64), expected.astype(np.float64)
        special = ~np.isfinite(got) | ~np.isfinite(want)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        with np.errstate(invalid="ignore"):
            distance = np.where(special, np.where(same, 0.0, np.inf), np.abs(got - want))
        bound = np.broadcast_to(np.asarray(self.absolute, dtype=np.float64), got.shape)
        excess = np.where(distance > bound, distance - bound, -1.0)
        worst = np.unravel_index(int(np.argmax(excess)), got.shape)
        if excess[worst] < 0:
            return None
        index = tuple(int(axis) for axis in worst)
        outside = int(np.count_nonzero(excess >= 0))
        return (
            f"{outside} of {got.size} elements outside the tolerance, worst at {index}: "
            f"{got[worst]:.6g} where {want[worst]:.6g} was expected, bound {bound[worst]:.3g} ({self.reason})"
        )
