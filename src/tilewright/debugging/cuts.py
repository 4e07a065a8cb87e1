"""Hold every tile at one place of the program: behind all of a step, before anything of the next.

Steps come in one order, and every tile takes part in every exchange phase, if only by sitting it out. So a
tile that has come to the place needs nobody that has not, and all come there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.ipu21.machine.topology import TILES
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.ipu21.simulator.tile import Tile
from tilewright.package.records import Package

from .pausing import Hit
from .step_order import StepOrder


class Cut:
    """The place where tiles are to be held next.

    Attributes:
        position: of `StepOrder.sequence`, behind which the tiles are held; None: nowhere.
    """

    def __init__(self, package: Package, device: SimulatedDevice, order: StepOrder) -> None:
        self._package = package
        self._device = device
        self._order = order
        self.position: int | None = None
        self._address = np.zeros(TILES, np.int64)
        self._remaining = np.zeros(TILES, np.int64)

    def aim(self, position: int | None, passed: NDArray[np.int64]) -> None:
        """Hold tiles behind `position`. `passed`: per physical tile the position of the last mark it will not
        meet any more."""
        self.position = position
        self._address[:] = 0
        self._remaining[:] = 0
        if position is None:
            return
        known: dict[tuple[int, int], tuple[int, int]] = {}
        for tile in self._package.tiles:
            key = tile.image, int(passed[tile.physical_tile])
            if key not in known:
                known[key] = self._target(tile.physical_tile, key[1], position)
            self._address[tile.physical_tile], self._remaining[tile.physical_tile] = known[key]

    def _target(self, tile: int, passed: int, position: int) -> tuple[int, int]:
        """Address at which a tile is to be held, and at which of its passes; 0: it is there already."""
        marks = self._order.marks(tile)
        there = self._order.next_mark(marks, position)
        # A tile that is beyond the place already is not asked to come back.
        if there is None or passed > there:
            return 0, 0
        step = self._order.sequence[there]
        return marks[step], self._order.passes(step, passed, there)

    def wanted(self, tile: Tile) -> list[int]:
        """Where a tile is to stop for the cut."""
        address = int(self._address[tile.physical])
        return [address] if address else []

    def met(self, hit: Hit) -> bool:
        """Whether a tile that stopped has reached the cut. Counts its passes."""
        if hit.context or hit.address != self._address[hit.tile.physical]:
            return False
        members = next(group.members for group in self._device.chip.classes if group.tile is hit.tile)
        self._remaining[members] -= 1
        return self.reached(hit)

    def reached(self, hit: Hit) -> bool:
        """Whether a held tile is at the cut."""
        tile = hit.tile.physical
        return bool(hit.context == 0 and self._address[tile] == hit.address and self._remaining[tile] <= 0)

    def complete(self, held: Mapping[Tile, Hit], others: Sequence[Tile]) -> bool:
        """Whether all tiles that run steps are held at the cut.

        `others`: tiles that have just run. Raises SimulationError when nobody can come there any more.
        """
        watched = [group for group in self._device.chip.classes if self._address[group.first]]
        if not watched:
            return False
        there = {id(tile) for tile, hit in held.items() if self.reached(hit)}
        if all(id(group.tile) in there for group in watched):
            return True
        if not others and self.position is not None:
            name = self._package.profile.steps[self._order.place(self.position).step].name
            raise SimulationError(f"the tiles cannot all be held behind step {name!r}", category="package")
        return False


def tile_positions(device: SimulatedDevice, order: StepOrder, held: Mapping[Tile, Hit]) -> NDArray[np.int64]:
    """Per physical tile the position of the step it is in, from its marks since the run began.

    A tile held at the first instruction of a step counts as in it.
    """
    positions = np.zeros(TILES, np.int64)
    table = device.chip.table
    for place, marks in table.marks.of_all(len(table.classes)).each():
        group = table.classes[place]
        tile = group.tile
        if not group.watched or not isinstance(tile, Tile):
            continue
        position = 0
        for step in [*marks["step"].tolist(), *tile.peek_marks()]:
            following = [at for at in order.places.get(step, []) if at > position]
            position = following[0] if following else position
        hit = held.get(tile)
        if hit is not None and hit.context == 0:
            for step, address in order.marks(group.first).items():
                following = [at for at in order.places.get(step, []) if at > position]
                if address == hit.address and following:
                    position = following[0]
        positions[group.members] = position
    return positions
