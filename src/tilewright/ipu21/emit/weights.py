"""Constants as the tiles hold them before the program begins: part of the tile images, in their final
layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...package.orders import pack_slices
from ...package.records import READ, WRITE, Binding, Segment
from ..kernels.gemm import LOOK_AHEAD
from ..lower.tile_work import TileWork
from ..place.placement import Placement
from ..plan.groups import pad
from ..plan.layout import Layout
from ..plan.movement import distinct_shards, retile
from ..plan.steps import Listing, WeightUse
from .bindings import buffer_addresses, device_dtype, slices_of
from .images import ImageBlobs

Floats = NDArray[np.float32]


@dataclass
class Weights:
    """What `store_weights` found.

    Attributes:
        bindings: one per weight buffer.
        segments: per logical tile.
    """

    bindings: list[Binding]
    segments: list[list[Segment]]


def weight_matrix(use: WeightUse, constants: Mapping[str, NDArray[Any]]) -> Floats:
    """The matrices of all iterations below each other: [iterations * rows, columns], with padding of
    groups.
    """
    rows = use.shape[0]
    parts = []
    for position, name in enumerate(use.constants):
        if not name:
            parts.append(np.zeros((use.iterations, rows, use.widths[position]), np.float32))
            continue
        data = np.asarray(constants[name], np.float32)
        if use.broadcast:
            data = _broadcast(data, use)
        height = 1 if use.stacked or use.repeated else rows
        data = (
            data.reshape(use.iterations, -1, height)
            if use.transposed
            else data.reshape(use.iterations, height, -1)
        )
        data = data.transpose(0, 2, 1) if use.transposed else data
        parts.append(np.repeat(data, rows, axis=1) if use.repeated else data)
    groups = use.column_groups or (None,) * len(parts)
    if use.stacked:
        matrix = pad(np.concatenate(parts, axis=1), groups[0], 2)
    else:
        padded = [pad(part, own, 2) for part, own in zip(parts, groups, strict=True)]
        matrix = np.concatenate(padded, axis=2)
    matrix = pad(matrix, use.row_groups, 1)
    if use.turned:
        matrix = matrix.transpose(0, 2, 1)
    return np.ascontiguousarray(matrix.reshape(-1, matrix.shape[2]))


def _broadcast(data: Floats, use: WeightUse) -> Floats:
    """The constant as the operation sees it, behind an axis for the iterations."""
    own = data.shape
    if use.iterations > 1 or len(own) > len(use.broadcast):
        own = own[1:]
    missing = (1,) * (len(use.broadcast) - len(own))
    shape = (use.iterations, *use.broadcast)
    return np.broadcast_to(data.reshape(use.iterations, *missing, *own), shape)


class _Stored:
    """A weight buffer: every distinct shard once in the blob, its iterations one after another."""

    def __init__(self, layout: Layout, use: WeightUse, addresses: NDArray[np.int64]) -> None:
        self.layout, self.iterations, self.addresses = layout, use.iterations, addresses
        distinct = distinct_shards(layout)
        self.holders = distinct.tiles[distinct.first[:-1]]
        self.tiles = np.flatnonzero(distinct.of_tile >= 0)
        sizes = layout.bytes[self.holders] * use.iterations
        self.offset = (np.cumsum(sizes) - sizes)[distinct.of_tile]

    def binding(self, name: str, matrix: Floats, tiles: NDArray[np.int64]) -> Binding:
        """The binding with a slice per piece and iteration on each of some tiles."""
        pieces = self.layout.pieces
        pieces = pieces[np.isin(pieces["tile"], tiles)]
        tile, number = pieces["tile"][:, None], np.arange(self.iterations)[None, :]
        begin = number * self.layout.bytes[tile]
        slices = np.repeat(slices_of(pieces, self.layout)[:, None], self.iterations, axis=1)
        slices["address"] += (self.addresses[tile] + begin).astype(np.uint32)
        slices["file_offset"] += (self.offset[tile] + begin).astype(np.uint64)
        slices["row"] += (number * (len(matrix) // self.iterations)).astype(np.uint32)
        view = (matrix.shape[0], matrix.shape[1])
        return Binding(
            name, "float32", device_dtype(self.layout), view, self.layout.order, view, slices.reshape(-1)
        )

    def segment(self, tile: int, blob: int) -> Segment:
        """What the tile is loaded with."""
        size = int(self.layout.bytes[tile]) * self.iterations
        return Segment(int(self.addresses[tile]), size, blob, int(self.offset[tile]), size, READ | WRITE)


def store_weights(
    work: TileWork,
    placement: Placement,
    constants: Mapping[str, NDArray[Any]],
    store: ImageBlobs,
    taken: set[str],
) -> Weights:
    """Pack every weight once, and name the bytes in the image of every tile that holds them.

    Args:
        taken: names of other bindings. A weight that is called so gets another name.
    """
    plan = work.plan
    result = Weights([], [[] for _ in range(plan.tiles)])
    for name, use in plan.weights.items():
        if name not in plan.buffers:
            continue
        stored = _Stored(plan.buffers[name].layout, use, buffer_addresses(name, work, placement))
        matrix = weight_matrix(use, constants)
        blob = store.add(pack_slices(stored.binding(name, matrix, stored.holders), matrix))
        binding = stored.binding(f"{name}@weight" if name in taken else name, matrix, stored.tiles)
        binding.blob = blob
        result.bindings.append(binding)
        for tile in stored.tiles.tolist():
            result.segments[tile].append(stored.segment(tile, blob))
    for name, tables in plan.tables.items():
        addresses = buffer_addresses(name, work, placement)
        for tile, data in tables.items():
            result.segments[tile].append(store.segment(int(addresses[tile]), data, READ | WRITE))
    for name, listing in plan.listings.items():
        addresses = buffer_addresses(name, work, placement)
        for tile, words in _listed(listing, work, placement).items():
            result.segments[tile].append(store.segment(int(addresses[tile]), words.tobytes(), READ | WRITE))
    return result


def _listed(listing: Listing, work: TileWork, placement: Placement) -> dict[int, NDArray[np.uint32]]:
    """The words of a list on each tile that has one."""
    buffers = work.plan.buffers
    own, others = buffers[listing.own].layout, buffers[listing.others].layout
    own_addresses, addresses = (
        buffer_addresses(name, work, placement) for name in (listing.own, listing.others)
    )
    panels = others.bytes // others.record_bytes
    tiles = np.flatnonzero(panels)
    places = np.arange(int(panels.max(initial=0)) + LOOK_AHEAD) % panels[tiles][:, None]
    table = addresses[tiles][:, None] + places * others.record_bytes
    row_of = np.full(others.tiles, -1)
    row_of[tiles] = np.arange(len(tiles))
    copies = retile(own, others, hearing="none").copies
    size = others.record_bytes // 8
    count = copies["words"] // size
    which = np.repeat(np.arange(len(copies)), count)
    step = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    tile = copies["tile"][which]
    place = copies["destination_offset"][which] // others.record_bytes + step
    held = copies["source_offset"][which] + step * others.record_bytes
    table[row_of[tile], place] = own_addresses[tile] + held
    return dict(zip(tiles.tolist(), table.astype("<u4"), strict=True))
