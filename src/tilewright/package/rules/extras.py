"""Entry points, configuration writes, profile plan, provisional words, names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import PackageError

from ..records import (
    ALL_TILES,
    LINE,
    MARK,
    NO_MARKS,
    PROVISIONAL_WORD,
    STEP_KINDS,
    Package,
    Region,
)
from ..target import CONFIG_SPACE_BYTES, FORBIDDEN_CONFIG, TILE_BASE, TILE_END, TILES
from .program import check_program
from .segments import Segments
from .values import aligned, column, distinct, first, integers, table, text, texts, unsigned

MAX_STEPS = 1 << 16
"""Intervals carry a step as 16 bits."""
MAX_LINE = (1 << 31) - 1
"""The file holds differences of line numbers as 32 bits with a sign."""


def check_entry_points(package: Package) -> None:
    """Names once; an entry point named like a call agrees with it."""
    for number, entry in enumerate(package.entry_points):
        where = f"entry point {number}"
        text(entry.name, "name", where)
        unsigned(entry.command, "command", where)
        unsigned(entry.external_syncs, "external syncs", where)
        call = package.call(entry.name)
        if call is not None and (entry.command, entry.external_syncs) != (call.command, call.phases):
            raise PackageError(f"{entry.name!r} disagrees with the call of that name", where=where)
    distinct((entry.name for entry in package.entry_points), "entry point", "entry points")


def check_config_writes(package: Package) -> None:
    """Aligned, in the configuration space, once each, and none of the registers a package must not own."""
    for number, write in enumerate(package.device_config_writes):
        where = f"configuration write {number}"
        unsigned(write.offset, "offset", where, maximum=CONFIG_SPACE_BYTES - 4)
        unsigned(write.value, "value", where)
        aligned(write.offset, 4, "offset", where)
        for begin, end, what in FORBIDDEN_CONFIG:
            if begin <= write.offset < end:
                raise PackageError(f"register {write.offset:#x} belongs to the {what}", where=where)
    distinct((hex(write.offset) for write in package.device_config_writes), "offset", "configuration writes")


def check_profile(package: Package, segments: Segments) -> None:
    """Steps have known kinds; marks name steps, are sorted, and lie in code of the images that use them."""
    steps = package.profile.steps
    if len(steps) > MAX_STEPS:
        raise PackageError(f"{len(steps)} profile steps are over the limit of {MAX_STEPS}")
    for number, step in enumerate(steps):
        where = f"profile step {number}"
        text(step.name, "name", where)
        if step.kind not in STEP_KINDS:
            raise PackageError(
                f"unknown kind {step.kind!r}", where=where, hint=f"known: {', '.join(STEP_KINDS)}"
            )
    for number, marks in enumerate(package.profile.mark_tables):
        where = f"mark table {number}"
        table(marks, MARK, "table", where)
        address = column(marks, "address")
        hit = first(address % 4 != 0)
        if hit is not None:
            raise PackageError(f"mark {hit} at {address[hit]:#x} is between instructions", where=where)
        hit = first(address[1:] <= address[:-1])
        if hit is not None:
            raise PackageError(f"marks {hit} and {hit + 1} are not in order of address", where=where)
        hit = first(column(marks, "step") >= len(steps))
        if hit is not None:
            raise PackageError(f"mark {hit} names step {marks['step'][hit]} of {len(steps)}", where=where)
    _check_marks(package, segments)


def _check_marks(package: Package, segments: Segments) -> None:
    """Marks lie in code of the images that use them."""
    marked = [index for index, image in enumerate(package.images) if image.mark_table != NO_MARKS]
    if not marked:
        return
    tables = [package.profile.mark_tables[package.images[index].mark_table] for index in marked]
    counts = np.array([len(marks) for marks in tables])
    owner = np.repeat(marked, counts)
    address = owner.astype(np.int64) << 32 | column(np.concatenate(tables), "address")
    code = segments.spans(segments.executable, segments.memory_size)
    hit = first(~code.hold(address, address + 1))
    if hit is not None:
        number, table_number = hit - np.searchsorted(owner, owner[hit]), package.images[owner[hit]].mark_table
        raise PackageError(
            f"mark {number} of mark table {table_number} lies in no executable segment",
            where=f"image {owner[hit]}",
        )


def check_provisional(package: Package, segments: Segments) -> None:
    """Sorted, once each, and really there: a list that misses the images would warn about nothing."""
    words = package.provisional
    where = "provisional words"
    table(words, PROVISIONAL_WORD, "list", where)
    if not len(words):
        return
    key = column(words, "address") << 32 | column(words, "word")
    hit = first(key[1:] <= key[:-1])
    if hit is not None:
        raise PackageError(f"entries {hit} and {hit + 1} are not in order", where=where)
    hit = first(column(words, "address") % 4 != 0)
    if hit is not None:
        raise PackageError(f"address {int(words['address'][hit]):#x} is between instructions", where=where)
    found = np.zeros(len(words), np.bool_)
    address = column(words, "address")
    stored = np.flatnonzero(segments.executable & (segments.file_size != 0))
    begin = segments.address[stored]
    lows, highs = np.searchsorted(address, (begin, begin + segments.file_size[stored])).tolist()
    seen: set[tuple[int, int, int, int]] = set()
    for index, low, high in zip(stored.tolist(), lows, highs, strict=True):
        part = segments.parts[index]
        place = (part.address, part.blob, part.blob_offset, part.file_size)
        if place not in seen and not found[low:high].all():
            seen.add(place)
            found[low:high] |= _matches(words[low:high], part.address, package.segment_bytes(part))
    hit = first(~found)
    if hit is not None:
        entry = words[hit]
        raise PackageError(
            f"word {int(entry['word']):#010x} is at {int(entry['address']):#x} of no image", where=where
        )


def check_names(package: Package) -> None:
    """Symbols and regions lie in tile memory and have names; live tensors belong to the steps."""
    previous = 0
    for number, symbol in enumerate(package.symbols):
        where = f"symbol {number}"
        text(symbol.name, "name", where)
        unsigned(symbol.address, "address", where)
        if not TILE_BASE <= symbol.address <= TILE_END:
            raise PackageError(f"{symbol.name!r} at {symbol.address:#x} is outside tile memory", where=where)
        if symbol.address < previous:
            raise PackageError(
                f"{symbol.name!r} at {symbol.address:#x} is not in order of address", where=where
            )
        previous = symbol.address
    _check_regions(package.regions)
    _check_lines(package)
    debug = package.debug
    if debug is None:
        return
    if debug.live and len(debug.live) != len(package.profile.steps):
        raise PackageError(
            f"live tensors of {len(debug.live)} steps, the profile has {len(package.profile.steps)}",
            where="debug",
        )
    for names in debug.live:
        for name in names:
            text(name, "live tensor", "debug")
    for name, value in (("graph text", debug.graph), ("layouts text", debug.layouts)):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise PackageError(f"{name} is not valid Unicode", where="debug") from error
    if debug.program is not None:
        check_program(package, debug.program)


def _check_regions(regions: list[Region]) -> None:
    """Named parts of the memory of tiles that exist."""

    def where(number: int) -> str:
        return f"region {number}"

    texts((region.name for region in regions), "name", where)
    tile = integers([region.physical_tile for region in regions], "tile", where)
    address = integers([region.address for region in regions], "address", where)
    size = integers([region.size for region in regions], "size", where)
    hit = first((tile != ALL_TILES) & (tile >= TILES))
    if hit is not None:
        raise PackageError(f"{regions[hit].name!r} is on tile {tile[hit]}", where=where(hit))
    hit = first((size == 0) | (address < TILE_BASE) | (address + size > TILE_END))
    if hit is not None:
        raise PackageError(f"{regions[hit].name!r} is empty or leaves tile memory", where=where(hit))


def _check_lines(package: Package) -> None:
    """Source lines follow each other by address, and their files have names."""
    rows, where = package.lines.rows, "source lines"
    table(rows, LINE, "list", where)
    for name in package.lines.files:
        text(name, "file", where)
    address = column(rows, "address")
    hit = first(address[1:] <= address[:-1])
    if hit is not None:
        raise PackageError(f"rows {hit} and {hit + 1} are not in order of address", where=where)
    if len(rows) and not TILE_BASE <= int(address[0]) <= int(address[-1]) <= TILE_END:
        raise PackageError("an address is outside tile memory", where=where)
    hit = first(column(rows, "line") > MAX_LINE)
    if hit is not None:
        raise PackageError(f"row {hit} is line {int(rows['line'][hit])}", where=where)
    hit = first(column(rows, "file") >= len(package.lines.files))
    if hit is not None:
        raise PackageError(
            f"row {hit} is of file {int(rows['file'][hit])} of only {len(package.lines.files)}", where=where
        )


def _matches(words: NDArray[np.void], address: int, code: bytes) -> NDArray[np.bool_]:
    """Which of the provisional words stand at their address in this code."""
    content = np.frombuffer(code, "<u4", count=len(code) // 4)
    position = (column(words, "address") - address) // 4
    inside = (position >= 0) & (position < len(content))
    if not len(content):
        return inside
    same: NDArray[np.bool_] = content[np.clip(position, 0, len(content) - 1)] == words["word"]
    return inside & same
