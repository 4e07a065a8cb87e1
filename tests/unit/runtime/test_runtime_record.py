"""Device cycles from intervals."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.package.records import ProfileStep
from tilewright.runtime.device import INTERVAL
from tilewright.runtime.record import device_cycles

pytestmark = pytest.mark.unit

STEPS = [
    ProfileStep("in", "host"),
    ProfileStep("a", "exchange"),
    ProfileStep("b", "compute"),
    ProfileStep("out", "host"),
]


def cycles(*rows: tuple[int, int, int, int, int]) -> int | None:
    return device_cycles(np.array(list(rows), INTERVAL), STEPS)


def test_host_steps_do_not_count() -> None:
    assert cycles((0, 0, 0, 0, 900), (0, 0, 1, 900, 950), (0, 0, 2, 950, 1000), (0, 0, 3, 1000, 5000)) == 100


def test_the_slowest_tile_counts_from_its_own_begin() -> None:
    assert cycles((0, 0, 1, 100, 150), (7, 0, 1, 1000, 1010), (7, 0, 2, 1040, 1075)) == 75


def test_rows_come_in_any_order_and_beyond_32_bits() -> None:
    late = 1 << 40
    assert cycles((3, 0, 2, late + 10, late + 90), (3, 0, 1, late, late + 10)) == 90


def test_workers_do_not_count() -> None:
    assert cycles((0, 0, 1, 100, 150), (0, 4, 1, 0, 900)) == 50


def test_nothing_measured() -> None:
    assert cycles() is None
    assert cycles((0, 0, 0, 5, 9)) is None
    assert device_cycles(np.array([(0, 0, 9, 1, 2)], INTERVAL), STEPS) is None
    assert device_cycles(np.array([(0, 0, 0, 1, 2)], INTERVAL), []) is None
