"""Compile the engine: every value and engine function, the generated dispatch, one entry point.

The functions stay ordinary Python in their modules; here copies of them are compiled in an order in which
each finds its callees compiled. The native code is kept in a directory of the user's cache whose name is a
digest of all sources, the tool versions and the CPU, so that any edit leads to a new compilation. Where the
directory cannot be written, the engine is compiled for this process only.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
import types as python_types
import typing
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...files import write_whole
from ...native.objects import Loaded, facts, keep, kept
from ...user_cache import cache_area
from ..isa.meaning import arrays
from .flat_linking import PREFIX, flat_linking
from .generate import dispatch_source
from .instruction_tables import MEANING_MODULES, instruction_tables

_MEANING_BASE = ("bits", "arrays", "products", "registry", "address")
_ENGINE = (
    "pointers",
    "engine_checks",
    "engine_decode",
    "engine_memory",
    "engine_registers",
    "engine_aux",
    "engine_worker",
    "engine_exchange",
    "engine_supervisor",
    "engine_loop",
)
_OTHER_SOURCES = (
    "checks",
    "codes",
    "compile",
    "dispatch",
    "exchange_log",
    "flat_linking",
    "generate",
    "instruction_tables",
    "intrinsics",
    "state",
    "stops",
)
INLINE_BYTES = 1000
"""Functions with less byte code than this are inlined into their callers (measured: a third faster)."""
INLINED = frozenset(("worker_turn", "execute_aux"))
"""So are these, which every turn of a worker passes through (measured: an eighth faster)."""
_NOT_COMPILED = frozenset(("_claim", "_view", "words", "per_word", "halves", "singles", "whole"))

ENTRY = '''"""The compiled tile engine's entry point (generated)."""


def run_tiles(addresses, count, budget, assistance, argument, entries, reports):
    table = integers_at(addresses)
    report = integers_at(reports)
    place = 0
    for index in range(count):
        state = integers_at(table[index])
        if budget >= 0:
            state[at.BUDGET] = budget
        state[at.ENTRIES] = entries
        state[at.ASSISTANCE] = assistance
        state[at.ASSISTANCE + 1] = argument
        run_tile(state)
        state[at.ASSISTANCE] = 0
        state[at.ASSISTANCE + 1] = 0
        for number in at.REPORT:
            report[place] = state[number]
            place += 1
    return count
