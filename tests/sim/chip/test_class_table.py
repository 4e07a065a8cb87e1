"""Many tiles at once: where they stopped, what they noted, and their rows when classes split."""

from __future__ import annotations

import numpy as np
import pytest
import worked_example as example
from fake_tile import FakeTiles
from numpy.typing import NDArray

from tilewright.ipu21.simulator.class_table import ClassTable
from tilewright.ipu21.simulator.classes import State, load_classes
from tilewright.ipu21.simulator.noted import Noted, Notes, noted
from tilewright.ipu21.simulator.stop_table import Stops
from tilewright.ipu21.simulator.stops import ExceptionKind, Stop, StopKind
from tilewright.ipu21.simulator.tile import MARK

pytestmark = pytest.mark.sim

SYNC = Stop(StopKind.SYNC, 100, 0x4C010, zone=7)
CLOSED = Stop(StopKind.WINDOW_CLOSED, 101, 0x4C014)
FAULT = Stop(StopKind.EXCEPTION, 102, 0x4C018, 3, exception=ExceptionKind.CONFLICT, address=5, text="no")


def marks(*steps: int) -> NDArray[np.void]:
    return np.array([(step, 10 * step) for step in steps], MARK)


def steps_of(taken: Noted) -> dict[int, list[int]]:
    return {place: rows["step"].tolist() for place, rows in taken.each()}


def test_stops_are_those_that_were_given() -> None:
    given = [SYNC, CLOSED, FAULT, SYNC]
    stops = Stops.of(given)
    assert list(stops) == given
    assert stops[-2] == FAULT
    assert stops[1:3] == [CLOSED, FAULT]
    assert stops.kinds.tolist() == [StopKind.SYNC, StopKind.WINDOW_CLOSED, StopKind.EXCEPTION, StopKind.SYNC]
    assert stops.clocks.tolist() == [100, 101, 102, 100]
    assert stops.zones.tolist() == [7, -1, -1, 7]
    with pytest.raises(IndexError):
        stops[4]


def test_what_the_engine_reports_becomes_stops() -> None:
    reports = np.array([(StopKind.SYNC, 100, 0, 0x4C010, 7), (StopKind.ENDED, 9, 0, 0x4C020, 3)], np.int64)
    assert list(Stops(reports, {})) == [SYNC, Stop(StopKind.ENDED, 9, 0x4C020)]
    both = Stops.joined([Stops(reports, {}), Stops.of([FAULT, CLOSED])])
    assert list(both) == [SYNC, Stop(StopKind.ENDED, 9, 0x4C020), FAULT, CLOSED]


def test_notes_are_told_tile_by_tile_in_the_order_they_came() -> None:
    notes = Notes(MARK)
    assert steps_of(notes.of_all(2)) == {0: [], 1: []}
    notes.add(noted(np.array([0, 2, 3]), [marks(1, 2), marks(), marks(3)]))
    assert steps_of(notes.of_all(5)) == {0: [1, 2], 1: [], 2: [], 3: [3], 4: []}
    notes.add(noted(np.array([2, 3]), [marks(4), marks(5, 6)]))
    assert steps_of(notes.of_all(4)) == {0: [1, 2], 1: [], 2: [4], 3: [3, 5, 6]}
    notes.copy(3, np.array([4, 5]))
    notes.add(noted(np.array([3, 5]), [marks(7), marks(8)]))
    found = {0: [1, 2], 1: [], 2: [4], 3: [3, 5, 6, 7], 4: [3, 5, 6], 5: [3, 5, 6, 8]}
    assert steps_of(notes.of_all(6)) == found
    notes.clear()
    assert len(notes.of_all(6).rows) == 0


def test_notes_of_some_tiles() -> None:
    taken = noted(np.array([0, 2, 3]), [marks(1, 2), marks(4), marks(5, 6)])
    assert steps_of(taken.of(np.array([True, False, False, True]))) == {0: [1, 2], 3: [5, 6]}
    assert steps_of(taken.of(np.array([False] * 4))) == {}


def test_a_class_that_splits_hands_on_its_row_and_its_notes() -> None:
    table = ClassTable(load_classes(example.worked_package(), FakeTiles()))
    assert table.sizes.tolist() == [1, 1, 1470]
    idle = table.classes[2]
    table.rows["since"][2], table.rows["state"][2] = 77, State.ARRIVED
    table.marks.add(noted(np.array([2]), [marks(1, 2)]))
    table.separate(idle, [5, 9])
    assert [group.members.tolist() for group in table.classes[3:]] == [[5], [9]]
    assert table.sizes.tolist() == [1, 1, 1468, 1, 1]
    assert table.partition == 1
    assert [(group.state, group.since) for group in table.classes[2:]] == [(State.ARRIVED, 77)] * 3
    assert steps_of(table.marks.of_all(5)) == {0: [], 1: [], 2: [1, 2], 3: [1, 2], 4: [1, 2]}
    # From here on each has its own.
    table.rows["since"][3] = 78
    assert [group.since for group in table.classes[2:]] == [77, 78, 77]
    table.separate(idle, idle.members.tolist())
    assert len(table.classes) == 1472
    assert table.sizes.tolist() == [1] * 1472
    assert [group.place for group in table.classes] == list(range(1472))
