"""What the one target of this version, `ipu21`, asks of a package. Machine facts come from its description.

Sources of what is stated here: the loader and configuration space as documented by public, hardware-tested
host code (evidence: known), unless a line says otherwise.
"""

from __future__ import annotations

from tilewright.ipu21.machine.memory import (
    ENTRY_POINT,
    IMAGE_BASE,
    LOADABLE_END,
    REGION1_BASE,
    TILE_BASE,
    TILE_BYTES,
    TILE_END,
)
from tilewright.ipu21.machine.topology import TILES

__all__ = [
    "ENTRY_POINT",
    "IMAGE_BASE",
    "LOADABLE_END",
    "REGION1_BASE",
    "TARGET",
    "TILES",
    "TILE_BASE",
    "TILE_BYTES",
    "TILE_END",
]

TARGET = "ipu21"

LAUNCH_WORD = 0x19E00000
"""`nop`, the word at IMAGE_BASE: execution falls through it into the entry point."""

HOST_PAGE_BYTES = 4096
"""Granularity of host pages: the device translates host addresses in units of this many bytes."""
MAX_PAGE_BYTES = (1 << 32) - HOST_PAGE_BYTES
"""The driver takes a page's size as 32 bits."""
MAX_HOST_BYTES = 1 << 29
"""Reach of the short packet's offset field: 27 bits in units of four bytes (derived)."""
MAX_STARTUP_MARK = 0xFFFF
"""Marks are 16 bits wide."""

CONFIG_SPACE_BYTES = 0x80000
FORBIDDEN_CONFIG: tuple[tuple[int, int, str], ...] = (
    (0x2068, 0x2074, "autoloader"),
    (0x302C, 0x3034, "host marks GS1 and GS2"),
    (0x30000, 0x30000 + 0x40 * TILES, "tile debug window"),
)
"""Ranges (begin, end, what) of the configuration space that a package may not write: whoever writes them
takes over the load, the handshake or a tile's execution."""
