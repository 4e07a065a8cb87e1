"""Sets of intervals of many tiles as sorted keys: union, and which of them covers a given moment.

A moment on a tile is one integer, tile * 2^48 + cycle, so that all tiles are handled in one sorted array.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CYCLE_BITS = 48
"""Cycles of one profile lie in a range of 2^48; 52 hours at 1.5 GHz."""


def moments(tile: NDArray[np.integer], cycle: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys of moments; `cycle` counts from the begin of the run."""
    return (tile.astype(np.int64) << CYCLE_BITS) + cycle


@dataclass(frozen=True, eq=False)
class Layer:
    """Intervals [begin, end) that do not overlap, as rising moments."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    def index(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Per moment the interval that holds it, or -1."""
        if not len(self.begin):
            return np.full(len(at), -1, np.int64)
        place = np.searchsorted(self.begin, at, "right") - 1
        held = (place >= 0) & (at < self.end[np.maximum(place, 0)])
        return np.where(held, place, -1)

    def covers(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Per moment whether an interval holds it."""
        return self.index(at) >= 0


def union(begin: NDArray[np.int64], end: NDArray[np.int64]) -> Layer:
    """Intervals that may overlap or be empty, joined where they touch."""
    kept = end > begin
    begin, end = begin[kept], end[kept]
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.concatenate([[True], begin[1:] > reach[:-1]])) if len(begin) else order
    last = np.concatenate([first[1:], [len(begin)]]) - 1 if len(begin) else order
    return Layer(begin[first], reach[last])