'''

_ARGUMENTS = [ctypes.c_int64] * 7
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *_ARGUMENTS)
RunTiles = Callable[[int, int, int, int, int, int, int], int]


class Engine(typing.NamedTuple):
    """The compiled entry point.

    Attributes:
        run_tiles: run each of some tiles to its next stop. Takes the address of an array of addresses of
            state arrays; their number; the instructions that each may issue (-1: what it has left); a native
            function for ASSISTANCE and its argument, or 0; the address of this thread's decoded instructions;
            that of room for `state.REPORT` of each.
        cached: the native code came from the cache.
        code: what the entry point is in; it stays as long as this.
    """

    run_tiles: RunTiles
    cached: bool
    code: Loaded


def _package_directory() -> Path:
    return Path(__file__).resolve().parent


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """Digest of everything the native code depends on."""
    digest = hashlib.sha256()
    simulator = _package_directory()
    ipu21 = simulator.parent
    paths = [simulator / f"{name}.py" for name in (*_ENGINE, *_OTHER_SOURCES)]
    for folder in ("isa", "isa/meaning", "isa/data", "machine"):
        paths += [path for path in sorted((ipu21 / folder).iterdir()) if path.suffix in (".py", ".json")]
    for path in paths:
        data = path.read_bytes()
        digest.update(f"{path.relative_to(ipu21)} {len(data)}\n".encode())
        digest.update(data)
    digest.update(repr(facts()).encode())
    return digest.hexdigest()[:24]


def cache_root() -> Path:
    """Where compiled engines are kept: `tilewright/engine` below the user's cache directory."""
    return cache_area("engine")


def _types() -> dict[Any, Any]:
    """The numba type of each annotation the compiled functions use."""
    types: Any = import_module("numba.core.types")
    return {
        int: types.int64,
        float: types.float64,
        bool: types.boolean,
        arrays.Bytes: types.CPointer(types.uint8),
        arrays.Words: types.CPointer(types.uint32),
        arrays.Singles: types.CPointer(types.float32),
        arrays.Integers: types.CPointer(types.int64),
        arrays.Marks: types.CPointer(types.int16),
        tuple[int, int]: types.UniTuple(types.int64, 2),
    }


class _Compiler:
    """Compiled copies of plain functions, found by the identity of the original."""

    def __init__(self) -> None:
        from .intrinsics import REPLACEMENTS

        self.known = _types()
        self.replacements = REPLACEMENTS
        self.compiled: dict[int, Any] = {}
        self.keep: list[Any] = []

    def add(self, function: Callable[..., Any], namespace: dict[str, Any]) -> Any:
        """Compile one function whose globals are `namespace`."""
        numba: Any = import_module("numba")
        hints = typing.get_type_hints(function)
        result = self.known[hints.pop("return")]
        signature = result(*(self.known[hint] for hint in hints.values()))
        copy = python_types.FunctionType(
            function.__code__, namespace, function.__name__, function.__defaults__
        )
        copy.__qualname__ = PREFIX + function.__name__
        inlined = len(function.__code__.co_code) < INLINE_BYTES or function.__name__ in INLINED
        return numba.njit(
            signature,
            error_model="numpy",
            forceinline=inlined,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
        )(copy)

    def module(self, name: str, generated: dict[str, Any] | None = None) -> dict[str, Any]:
        """Compile the functions a module defines; returns the namespace with compiled names."""
        module = import_module(name)
        namespace = dict(vars(module))
        for key, value in namespace.items():
            if generated and key in generated:
                namespace[key] = generated[key]
            elif id(value) in self.compiled:
                namespace[key] = self.compiled[id(value)]
        for key, value in list(namespace.items()):
            if not isinstance(value, python_types.FunctionType) or value.__module__ != name:
                continue
            if key in _NOT_COMPILED:
                continue
            fast = self.replacements[key] if key in self.replacements else self.add(value, namespace)
            self.compiled[id(value)] = namespace[key] = fast
            self.keep.append(value)
        return namespace


def _compile_dispatch(compiler: _Compiler, scope: dict[str, Any]) -> dict[str, Any]:
    """Compile the generated dispatch functions."""
    namespace = dict(scope)
    source = dispatch_source(instruction_tables())
    exec(compile(source, "<generated dispatch>", "exec"), namespace)
    generated = {}
    for key, value in list(namespace.items()):
        if key.startswith("dispatch_") and isinstance(value, python_types.FunctionType):
            generated[key] = namespace[key] = compiler.add(value, namespace)
    return generated


def _callees() -> dict[str, Any]:
    """Compile meaning, dispatch and engine in this order; the names the entry points use."""
    from . import dispatch, state

    compiler = _Compiler()
    meaning = arrays.__name__.rsplit(".", 1)[0]
    package = __name__.rsplit(".", 1)[0]
    scope: dict[str, Any] = {}
    for name in _MEANING_BASE:
        scope |= compiler.module(f"{meaning}.{name}")
    for module in MEANING_MODULES:
        scope |= compiler.module(module.__name__)
    generated: dict[str, Any] | None = None
    namespace: dict[str, Any] = {}
    for name in _ENGINE:
        if name == "engine_aux":
            scope |= {key: getattr(state, key) for key in ("RANDOM", "RESULT0", "RESULT1")}
            scope["signed_scale"] = compiler.add(dispatch.signed_scale, dict(vars(dispatch)))
            generated = _compile_dispatch(compiler, scope)
        namespace = compiler.module(f"{package}.{name}", generated)
        scope |= namespace
    return namespace


def _compiled() -> tuple[bytes, str]:
    """Object file of the engine, and the name of its entry point there."""
    numba: Any = import_module("numba")
    with flat_linking():
        namespace = _callees()
        namespace["__name__"] = __name__
        exec(compile(ENTRY, "<engine entry>", "exec"), namespace)
        int64 = _types()[int]
        made = numba.njit(
            int64(*[int64] * len(_ARGUMENTS)),
            error_model="numpy",
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
        )(namespace["run_tiles"])
    (entry,) = made.overloads.values()
    return bytes(entry.library._get_compiled_object()), str(entry.fndesc.llvm_func_name)


def _engine_in(code: Loaded, name: str, *, cached: bool) -> Engine:
    """The engine with its entry point as a Python function; other threads go on while it runs.

    numba's functions return what they compute by a pointer, and a status that is not 0 after an exception.
    """
    address = code.address(name)
    if not address:
        raise LookupError(name)
    native = _PROTOTYPE(address)

    def run_tiles(*arguments: int) -> int:
        result, exception = ctypes.c_int64(), ctypes.c_void_p()
        status = native(ctypes.addressof(result), ctypes.addressof(exception), *arguments)
        assert status == 0, "the engine raises nothing"
        return result.value

    return Engine(run_tiles, cached, code)


def _load(directory: Path) -> Engine | None:
    """The engine from its cache directory, or None if it is not there whole."""
    data = kept(directory / "engine.o")
    if data is not None:
        with suppress(OSError, UnicodeDecodeError, LookupError):
            return _engine_in(Loaded(data), (directory / "complete").read_text(), cached=True)
    return None


def _keep(directory: Path, data: bytes, name: str) -> None:
    """Put the engine into its cache directory, if that is possible."""
    keep(directory / "engine.o", data)
    with suppress(OSError, UsageError):
        write_whole(directory / "complete", name.encode())


def is_kept() -> bool:
    """Whether the native code is kept already, so that starting takes a second and not half a minute."""
    try:
        return (cache_root() / engine_digest() / "complete").exists()
    except RuntimeError:  # no home directory
        return False


_ONCE = threading.Lock()


def engine() -> Engine:
    """The compiled engine, from the cache or compiled now (tens of seconds); any thread may ask."""
    with _ONCE:
        return _engine()


@lru_cache(maxsize=1)
def _engine() -> Engine:
    directory: Path | None = None
    # Without a home directory there is nowhere to keep anything.
    with suppress(RuntimeError):
        directory = cache_root() / engine_digest()
    loaded = _load(directory) if directory else None
    if loaded is not None:
        return loaded
    data, name = _compiled()
    if directory:
        _keep(directory, data, name)
    return _engine_in(Loaded(data), name, cached=False)
