"""When barriers complete, and what a deadlock says."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import SimulationError
from tilewright.ipu21.simulator.barrier import Standing, completion, deadlock, no_zone, tile_names

pytestmark = pytest.mark.sim


def arrived(zone: int, since: int, *tiles: int) -> Standing:
    return Standing(np.array(tiles, np.int64), zone, since, 0, 0, 0x4C040, lambda: f"wait in `sync {zone}`")


def excused(count: int, since: int, *tiles: int) -> Standing:
    return Standing(np.array(tiles, np.int64), None, 0, count, since, 0x4C040, lambda: f"wait for {count}")


def busy(*tiles: int) -> Standing:
    return Standing(np.array(tiles, np.int64), None, 0, 0, 0, 0x4C040, lambda: "have ended")


def test_internal_barrier_releases_250_cycles_after_the_last_arrival() -> None:
    done = completion([arrived(3, 80, 0), arrived(3, 73, 53), excused(1, 6, 1, 2, 3)])
    assert done is not None
    assert (done.group, done.arrived, done.excused, done.last, done.release) == (3, 2, 3, 80, 330)


def test_a_late_excuse_is_the_last_arrival() -> None:
    done = completion([arrived(3, 80, 0), excused(2, 95, 1)])
    assert done is not None
    assert done.release == 95 + 250


def test_master_form_meets_the_plain_form() -> None:
    done = completion([arrived(15, 10, 8, 4), arrived(7, 12, 260), excused(2, 3, 1)])
    assert done is not None
    assert (done.group, done.owners.tolist(), done.last) == (7, [4, 8], 12)


@pytest.mark.parametrize("others", [[busy(5)], [excused(1, 0, 5), busy(6)]])
def test_nobody_may_be_missing(others: list[Standing]) -> None:
    assert completion([arrived(3, 80, 0), *others]) is None


def test_somebody_must_arrive() -> None:
    assert completion([excused(1, 0, 0), excused(1, 0, 1)]) is None


def test_mixed_groups_are_a_deadlock() -> None:
    with pytest.raises(
        SimulationError, match=r"different groups.*tile 0 wait in `sync 3`.*tile 5 wait in `sync 7`"
    ):
        completion([arrived(3, 80, 0), arrived(7, 81, 5)])


@pytest.mark.parametrize("zone", [4, 5, 6, 12, 13, 14])
def test_zones_of_loaders_and_other_chips(zone: int) -> None:
    error = no_zone(zone, 7, 0x4C040, 100)
    assert (error.category, error.tile, error.address) == ("unsupported", 7, 0x4C040)


def test_deadlock_blames_who_is_missing() -> None:
    standings = [arrived(7, 5, 53), busy(9, 3), excused(1, 0, *range(100, 110))]
    error = deadlock("stuck", standings, [standings[1]])
    assert (error.tile, error.address) == (3, 0x4C040)
    assert "2 tiles (3, 9) have ended" in str(error)
    assert "10 tiles (100, 101, 102, 103, 104, 105, ...) wait for 1" in str(error)


def test_deadlock_report_stays_short() -> None:
    standings = [
        Standing(np.array([t], np.int64), 3, 0, 0, 0, 0x4C000 + 4 * t, f"wait at {t}".__str__)
        for t in range(100)
    ]
    error = deadlock("stuck", standings)
    assert str(error).endswith("tile 7 wait at 7; and 92 more places")
    assert error.tile is None


def test_names() -> None:
    assert tile_names(np.array([4])) == "tile 4"
    assert tile_names(np.array([5, 4])) == "2 tiles (4, 5)"
