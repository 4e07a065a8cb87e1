"""Profile marks of the tiles as intervals: which step ran on which tile from when to when."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tilewright.package.records import INTERVAL

from .classes import TileClass


def intervals(classes: Iterable[TileClass]) -> NDArray[np.void]:
    """All intervals since the marks were last cleared, by tile, in time order."""
    parts = []
    for group in classes:
        if not group.marks:
            continue
        marks = np.concatenate(group.marks)
        rows = np.zeros(len(marks), INTERVAL)
        rows["step"], rows["begin"] = marks["step"], marks["clock"]
        rows["end"][:-1] = marks["clock"][1:]
        rows["end"][-1] = max(group.tile.clock, int(marks["clock"][-1]))
        many = np.tile(rows, len(group.members))
        many["tile"] = np.repeat(group.members, len(rows))
        parts.append(many)
    if not parts:
        return np.zeros(0, INTERVAL)
    result = np.concatenate(parts)
    return result[np.argsort(result["tile"], kind="stable")]
