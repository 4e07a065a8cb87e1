"""Host exchange: pages, calls, and the bytes that move in each batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import PackageError

from ..limits import MAX_TOTAL_BYTES
from ..records import HOST_SLICE, NO_BLOB, Binding, HostCall, HostExchange, Package
from ..target import HOST_PAGE_BYTES, MAX_HOST_BYTES, MAX_PAGE_BYTES, MAX_STARTUP_MARK
from .segments import Segments
from .values import aligned, column, distinct, first, table, text, unsigned

INITIALIZE, RUN = "initialize", "run"
COMMAND_BYTES = 4
MAX_INVOCATIONS = 1 << 16
"""Per command; keeps the phases of a call far from the limits of their numbers."""


def check_exchange(package: Package, segments: Segments) -> None:
    """Pages and calls, and that every binding's bytes are moved."""
    exchange = package.host_exchange
    _check_pages(exchange)
    for number, call in enumerate(exchange.calls):
        text(call.name, "name", f"call {number}")
        if call.name not in (INITIALIZE, RUN):
            raise PackageError(f"unknown call {call.name!r}", hint=f"known: {INITIALIZE}, {RUN}")
    distinct((call.name for call in exchange.calls), "call name", "host exchange")
    distinct((call.command for call in exchange.calls), "command", "host exchange")
    if exchange.calls:
        _check_command(exchange)
    for call in exchange.calls:
        _check_call(package, call)
    bindings = package.inputs + package.outputs
    if bindings and package.call(RUN) is None:
        raise PackageError(
            f"binding {bindings[0].name!r} is moved by no call", hint=f"call {RUN!r} is missing"
        )
    if package.call(INITIALIZE) is None:
        _check_in_images(package, segments)


def _check_in_images(package: Package, segments: Segments) -> None:
    """Weights that no call moves have to be part of the images of their tiles."""
    stored = segments.spans(segments.blob != NO_BLOB, segments.file_size)
    images = np.array([tile.image for tile in package.tiles], np.int64)
    for binding in package.weights:
        tile = column(binding.slices, "tile")
        begin = images[tile] << 32 | column(binding.slices, "address")
        missing = np.flatnonzero(~stored.hold(begin, begin + column(binding.slices, "size")))
        if len(missing):
            hit = missing[np.argmin(tile[missing])]
            raise PackageError(
                f"weight {binding.name!r} is moved by no call, and the image of tile {tile[hit]} does not "
                f"hold its part at {int(binding.slices['address'][hit]):#x}"
            )


def _check_pages(exchange: HostExchange) -> None:
    where = "host exchange"
    unsigned(exchange.startup_mark, "startup mark", where, maximum=MAX_STARTUP_MARK)
    for page in exchange.pages:
        unsigned(page.index, "page index", where)
        place = f"host page {page.index}"
        unsigned(page.size, "size", place, maximum=MAX_PAGE_BYTES)
        if page.size == 0 or page.size % HOST_PAGE_BYTES:
            raise PackageError(f"size {page.size} is no positive multiple of {HOST_PAGE_BYTES}", where=place)
    distinct((page.index for page in exchange.pages), "page index", where)
    total = sum(page.size for page in exchange.pages)
    if total > MAX_HOST_BYTES:
        raise PackageError(
            f"pages of {total} bytes are beyond the device's reach of {MAX_HOST_BYTES}", where=where
        )
    for index in exchange.attach_order:
        unsigned(index, "entry of the attach order", where)
    if sorted(exchange.attach_order) != sorted(page.index for page in exchange.pages):
        raise PackageError(
            f"attach order {exchange.attach_order[:8]} does not name every page exactly once", where=where
        )


def _check_command(exchange: HostExchange) -> None:
    where = "host exchange"
    unsigned(exchange.command_offset, "command offset", where, maximum=MAX_PAGE_BYTES)
    aligned(exchange.command_offset, COMMAND_BYTES, "command offset", where)
    size = next((page.size for page in exchange.pages if page.index == exchange.command_page), None)
    if size is None:
        raise PackageError(f"command page {exchange.command_page} does not exist", where=where)
    if exchange.command_offset + COMMAND_BYTES > size:
        raise PackageError(
            f"command word at {exchange.command_offset:#x} leaves page {exchange.command_page} of {size}",
            where=where,
        )


