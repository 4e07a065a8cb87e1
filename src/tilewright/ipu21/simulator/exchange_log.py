"""What a tile tells the fabric: sends and control writes with their cycles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SEND, MUX, POINTER, FORMAT, MUXPAIR = 0, 1, 2, 3, 4
"""Kinds of log items."""

EXCHANGE_ITEM = np.dtype([(name, "<i8") for name in ("kind", "clock", "count", "value", "control", "pc")])
"""One item. `clock`: cycle of effect, for SEND that of its first item. `count`: items sent (words, or 8-byte
items when `control` has bit 2). `value`: absolute byte address of a SEND (OUTGOING_BASE included) or POINTER
(INCOMING_BASE included), else the value written. `pc`: the instruction."""


def items_of(rows: NDArray[np.int64]) -> NDArray[np.void]:
    """Log rows (kind, clock, count, value, control, pc) as items of their own, which stay as they are."""
    return np.frombuffer(rows.tobytes(), EXCHANGE_ITEM)


def joined(records: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Records one array after the other, as a copy."""
    kind = records[0].dtype
    if any(part.dtype is not kind for part in records):
        return np.concatenate(records)
    # NumPy would compare the names of their fields.
    return np.frombuffer(bytearray().join(part.data for part in records), kind)
