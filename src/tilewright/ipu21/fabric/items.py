"""Timed items: what a row does, event by event, before it is instructions.

Events count from the tile's own barrier exit, one per tile cycle. Evidence for everything in this package:
known from hardware-tested public rows unless a line says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

ROW_ITEM = np.dtype([("event", "<i8"), ("kind", "u1"), ("control", "u1"), ("words", "<u4"), ("value", "<u4")])
"""One timed item of a row. `event` is when its first word leaves (SEND) or when the write takes effect."""

SEND = 0
"""`words` items leave, one per event, from byte address `value` with direction bits `control` (bit 2: 64-bit
items)."""
MUX = 1
"""The mux listens to `value`: a physical tile, a host input or MUX_NEUTRAL."""
POINTER = 2
"""The incoming pointer becomes byte address `value`. `words`, if not 0, says how many items arrive through it
from this event on (64-bit ones if `control` has bit 2)."""
FORMAT = 3
"""The incoming format becomes `value`: 0 32-bit, 1 64-bit from the east, 2 64-bit from the west."""
MUXPAIR = 4
"""The mux of the pair listens to `value` (64-bit exchange)."""
CONTINUE = 5
"""`words` items begin to arrive through the running pointer, now at byte address `value`. No instruction: it
only tells the composer what the pointer holds."""

KIND_NAMES = ("send", "mux", "pointer", "format", "mux pair", "continue")


def row_items(items: Iterable[tuple[int, int, int, int, int]]) -> NDArray[np.void]:
    """ROW_ITEM array of (event, kind, control, words, value) tuples, sorted by event, then kind."""
    array = np.array(list(items), dtype=ROW_ITEM)
    return array[np.lexsort((array["kind"], array["event"]))]
