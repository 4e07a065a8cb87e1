"""The tables that placing works on: messages, their receivers, tiles, and what is placed at each so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NEVER = 1 << 60
"""A length that everything is shorter than; that of a placement given up."""

WIDE, EARLY, STEADY, ODD = 4, 8, 16, 32
"""Bits of a receive window's kind, beside the direction in the lower two; 0 is a 32-bit window. STEADY: it
begins at even events only, or at odd ones if ODD too. Windows of one tile that do, and have even lengths,
never have writes at one event that may not share it."""
FORM = 7
"""Bits of a kind that tell the format: 0, or a direction and WIDE."""
LENT = 1
"""Kind of a send that is the partner's, by this tile's lane; its own have 0."""

SOURCE, ITEMS, CONTROL, READS, OWN, FIRST = range(6)
"""Columns of messages: OWN is not 0 if the sender is among the receivers, FIRST is the first of these (the
next message's follow)."""
TILE, ROUTE, KIND, WRITES = range(4)
"""Columns of receivers: KIND is that of the window, WRITES an element mask."""
SENDS, SENT, WINDOWS, HEARD, READ, WRITTEN, HEARS_WIDE = range(7)
"""Columns of tiles: where its sends and windows begin and how many there are so far, the elements of all that
it sends and receives, and whether it receives wide messages."""

Ints = NDArray[np.int64]
Table = NDArray[np.int64]
Windows = NDArray[np.int32]
"""[n, 3]: begin, end, kind. Sorted and disjoint within each tile's slice; small, since memory limits the
search. The element masks of the windows lie in an array beside them."""


class Asked(NamedTuple):
    """What is to be placed: tables with the columns above. Messages and tiles have one row more, which ends
    the last slices."""

    messages: Table
    receivers: Table
    tiles: Table


class Placed(NamedTuple):
    """Room for the sends and windows of all tiles, each with element masks; no contents are needed."""

    sends: Windows
    send_masks: Ints
    windows: Windows
    masks: Ints


def room_for(tiles: Table) -> Placed:
    """Room for what is placed at some tiles.

    NumPy asks for large pages, which compiled loops would not; large phases take half as long for that.
    """
    sends, windows = int(tiles[-1, SENDS]), int(tiles[-1, WINDOWS])
    return Placed(
        np.empty((sends, 3), np.int32),
        np.empty(sends, np.int64),
        np.empty((windows, 3), np.int32),
        np.empty(windows, np.int64),
    )
