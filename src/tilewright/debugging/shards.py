"""Tensors that lie in the memories of many tiles: read, put together, compared part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.machine.memory import TILE_BASE
from tilewright.package.orders import DTYPES, element_index
from tilewright.package.records import Binding

Memory = Callable[[int], NDArray[np.uint8]]
"""Memory of a physical tile; index 0 is its first address."""

_CHUNK_ELEMENTS = 1 << 21
"""Elements looked at in one step: bounds the memory taken by indices."""


@dataclass(frozen=True, eq=False)
class Shards:
    """Parts of equal extents.

    Attributes:
        tiles: physical id of each, [n].
        addresses: byte address of each, [n].
        rows, columns: of the binding's view, [n, r] and [n, c].
        index: element within the part's memory, [r, c].
        values: [n, r, c], in the device's type.
    """

    tiles: NDArray[np.int64]
    addresses: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    index: NDArray[np.int64]
    values: NDArray[np.generic]

    def of(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same parts of a matrix of the binding's view."""
        return np.asarray(matrix[self.rows[:, :, None], self.columns[:, None, :]])


def read_shards(memory: Memory, binding: Binding) -> Iterator[Shards]:
    """Every part that a tile holds, replicas included."""
    dtype = DTYPES[binding.device_dtype]
    extents = binding.slices[["rows", "columns", "padded_rows", "padded_columns"]]
    distinct, group = np.unique(extents, return_inverse=True)
    for number, shape in enumerate(distinct.tolist()):
        members = binding.slices[group.reshape(-1) == number]
        index = element_index(binding.order, *shape)
        step = max(1, _CHUNK_ELEMENTS // max(1, index.size))
        for begin in range(0, len(members), step):
            part = members[begin : begin + step]
            values = np.empty((len(part), *index.shape), dtype)
            for place, (tile, address, size) in enumerate(part[["tile", "address", "size"]].tolist()):
                data = memory(tile)[address - TILE_BASE : address - TILE_BASE + size]
                values[place] = data[: size // dtype.itemsize * dtype.itemsize].view(dtype)[index]
            yield Shards(
                tiles=part["tile"].astype(np.int64),
                addresses=part["address"].astype(np.int64),
                rows=part["row"].astype(np.int64)[:, None] + np.arange(shape[0]),
                columns=part["column"].astype(np.int64)[:, None] + np.arange(shape[1]),
                index=index,
                values=values,
            )


def gather(memory: Memory, binding: Binding) -> NDArray[np.float64]:
    """The tensor, in the binding's shape. Of replicas any one counts."""
    matrix = np.full(binding.view, np.nan)
    for part in read_shards(memory, binding):
        matrix[part.rows[:, :, None], part.columns[:, None, :]] = part.values
    return matrix.reshape(binding.shape)


@dataclass(frozen=True)
class Difference:
    """Where a tensor on the tiles is not what it should be.

    Attributes:
        tile, address: of the first wrong element in row-major order; the lowest tile that has it wrong.
        element: its index. found, expected, bound: what is there, what should be, and how far it may be off.
        wrong: elements that are wrong somewhere. tiles: tiles with any.
    """

    tile: int
    address: int
    element: tuple[int, ...]
    found: float
    expected: float
    bound: float
    wrong: int
    tiles: int


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`: the difference if there is one, and the largest error in units of the bound."""

    difference: Difference | None
    worst: float


def compare(
    memory: Memory,
    binding: Binding,
    expected: NDArray[np.generic],
    bound: float | NDArray[np.generic],
) -> Comparison:
    """Every part on every tile against `expected` (the binding's shape).

    An element may be off by `bound` (a number, or one per element). A NaN must meet a NaN, and an infinity
    the same infinity.
    """
    want = np.asarray(expected, np.float64).reshape(binding.view)
    allowed = np.broadcast_to(np.asarray(bound, np.float64), binding.shape).reshape(binding.view)
    wrong = np.zeros(binding.view, np.bool_)
    first: tuple[int, int, int, float] | None = None
    bad_tiles: set[int] = set()
    worst = 0.0
    itemsize = DTYPES[binding.device_dtype].itemsize
    for part in read_shards(memory, binding):
        got, should, limit = part.values.astype(np.float64), part.of(want), part.of(allowed)
        special = ~np.isfinite(got) | ~np.isfinite(should)
        same = (got == should) | (np.isnan(got) & np.isnan(should))
        with np.errstate(invalid="ignore", divide="ignore"):
            distance = np.where(special, np.where(same, 0.0, np.inf), np.abs(got - should))
            ratio = np.where(distance == 0, 0.0, distance / limit)
        worst = max(worst, float(ratio.max(initial=0.0)))
        bad = ~(distance <= limit)
        if not bad.any():
            continue
        place, row, column = np.nonzero(bad)
        wrong[part.rows[place, row], part.columns[place, column]] = True
        bad_tiles.update(part.tiles[np.unique(place)].tolist())
        flat = part.rows[place, row] * binding.view[1] + part.columns[place, column]
        best = int(np.lexsort((part.tiles[place], flat))[0])
        address = int(part.addresses[place[best]] + part.index[row[best], column[best]] * itemsize)
        found = (
            int(flat[best]),
            int(part.tiles[place[best]]),
            address,
            float(got[place[best], row[best], column[best]]),
        )
        if first is None or found[:2] < first[:2]:
            first = found
    if first is None:
        return Comparison(None, worst)
    element = tuple(int(axis) for axis in np.unravel_index(first[0], binding.shape))
    return Comparison(
        Difference(
            tile=first[1],
            address=first[2],
            element=element,
            found=first[3],
            expected=float(want.reshape(-1)[first[0]]),
            bound=float(allowed.reshape(-1)[first[0]]),
            wrong=int(np.count_nonzero(wrong)),
            tiles=len(bad_tiles),
        ),
        worst,
    )
