"""Array types of the functions with state, and reading words out of them.

In tests these are NumPy arrays; when the simulator compiles a function they are plain pointers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NAN = float("nan")
"""Quiet, without a payload: 0x7fc00000 as a float32."""

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]
Marks = NDArray[np.int16]


def word_at(words: Words, index: int) -> int:
    """One 32-bit word as a non-negative integer."""
    return int(words[index])


def byte_at(data: Bytes, index: int) -> int:
    """One byte as a non-negative integer."""
    return int(data[index])


def put_sum(singles: Singles, index: int, total: float) -> int:
    """Keep a sum as a float32. A NaN becomes the quiet one, whichever entered the sum (assumed: what payload
    sums of NaNs have is not public; it must not depend on the order of additions)."""
    singles[index] = total if total == total else NAN
    return 0


def single_at(singles: Singles, index: int) -> float:
    """One float32 widened to a double."""
    return float(singles[index])
