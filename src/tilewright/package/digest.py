"""The identity of a package: SHA-256 over its meaning.

Covered, in this order: a constant and the format version, target, memory base and size, compiler version,
the SHA-256 and length of every blob, images with segments, tiles, the three groups of bindings with their
slices, the host exchange, entry points, configuration writes, profile steps, mark tables, provisional words.
Not covered: how blobs are compressed, how the message is laid out, and the debug section (symbols, regions,
graph and layout text, live tensors), which has a digest of its own.

Every text, list and table is preceded by its length, so no two different packages give the same byte stream.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from .program_info import ProgramInfo
from .records import Binding, HostExchange, Package, Region, Symbol

FORMAT_VERSION = 1
_SEGMENT = attrgetter("address", "memory_size", "blob", "blob_offset", "file_size", "flags")


class _Meaning:
    def __init__(self, purpose: str) -> None:
        self._bytes = bytearray()
        self.text(purpose)
        self.numbers(FORMAT_VERSION)

    def numbers(self, *values: int) -> None:
        self._bytes += struct.pack(f"<{len(values)}q", *values)

    def data(self, value: bytes) -> None:
        self.numbers(len(value))
        self._bytes += value

    def text(self, value: str) -> None:
        self.data(value.encode())

    def table(self, rows: NDArray[np.void]) -> None:
        self.data(np.ascontiguousarray(rows).tobytes())

    def list(self, values: Sequence[int]) -> None:
        self.numbers(len(values), *values)

    def digest(self) -> bytes:
        return hashlib.sha256(self._bytes).digest()


def blob_digests(package: Package) -> list[bytes]:
    """SHA-256 of each blob."""
    return [hashlib.sha256(blob).digest() for blob in package.blobs]


def meaning_digest(package: Package, blobs: Sequence[bytes] | None = None) -> bytes:
    """The digest described above; `blobs` are the blobs' digests when the caller has them already."""
    digests = blob_digests(package) if blobs is None else blobs
    out = _Meaning("tilewright package")
    out.text(package.target)
    out.numbers(package.tile_memory_base, package.tile_memory_size)
    out.text(package.compiler_version)
    out.numbers(len(digests))
    for blob, digest in zip(package.blobs, digests, strict=True):
        out.numbers(len(blob))
        out.data(digest)
    out.numbers(len(package.images))
    for image in package.images:
        out.numbers(image.entry_point, image.command_address, image.diagnostic_address, image.mark_table)
        parts = [number for part in image.segments for number in _SEGMENT(part)]
        out.numbers(len(image.segments), *parts)
    out.numbers(len(package.tiles))
    for tile in package.tiles:
        out.numbers(tile.physical_tile, tile.image)
    for group in (package.inputs, package.outputs, package.weights):
        out.numbers(len(group))
        for binding in group:
            _binding(out, binding)
    _exchange(out, package.host_exchange)
    out.numbers(len(package.entry_points))
    for entry in package.entry_points:
        out.text(entry.name)
        out.numbers(entry.command, entry.external_syncs)
    out.numbers(len(package.device_config_writes))
    for write in package.device_config_writes:
        out.numbers(write.offset, write.value)
    out.numbers(len(package.profile.steps))
    for step in package.profile.steps:
        out.text(step.name)
        out.text(step.kind)
    out.numbers(len(package.profile.mark_tables))
    for table in package.profile.mark_tables:
        out.table(table)
    out.table(package.provisional)
    return out.digest()


def package_digest(package: Package) -> str:
    """The digest as 64 hexadecimal digits: the package's identity in caches and reports."""
    return meaning_digest(package).hex()


def debug_digest(package: Package) -> bytes:
    """SHA-256 over the debug section: symbols, regions, and what there is of lines, texts and the rest."""
    out = _Meaning("tilewright package debug section")
    _symbols(out, package.symbols)
    _regions(out, package.regions)
    # Left out when there are none, as in packages from before they existed.
    if len(package.lines.rows):
        out.numbers(len(package.lines.files))
        for name in package.lines.files:
            out.text(name)
        out.table(package.lines.rows)
    out.numbers(package.debug is not None)
    if package.debug is not None:
        out.text(package.debug.graph)
        out.text(package.debug.layouts)
        out.numbers(len(package.debug.live))
        for names in package.debug.live:
            out.numbers(len(names))
            for name in names:
                out.text(name)
        # Left out when there is none, as in packages from before it existed.
        if package.debug.program is not None:
            _program(out, package.debug.program)
    return out.digest()


def _program(out: _Meaning, program: ProgramInfo) -> None:
    out.numbers(len(program.buffers))
    for buffer in program.buffers:
        for text in (buffer.name, buffer.role, buffer.owner, buffer.layout):
            out.text(text)
    out.numbers(len(program.classes))
    for group in program.classes:
        out.data(group.tiles.astype("<u2").tobytes())
        out.table(group.buffers)
    out.numbers(len(program.steps))
    for step in program.steps:
        for text in (step.operation, step.kernel, step.detail):
            out.text(text)
        out.data(struct.pack("<d", step.cycles))
    out.numbers(len(program.operations))
    for operation in program.operations:
        out.text(operation.name)
        out.text(operation.part_of)
        out.numbers(operation.splits, len(operation.plan))
        for line in operation.plan:
            out.text(line)
    out.numbers(len(program.values))
    for value in program.values:
        _binding(out, value.binding)
        out.numbers(value.step, value.buffer, bool(value.copy))
        out.text(value.owner)
    out.numbers(len(program.constants))
    for constant in program.constants:
        out.text(constant.binding)
        out.text(constant.constant)
        out.numbers(constant.iterations, bool(constant.transposed))
        for extents in (constant.shape, constant.rows, constant.columns, constant.broadcast):
            out.list(extents)
    out.numbers(len(program.loops))
    for loop in program.loops:
        out.numbers(loop.first, loop.last, loop.count)
    out.numbers(len(program.areas))
    for area in program.areas:
        out.text(area.name)
        out.numbers(area.address, area.size)


def _binding(out: _Meaning, binding: Binding) -> None:
    out.text(binding.name)
    out.text(binding.host_dtype)
    out.text(binding.device_dtype)
    out.list(binding.shape)
    out.text(binding.order)
    out.numbers(*binding.view, binding.blob)
    out.table(binding.slices)


def _exchange(out: _Meaning, exchange: HostExchange) -> None:
    out.numbers(exchange.startup_mark, exchange.command_page, exchange.command_offset)
    out.numbers(len(exchange.pages))
    for page in exchange.pages:
        out.numbers(page.index, page.size)
    out.list(exchange.attach_order)
    out.numbers(len(exchange.calls))
    for call in exchange.calls:
        out.text(call.name)
        out.numbers(call.command, call.phases, call.invocations)
        out.table(call.inputs)
        out.table(call.outputs)
        out.list(call.input_batch_ends)
        out.list(call.output_batch_ends)


def _symbols(out: _Meaning, symbols: Sequence[Symbol]) -> None:
    out.numbers(len(symbols))
    for symbol in symbols:
        out.text(symbol.name)
        out.numbers(symbol.address)


def _regions(out: _Meaning, regions: Sequence[Region]) -> None:
    out.numbers(len(regions))
    for region in regions:
        out.numbers(region.physical_tile, region.address, region.size)
        out.text(region.name)
