"""Where the rows of exchange steps lie, as named regions of the package."""

from __future__ import annotations

from collections.abc import Mapping

from ...package.records import Region
from .tile_programs import Programs

ROW_SUFFIX = ".row"
"""A row's region is called after its profile step with this behind it."""


def row_regions(programs: Programs, names: Mapping[int, str]) -> list[Region]:
    """One region per tile and row.

    Args:
        names: profile step name of each step that has rows.
    """
    return [
        Region(tile, row.address, row.words.nbytes, names[row.step] + ROW_SUFFIX)
        for tile, rows in sorted(programs.rows.items())
        for row in rows
    ]
