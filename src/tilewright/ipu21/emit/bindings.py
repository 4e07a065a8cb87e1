"""From buffers with addresses to bindings: what the host must know to pack and unpack arrays by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...package.records import SLICE, Binding
from ..lower.tile_work import TileWork
from ..machine.topology import to_physical
from ..place.placement import Placement
from ..plan.groups import Groups
from ..plan.layout import SHARD, Layout, matrix_view
from ..plan.movement import distinct_shards
from ..plan.steps import Buffer, Held


def device_dtype(layout: Layout) -> str:
    """Element type of a buffer of values."""
    return f"float{8 * layout.element_bytes}"


def make_binding(
    name: str,
    held: Held,
    shape: tuple[int, ...],
    host_dtype: str,
    work: TileWork,
    placement: Placement,
    *,
    replicas: bool,
) -> Binding:
    """The binding of a value of the graph.

    Args:
        replicas: every holder of a shard gets a slice (host to device); otherwise only the first (device to
            host). Replicas share one range of the host's byte string.
    """
    buffer = work.plan.buffers[held.buffer]
    whole = _slices(buffer, work, placement, replicas)
    return Binding(
        name=name,
        host_dtype=host_dtype,
        device_dtype=device_dtype(buffer.layout),
        shape=shape,
        order=buffer.layout.order,
        view=matrix_view(shape),
        slices=_without_padding(whole, buffer.layout, held),
    )


def _slices(buffer: Buffer, work: TileWork, placement: Placement, replicas: bool) -> NDArray[np.void]:
    """One slice per piece, in terms of the device's matrix."""
    distinct = distinct_shards(buffer.layout)
    holders = distinct.tiles[distinct.first[:-1]]
    sizes = buffer.layout.bytes[holders]
    offsets = np.cumsum(sizes) - sizes
    pieces = buffer.layout.pieces
    if not replicas:
        pieces = pieces[np.isin(pieces["tile"], holders)]
    tiles = pieces["tile"]
    slices = slices_of(pieces, buffer.layout)
    slices["address"] += buffer_addresses(buffer.name, work, placement)[tiles].astype(np.uint32)
    slices["file_offset"] += offsets[distinct.of_tile[tiles]].astype(np.uint64)
    return slices


def slices_of(pieces: NDArray[np.void], layout: Layout) -> NDArray[np.void]:
    """A slice for each piece; addresses and offsets count from the beginning of what its tile holds."""
    slices = np.zeros(len(pieces), dtype=SLICE)
    slices["tile"] = to_physical(pieces["tile"])
    slices["address"] = slices["file_offset"] = pieces["offset"]
    slices["size"] = pieces["padded_rows"] * pieces["padded_columns"] * layout.element_bytes
    for field in SHARD.names or ():
        slices[field] = pieces[field]
    return slices


def _without_padding(slices: NDArray[np.void], layout: Layout, held: Held) -> NDArray[np.void]:
    """Slices of the value's own columns, cut where padding lies between them.

    A slice stays whole if it covers no column that is not the value's and no padding but behind its last
    column.
    """
    groups = held.groups or Groups(1, held.columns, held.columns)
    units = layout.units
    if groups.count == 1 and held.column == 0 and held.columns == layout.column.extent:
        clipped = slices.copy()
        clipped["columns"] = np.minimum(
            slices["columns"], np.maximum(groups.width - slices["column"].astype(np.int64), 0)
        )
        return _closed_up(clipped[clipped["columns"] > 0])
    result: list[NDArray[np.void]] = []
    for group in range(groups.count):
        begin = held.column + group * groups.padded
        first = slices["column"].astype(np.int64)
        low = np.maximum(first, begin)
        high = np.minimum(first + slices["padded_columns"], begin + groups.padded)
        real = np.minimum(np.minimum(high, first + slices["columns"]), begin + groups.width) - low
        part = slices[real > 0]
        if not len(part):
            continue
        low, high, first, real = (array[real > 0] for array in (low, high, first, real))
        # The extent in memory: whole records.
        width = np.minimum(
            -(-(high - low) // units.columns) * units.columns, first + part["padded_columns"] - low
        )
        for block in range(int(part["padded_rows"].max()) // units.rows if units.by_rows else 1):
            piece = part.copy()
            records = low - first
            if units.by_rows:
                rows = np.minimum(part["rows"].astype(np.int64) - block * units.rows, units.rows)
                piece["row"] += block * units.rows
                piece["rows"], piece["padded_rows"] = np.maximum(rows, 0), units.rows
                records = records + block * part["padded_columns"].astype(np.int64)
            else:
                records = records // units.columns * (part["padded_rows"].astype(np.int64) // units.rows)
            piece["column"] = group * groups.width + low - begin
            piece["columns"], piece["padded_columns"] = real, width
            piece["address"] += (records * layout.record_bytes).astype(np.uint32)
            piece["file_offset"] += (records * layout.record_bytes).astype(np.uint64)
            piece["size"] = piece["padded_rows"].astype(np.int64) * width * layout.element_bytes
            result.append(piece[piece["rows"] > 0])
    return _closed_up(np.concatenate(result))


def _closed_up(slices: NDArray[np.void]) -> NDArray[np.void]:
    """Slices whose bytes follow each other on the host without holes; replicas still share theirs."""
    offsets, first, inverse = np.unique(slices["file_offset"], return_index=True, return_inverse=True)
    sizes = slices["size"][first].astype(np.uint64)
    assert len(offsets) == len(sizes)
    slices["file_offset"] = (np.cumsum(sizes) - sizes)[inverse.reshape(-1)]
    return slices


def buffer_addresses(buffer: str, work: TileWork, placement: Placement) -> NDArray[np.int64]:
    """Address of a buffer on each logical tile; -1 where the tile does not hold it."""
    per_class = np.array(
        [placed[buffer].address if buffer in placed else -1 for placed in placement.classes], dtype=np.int64
    )
    return per_class[work.class_of]
