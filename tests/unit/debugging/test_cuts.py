"""Tiles are held at the right instance of a step, whatever loops there are and whatever steps they skip."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.debugging.cuts import Cut
from tilewright.debugging.pausing import Hit
from tilewright.debugging.step_order import StepOrder
from tilewright.package.program_info import LoopInfo, ProgramInfo
from tilewright.package.records import (
    MARK,
    Debug,
    Image,
    Package,
    ProfilePlan,
    ProfileStep,
    TileImage,
)

pytestmark = pytest.mark.unit

STEPS = 9


def program(loops: list[LoopInfo], known: list[set[int]]) -> Package:
    """Steps 0..8 of which 0 is the upload of weights; one image per set of steps that have a mark."""
    steps = [ProfileStep("initialize", "host"), *(ProfileStep(f"s{n}", "compute") for n in range(1, STEPS))]
    tables = [np.array([(0x5C000 + 16 * step, step) for step in sorted(own)], MARK) for own in known]
    return Package(
        compiler_version="test",
        blobs=[],
        images=[Image(0, 0, 0, [], number) for number in range(len(known))],
        tiles=[TileImage(number, number) for number in range(len(known))],
        profile=ProfilePlan(steps, tables),
        debug=Debug(program=ProgramInfo(loops=loops)),
    )


class FakeTile:
    """Comes by its marks in order of the program, and stops where it is told."""

    def __init__(self, physical: int, order: StepOrder) -> None:
        self.physical = physical
        marks = order.marks(physical)
        self.way = [place for place, step in enumerate(order.sequence) if place and step in marks]
        self.address = {place: marks[order.sequence[place]] for place in self.way}
        self.next = 0

    def run(self, cut: Cut) -> Hit | None:
        """To the cut; None at the end of the run."""
        while self.next < len(self.way):
            address = self.address[self.way[self.next]]
            hit = Hit(self, 0, address)  # type: ignore[arg-type]
            if address in cut.wanted(self) and cut.met(hit):  # type: ignore[arg-type]
                return hit
            self.next += 1
        return None


loops_of_steps = st.lists(
    st.tuples(st.integers(2, STEPS - 2), st.integers(0, 4), st.integers(1, 4)), max_size=2
)


@given(
    loops_of_steps,
    st.lists(st.sets(st.integers(2, STEPS - 1), min_size=1), min_size=1, max_size=4),
    st.data(),
)
def test_every_tile_waits_before_its_first_mark_behind_the_cut(
    drawn: list[tuple[int, int, int]], known: list[set[int]], data: Any
) -> None:
    loops: list[LoopInfo] = []
    for first, length, count in sorted(drawn):
        last = min(first + length, STEPS - 2)
        if all(first > loop.last for loop in loops):
            loops.append(LoopInfo(first, last, count))
    # Every tile has code for the last step of each loop (its branch back), and for the output.
    ends = {loop.last for loop in loops} | {STEPS - 1}
    package = program(loops, [{1} | own | ends for own in known])
    order = StepOrder(package)
    tiles = [FakeTile(number, order) for number in range(len(known))]
    groups = [SimpleNamespace(tile=t, members=np.array([t.physical]), first=t.physical) for t in tiles]
    device: Any = SimpleNamespace(chip=SimpleNamespace(classes=groups))
    cut = Cut(package, device, order)
    places = sorted(data.draw(st.sets(st.integers(0, len(order.sequence) - 2), min_size=1, max_size=6)))
    passed = np.zeros(1472, np.int64)
    for position in places:
        cut.aim(position, passed)
        held = {}
        for tile in tiles:
            waits = tile.way[tile.next] if tile.next < len(tile.way) else None
            wanted = order.next_mark(order.marks(tile.physical), position)
            there = Hit(tile, 0, tile.address[waits]) if waits is not None else None  # type: ignore[arg-type]
            already = there is not None and waits == wanted and bool(passed[tile.physical] == waits)
            hit = there if already else tile.run(cut)
            assert hit is not None and tile.way[tile.next] == wanted
            assert cut.reached(hit)
            held[tile] = hit
            passed[tile.physical] = tile.way[tile.next]
        assert cut.complete(held, tiles)  # type: ignore[arg-type]
        # What is held goes on from its own mark when the next cut is further on.
        after = [place for place in places if place > position]
        for tile in tiles:
            if after and order.next_mark(order.marks(tile.physical), after[0]) != tile.way[tile.next]:
                tile.next += 1