def _check_call(package: Package, call: HostCall) -> None:
    where = f"call {call.name!r}"
    unsigned(call.command, "command", where)
    if not 1 <= call.invocations <= (1 if call.name == INITIALIZE else MAX_INVOCATIONS):
        raise PackageError(
            f"{call.invocations} invocations",
            where=where,
            hint=f"weights are uploaded once, and a command runs at most {MAX_INVOCATIONS} times",
        )
    sources = package.weights if call.name == INITIALIZE else package.inputs
    sinks = [] if call.name == INITIALIZE else package.outputs
    for direction, rows, ends, bindings in (
        ("input", call.inputs, call.input_batch_ends, sources),
        ("output", call.outputs, call.output_batch_ends, sinks),
    ):
        side = f"{where}, {direction} slices"
        table(rows, HOST_SLICE, "list", side)
        _check_batch_ends(ends, len(rows), side)
        _check_places(package.host_exchange, rows, side)
        _check_batches(rows, ends, side)
        _check_moved(rows, bindings, side, once=direction == "output")
    batches = len(call.input_batch_ends) + len(call.output_batch_ends)
    if call.phases != 2 * batches * call.invocations:
        times = "" if call.invocations == 1 else f" in each of {call.invocations} invocations"
        raise PackageError(
            f"{call.phases} phases for {batches} batches{times}",
            where=where,
            hint="each batch has an entry and a completion barrier, and the program waits for its next call",
        )


def _check_batch_ends(ends: list[int], count: int, where: str) -> None:
    previous = 0
    for end in ends:
        unsigned(end, "batch end", where)
        if end <= previous:
            raise PackageError(f"batch end {end} does not follow {previous}", where=where)
        previous = end
    if previous != count:
        raise PackageError(f"batches end at {previous} of {count} slices", where=where)


def _check_places(exchange: HostExchange, rows: NDArray[np.void], where: str) -> None:
    pages = sorted(exchange.pages, key=lambda page: page.index)
    index = np.array([page.index for page in pages], np.int64)
    sizes = np.array([page.size for page in pages], np.int64)

    def refuse(mask: NDArray[np.bool_], what: str) -> None:
        number = first(mask)
        if number is not None:
            values = ", ".join(f"{key} {rows[key][number]}" for key in HOST_SLICE.names or ())
            raise PackageError(f"slice {number} {what}", where=where, hint=values)

    refuse(~np.isin(column(rows, "page"), index), "names a page that does not exist")
    refuse(rows["size"] == 0, "has no bytes")
    # Offsets above this bound would wrap in the sums below.
    refuse(rows["page_offset"] > np.uint64(MAX_PAGE_BYTES), "leaves its page")
    refuse(rows["file_offset"] > np.uint64(MAX_TOTAL_BYTES), "leaves the call's host bytes")
    refuse((rows["page_offset"] % 4 != 0) | (rows["size"] % 4 != 0), "is not made of whole words")
    begin = column(rows, "page_offset")
    end = begin + column(rows, "size")
    refuse(end > sizes[np.searchsorted(index, column(rows, "page"))], "leaves its page")
    command = exchange.command_offset
    on_page = column(rows, "page") == exchange.command_page
    refuse(on_page & (begin < command + COMMAND_BYTES) & (end > command), "covers the command word")


def _check_batches(rows: NDArray[np.void], ends: list[int], where: str) -> None:
    """Slices that move together are apart in their page."""
    batch = np.searchsorted(np.array(ends, np.int64), np.arange(len(rows)), side="right")
    begin, end = column(rows, "page_offset"), column(rows, "page_offset") + column(rows, "size")
    page = column(rows, "page")
    order = np.lexsort((begin, page, batch))
    together = (batch[order][1:] == batch[order][:-1]) & (page[order][1:] == page[order][:-1])
    hit = first(together & (end[order][:-1] > begin[order][1:]))
    if hit is not None:
        raise PackageError(
            f"slices {order[hit]} and {order[hit + 1]} of batch {batch[order[hit]]} overlap in page "
            f"{page[order[hit]]} at {begin[order[hit + 1]]:#x}",
            where=where,
        )


def _check_moved(rows: NDArray[np.void], bindings: list[Binding], where: str, *, once: bool) -> None:
    """The slices move all bytes of the bindings (outputs exactly once) and no others."""
    total = sum(binding.nbytes for binding in bindings)
    begin, end = column(rows, "file_offset"), column(rows, "file_offset") + column(rows, "size")
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    reach = np.concatenate([[0], np.maximum.accumulate(end)]) if len(end) else np.zeros(1, np.int64)
    hole = first(begin > reach[:-1])
    if hole is not None or reach[-1] < total:
        byte = int(reach[hole]) if hole is not None else int(reach[-1])
        raise PackageError(f"byte {byte} of the call's {total} host bytes is never moved", where=where)
    if reach[-1] > total:
        raise PackageError(f"move {int(reach[-1])} host bytes, the bindings have {total}", where=where)
    twice = first(begin < reach[:-1]) if once else None
    if twice is not None:
        raise PackageError(f"byte {int(begin[twice])} of the call's host bytes is moved twice", where=where)
