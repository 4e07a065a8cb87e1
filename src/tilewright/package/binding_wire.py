"""Bindings, tables and lists of numbers to parts of a message and back; shared by all parts of the format."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import PackageError

from .blobs import Budget, compress, expand
from .records import SLICE, Binding

NONE = 0xFFFFFFFF
"""The number that the file has for "none"."""


def put_binding(item: Any, binding: Binding) -> None:
    """Fill a message's binding."""
    item.name = binding.name
    item.hostDtype = binding.host_dtype
    item.deviceDtype = binding.device_dtype
    item.shape = read_numbers(binding.shape)
    item.order = binding.order
    item.viewRows, item.viewColumns = read_numbers(binding.view)
    item.slices = binding.slices.tobytes()
    item.blob = int(binding.blob & NONE)


def get_binding(item: Any) -> Binding:
    """The binding in a message. Raises PackageError for slices that are no whole rows."""
    name = str(item.name)
    return Binding(
        name=name,
        host_dtype=str(item.hostDtype),
        device_dtype=str(item.deviceDtype),
        shape=tuple(int(extent) for extent in item.shape),
        order=str(item.order),
        view=(int(item.viewRows), int(item.viewColumns)),
        slices=read_table(item.slices, SLICE, f"slices of binding {name[:80]!r}"),
        blob=read_index(int(item.blob)),
    )


def put_blob(item: Any, data: bytes, digest: bytes | None = None) -> None:
    """Fill a message's blob; `digest` is its SHA-256 when the caller has it already."""
    item.sha256 = digest or hashlib.sha256(data).digest()
    item.size = len(data)
    item.codec, item.data = compress(data)


def get_blob(item: Any, budget: Budget, where: str) -> bytes:
    """The bytes in a message's blob. Raises PackageError."""
    return expand(int(item.codec), bytes(item.data), int(item.size), bytes(item.sha256), budget, where)


def read_index(value: int) -> int:
    """A number of the file, -1 where it says that there is none."""
    return -1 if value == NONE else value


def read_table(data: Any, dtype: np.dtype[np.void], where: str) -> NDArray[np.void]:
    """The records in packed bytes. Raises PackageError."""
    return read_rows(bytes(data), dtype, where)


def read_rows(data: bytes, dtype: np.dtype[Any], where: str) -> NDArray[Any]:
    """The numbers or records in packed bytes. Raises PackageError."""
    if len(data) % dtype.itemsize:
        raise PackageError(
            f"{len(data)} bytes are no whole number of {dtype.itemsize}-byte rows", where=where
        )
    return np.frombuffer(data, dtype).copy()


def read_numbers(values: Sequence[Any]) -> list[int]:
    """Python integers, for either direction."""
    return [int(value) for value in values]
