"""Six workers on the half panels of a piece: how they share it, and the supervisor code that says so.

A piece has `rows` rows in `panels` panels of 16 columns. Worker w takes the columns 8 (w & 1) .. of a panel;
the three pairs of workers share either the rows of every panel or the panels, whichever leaves the busiest
worker fewer half rows (a panel counted as one more row). Of two panels, two pairs take a panel each, but for
its last third of rows, which the pair between them takes of both. So no worker needs a division, and what
belongs to a column stays with a worker.
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


def shares(rows: Any, panels: Any) -> tuple[list[Any], list[Any]]:
    """(rows of each pair in every panel of its, panels of each pair); integers or arrays."""
    rows, panels = np.asarray(rows, dtype=np.int64), np.asarray(panels, dtype=np.int64)
    chunk, groups = ceil_div(rows, 3), ceil_div(panels, 3)
    two = panels == 2
    by_panel = groups * (rows + 1) < panels * (chunk + 1)
    most = ceil_div(2 * rows, 3)
    row_counts, panel_counts = [], []
    for pair in range(3):
        by_row = np.where(by_panel, rows, np.clip(rows - pair * chunk, 0, chunk))
        row_counts.append(np.where(two, rows - most if pair == 1 else most, by_row))
        several = np.where(by_panel, (panels + 2 - pair) // 3, panels)
        panel_counts.append(np.where(two, 2 if pair == 1 else 1, several))
    return row_counts, panel_counts


def busiest(rows: Any, panels: Any, panel: Any, row: Any, first: Any = 0) -> Any:
    """Slots of the busiest worker: `first` once, `panel` per panel and `row` per half row."""
    slots = np.zeros(np.broadcast(rows, panels).shape, dtype=np.int64)
    for r, p in zip(*shares(rows, panels), strict=True):
        slots = np.maximum(slots, np.where((r > 0) & (p > 0), first + p * (panel + r * row), 0))
    return slots


def third(register: str, count: str, more: int) -> list[str]:
    """floor((count + more) / 3) from a register to another one or the same."""
    return [
        f"add {register}, {count}, {more}",
        f"mul {register}, {register}, {THIRD}",
        f"shr {register}, {register}, 16",
    ]


def choose(rows: str, panels: str, chunk: str, panelwise: str, two: str, scratch: str) -> list[str]:
    """From the registers `rows` and `panels` to `two`, 1 if there are two panels, `panelwise`, 1 if otherwise
    the panels are to be shared, and `chunk` = ceil(rows / 3), or ceil(2 rows / 3) if there are two panels.
    """
    return [
        *third(panelwise, panels, 2),
        f"add {scratch}, {rows}, 1",
        f"mul {panelwise}, {panelwise}, {scratch}",
        *third(chunk, rows, 2),
        f"add {scratch}, {chunk}, 1",
        f"mul {scratch}, {scratch}, {panels}",
        f"cmpult {panelwise}, {panelwise}, {scratch}",
        f"cmpeq {two}, {panels}, 2",
        f"andc {panelwise}, {panelwise}, {two}",
        f"shl {scratch}, {rows}, 1",
        *third(scratch, scratch, 2),
        f"movnz {chunk}, {two}, {scratch}",
    ]
