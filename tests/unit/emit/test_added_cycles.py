"""What a step adds to the time until tiles meet again, from times that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ipu21.emit.predict import added

pytestmark = pytest.mark.unit

TAKEN = [np.array(times) for times in ([0, 50], [10, 0], [0, 30], [20, 10], [0, 5], [40, 0])]
"""Of two classes; the second step is the one in question where nothing else is said."""


@pytest.mark.parametrize(
    ("index", "phases", "borders", "cycles"),
    [
        # All six steps: 70 and 95 with it, 60 and 95 without it.
        (1, (), (), 0),
        # The first is a phase, or in a loop: 70 and 45, 60 and 45.
        (1, (0,), (), 10),
        (1, (), (1,), 10),
        # Until the tiles meet in the fourth: 30 and 90, 20 and 90; the same without the first.
        (1, (3,), (), 0),
        (1, (0, 3), (), 0),
        # Until they meet in the third, behind the copies for it, and until a loop begins with the third.
        (1, (0, 2), (), 0),
        (1, (0,), (2,), 10),
        # The third: 30 and 40, 30 and 10.
        (2, (0, 3), (), 10),
        # The last: 70 and 95, 30 and 95; 60 and 15, 20 and 15; alone.
        (5, (), (), 0),
        (5, (2,), (), 40),
        (5, (4,), (), 40),
        (0, (), (1,), 50),
    ],
)
def test_only_what_the_last_tile_waits_for_counts(
    index: int, phases: tuple[int, ...], borders: tuple[int, ...], cycles: int
) -> None:
    assert added(index, TAKEN, phases, borders) == cycles
