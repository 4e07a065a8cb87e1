"""Checks of single values and tables, shared by all rules. Each raises PackageError saying where and what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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


def integers(
    values: Sequence[int], name: str, where: Callable[[int], str], *, maximum: int = U32, none: int = 0
) -> NDArray[np.int64]:
    """All of `values` are integers of 0..maximum, or `none`: the same as `unsigned`, for many.

    `where` names the place of one. Returns them as an array, in which what is over 2**62 is 2**62.
    """
    if not set(map(type, values)) <= {int} or (values and not none <= min(values) <= max(values) <= maximum):
        for index, value in enumerate(values):
            number = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not number or value != none:
                unsigned(value, name, where(index), maximum=maximum)
    ceiling = 1 << 62
    if values and max(values) > ceiling:
        values = [min(value, ceiling) for value in values]
    return np.array(values, np.int64)


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


def texts(values: Iterable[object], name: str, where: Callable[[int], str]) -> None:
    """All of `values` are non-empty printable texts of bounded length; `where` names the place of one."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if not isinstance(value, str) or value not in seen:
            text(value, name, where(index))
            seen.add(str(value))


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
