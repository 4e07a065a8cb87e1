"""What a tile tells the fabric: sends and control writes with their cycles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEND, MUX, POINTER, FORMAT, MUXPAIR = 0, 1, 2, 3, 4
"""Kinds of log items."""

EXCHANGE_ITEM = np.dtype(
    [("kind", "u1"), ("clock", "i8"), ("count", "u4"), ("value", "u4"), ("control", "u1"), ("pc", "u4")]
)
"""One item. `clock`: cycle of effect, for SEND that of its first item. `count`: items sent (words, or 8-byte
items when `control` has bit 2). `value`: absolute byte address of a SEND (OUTGOING_BASE included) or POINTER
(INCOMING_BASE included), else the value written. `pc`: the instruction."""


def items_of(rows: NDArray[np.int64]) -> NDArray[np.void]:
    """Log rows (kind, clock, count, value, control, pc) as items."""
    items = np.zeros(len(rows), dtype=EXCHANGE_ITEM)
    for column, name in enumerate(("kind", "clock", "count", "value", "control", "pc")):
        items[name] = rows[:, column] & 0xFFFFFFFF if name in ("value", "pc", "count") else rows[:, column]
    return items
