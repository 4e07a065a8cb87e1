"""Words that leave a tile in an exchange phase although nobody has written them."""

from __future__ import annotations

from tilewright.errors import SimulationError

from .class_table import ClassTable
from .exchange_log import SEND
from .traffic import DIRECTIONS, PAIRED


def check_sent(table: ClassTable) -> None:
    """Looks at every send of the phase that was just moved. Raises SimulationError for the first fault.

    What arrived in the phase counts as written, so a word that was sent on before it arrived is not found.
    """
    for place, items in table.items.of_all(len(table.classes)).each():
        group = table.classes[place]
        for item in items:
            if item["kind"] != SEND or not item["control"] & DIRECTIONS:
                continue
            size = 8 if item["control"] & PAIRED else 4
            missing = group.tile.first_unwritten(int(item["value"]), int(item["count"]) * size)
            if missing is not None:
                raise SimulationError(
                    f"a send of {item['count']} items from {item['value']:#x} reads {missing:#x}, which "
                    "nobody has written",
                    tile=group.first,
                    context="supervisor",
                    address=int(item["pc"]),
                    cycle=int(item["clock"]),
                )
