"""Blobs, images and tiles: what the loader will put where."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np

from tilewright.errors import PackageError

from ..limits import MAX_BLOB_BYTES, MAX_TOTAL_BYTES
from ..records import EXECUTE, NO_BLOB, NO_MARKS, READ, WRITE, Image, Package, Segment
from ..target import ENTRY_POINT, IMAGE_BASE, LAUNCH_WORD, LOADABLE_END, REGION1_BASE, TILES
from .values import U32, aligned, unsigned


def check_blobs(package: Package) -> None:
    """Blobs are non-empty, bounded and all different."""
    seen: dict[bytes, int] = {}
    total = 0
    for index, blob in enumerate(package.blobs):
        where = f"blob {index}"
        if not isinstance(blob, bytes) or not blob:
            raise PackageError("is empty or no byte string", where=where)
        if len(blob) > MAX_BLOB_BYTES:
            raise PackageError(f"{len(blob)} bytes are over the limit of {MAX_BLOB_BYTES}", where=where)
        total += len(blob)
        other = seen.setdefault(hashlib.sha256(blob).digest(), index)
        if other != index:
            raise PackageError(
                f"has the content of blob {other}", where=where, hint="equal bytes are one blob"
            )
    if total > MAX_TOTAL_BYTES:
        raise PackageError(f"blobs of {total} bytes are over the limit of {MAX_TOTAL_BYTES}")


def check_tiles(package: Package) -> None:
    """Every tile of the chip once, in order: the loader addresses tiles by their place in the list."""
    for position, tile in enumerate(package.tiles):
        where = f"tile entry {position}"
        unsigned(tile.physical_tile, "physical tile", where)
        unsigned(tile.image, "image", where)
        if tile.physical_tile != position:
            raise PackageError(
                f"physical tile {tile.physical_tile} where {position} belongs",
                where=where,
                hint=f"a package lists tiles 0..{TILES - 1} in order, each once",
            )
        if tile.image >= len(package.images):
            raise PackageError(f"image {tile.image} of only {len(package.images)}", where=where)
    if len(package.tiles) != TILES:
        raise PackageError(f"{len(package.tiles)} tiles instead of all {TILES}")


def check_images(package: Package) -> None:
    """Images are what the loader and the entry contract ask for."""
    for index, image in enumerate(package.images):
        where = f"image {index}"
        if not image.segments:
            raise PackageError("has no segments", where=where)
        for number, segment in enumerate(image.segments):
            _check_segment(package, segment, f"{where}, segment {number}")
        _check_overlap(image, where)
        _check_start(package, image, where)
        for name, address in (("command", image.command_address), ("diagnostic", image.diagnostic_address)):
            unsigned(address, f"{name} address", where)
            aligned(address, 4, f"{name} address", where)
            if address and not any(_holds(segment, address, 4) for segment in image.segments):
                raise PackageError(f"{name} address {address:#x} lies in no segment", where=where)
        tables = len(package.profile.mark_tables)
        if not isinstance(image.mark_table, int | np.integer) or not NO_MARKS <= image.mark_table < tables:
            raise PackageError(f"mark table {image.mark_table} of only {tables}", where=where)


def _check_segment(package: Package, segment: Segment, where: str) -> None:
    unsigned(segment.address, "address", where)
    unsigned(segment.memory_size, "memory size", where)
    unsigned(segment.file_size, "file size", where)
    unsigned(segment.blob_offset, "blob offset", where, maximum=(1 << 64) - 1)
    unsigned(segment.flags, "flags", where)
    if segment.flags & ~(READ | WRITE | EXECUTE):
        raise PackageError(
            f"unknown flags {segment.flags:#x}", where=where, hint="known: 1 read, 2 write, 4 execute"
        )
    if segment.memory_size == 0:
        raise PackageError("occupies no memory", where=where)
    aligned(segment.address, 4, "address", where)
    end = segment.address + segment.memory_size
    if segment.address < IMAGE_BASE or end > LOADABLE_END:
        raise PackageError(
            f"{segment.address:#x}..{end:#x} leaves the loadable memory {IMAGE_BASE:#x}..{LOADABLE_END:#x}",
            where=where,
        )
    if segment.flags & EXECUTE and end > REGION1_BASE:
        raise PackageError(
            f"executable up to {end:#x}, but code runs only below {REGION1_BASE:#x}", where=where
        )
    if segment.file_size > segment.memory_size:
        raise PackageError(
            f"{segment.file_size} file bytes in {segment.memory_size} bytes of memory", where=where
        )
    if segment.blob == NO_BLOB:
        if segment.file_size or segment.blob_offset:
            raise PackageError("takes bytes but names no blob", where=where)
        return
    unsigned(segment.blob, "blob", where, maximum=U32 - 1)
    if segment.blob >= len(package.blobs):
        raise PackageError(f"blob {segment.blob} of only {len(package.blobs)}", where=where)
    length = len(package.blobs[segment.blob])
    if segment.blob_offset + segment.file_size > length:
        raise PackageError(
            f"bytes {segment.blob_offset}..{segment.blob_offset + segment.file_size} of blob {segment.blob}, "
            f"which has {length}",
            where=where,
        )


def _check_overlap(image: Image, where: str) -> None:
    order = sorted(range(len(image.segments)), key=lambda number: image.segments[number].address)
    for low, high in pairwise(order):
        end = image.segments[low].address + image.segments[low].memory_size
        if end > image.segments[high].address:
            raise PackageError(
                f"segments {low} and {high} overlap at {image.segments[high].address:#x}", where=where
            )


def _check_start(package: Package, image: Image, where: str) -> None:
    lowest = min(image.segments, key=lambda segment: segment.address)
    if lowest.address != IMAGE_BASE:
        raise PackageError(f"lowest segment at {lowest.address:#x}, not at {IMAGE_BASE:#x}", where=where)
    word = int.from_bytes(package.segment_bytes(lowest)[:4], "little")
    if lowest.file_size < 4 or word != LAUNCH_WORD:
        raise PackageError(
            f"word at {IMAGE_BASE:#x} is {word:#010x}, not the reserved nop {LAUNCH_WORD:#010x}", where=where
        )
    unsigned(image.entry_point, "entry point", where)
    if image.entry_point != ENTRY_POINT:
        raise PackageError(
            f"entry point {image.entry_point:#x}: the loader starts every tile at {ENTRY_POINT:#x}",
            where=where,
        )
    executable = (segment for segment in image.segments if segment.flags & EXECUTE)
    if not any(_holds(segment, ENTRY_POINT, 4, in_file=True) for segment in executable):
        raise PackageError(f"entry point {ENTRY_POINT:#x} lies in no executable segment's bytes", where=where)


def _holds(segment: Segment, address: int, size: int, *, in_file: bool = False) -> bool:
    extent = segment.file_size if in_file else segment.memory_size
    return segment.address <= address and address + size <= segment.address + extent
