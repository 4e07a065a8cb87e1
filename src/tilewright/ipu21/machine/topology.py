"""Where tiles are, and how long a word travels between them.

Tile numbers are *logical* in plans and *physical* in rows, packages and the simulator; only this module
converts. The closed form of the route time was derived from hardware-tested tables and equals them for all
1,472 x 1,472 pairs (evidence: derived, checked against published values).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

TILES = 1472
"""Tiles that software sees on one chip."""
ROWS = 23
COLUMNS = 16
WORKERS = 6
CLOCK_HZ = 1_500_000_000

EAST = 1
WEST = 2
BOTH = 3
"""Send control bits: which way along the spine a word is driven."""

MUX_NEUTRAL = 0x640
MUX_HOST_BASE = 0x600
"""Mux numbers above the tiles: 0x600..0x63f are inputs from the host, 0x640 listens to nobody."""

MUX_TO_POINTER_BASE = 52
"""Events from a word's passage at the mux to its store, for a tile of row 0; two more per row."""
RECEIVE_GUARD = 5
"""A receiver's row may not end before its last store plus this many events."""
MAX_MESSAGE_WORDS = 4148

T = TypeVar("T", int, NDArray[np.int64])


def to_physical(logical: T) -> T:
    """Physical id of a logical tile (0..1471); also on integer arrays."""
    pair, lane = logical // 2, logical % 2
    block, r = pair // ROWS, pair % ROWS
    row = r + (block % 2) * (ROWS - 1 - 2 * r)
    return row * 64 + (block // 2) * 4 + block % 2 + 2 * lane


def to_logical(physical: T) -> T:
    """Logical number of a physical tile; the inverse of `to_physical`."""
    row, column = physical >> 6, (physical >> 2) & 15
    b, lane = physical & 1, (physical >> 1) & 1
    block = 2 * column + b
    r = row + b * (ROWS - 1 - 2 * row)
    logical: T = 2 * (ROWS * block + r) + lane
    return logical


def partner(physical: T) -> T:
    """The tile that shares lanes with this one (paired 64-bit exchange)."""
    return physical ^ 2


def row_of(physical: T) -> T:
    return physical >> 6


def _half_and_position(physical: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    column = (physical >> 2) & 15
    half = column >> 3
    return half, np.where(half == 0, column, 15 - column)


def displacement(source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
    """Signed distance along the spine, in events; positive is east. Never 0. Arrays of physical ids."""
    hs, ps = _half_and_position(np.asarray(source, dtype=np.int64))
    hd, pd = _half_and_position(np.asarray(destination, dtype=np.int64))
    bs, bd = source & 1, destination & 1
    lane_bit = (destination >> 1) & 1
    lane = np.where((hd ^ bd) == 0, np.where(lane_bit == 0, 1, 2), np.where(lane_bit == 0, 5, 4))
    return 6 * (pd - ps - (hs ^ bs)) + lane


def direction(source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
    """EAST or WEST: the way a word must be driven from source to destination. Arrays of physical ids."""
    return np.where(displacement(source, destination) >= 1, EAST, WEST)


def time_to_mux(source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
    """T(s, d): a word sent at event S of the source passes the destination's mux at its event S + T + 1.

    Each tile counts events from its own barrier exit; T contains that difference. -78..112. Arrays of
    physical ids.
    """
    source = np.asarray(source, dtype=np.int64)
    destination = np.asarray(destination, dtype=np.int64)
    hs, ps = _half_and_position(source)
    hd, pd = _half_and_position(destination)
    k = np.where(hd == 0, 5, 3)
    c = np.where((hs == 1) & (hd == 0), -14, -30)
    rows = (source >> 6) - (destination >> 6)
    time: NDArray[np.int64] = k * (ps - pd) + 2 * rows + np.abs(displacement(source, destination)) + c
    return time


def mux_to_store(physical: T) -> T:
    """Events from a word's passage at a tile's mux to its store in that tile's memory."""
    return MUX_TO_POINTER_BASE + 2 * (physical >> 6)
