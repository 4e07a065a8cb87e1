"""From buffers with addresses to bindings: what the host must know to pack and unpack arrays by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...package.records import NO_BLOB, SLICE, Binding
from ..lower.tile_work import TileWork
from ..machine.topology import to_physical
from ..place.placement import Placement
from ..plan.layout import SHARD
from ..plan.movement import distinct_shards
from ..plan.steps import Buffer

DEVICE_DTYPE = "float16"


def make_binding(
    name: str,
    buffer: Buffer,
    shape: tuple[int, ...],
    host_dtype: str,
    work: TileWork,
    placement: Placement,
    *,
    replicas: bool,
    blob: int = NO_BLOB,
) -> Binding:
    """The binding of one buffer.

    Args:
        replicas: every holder of a shard gets a slice (host to device); otherwise only the first (device to
            host). Replicas share one range of the host's byte string.
    """
    return Binding(
        name=name,
        host_dtype=host_dtype,
        device_dtype=DEVICE_DTYPE,
        shape=shape,
        order=buffer.layout.order,
        view=buffer.layout.view,
        slices=_slices(buffer, work, placement, replicas),
        blob=blob,
    )


def _slices(buffer: Buffer, work: TileWork, placement: Placement, replicas: bool) -> NDArray[np.void]:
    shards = buffer.layout.shards
    distinct = distinct_shards(buffer.layout)
    holders = distinct.tiles[distinct.first[:-1]]
    sizes = buffer.layout.bytes[holders]
    offsets = np.cumsum(sizes) - sizes
    tiles = np.flatnonzero(distinct.of_tile >= 0) if replicas else holders
    slices = np.zeros(len(tiles), dtype=SLICE)
    slices["tile"] = to_physical(tiles)
    slices["address"] = [placement.address(int(work.class_of[tile]), buffer.name) for tile in tiles]
    slices["file_offset"] = offsets[distinct.of_tile[tiles]]
    slices["size"] = buffer.layout.bytes[tiles]
    for field in SHARD.names or ():
        slices[field] = shards[field][tiles]
    return slices
