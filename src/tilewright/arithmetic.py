"""Integer arithmetic used everywhere; also on NumPy integer arrays."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T", int, Any)


def ceil_div(a: T, b: Any) -> T:
    """a / b rounded up, for b > 0."""
    return -(-a // b)


def align_up(value: T, alignment: int) -> T:
    """The smallest multiple of `alignment` that is >= value."""
    return ceil_div(value, alignment) * alignment
