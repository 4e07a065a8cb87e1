"""Many copies between memories, or many ranges cleared, in one native call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...isa.meaning.arrays import Integers
from ..pointers import bytes_at, integers_at, marks_at, words_at
from .ir import Builder
from .lowering import Lowering
from .native import FULL, compile_module
from .sources import symbol

COPY_FIELDS = 3
CLEAR_FIELDS = 2
BYTES_FIELDS = 3
MARK_FIELDS = 4


def copy_all(plan: Integers, count: int) -> int:
    """Make copies one after the other, each: address of the first word to write, to read, number of words."""
    for index in range(count):
        place = COPY_FIELDS * index
        target = words_at(plan[place])
        source = words_at(plan[place + 1])
        for word in range(plan[place + 2]):
            target[word] = source[word]
    return 0


def clear_all(plan: Integers, count: int) -> int:
    """Clear ranges of 16-bit numbers, each: address of the first, how many."""
    for index in range(count):
        target = marks_at(plan[CLEAR_FIELDS * index])
        for place in range(plan[CLEAR_FIELDS * index + 1]):
            target[place] = 0
    return 0


def write_all(plan: Integers, count: int) -> int:
    """Set bits, one per byte of memory, each row: address of the bits, first byte, how many bytes."""
    for index in range(count):
        bits = bytes_at(plan[BYTES_FIELDS * index])
        place = plan[BYTES_FIELDS * index + 1]
        end = place + plan[BYTES_FIELDS * index + 2]
        while place < end and place & 7:
            bits[place >> 3] |= 1 << (place & 7)
            place += 1
        while place + 8 <= end:
            bits[place >> 3] = 0xFF
            place += 8
        while place < end:
            bits[place >> 3] |= 1 << (place & 7)
            place += 1
    return 0


def find_unwritten(plan: Integers, count: int) -> int:
    """Number of the first row, each as in `write_all`, of which a bit is not set; `count` if there is none.
    The first byte of that row becomes the one whose bit is not set.
    """
    for index in range(count):
        bits = bytes_at(plan[BYTES_FIELDS * index])
        place = plan[BYTES_FIELDS * index + 1]
        end = place + plan[BYTES_FIELDS * index + 2]
        while place < end:
            whole = place & 7 == 0 and place + 8 <= end and bits[place >> 3] == 0xFF
            if not whole and (bits[place >> 3] >> (place & 7)) & 1 == 0:
                plan[BYTES_FIELDS * index + 1] = place
                return index
            place += 8 if whole else 1
    return count


def mark_all(plan: Integers, count: int) -> int:
    """Set every `step`-th integer, each row: address of the first, how many, `step`, value."""
    for index in range(count):
        row = MARK_FIELDS * index
        target = integers_at(plan[row])
        for place in range(plan[row + 1]):
            target[place * plan[row + 2]] = plan[row + 3]
    return 0


@lru_cache(maxsize=1)
def _native() -> tuple[dict[Any, Callable[[int, int], int]], Any]:
    """The compiled functions, and what keeps them alive."""
    functions = (copy_all, clear_all, write_all, find_unwritten, mark_all)

    def source() -> str:
        parts: list[str] = []
        externals: dict[str, str] = {}
        for function in functions:
            builder = Builder()
            parts.append(Lowering(builder, {}).define(function, ""))
            externals |= builder.externals
        return "\n".join([*externals.values(), *parts])

    compiled, _ = compile_module("copies", source, FULL)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return {function: prototype(compiled.address(symbol(function))) for function in functions}, compiled


def make_copies(plan: NDArray[np.int64]) -> None:
    """Make the copies of `plan` ([count, COPY_FIELDS], addresses of this process). Nothing is checked."""
    _run(copy_all, plan)


def copy_words(
    targets: NDArray[np.int64], sources: NDArray[np.int64], words: NDArray[np.int64] | int
) -> None:
    """Copy so many 32-bit words from each address to each. Nothing is checked."""
    _run(copy_all, np.stack(np.broadcast_arrays(targets, sources, words), axis=1))


def clear_marks(addresses: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Clear so many 16-bit numbers at each address. Nothing is checked."""
    _run(clear_all, np.stack([addresses, counts], axis=1))


def set_bits(addresses: NDArray[np.int64], first: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Set so many bits from the `first` one on, counted from each address. Nothing is checked."""
    _run(write_all, np.stack([addresses, first, counts], axis=1))


def first_clear(
    addresses: NDArray[np.int64], first: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[int, int] | None:
    """The first of these ranges of bits with one that is not set, and the number of that bit. Nothing is
    checked.
    """
    rows = np.ascontiguousarray(np.stack([addresses, first, counts], axis=1), dtype=np.int64)
    found = _run(find_unwritten, rows)
    return None if found == len(rows) else (found, int(rows[found, 1]))


def set_marks(
    addresses: NDArray[np.int64], counts: NDArray[np.int64], step: int, values: NDArray[np.int64]
) -> None:
    """Set so many integers, `step` apart, from each address on to each value. Nothing is checked."""
    _run(mark_all, np.stack(np.broadcast_arrays(addresses, counts, step, values), axis=1))


def _run(function: Callable[[Integers, int], int], plan: NDArray[np.int64]) -> int:
    rows = np.ascontiguousarray(plan, dtype=np.int64)
    return _native()[0][function](rows.ctypes.data, len(rows))
