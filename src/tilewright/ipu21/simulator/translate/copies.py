"""Many copies between memories, or many ranges cleared, in one native call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...isa.meaning.arrays import Integers
from ..pointers import marks_at, words_at
from .ir import Builder
from .lowering import Lowering
from .native import FULL, compile_module
from .sources import symbol

COPY_FIELDS = 3
CLEAR_FIELDS = 2


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


@lru_cache(maxsize=1)
def _native() -> tuple[dict[Any, Callable[[int, int], int]], Any]:
    """The compiled functions, and what keeps them alive."""
    functions = (copy_all, clear_all)

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


def _run(function: Callable[[Integers, int], int], plan: NDArray[np.int64]) -> None:
    rows = np.ascontiguousarray(plan, dtype=np.int64)
    _native()[0][function](rows.ctypes.data, len(rows))
