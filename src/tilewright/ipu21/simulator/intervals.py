"""Profile marks of the tiles as intervals: which step ran on which tile from when to when."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.package.records import INTERVAL

from .class_table import ClassTable


def intervals(table: ClassTable) -> NDArray[np.void]:
    """All intervals since the marks were last cleared, by tile, in time order."""
    noted = table.marks.of_all(len(table.classes))
    groups = [table.classes[place] for place in np.flatnonzero(noted.counts).tolist()]
    if not groups:
        return np.zeros(0, INTERVAL)
    marks, counts = noted.rows, noted.counts[noted.counts > 0]
    step, clock = marks["step"], marks["clock"]
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
