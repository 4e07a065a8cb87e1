"""Compiling inner loops with numba, each for one signature, so that a cold start compiles nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

_TYPES = {
    "i": "int64",
    "b": "boolean",
    "v": "int64[::1]",
    "m": "int64[:,::1]",
    "s": "int32[:,::1]",
    "u": "uint8[:,::1]",
    "w": "uint32[::1]",
    "2": "UniTuple(int64, 2)",
    "3": "UniTuple(int64, 3)",
    "-": "void",
}


def compiled(function: Callable[..., Any], result: str, arguments: str) -> Callable[..., Any]:
    """The compiled form of a function on integers.

    Args:
        function: plain Python; what it calls must be compiled too and defined in the same file, because
            numba's cache notices changes of that file only.
        result, arguments: one letter each: i integer, b boolean, v and m contiguous int64 arrays of one and
            two dimensions, s and u int32 and uint8 arrays of two, w uint32 arrays of one, 2 and 3 tuples of
            integers, - nothing.
    """
    signature = f"{_TYPES[result]}({', '.join(_TYPES[letter] for letter in arguments)})"
    try:
        made = numba.njit(signature, cache=True)(function)
    except RuntimeError:  # no folder to keep a cache in
        made = numba.njit(signature)(function)
    result_function: Callable[..., Any] = made
    return result_function
