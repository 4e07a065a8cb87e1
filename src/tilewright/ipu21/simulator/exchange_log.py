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


def joined(logs: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Logs one after the other, as a copy."""
    if any(log.dtype is not EXCHANGE_ITEM for log in logs):
        return np.concatenate(logs)
    return one_after_another(logs)


def one_after_another(arrays: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Arrays of one record type as one: quicker than NumPy, which compares the names of records."""
    return np.frombuffer(bytearray().join(array.data for array in arrays), arrays[0].dtype)
