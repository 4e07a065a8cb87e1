"""Route times and directions of many pairs of tiles, from a table.

A route time is a function of the two places within a row of the chip (column, sub-column and lane: the lower
six bits of a tile's id) plus two events per row of difference. A test holds that against the formula.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..machine import topology

Ints = NDArray[np.int64]

_PLACES = 64
"""Tiles of one row."""


@cache
def _table() -> Ints:
    """4 T(s, d) + direction for all places within row 0."""
    ids = np.arange(_PLACES)
    source, tile = ids[:, None], ids[None, :]
    time, way = topology.time_to_mux(source, tile), topology.direction(source, tile)
    return (4 * time + way).astype(np.int64).reshape(-1)


def _entries(source: Ints, tile: Ints) -> Ints:
    entries: Ints = _table()[(source & 63) << 6 | tile & 63]
    return entries


def time_to_mux(source: Ints, tile: Ints) -> Ints:
    """`topology.time_to_mux` of arrays of physical ids."""
    time: Ints = (_entries(source, tile) >> 2) + 2 * ((source >> 6) - (tile >> 6))
    return time


def direction(source: Ints, tile: Ints) -> Ints:
    """`topology.direction` of arrays of physical ids."""
    way: Ints = _entries(source, tile) & 3
    return way


def place_parity(tile: Ints) -> Ints:
    """0 or 1 for each place along the spine. A source's route times to pairs (the later of both), with this
    added, are all even or all odd, if the source reaches the pairs one way.
    """
    parity: Ints = (tile >> 2 ^ tile) & 1
    return parity
