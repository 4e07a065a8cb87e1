"""Inner loops as native code: made once per machine, kept, and loaded again without numba.

A loop is a plain function on integers and arrays of them. numba, which takes a second to start, is imported
only when one has to be made. What is kept is named by everything that it depends on: the byte code of the
function and of the loops it calls, the constants that they read, versions and the CPU. Loops may call each
other and use constants across files.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..user_cache import cache_area
from .objects import Loaded, facts, keep, kept

ARRAYS = {
    "v": (np.dtype(np.int64), 1),
    "m": (np.dtype(np.int64), 2),
    "s": (np.dtype(np.int32), 2),
    "u": (np.dtype(np.uint8), 2),
    "w": (np.dtype(np.uint32), 1),
}
"""Element type and dimensions of the letters that stand for contiguous arrays."""
RESULTS = {"-": 0, "i": 1, "b": 1, "2": 2, "3": 3}
"""Numbers that a result consists of."""


class Loop:
    """A function that runs natively. Called from Python it takes what its plain form does.

    Attributes:
        function: the plain form.
        result, arguments: one letter each, see `compiled`.
    """

    def __init__(self, function: Callable[..., Any], result: str, arguments: str) -> None:
        self.function, self.result, self.arguments = function, result, arguments
        self.__doc__ = function.__doc__

    @property
    def name(self) -> str:
        """Of the function, as people know it: plain forms are called `_..._python`."""
        return self.function.__name__.strip("_").removesuffix("_python")

    def globals(self) -> dict[str, Any]:
        """The globals that the function names: other loops and constants."""
        known = self.function.__globals__
        return {name: known[name] for name in sorted(_names(self.function.__code__)) if name in known}

    @cached_property
    def digest(self) -> bytes:
        """Of all that the native code depends on.

        Raises TypeError for a global that is neither an integer nor a loop: nobody would notice its change.
        """
        parts: list[object] = [facts(), self.result, self.arguments, _code(self.function.__code__)]
        for name, value in self.globals().items():
            if isinstance(value, Loop):
                parts.append((name, value.digest))
            elif isinstance(value, int):
                parts.append((name, int(value)))
            else:
                raise TypeError(f"the loop {self.name} reads {name}, which is no integer and no loop")
        return hashlib.sha256(repr(parts).encode()).digest()

    def _path(self) -> Path | None:
        with suppress(RuntimeError):  # no home directory
            return cache_area("loops") / f"{self.name}-{self.digest.hex()[:24]}.o"
        return None

    def is_made(self) -> bool:
        """Whether a call would begin at once."""
        return "_native" in self.__dict__ or ((path := self._path()) is not None and path.exists())

    def make(self) -> None:
        """Be ready for calls."""
        _ = self._native

    @cached_property
    def _native(self) -> tuple[Callable[..., int], Loaded]:
        """The entry point, and what it is in."""
        path = self._path()
        data = kept(path) if path else None
        if data is None:
            data = import_module("tilewright.native.building").object_of(self)
            if path:
                keep(path, data)
        code = Loaded(data)
        size = sum(1 if letter not in ARRAYS else 1 + ARRAYS[letter][1] for letter in self.arguments)
        integers = [ctypes.c_int64] * size
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *integers)
        return prototype(code.address(ENTRY)), code

    def __call__(self, *arguments: int | NDArray[Any]) -> Any:
        flat: list[int] = []
        for letter, value in zip(self.arguments, arguments, strict=True):
            if isinstance(value, np.ndarray):
                kind = (value.dtype, value.ndim)
                if ARRAYS.get(letter) != kind or not value.flags.c_contiguous:
                    raise TypeError(f"{self.name} takes no array like this one: {kind}, expected {letter}")
                flat += (value.ctypes.data, *value.shape)
            elif letter in ARRAYS:
                raise TypeError(f"{self.name} takes an array, not {value!r}")
            else:
                flat.append(int(value))
        results, exception = (ctypes.c_int64 * 3)(), ctypes.c_void_p()
        status = self._native[0](ctypes.addressof(results), ctypes.addressof(exception), *flat)
        assert status == 0, "loops raise nothing"
        count = RESULTS[self.result]
        if self.result == "b":
            return bool(results[0] & 1)
        return None if count == 0 else results[0] if count == 1 else tuple(results[:count])


_LOOPS: list[Loop] = []
"""All that `compiled` was asked for."""

ENTRY = "loop"
"""The entry point of a loop's object: (where results go, where an exception goes, arguments), arrays as
address and extents."""


def compiled(function: Callable[..., Any], result: str, arguments: str) -> Loop:
    """The native form of a function on integers, made when it is first called from Python.

    Args:
        function: plain Python without allocations or exceptions; what it calls must be compiled too, and its
            globals are such loops and integers.
        result, arguments: one letter each: i integer, b boolean, v and m contiguous int64 arrays of one and
            two dimensions, s and u int32 and uint8 arrays of two, w uint32 arrays of one, 2 and 3 tuples of
            integers, - nothing.
    """
    made = Loop(function, result, arguments)
    _LOOPS.append(made)
    return made


def missing() -> list[Loop]:
    """Loops for Python (no other loop calls them) that would have to be made first."""
    called = {id(value) for loop in _LOOPS for value in loop.globals().values() if isinstance(value, Loop)}
    return [loop for loop in _LOOPS if id(loop) not in called and not loop.is_made()]


def _names(code: CodeType) -> set[str]:
    nested = [_names(value) for value in code.co_consts if isinstance(value, CodeType)]
    return set(code.co_names).union(*nested)


def _code(code: CodeType) -> tuple[object, ...]:
    """What a function does, wherever it stands."""
    constants = [_code(value) if isinstance(value, CodeType) else value for value in code.co_consts[1:]]
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
