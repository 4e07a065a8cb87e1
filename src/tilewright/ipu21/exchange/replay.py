"""Scheduling a set of transfers, and what came of it in numbers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fabric.schedule import schedule
from ..fabric.transfers import DESTINATION, TRANSFER
from ..machine import memory


def replay(transfers: NDArray[np.void], destinations: NDArray[np.void]) -> dict[str, Any]:
    """Length, bound, row bytes and time of a schedule. Raises ScheduleError.

    Times do not include loading the compiled loops.
    """
    _warm_up()
    begin = time.perf_counter()
    result = schedule(transfers, destinations)
    seconds = time.perf_counter() - begin
    sizes = 4 * np.diff(result.word_offsets)
    words = transfers["words"].astype(np.int64)
    return {
        "transfers": len(transfers),
        "receivers": len(destinations),
        "tiles": len(result.tiles),
        "words_sent": int(words.sum()),
        "words_received": int((words * transfers["count"]).sum()),
        "messages": len(result.starts),
        "length": result.horizon,
        "bound": result.bound,
        "ratio": round(result.horizon / result.bound, 4) if result.bound else None,
        "row_bytes": int(sizes.sum()),
        "row_bytes_mean": round(float(sizes.mean()), 1) if len(sizes) else 0.0,
        "row_bytes_max": int(sizes.max(initial=0)),
        "seconds": round(seconds, 4),
    }


def _warm_up() -> None:
    one = np.array([(0, memory.REGION1_BASE, 1, 0, 1)], TRANSFER)
    schedule(one, np.array([(1, memory.REGION1_BASE)], DESTINATION))
