"""Making object files of loops with numba. Only this module imports it, and only who has to make one."""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import Any

from numba.extending import intrinsic
from numba.np import arrayobj

from .loops import ARRAYS, ENTRY, Loop
from .objects import binding, target_machine_for_jit

types: Any = import_module("numba.core.types")
numba: Any = import_module("numba")  # its decorators' types know neither our options nor signatures

_OPTIONS = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
"""Without numba's runtime, which the object would need wherever it is loaded, nothing can be allocated."""
_SCALARS = {
    "i": types.int64,
    "b": types.boolean,
    "2": types.UniTuple(types.int64, 2),
    "3": types.UniTuple(types.int64, 3),
    "-": types.void,
}


def _type_of(letter: str) -> Any:
    if letter not in ARRAYS:
        return _SCALARS[letter]
    dtype, dimensions = ARRAYS[letter]
    return types.Array(numba.from_dtype(dtype), dimensions, "C")


@intrinsic
def _array(typing_context: Any, pointer: Any, extents: Any) -> Any:
    """A contiguous array of what a pointer points to."""
    return types.Array(pointer.dtype, len(extents), "C")(pointer, extents), arrayobj.np_cfarray


_MADE: dict[bytes, Any] = {}
"""Compiled loops by digest: several call the same ones."""


def _compiled(loop: Loop) -> Any:
    """A loop as numba's callable, with those it calls."""
    if loop.digest not in _MADE:
        called = {
            name: _compiled(value) if isinstance(value, Loop) else value
            for name, value in loop.globals().items()
        }
        scope = {**loop.function.__globals__, **called}
        copy = FunctionType(loop.function.__code__, scope, loop.name)
        signature = _type_of(loop.result)(*(_type_of(letter) for letter in loop.arguments))
        _MADE[loop.digest] = numba.njit(signature, **_OPTIONS)(copy)
    return _MADE[loop.digest]


def object_of(loop: Loop) -> bytes:
    """An object file with the function `ENTRY`, which needs nothing but the C library."""
    names: list[str] = []
    values: list[str] = []
    kinds: list[Any] = []
    for index, letter in enumerate(loop.arguments):
        if letter not in ARRAYS:
            names.append(f"i{index}")
            values.append(f"i{index}")
            kinds.append(types.int64)
            continue
        dtype, dimensions = ARRAYS[letter]
        extents = [f"n{index}_{axis}" for axis in range(dimensions)]
        names += [f"p{index}", *extents]
        values.append(f"array(p{index}, ({', '.join(extents)},))")
        kinds += [types.CPointer(numba.from_dtype(dtype)), *[types.int64] * dimensions]
    scope = {"array": _array, "loop": _compiled(loop), "__name__": __name__}
    source = f"def entry({', '.join(names)}):\n    return loop({', '.join(values)})\n"
    exec(source, scope)
    made = numba.njit(_type_of(loop.result)(*kinds), **_OPTIONS)(scope["entry"])
    (overload,) = made.overloads.values()
    module = binding().parse_assembly(overload.library.get_llvm_str())
    module.get_function(overload.fndesc.llvm_func_name).name = ENTRY
    foreign = {value.name for value in module.functions if value.is_declaration}
    foreign = {name for name in foreign if not name.startswith("llvm.")}
    assert not foreign, f"{loop.name} needs {foreign}"
    return bytes(target_machine_for_jit().emit_object(module))
