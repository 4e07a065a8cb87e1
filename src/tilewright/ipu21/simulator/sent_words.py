"""Words that leave a tile in an exchange phase although nobody has written them."""

from __future__ import annotations

import numpy as np

from tilewright.errors import SimulationError

from .class_table import ClassTable
from .exchange_log import SEND
from .together import Together
from .traffic import DIRECTIONS, PAIRED


def check_sent(table: ClassTable, tiles: Together) -> None:
    """Looks at every send of the phase that was just moved. Raises SimulationError for the first fault.

    What arrived in the phase counts as written, so a word that was sent on before it arrived is not found.

    Args:
        tiles: those of the table's classes, in their order.
    """
    log = table.items.of_all(len(table.classes))
    sends = (log.rows["kind"] == SEND) & (log.rows["control"] & DIRECTIONS != 0)
    items, places = log.rows[sends], np.repeat(log.places, log.counts)[sends]
    size = np.where(items["control"] & PAIRED, 8, 4)
    found = tiles.unwritten(places, items["value"], items["count"] * size)
    if found is None:
        return
    item = items[found[0]]
    raise SimulationError(
        f"a send of {item['count']} items from {item['value']:#x} reads {found[1]:#x}, which nobody has "
        "written",
        tile=table.classes[int(places[found[0]])].first,
        context="supervisor",
        address=int(item["pc"]),
        cycle=int(item["clock"]),
    )
