"""Profile marks of the tiles as intervals: which step ran on which tile from when to when."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tilewright.package.records import INTERVAL

from .classes import TileClass
from .exchange_log import one_after_another


def intervals(classes: Iterable[TileClass]) -> NDArray[np.void]:
    """All intervals since the marks were last cleared, by tile, in time order."""
    groups = [group for group in classes if any(len(marks) for marks in group.marks)]
    if not groups:
        return np.zeros(0, INTERVAL)
    marks = one_after_another([part for group in groups for part in group.marks])
    step, clock = marks["step"], marks["clock"]
    counts = np.array([sum(map(len, group.marks)) for group in groups])
    last = np.cumsum(counts) - 1
    rows = np.zeros(len(step), INTERVAL)
    rows["step"], rows["begin"] = step, clock
    rows["end"][:-1] = clock[1:]
    rows["end"][last] = np.maximum(clock[last], [group.tile.clock for group in groups])
    members = np.array([len(group.members) for group in groups])
    # Every member of a class has its marks.
    repeated = np.repeat(np.arange(len(groups)), members)
    size = counts[repeated]
    index = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    result = rows[np.repeat((last - counts + 1)[repeated], size) + index]
    result["tile"] = np.repeat(np.concatenate([group.members for group in groups]), size)
    ordered: NDArray[np.void] = result[np.argsort(result["tile"], kind="stable")]
    return ordered
