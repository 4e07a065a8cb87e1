"""The profile steps of a package in the order in which a run goes through them, loops unrolled."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.package.program_info import LoopInfo
from tilewright.package.records import NO_MARKS, Image, Package


@dataclass(frozen=True)
class Place:
    """An instance of a profile step: its position in `StepOrder.sequence`, and which instance it is."""

    position: int
    step: int
    instance: int


class StepOrder:
    """Steps of one run. Host steps before the first input are no part of it.

    Args:
        package: with profile steps; without debug information every step happens once.
    """

    def __init__(self, package: Package) -> None:
        steps = package.profile.steps
        # The upload of the weights happens once per session.
        first = 1 if len(steps) > 1 and steps[0].name == "initialize" else 0
        program = package.program
        self._package = package
        self._marks: dict[int, dict[int, int]] = {}
        self.sequence = _unrolled(first, len(steps), program.loops if program is not None else [])

    @cached_property
    def places(self) -> dict[int, list[int]]:
        """Positions of each step, rising."""
        found: dict[int, list[int]] = {}
        for position, step in enumerate(self.sequence):
            found.setdefault(step, []).append(position)
        return found

    def place(self, position: int) -> Place:
        """The step instance at a position."""
        step = self.sequence[position]
        return Place(position, step, bisect_left(self.places[step], position))

    def marks(self, tile: int) -> dict[int, int]:
        """Address at which a physical tile begins each step that can be told there; empty for idle tiles."""
        number = self._package.tiles[tile].image
        if number not in self._marks:
            self._marks[number] = self._marks_of(self._package.images[number])
        return self._marks[number]

    def _marks_of(self, image: Image) -> dict[int, int]:
        if image.mark_table == NO_MARKS:
            return {}
        table = self._package.profile.mark_tables[image.mark_table]
        return dict(zip(table["step"].tolist(), table["address"].tolist(), strict=True))

    def next_mark(self, marks: dict[int, int], position: int) -> int | None:
        """First position after one at which a tile with these marks can be seen; None at the end of a run."""
        for later in range(position + 1, len(self.sequence)):
            if self.sequence[later] in marks:
                return later
        return None

    def passes(self, step: int, after: int, to: int) -> int:
        """How often the step begins at positions after+1..to."""
        known = np.array(self.places.get(step, []))
        return int(np.count_nonzero((known > after) & (known <= to)))


def _unrolled(begin: int, end: int, loops: list[LoopInfo]) -> list[int]:
    """Steps begin..end-1; `loops` are in order, those inside a loop after it."""
    sequence: list[int] = []
    step, index = begin, 0
    while step < end:
        while index < len(loops) and loops[index].first < step:
            index += 1
        if index == len(loops) or loops[index].first != step:
            sequence.append(step)
            step += 1
            continue
        loop = loops[index]
        inner = [item for item in loops[index + 1 :] if item.last <= loop.last]
        sequence += _unrolled(loop.first, loop.last + 1, inner) * loop.count
        step = loop.last + 1
    return sequence
