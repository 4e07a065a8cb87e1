"""Element orders: where element (row, column) of a shard lies in the shard's bytes.

A shard is a padded_rows x padded_columns matrix of which rows x columns carry data. Micro-panels are 16 wide,
the inner dimension of the float16 matrix unit (evidence: known). With R, C the padded extents:

- `row-major`: r*C + c.
- `a16` (left operand and result of the matrix unit): column panels of 16; (c//16)*16*R + r*16 + c%16.
- `b16` (weights of the matrix unit, rows = inner dimension): for each panel of 16 columns and each 16 rows
  one block of 16 vectors of 16; ((c//16)*(R/16) + r//16)*256 + (c%16)*16 + r%16.
- `b8` (weights of the float32 matrix unit): for each panel of 16 columns and each 8 rows one block of 16
vectors of
  8; ((c//16)*(R/8) + r//8)*128 + (c%16)*8 + r%8.
- `a16t` (a transposed left operand: weights whose inner dimension is the rows): for each 16 rows C records of
  16; (r//16)*16*C + c*16 + r%16.
- `row16` (one vector over the columns, padded to 16): c, with R = 1.

Host arrays become device bytes by `pack_slices` and come back by `unpack_slices`. Conversion float32 to
float16 rounds to nearest, ties to even. A finite value that would round to infinity is refused by name, never
clamped; infinities and NaN exist in float16 and pass through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tilewright.errors import BindingError

from .records import Binding

PANEL = 16
"""Width of a micro-panel in elements."""

_CHUNK_ELEMENTS = 1 << 21
"""Elements placed per step: bounds the memory taken by indices."""


@dataclass(frozen=True)
class Order:
    """What an order asks of the padded extents; `single_row` orders hold one row."""

    row_multiple: int
    column_multiple: int
    single_row: bool = False


ORDERS: dict[str, Order] = {
    "row-major": Order(1, 1),
    "a16": Order(1, PANEL),
    "b16": Order(PANEL, PANEL),
    "b8": Order(8, PANEL),
    "a16t": Order(PANEL, 1),
    "row16": Order(1, PANEL, single_row=True),
}

DTYPES: dict[str, np.dtype[np.generic]] = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("float16", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32")
}
"""Element types of a binding: equal on both sides, or float32 on the host and float16 on the tile."""

CONVERSIONS = {("float32", "float16")}


Array = NDArray[np.int64]


def element_index(
    order: str, rows: int, columns: int, padded_rows: int, padded_columns: int
) -> NDArray[np.int64]:
    """Flat element index within the shard of every (row, column): int64 [rows, columns].

    The caller guarantees that the extents fit the order (`validate` does for packages); an unknown order is a
    BindingError.
    """
    r = np.arange(rows, dtype=np.int64)[:, None]
    c = np.arange(columns, dtype=np.int64)[None, :]
    return element_offset(order, r, c, padded_rows, padded_columns)


def element_offset(
    order: str, r: Array, c: Array, padded_rows: Array | int, padded_columns: Array | int
) -> Array:
    """Flat element index within its shard of element (r, c); arguments broadcast. As `element_index`."""
    if order == "row-major":
        return r * padded_columns + c
    if order == "a16":
        return c // PANEL * (PANEL * padded_rows) + r * PANEL + c % PANEL
    if order == "b16":
        block = c // PANEL * (padded_rows // PANEL) + r // PANEL
        return block * PANEL**2 + c % PANEL * PANEL + r % PANEL
    if order == "b8":
        block = c // PANEL * (padded_rows // 8) + r // 8
        return block * (8 * PANEL) + c % PANEL * 8 + r % 8
    if order == "a16t":
        return r // PANEL * (PANEL * padded_columns) + c * PANEL + r % PANEL
    if order == "row16":
        return c + 0 * r
    raise BindingError(f"unknown element order {order!r}", hint=f"known: {', '.join(ORDERS)}")


def pack_slices(binding: Binding, array: ArrayLike) -> bytes:
    """The binding's host byte string for `array` (binding.shape, host dtype): converted, ordered, padded.

    Raises BindingError for another shape or type, and for a value that the device type cannot hold.
    """
    source = np.asarray(array)
    if source.shape != binding.shape or source.dtype.newbyteorder("<") != DTYPES[binding.host_dtype]:
        raise BindingError(
            f"{binding.host_dtype}{list(binding.shape)} expected, {source.dtype}{list(source.shape)} given",
            where=f"binding {binding.name!r}",
        )
    matrix = _convert(binding, source).reshape(binding.view)
    out = np.zeros(-(-binding.nbytes // matrix.itemsize), matrix.dtype)
    for rows, columns, index in _placements(binding):
        out[index] = matrix[rows, columns]
    return out.tobytes()[: binding.nbytes]


def unpack_slices(binding: Binding, data: bytes | bytearray | memoryview) -> NDArray[np.generic]:
    """The array (binding.shape, host dtype) in a host byte string; the inverse of `pack_slices`.

    Raises BindingError when the string is too short or the slices leave elements of the binding uncovered.
    """
    device = DTYPES[binding.device_dtype]
    if len(data) < binding.nbytes:
        raise BindingError(
            f"{len(data)} bytes given, {binding.nbytes} expected", where=f"binding {binding.name!r}"
        )
    flat = np.frombuffer(data, device, count=binding.nbytes // device.itemsize)
    matrix = np.zeros(binding.view, device)
    covered = np.zeros(binding.view, np.bool_)
    for rows, columns, index in _placements(binding):
        matrix[rows, columns] = flat[index]
        covered[rows, columns] = True
    if not covered.all():
        row, column = np.argwhere(~covered)[0].tolist()
        raise BindingError(
            f"element ({row}, {column}) of its {binding.view[0]} x {binding.view[1]} view lies in no slice",
            where=f"binding {binding.name!r}",
        )
    return matrix.reshape(binding.shape).astype(np.dtype(binding.host_dtype))


def _convert(binding: Binding, source: NDArray[np.generic]) -> NDArray[np.generic]:
    device = DTYPES[binding.device_dtype]
    if binding.host_dtype == binding.device_dtype:
        return source.astype(device, copy=False)
    with np.errstate(over="ignore"):
        converted = source.astype(device)
    lost = np.isinf(converted) & np.isfinite(source)
    if lost.any():
        index = tuple(np.argwhere(lost)[0].tolist())
        raise BindingError(
            f"{source[index]!r} at index {list(index)} is beyond the range of {binding.device_dtype}",
            where=f"binding {binding.name!r}",
            hint=f"the largest value is {np.finfo(np.float16).max}; {int(lost.sum())} elements are larger",
        )
    return converted


Placement = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _placements(binding: Binding) -> Iterator[Placement]:
    """View rows, view columns and element index in the host byte string, broadcastable to each other.

    Slices of equal extents share one index computation, so the work per slice is array arithmetic.
    """
    itemsize = DTYPES[binding.device_dtype].itemsize
    extents = binding.slices[["rows", "columns", "padded_rows", "padded_columns"]]
    distinct, group = np.unique(extents, return_inverse=True)
    for number, shape in enumerate(distinct.tolist()):
        members = binding.slices[group == number]
        index = element_index(binding.order, *shape)
        step = max(1, _CHUNK_ELEMENTS // max(1, prod(index.shape)))
        for begin in range(0, len(members), step):
            part = members[begin : begin + step]
            rows = part["row"].astype(np.int64)[:, None] + np.arange(shape[0])
            columns = part["column"].astype(np.int64)[:, None] + np.arange(shape[1])
            offset = part["file_offset"].astype(np.int64) // itemsize
            yield rows[:, :, None], columns[:, None, :], offset[:, None, None] + index
