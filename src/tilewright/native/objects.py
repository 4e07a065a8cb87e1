"""Object files of native code: kept in files, and loaded into this process by LLVM.

LLVM ends the process over a damaged object, so what is kept begins with a digest.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..files import write_whole


def keep(path: Path, data: bytes) -> None:
    """Keep an object file, if that is possible."""
    with suppress(OSError, UsageError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, hashlib.sha256(data).digest() + data)


def kept(path: Path) -> bytes | None:
    """The object file that was kept there; None if there is none or it is not as it was."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = hashlib.sha256().digest_size
    digest, data = content[:size], content[size:]
    return data if hashlib.sha256(data).digest() == digest else None


@lru_cache(maxsize=1)
def binding() -> Any:
    """llvmlite's binding, ready for this CPU."""
    llvm = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@lru_cache(maxsize=1)
def facts() -> tuple[str, ...]:
    """What native code depends on beside its source: tools and CPU."""
    llvm = binding()
    cpu = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return version("numba"), version("llvmlite"), sys.version, platform.machine(), *cpu


def target_machine_for_jit() -> Any:
    """A fresh machine: an execution engine takes its machine over."""
    llvm = binding()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), jit=True
    )


class Loaded:
    """Native code in memory; it stays as long as this object."""

    def __init__(self, data: bytes) -> None:
        llvm = binding()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine_for_jit())
        self._file = llvm.ObjectFileRef.from_data(data)
        self._engine.add_object_file(self._file)
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function begins; 0 if there is none of that name."""
        return int(self._engine.get_function_address(name))
