"""Six workers on the half panels of a piece: how they share it, and the supervisor code that says so.

A piece has `rows` rows in `panels` panels of 16 columns. Worker w takes the columns 8 (w & 1) .. of a panel;
the three pairs of workers share either the rows of every panel or the panels, whichever leaves the busiest
worker fewer half rows (a panel counted as one more row). So no worker needs a division, and what belongs to a
column stays with a worker.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arithmetic import ceil_div
from .kernel import Scalar

THIRD = 21846
"""n * THIRD >> 16 == n // 3 for n < 32768."""
MAXIMUM_SIDE = 16383

ROWS = Scalar("rows", "rows of the piece", 0, MAXIMUM_SIDE)
PANELS = Scalar("panels", "panels of 16 columns", 0, MAXIMUM_SIDE)


def shares(rows: Any, panels: Any) -> tuple[Any, list[Any], list[Any]]:
    """(True where the rows are shared, rows of each pair, panels of each pair); integers or arrays."""
    rows, panels = np.asarray(rows, dtype=np.int64), np.asarray(panels, dtype=np.int64)
    chunk, groups = ceil_div(rows, 3), ceil_div(panels, 3)
    by_row = ~(groups * (rows + 1) < panels * (chunk + 1))
    row_counts, panel_counts = [], []
    for pair in range(3):
        row_counts.append(np.where(by_row, np.clip(rows - pair * chunk, 0, chunk), rows))
        panel_counts.append(np.where(by_row, panels, (panels + 2 - pair) // 3))
    return by_row, row_counts, panel_counts


def busiest(rows: Any, panels: Any, panel: Any, row: Any, first: Any = 0) -> Any:
    """Slots of the busiest worker: `first` once, `panel` per panel and `row` per half row."""
    _, row_counts, panel_counts = shares(rows, panels)
    slots = np.zeros(np.broadcast(rows, panels).shape, dtype=np.int64)
    for r, p in zip(row_counts, panel_counts, strict=True):
        slots = np.maximum(slots, np.where((r > 0) & (p > 0), first + p * (panel + r * row), 0))
    return slots


def choose(rows: str, panels: str, chunk: str, panelwise: str, scratch: str) -> list[str]:
    """From the registers `rows` and `panels` to `chunk` = ceil(rows / 3) and `panelwise`, 1 if the panels are
    to be shared and 0 otherwise.
    """
    return [
        f"add {panelwise}, {panels}, 2",
        f"mul {panelwise}, {panelwise}, {THIRD}",
        f"shr {panelwise}, {panelwise}, 16",
        f"add {scratch}, {rows}, 1",
        f"mul {panelwise}, {panelwise}, {scratch}",
        f"add {chunk}, {rows}, 2",
        f"mul {chunk}, {chunk}, {THIRD}",
        f"shr {chunk}, {chunk}, 16",
        f"add {scratch}, {chunk}, 1",
        f"mul {scratch}, {scratch}, {panels}",
        f"cmpult {panelwise}, {panelwise}, {scratch}",
    ]
