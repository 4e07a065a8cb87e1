"""From LLVM text to callable code, with a cache of object files."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ....errors import UsageError
from ....files import write_whole
from ....user_cache import cache_area
from ..compile import engine_digest

LIGHT, FULL = "light", "full"
"""Optimisation: `sroa` and `simplifycfg` only, or everything."""

_LOCK = threading.Lock()
_CACHING = True


@lru_cache(maxsize=1)
def binding() -> Any:
    """llvmlite's binding, ready for this CPU."""
    llvm = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@lru_cache(maxsize=1)
def target_machine() -> Any:
    llvm = binding()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
        codemodel="jitdefault",
    )


@lru_cache(maxsize=1)
def native_halves() -> bool:
    """True if the CPU converts half precision itself (F16C)."""
    return bool(binding().get_host_cpu_features().get("f16c", False))


@lru_cache(maxsize=1)
def translator_digest() -> str:
    """Digest of everything a translation depends on beside the machine code."""
    digest = hashlib.sha256(engine_digest().encode())
    for path in sorted(Path(__file__).resolve().parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _directory() -> Path | None:
    with suppress(RuntimeError):
        return cache_area("translations") / translator_digest()
    return None


@contextmanager
def without_cache() -> Iterator[None]:
    """Translations made inside are neither looked up nor kept on disk: for code that is run once."""
    global _CACHING
    before, _CACHING = _CACHING, False
    try:
        yield
    finally:
        _CACHING = before


class Compiled:
    """Native code in memory; it stays as long as this object."""

    def __init__(self, engine: Any, keep: Any) -> None:
        self._engine = engine
        self._keep = keep

    def address(self, name: str) -> int:
        return int(self._engine.get_function_address(name))


def _object_code(source: str, optimise: str) -> bytes:
    llvm = binding()
    machine = target_machine()
    module = llvm.parse_assembly(source)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    if optimise == FULL:
        manager = builder.getModulePassManager()
    else:
        manager = llvm.create_new_module_pass_manager()
        manager.add_sroa_pass()
        manager.add_simplify_cfg_pass()
    manager.run(module, builder)
    return bytes(machine.emit_object(module))


def compile_module(key: str, source: Callable[[], str], optimise: str) -> tuple[Compiled, bool]:
    """Native code of a module, and whether it came from the cache.

    Args:
        key: digest of what the source depends on beside the translator.
        source: makes the LLVM text; only called if the object is not cached.
        optimise: LIGHT or FULL.
    """
    llvm = binding()
    directory = _directory() if _CACHING else None
    path = directory / f"{key}.o" if directory else None
    data: bytes | None = None
    if path is not None:
        with suppress(OSError):
            data = path.read_bytes()
    cached = data is not None
    with _LOCK:
        if data is None:
            data = _object_code(source(), optimise)
            if path is not None:
                # Where nothing can be kept, the code serves this process only.
                with suppress(OSError, UsageError):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_whole(path, data)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine_for_jit())
        file = llvm.ObjectFileRef.from_data(data)
        engine.add_object_file(file)
        engine.finalize_object()
    return Compiled(engine, file), cached


def target_machine_for_jit() -> Any:
    """A fresh machine: an execution engine takes its machine over."""
    llvm = binding()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), jit=True
    )
