"""Tensors of a safetensors file, taken one at a time and checked against what the reader expects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import MissingDependencyError, ModelError, UsageError

READABLE = ("F32", "F16")
"""Element types that are read; both become float32."""


class TensorFile:
    """A safetensors file, mapped into memory; use it as a context manager.

    Raises UsageError for a file that cannot be read, ModelError for one that is truncated or something else.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError as error:
            raise MissingDependencyError(
                "reading a model's tensors needs the package safetensors", hint="pip install safetensors"
            ) from error
        self.path = Path(path)
        try:
            with self.path.open("rb"):  # for the system's own words when that fails
                pass
            file: Any = safe_open(self.path, framework="np")
            self._file = file.__enter__()
        except SafetensorError as error:
            raise ModelError(f"truncated, or no safetensors file: {error}", where=str(self.path)) from error
        except OSError as error:
            raise UsageError(f"cannot read: {error.strerror or error}", where=str(self.path)) from error
        self.names = frozenset(self._file.keys())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def take(self, name: str, shape: Sequence[int]) -> NDArray[np.float32]:
        """The tensor `name` as float32. Raises ModelError if it is absent, of another shape or type, or holds
        an infinity or a NaN."""
        if name not in self.names:
            raise ModelError(f"there is no tensor {name!r}", where=str(self.path))
        part = self._file.get_slice(name)
        found, dtype = tuple(part.get_shape()), part.get_dtype()
        if found != tuple(shape):
            raise ModelError(
                f"tensor {name!r} has shape {list(found)}, expected {list(shape)}", where=str(self.path)
            )
        if dtype not in READABLE:
            raise ModelError(
                f"tensor {name!r} holds {dtype}",
                where=str(self.path),
                hint=f"convert it to {' or '.join(READABLE)}",
            )
        array: NDArray[np.float32] = self._file.get_tensor(name).astype(np.float32, copy=False)
        if not np.isfinite(array).all():
            raise ModelError(f"tensor {name!r} holds an infinity or a NaN", where=str(self.path))
        return array
