"""Bindings: every element of a tensor has one known place in the host's bytes and on the tiles."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import PackageError

from ..limits import MAX_TOTAL_BYTES
from ..orders import CONVERSIONS, DTYPES, ORDERS
from ..records import NO_BLOB, SLICE, Binding, Package
from ..target import TILE_BASE, TILE_END, TILES
from .segments import Segments, Spans
from .values import U32, column, distinct, first, table, text, unsigned

_MAX_RANK = 16
_SLICE_ALIGNMENT = 8
_MAX_GRID = 1 << 24
"""Cells of the grid of slice edges on which coverage is counted. 1,472 slices that are all cut at different
rows and different columns need half of it."""


def check_bindings(package: Package, segments: Segments) -> None:
    """All three groups; weights additionally have their bytes."""
    groups = (("input", package.inputs), ("output", package.outputs), ("weight", package.weights))
    for kind, group in groups:
        for number, binding in enumerate(group):
            text(binding.name, "name", f"{kind} {number}")
    distinct((binding.name for _, group in groups for binding in group), "binding name", "bindings")
    code = segments.spans(segments.executable, segments.memory_size)
    for kind, group in groups:
        for binding in group:
            where = f"{kind} {binding.name!r}"
            check_type(binding, where)
            check_slices(binding, where, once=kind == "output")
            _check_code(package, binding, code, where)
            _check_blob(package, binding, where, weight=kind == "weight")
        if sum(binding.nbytes for binding in group) > MAX_TOTAL_BYTES:
            raise PackageError(f"{kind} bytes of all bindings are over the limit of {MAX_TOTAL_BYTES}")
    _check_shared_memory([*package.inputs, *package.weights])


def check_type(binding: Binding, where: str) -> None:
    """Types, order, shape and view are known and agree."""
    known = f"known: {', '.join(DTYPES)}"
    for side, dtype in (("host", binding.host_dtype), ("device", binding.device_dtype)):
        if dtype not in DTYPES:
            raise PackageError(f"unknown {side} type {dtype!r}", where=where, hint=known)
    pair = binding.host_dtype, binding.device_dtype
    if pair[0] != pair[1] and pair not in CONVERSIONS:
        raise PackageError(f"no conversion from host {pair[0]} to device {pair[1]}", where=where)
    if binding.order not in ORDERS:
        raise PackageError(
            f"unknown element order {binding.order!r}", where=where, hint=f"known: {', '.join(ORDERS)}"
        )
    if len(binding.shape) > _MAX_RANK:
        raise PackageError(f"rank {len(binding.shape)} is over {_MAX_RANK}", where=where)
    if len(binding.view) != 2:
        raise PackageError(f"view {binding.view} is not rows and columns", where=where)
    for name, extents in (("shape", binding.shape), ("view", binding.view)):
        for extent in extents:
            unsigned(extent, f"{name} extent", where)
            if extent == 0:
                raise PackageError(f"{name} {list(extents)} has no elements", where=where)
    if prod(binding.view) != prod(binding.shape):
        raise PackageError(
            f"view of {binding.view[0]} x {binding.view[1]} for shape {list(binding.shape)}", where=where
        )


def check_slices(binding: Binding, where: str, *, once: bool) -> None:
    """Slices lie in tile memory and cover every element; with `once`, none of them twice."""
    table(binding.slices, SLICE, "slices", where)
    rows = binding.slices
    if not len(rows):
        raise PackageError("has no slices", where=where)

    def refuse(mask: NDArray[np.bool_], what: str) -> None:
        number = first(mask)
        if number is not None:
            values = ", ".join(f"{key} {rows[key][number]}" for key in SLICE.names or ())
            raise PackageError(f"slice {number} {what}", where=where, hint=values)

    size, address, offset = column(rows, "size"), column(rows, "address"), column(rows, "file_offset")
    refuse(column(rows, "tile") >= TILES, f"is on a tile that does not exist (0..{TILES - 1})")
    refuse(size == 0, "has no bytes")
    refuse((address < TILE_BASE) | (address + size > TILE_END), "leaves the tile memory")
    # 64-bit offsets above this bound would wrap in the sums below.
    refuse(
        rows["file_offset"] > np.uint64(MAX_TOTAL_BYTES), f"is over {MAX_TOTAL_BYTES} bytes into the binding"
    )
    for key in ("address", "size", "file_offset"):
        refuse(rows[key] % _SLICE_ALIGNMENT != 0, f"needs a multiple of {_SLICE_ALIGNMENT} as {key}")

    row, high, deep = column(rows, "row"), column(rows, "rows"), column(rows, "padded_rows")
    left, wide, broad = column(rows, "column"), column(rows, "columns"), column(rows, "padded_columns")
    order = ORDERS[binding.order]
    refuse((high == 0) | (wide == 0), "carries no elements")
    refuse((row + high > binding.view[0]) | (left + wide > binding.view[1]), "leaves the binding's view")
    refuse((high > deep) | (wide > broad), "carries more than its padded extents")
    refuse(deep % order.row_multiple != 0, f"has padded rows that {binding.order} does not allow")
    refuse(broad % order.column_multiple != 0, f"has padded columns that {binding.order} does not allow")
    if order.single_row:
        refuse(deep != 1, f"has more than the one row of {binding.order}")
    # Both factors are below 2^32 and the smaller is bounded by the tile memory, so compare by division.
    elements = size // DTYPES[binding.device_dtype].itemsize
    refuse((deep > elements // broad), "is too small for its padded extents")

    _check_file_ranges(rows, offset, size, where)
    _check_coverage(binding, where, once=once)


def _check_file_ranges(
    rows: NDArray[np.void], offset: NDArray[np.int64], size: NDArray[np.int64], where: str
) -> None:
    """The byte string has no holes; slices that share bytes are copies of the same part."""
    order = np.argsort(offset, kind="stable")
    begin, end = offset[order], (offset + size)[order]
    if begin[0] != 0:
        raise PackageError(f"the first {begin[0]} bytes belong to no slice", where=where)
    same = (begin[1:] == begin[:-1]) & (end[1:] == end[:-1])
    gap = first(~same & (begin[1:] != end[:-1]))
    if gap is not None:
        fault = "overlap" if begin[gap + 1] < end[gap] else "leave a hole"
        raise PackageError(
            f"slices {order[gap]} and {order[gap + 1]} {fault} at byte {begin[gap + 1]} of the host bytes",
            where=where,
        )
    part = rows[["row", "rows", "padded_rows", "column", "columns", "padded_columns"]][order]
    differs = first(same & (part[1:] != part[:-1]))
    if differs is not None:
        raise PackageError(
            f"slices {order[differs]} and {order[differs + 1]} share host bytes but not their place",
            where=where,
        )


def _check_coverage(binding: Binding, where: str, *, once: bool) -> None:
    """Every element lies in a slice (an output's in exactly one), counted on the grid of all slice edges."""
    places = binding.slices
    row, left = column(places, "row"), column(places, "column")
    row_edges = np.unique(np.concatenate([row, row + column(places, "rows"), [0, binding.view[0]]]))
    column_edges = np.unique(np.concatenate([left, left + column(places, "columns"), [0, binding.view[1]]]))
    if len(row_edges) * len(column_edges) > _MAX_GRID:
        raise PackageError(f"{len(places)} slices are cut at too many different places", where=where)
    top = np.searchsorted(row_edges, row)
    bottom = np.searchsorted(row_edges, row + column(places, "rows"))
    start = np.searchsorted(column_edges, left)
    stop = np.searchsorted(column_edges, left + column(places, "columns"))
    counts = np.zeros((len(row_edges), len(column_edges)), np.int32)
    for rows, columns, sign in ((top, start, 1), (top, stop, -1), (bottom, start, -1), (bottom, stop, 1)):
        np.add.at(counts, (rows, columns), sign)
    np.cumsum(counts, 0, out=counts)
    np.cumsum(counts, 1, out=counts)
    counts = counts[:-1, :-1]
    for fault, mask in (("no slice", counts == 0), ("several slices", counts > 1 if once else counts < 0)):
        if mask.any():
            r, c = np.argwhere(mask)[0].tolist()
            raise PackageError(f"element ({row_edges[r]}, {column_edges[c]}) lies in {fault}", where=where)


def _check_blob(package: Package, binding: Binding, where: str, *, weight: bool) -> None:
    if not weight:
        if binding.blob != NO_BLOB:
            raise PackageError("only weights have a blob", where=where)
        return
    unsigned(binding.blob, "blob", where, maximum=U32 - 1)
    if binding.blob >= len(package.blobs):
        raise PackageError(f"blob {binding.blob} of only {len(package.blobs)}", where=where)
    length = len(package.blobs[binding.blob])
    if length != binding.nbytes:
        raise PackageError(f"blob of {length} bytes for slices of {binding.nbytes}", where=where)


def _check_code(package: Package, binding: Binding, code: Spans, where: str) -> None:
    """The host never writes over a program, nor reads one."""
    images = np.array([tile.image for tile in package.tiles], np.int64)
    base = images[binding.slices["tile"]] << 32
    begin = base + column(binding.slices, "address")
    end = begin + column(binding.slices, "size")
    hit = first(code.meet(begin, end))
    if hit is not None:
        place = binding.slices[hit]
        raise PackageError(
            f"slice {hit} at {int(place['address']):#x} of tile {place['tile']} lies in executable memory",
            where=where,
        )


def _check_shared_memory(bindings: list[Binding]) -> None:
    """Nothing the host writes lands on something else the host writes."""
    if not bindings:
        return
    rows = np.concatenate([binding.slices for binding in bindings])
    owner = np.repeat(np.arange(len(bindings)), [len(binding.slices) for binding in bindings])
    begin = column(rows, "tile") << 32 | column(rows, "address")
    order = np.argsort(begin, kind="stable")
    end = begin + column(rows, "size")
    hit = first(end[order][:-1] > begin[order][1:])
    if hit is not None:
        low, high = order[hit], order[hit + 1]
        raise PackageError(
            f"on tile {rows['tile'][high]}, {bindings[owner[low]].name!r} and {bindings[owner[high]].name!r} "
            f"both hold {int(rows['address'][high]):#x}",
            where="bindings",
        )
