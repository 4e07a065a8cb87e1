"""Rounding as the tile does it, for the kernels' references.

Round to nearest even, overflow saturates to +-65504 ($FP_ICTL = 0: no NANOO, no ESR; documented).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Halves = NDArray[np.float16]

LARGEST = 65504.0


def to_halves(values: NDArray[Any]) -> Halves:
    """Values of any float type -> float16, saturating finite values; NaN and infinities stay."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values.astype(np.float16)
        overflowed = np.isinf(rounded) & np.isfinite(values)
    limit = np.copysign(LARGEST, values).astype(np.float16)
    return np.where(overflowed, limit, rounded)


def to_singles(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """One rounding to float32."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)
