"""Blobs, images and tiles: what the loader will put where."""

from __future__ import annotations

import hashlib

import numpy as np

from tilewright.errors import PackageError

from ..limits import MAX_BLOB_BYTES, MAX_TOTAL_BYTES
from ..records import EXECUTE, NO_BLOB, NO_MARKS, READ, WRITE, Package
from ..target import ENTRY_POINT, IMAGE_BASE, LAUNCH_WORD, LOADABLE_END, REGION1_BASE, TILES
from .segments import Segments
from .values import aligned, first, unsigned


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


def check_images(package: Package, segments: Segments) -> None:
    """Images are what the loader and the entry contract ask for."""
    for index, image in enumerate(package.images):
        where = f"image {index}"
        if not image.segments:
            raise PackageError("has no segments", where=where)
        unsigned(image.entry_point, "entry point", where)
        for name, address in (("command", image.command_address), ("diagnostic", image.diagnostic_address)):
            unsigned(address, f"{name} address", where)
            aligned(address, 4, f"{name} address", where)
        tables = len(package.profile.mark_tables)
        if not isinstance(image.mark_table, int | np.integer) or not NO_MARKS <= image.mark_table < tables:
            raise PackageError(f"mark table {image.mark_table} of only {tables}", where=where)
    _check_places(segments)
    _check_blobs_of(package, segments)
    _check_overlap(segments)
    _check_start(package, segments)
    memory = segments.spans(segments.memory_size > 0, segments.memory_size)
    for name in ("command", "diagnostic"):
        places = np.array([getattr(image, f"{name}_address") for image in package.images], np.int64)
        begin = np.arange(len(places)) << 32 | places
        hit = first((places != 0) & ~memory.hold(begin, begin + 4))
        if hit is not None:
            raise PackageError(f"{name} address {places[hit]:#x} lies in no segment", where=f"image {hit}")


def _check_places(segments: Segments) -> None:
    """Flags are known, and all memory can be loaded, and executed where it is code."""
    segments.refuse(
        (segments.flags & ~(READ | WRITE | EXECUTE)) != 0,
        lambda part: f"unknown flags {part.flags:#x}",
        hint="known: 1 read, 2 write, 4 execute",
    )
    segments.refuse(segments.memory_size == 0, lambda part: "occupies no memory")
    segments.refuse(segments.address % 4 != 0, lambda part: f"address {part.address:#x} is no multiple of 4")
    segments.refuse(
        (segments.address < IMAGE_BASE) | (segments.end > LOADABLE_END),
        lambda part: (
            f"{part.address:#x}..{part.address + part.memory_size:#x} leaves the loadable memory "
            f"{IMAGE_BASE:#x}..{LOADABLE_END:#x}"
        ),
    )
    segments.refuse(
        segments.executable & (segments.end > REGION1_BASE),
        lambda part: (
            f"executable up to {part.address + part.memory_size:#x}, but code runs only below "
            f"{REGION1_BASE:#x}"
        ),
    )


def _check_blobs_of(package: Package, segments: Segments) -> None:
    """File bytes are there and have room."""
    segments.refuse(
        segments.file_size > segments.memory_size,
        lambda part: f"{part.file_size} file bytes in {part.memory_size} bytes of memory",
    )
    none = segments.blob == NO_BLOB
    segments.refuse(
        none & ((segments.file_size != 0) | (segments.blob_offset != 0)),
        lambda part: "takes bytes but names no blob",
    )
    segments.refuse(
        segments.blob >= len(package.blobs),
        lambda part: f"blob {part.blob} of only {len(package.blobs)}",
    )
    # A last entry for those without a blob.
    lengths = np.array([*map(len, package.blobs), 0], np.int64)[segments.blob]
    segments.refuse(
        segments.blob_offset + segments.file_size > lengths,
        lambda part: (
            f"bytes {part.blob_offset}..{part.blob_offset + part.file_size} of blob {part.blob}, "
            f"which has {len(package.blobs[part.blob])}"
        ),
    )


def _check_overlap(segments: Segments) -> None:
    """No two segments of an image share memory."""
    begin, end = segments.key(segments.address), segments.key(segments.end)
    order = np.argsort(begin, kind="stable")
    hit = first(end[order][:-1] > begin[order][1:])
    if hit is not None:
        low, high = order[hit], order[hit + 1]
        raise PackageError(
            f"segments {segments.number[low]} and {segments.number[high]} overlap at "
            f"{segments.address[high]:#x}",
            where=f"image {segments.image[low]}",
        )


def _check_start(package: Package, segments: Segments) -> None:
    """The launch word and the entry point are where the loader expects them."""
    order = np.argsort(segments.key(segments.address), kind="stable")
    lowest = order[np.searchsorted(segments.image[order], np.arange(len(package.images)))]
    hit = first(segments.address[lowest] != IMAGE_BASE)
    if hit is not None:
        raise PackageError(
            f"lowest segment at {segments.address[lowest[hit]]:#x}, not at {IMAGE_BASE:#x}",
            where=f"image {hit}",
        )
    starts = segments.executable & (segments.address <= ENTRY_POINT)
    starts &= segments.address + segments.file_size >= ENTRY_POINT + 4
    started = np.bincount(segments.image[starts], minlength=len(package.images))
    for index, image in enumerate(package.images):
        where = f"image {index}"
        part = segments.parts[lowest[index]]
        word = int.from_bytes(package.segment_bytes(part)[:4], "little")
        if part.file_size < 4 or word != LAUNCH_WORD:
            raise PackageError(
                f"word at {IMAGE_BASE:#x} is {word:#010x}, not the reserved nop {LAUNCH_WORD:#010x}",
                where=where,
            )
        if image.entry_point != ENTRY_POINT:
            raise PackageError(
                f"entry point {image.entry_point:#x}: the loader starts every tile at {ENTRY_POINT:#x}",
                where=where,
            )
        if not started[index]:
            raise PackageError(
                f"entry point {ENTRY_POINT:#x} lies in no executable segment's bytes", where=where
            )
