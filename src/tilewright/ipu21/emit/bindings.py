"""From buffers with addresses to bindings: what the host must know to pack and unpack arrays by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...package.records import NO_BLOB, SLICE, Binding
from ..lower.tile_work import TileWork
from ..machine.topology import to_physical
from ..place.placement import Placement
from ..plan.layout import SHARD
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
    tiles = np.flatnonzero(shards["rows"] > 0)
    keys = np.stack([shards[field][tiles] for field in SHARD.names or ()], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    shard_number = rank[inverse]
    sizes = np.zeros(len(first), dtype=np.int64)
    sizes[shard_number] = buffer.layout.bytes[tiles]
    offsets = np.cumsum(sizes) - sizes
    if not replicas:
        keep = np.sort(first)
        tiles, shard_number = tiles[keep], shard_number[keep]
    slices = np.zeros(len(tiles), dtype=SLICE)
    slices["tile"] = to_physical(tiles)
    slices["address"] = [placement.address(int(work.class_of[tile]), buffer.name) for tile in tiles]
    slices["file_offset"] = offsets[shard_number]
    slices["size"] = buffer.layout.bytes[tiles]
    for field in SHARD.names or ():
        slices[field] = shards[field][tiles]
    return slices
