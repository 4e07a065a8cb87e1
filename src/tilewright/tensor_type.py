"""Shape and element type of a tensor: all that a graph knows of a value before it is placed."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import ShapeError

DTYPES = ("float16", "float32")
"""Element types a value can have. A graph states what is meant; the plan decides what is computed in."""

ITEM_BYTES = {"float16": 2, "float32": 4}

MAX_RANK = 8
MAX_ELEMENTS = 2**40
"""Bound on the elements of one tensor, far above any chip's memory, so that sizes never overflow 64 bits."""


@dataclass(frozen=True)
class TensorType:
    """Shape (one positive extent per axis, possibly none) and dtype (a name in `DTYPES`) of a tensor.

    Raises ShapeError for anything that is not a legal shape or element type.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"

    def __init__(self, shape: int | Sequence[int], dtype: str = "float32") -> None:
        object.__setattr__(self, "shape", _checked_shape(shape))
        name = getattr(dtype, "__name__", None) or str(dtype)
        if name not in DTYPES:
            raise ShapeError(f"element type {name!r} is not one of {', '.join(DTYPES)}")
        object.__setattr__(self, "dtype", name)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, without padding."""
        return self.elements * ITEM_BYTES[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def _checked_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    extents = shape if isinstance(shape, (tuple, list)) else (shape,)
    if len(extents) > MAX_RANK:
        raise ShapeError(f"a tensor has at most {MAX_RANK} axes, this shape has {len(extents)}")
    result: list[int] = []
    total = 1
    for axis, extent in enumerate(extents):
        try:
            if isinstance(extent, bool):
                raise TypeError
            value = operator.index(extent)
        except TypeError:
            raise ShapeError(f"extent of axis {axis} is {extent!r}, which is not a whole number") from None
        if value < 1:
            raise ShapeError(f"extent of axis {axis} is {value}; every extent is at least 1")
        total *= value
        result.append(value)
    if total > MAX_ELEMENTS:
        raise ShapeError(f"shape {tuple(result)} has more than 2^40 elements")
    return tuple(result)
