"""Integer arithmetic used everywhere; also on NumPy integer arrays."""

from __future__ import annotations

from typing import Any, overload


@overload
def ceil_div(a: int, b: int) -> int: ...
@overload
def ceil_div(a: Any, b: Any) -> Any: ...
def ceil_div(a: Any, b: Any) -> Any:
    """a / b rounded up, for b > 0."""
    return -(-a // b)


@overload
def align_up(value: int, alignment: int) -> int: ...
@overload
def align_up(value: Any, alignment: Any) -> Any: ...
def align_up(value: Any, alignment: Any) -> Any:
    """The smallest multiple of `alignment` that is >= value."""
    return ceil_div(value, alignment) * alignment
