"""Memory map of one IPU21 tile: regions, elements, and the addresses fixed by the loader.

All addresses are byte addresses as the tile sees them. Evidence: `known` unless a line says otherwise
(public hardware-tested compiler sources and the public instruction pages).
"""

from __future__ import annotations

from ...arithmetic import align_up

TILE_BASE = 0x4C000
"""First byte of tile memory."""
TILE_BYTES = 624 * 1024
"""Bytes of SRAM per tile."""
TILE_END = TILE_BASE + TILE_BYTES
"""One past the last byte (0xe8000)."""

REGION1_BASE = 0x80000
"""Start of region 1: interleaved by two, data only, the only home of 128-bit accesses.
Region 0 (below) is not interleaved and the only region that can be executed."""
REGION1_SHIFT = 19
"""Number of the bit that is set in all addresses of region 1 and in none below."""

ELEMENT_BYTES = 16 * 1024
"""One memory element (bank): one 64-bit access per cycle."""
INTERLEAVED_ELEMENT_BYTES = 32 * 1024
"""An effective element of region 1: two elements whose 64-bit words alternate."""

IMAGE_BASE = 0x4C010
"""First address the secondary loader fills; holds a reserved `nop`."""
ENTRY_POINT = 0x4C014
"""First instruction of every tile program."""
LOADABLE_END = 0xE7BB0
"""One past the last byte the loader can fill: 643 frames of 992 bytes from IMAGE_BASE."""
MINIMUM_IMAGE_BYTES = 0x4134
"""A shorter image hangs the loader."""
FETCH_LOOKAHEAD_BYTES = 64
"""The supervisor fetches up to this far past the instruction it executes."""

HOST_WINDOW = 0x50000
HOST_WINDOW_END = 0x54000
"""Proven destinations of host reads: HOST_WINDOW <= address < HOST_WINDOW_END. The packet field would reach
the whole tile (inferred, never tried on hardware)."""

MAX_ADDRESS_BITS = 21


def is_executable(address: int) -> bool:
    """True if the address lies in region 0 of the tile memory."""
    return TILE_BASE <= address < REGION1_BASE


def is_interleaved(address: int) -> bool:
    """True if the address lies in region 1."""
    return REGION1_BASE <= address < TILE_END


def effective_element(address: int) -> int:
    """Number of the effective element that holds a byte: 19..31 in region 0, 32..44 in region 1.

    Two accesses whose effective elements differ never conflict.
    """
    if address < REGION1_BASE:
        return address // ELEMENT_BYTES
    return 32 + (address - REGION1_BASE) // INTERLEAVED_ELEMENT_BYTES


def access_element(address: int) -> int:
    """Number of the single element that serves one 64-bit access: 19..31, or 32.. with two per 32 KiB block.

    Inside an interleaved block the 64-bit words alternate between two elements, so two accesses of one
    instruction may share a block when address bit 3 differs.
    """
    if address < REGION1_BASE:
        return address // ELEMENT_BYTES
    return 32 + 2 * ((address - REGION1_BASE) // INTERLEAVED_ELEMENT_BYTES) + ((address >> 3) & 1)


def effective_elements(begin: int, end: int) -> range:
    """Effective elements touched by the bytes begin..end-1 (empty for an empty range)."""
    if end <= begin:
        return range(0)
    return range(effective_element(begin), effective_element(end - 1) + 1)


def next_element_boundary(address: int) -> int:
    """The smallest start of an effective element that is >= address."""
    size = ELEMENT_BYTES if address < REGION1_BASE else INTERLEAVED_ELEMENT_BYTES
    base = 0 if address < REGION1_BASE else REGION1_BASE
    return base + align_up(address - base, size)
