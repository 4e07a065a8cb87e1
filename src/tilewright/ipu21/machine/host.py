"""Host exchange facts: owners, request bitmaps, packet headers, page rules.

Shared by the compiler, which writes packets, and by the simulated host port, which reads them.
Evidence: known (hardware-tested public values) unless noted.
"""

from __future__ import annotations

from dataclasses import dataclass

from .memory import TILE_BASE
from .topology import MUX_HOST_BASE

PAGE_BYTES = 4096
"""No packet may cross a 4 KiB boundary of the host's address space."""
SLOT_BYTES = 4096
"""At most this many bytes per tile and host phase."""
SHORT_MAX_BYTES = 60
LONG_UNIT = 64
LONG_MAX_BYTES = 1024
WRITE_MAX_BYTES = 256
"""Largest payload of one write packet: one `send` of 64 words."""
READ_ALIGNMENT = 32
"""Alignment of a read's destination in tile memory."""
WRITE_SPAN_EVENTS = 18
"""Events a write packet's payload must span, padding included."""

OP_WRITE_SHORT = 0x80000000
OP_WRITE_LONG = 0xA0000000
OP_READ_SHORT = 0xC0000000
OP_READ_LONG = 0xE0000000
LAST_READ = 0x0C000000
"""Set on the last (or only) read packet of a stream."""


def owner_of(physical: int) -> int:
    """The tile that requests host traffic for this one: row 0, same column and sub-column, lane 0."""
    return physical & 0x3D


def request_bit(physical: int) -> int:
    """Bit of the target in its owner's 46-bit request bitmap."""
    return 2 * (physical >> 6) + ((physical >> 1) & 1)


def request_words(targets: list[int]) -> tuple[int, int]:
    """The two XREQ words that name all targets (physical ids) of one owner: bits 0..23, bits 24..45."""
    bitmap = 0
    for target in targets:
        bitmap |= 1 << request_bit(target)
    return bitmap & 0xFFFFFF, bitmap >> 24


def host_mux(physical: int) -> int:
    """INCOMING_MUX value with which a tile (owner or target) listens to the host."""
    return MUX_HOST_BASE + owner_of(physical)


@dataclass(frozen=True)
class Packet:
    """One decoded packet header.

    `tile_address` is meaningful for reads only (0 for writes); `host_offset` and `length` are in bytes.
    """

    write: bool
    long: bool
    last: bool
    tile: int
    tile_address: int
    host_offset: int
    length: int


def encode_header(packet: Packet) -> tuple[int, int]:
    """The two header words of a packet. Raises ValueError when a field does not fit."""
    unit = LONG_UNIT if packet.long else 4
    maximum = LONG_MAX_BYTES if packet.long else SHORT_MAX_BYTES
    if packet.length % unit or packet.host_offset % unit:
        raise ValueError(
            f"host packet of {packet.length} bytes at {packet.host_offset:#x}: not in units of {unit}"
        )
    if not 0 <= packet.length <= maximum or (packet.long and packet.length == 0):
        raise ValueError(f"host packet length {packet.length} is outside 0..{maximum}")
    if (
        packet.length
        and packet.host_offset // PAGE_BYTES != (packet.host_offset + packet.length - 1) // PAGE_BYTES
    ):
        raise ValueError(
            f"host packet at {packet.host_offset:#x} of {packet.length} bytes crosses a 4 KiB page"
        )
    if packet.write:
        op = OP_WRITE_LONG if packet.long else OP_WRITE_SHORT
    else:
        op = OP_READ_LONG if packet.long else OP_READ_SHORT
    if packet.last:
        op |= LAST_READ
    field = 0
    if not packet.write:
        if packet.tile_address % READ_ALIGNMENT:
            raise ValueError(f"host read to {packet.tile_address:#x}: destination must be 32-byte aligned")
        field = (packet.tile_address - TILE_BASE) >> 5
        if not 0 <= field < 1 << 15:
            raise ValueError(f"host read to {packet.tile_address:#x}: outside tile memory")
    word0 = op | packet.tile << 15 | field
    offset = packet.host_offset // unit
    if offset >= 1 << 27:
        raise ValueError(f"host offset {packet.host_offset:#x} does not fit a packet header")
    length = (packet.length // unit) % 16
    word1 = (packet.tile & 1) << 31 | offset << 4 | length
    return word0, word1


def decode_header(word0: int, word1: int) -> Packet:
    """Inverse of `encode_header`. Raises ValueError for words that are no known packet."""
    op = word0 & 0xE0000000
    if op not in (OP_WRITE_SHORT, OP_WRITE_LONG, OP_READ_SHORT, OP_READ_LONG):
        raise ValueError(f"{word0:#010x} is not a host packet header")
    write = op in (OP_WRITE_SHORT, OP_WRITE_LONG)
    long = op in (OP_WRITE_LONG, OP_READ_LONG)
    tile = (word0 >> 15) & 0x7FF
    if (word1 >> 31) != (tile & 1):
        raise ValueError(
            f"host packet header of tile {tile}: bit 31 of its second word contradicts the tile id"
        )
    unit = LONG_UNIT if long else 4
    length = word1 & 15
    if long and length == 0:
        length = 16
    return Packet(
        write=write,
        long=long,
        last=bool(word0 & LAST_READ),
        tile=tile,
        tile_address=0 if write else ((word0 & 0x7FFF) << 5) + TILE_BASE,
        host_offset=((word1 >> 4) & 0x7FFFFFF) * unit,
        length=length * unit,
    )
