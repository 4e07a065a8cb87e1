"""Checks of single values and tables, shared by all rules. Each raises PackageError saying where and what."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import PackageError

from ..limits import MAX_TEXT

U32 = (1 << 32) - 1


def unsigned(value: object, name: str, where: str, *, maximum: int = U32) -> None:
    """`value` is an integer of 0..maximum."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise PackageError(f"{name} is {value!r}, not an integer", where=where)
    if not 0 <= value <= maximum:
        raise PackageError(f"{name} {int(value)} is outside 0..{maximum}", where=where)


def aligned(value: int, step: int, name: str, where: str) -> None:
    """`value` is a multiple of `step`."""
    if value % step:
        raise PackageError(f"{name} {value:#x} is no multiple of {step}", where=where)


def text(value: object, name: str, where: str, *, empty: bool = False) -> None:
    """`value` is printable text of bounded length."""
    if not isinstance(value, str):
        raise PackageError(f"{name} is {value!r}, not a text", where=where)
    if not value and not empty:
        raise PackageError(f"{name} is empty", where=where)
    if not value.isprintable():
        raise PackageError(f"{name} {value[:40]!r} has characters that cannot be printed", where=where)
    if len(value.encode()) > MAX_TEXT:
        raise PackageError(f"{name} {value[:40]!r}... is longer than {MAX_TEXT} bytes", where=where)


def table(value: object, dtype: np.dtype[np.void], name: str, where: str) -> None:
    """`value` is a one-dimensional array of exactly the record type `dtype`."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != 1:
        raise PackageError(f"{name} is no one-dimensional array of the package's record type", where=where)


def distinct(values: Iterable[object], name: str, where: str) -> None:
    """No value occurs twice."""
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise PackageError(f"{name} {value!r} occurs twice", where=where)
        seen.add(value)


def first(mask: NDArray[np.bool_]) -> int | None:
    """Index of the first True, or None."""
    found = np.flatnonzero(mask)
    return int(found[0]) if len(found) else None


def column(rows: NDArray[np.void], name: str) -> NDArray[np.int64]:
    """A field of a table as signed 64-bit numbers, so that sums cannot wrap."""
    return rows[name].astype(np.int64)
