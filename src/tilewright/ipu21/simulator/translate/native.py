"""From LLVM text to callable code, with a cache of object files."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from ....native.objects import Loaded, binding, keep, kept
from ....user_cache import cache_area
from ..compile import engine_digest

LIGHT, FULL = "light", "full"
"""Optimisation: `sroa` and `simplifycfg` only, or everything."""

_LOCK = threading.Lock()
_CACHING = True


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


def compile_module(key: str, source: Callable[[], str], optimise: str) -> tuple[Loaded, bool]:
    """Native code of a module, and whether it came from the cache.

    Args:
        key: digest of what the source depends on beside the translator.
        source: makes the LLVM text; only called if the object is not cached.
        optimise: LIGHT or FULL.
    """
    directory = _directory() if _CACHING else None
    path = directory / f"{key}.o" if directory else None
    data = kept(path) if path else None
    cached = data is not None
    with _LOCK:
        if data is None:
            data = _object_code(source(), optimise)
            if path is not None:
                # Where nothing can be kept, the code serves this process only.
                keep(path, data)
        return Loaded(data), cached
