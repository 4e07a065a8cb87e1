"""What each step takes of the time until tiles meet again, from times that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ipu21.emit.predict import shared

pytestmark = pytest.mark.unit

TAKEN = [np.array(times) for times in ([0, 50], [10, 0], [0, 30], [20, 10], [0, 5], [40, 0])]
"""Of two classes: 70 and 95 in all."""


@pytest.mark.parametrize(
    ("phases", "borders", "cycles"),
    [
        ((), (), [50, 0, 30, 10, 5, 0]),
        # They meet in the first: the first class is last behind it, with 70 and 45.
        ((0,), (), [50, 10, 0, 20, 0, 40]),
        ((), (1,), [50, 10, 0, 20, 0, 40]),
        # 0 and 50 and 30 and 90; 40 and 5.
        ((3,), (), [50, 0, 30, 10, 0, 40]),
        # What a phase takes before they meet belongs to what was before it.
        ((0, 2), (), [50, 0, 30, 20, 0, 40]),
        ((0,), (2,), [50, 10, 0, 20, 0, 40]),
        ((), (4, 5), [50, 0, 30, 10, 5, 40]),
    ],
)
def test_steps_take_what_they_take_on_the_last_tile(
    phases: tuple[int, ...], borders: tuple[int, ...], cycles: list[int]
) -> None:
    assert shared(TAKEN, phases, borders) == cycles
