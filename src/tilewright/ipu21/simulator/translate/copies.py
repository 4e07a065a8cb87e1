"""Many copies between memories in one native call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...isa.meaning.arrays import Integers
from ..pointers import words_at
from .ir import Builder
from .lowering import Lowering
from .native import FULL, compile_module
from .sources import symbol

COPY_FIELDS = 3


def copy_all(plan: Integers, count: int) -> int:
    """Make copies one after the other, each: address of the first word to write, to read, number of words."""
    for index in range(count):
        place = COPY_FIELDS * index
        target = words_at(plan[place])
        source = words_at(plan[place + 1])
        for word in range(plan[place + 2]):
            target[word] = source[word]
    return 0


@lru_cache(maxsize=1)
def _native() -> tuple[Callable[[int, int], int], Any]:
    """The compiled function, and what keeps it alive."""

    def source() -> str:
        builder = Builder()
        text = Lowering(builder, {}).define(copy_all, "")
        return "\n".join([*builder.externals.values(), text])

    compiled, _ = compile_module("copies", source, FULL)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return prototype(compiled.address(symbol(copy_all))), compiled


def make_copies(plan: NDArray[np.int64]) -> None:
    """Make the copies of `plan` ([count, COPY_FIELDS], addresses of this process). Nothing is checked."""
    rows = np.ascontiguousarray(plan, dtype=np.int64)
    _native()[0](rows.ctypes.data, len(rows))
