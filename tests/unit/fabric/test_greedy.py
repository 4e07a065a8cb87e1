"""How long placements of one kind are tried."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ipu21.fabric.greedy import _hopeful

NOTHING = np.zeros(0, dtype=np.int64)


@pytest.mark.parametrize(
    ("lengths", "tried"),
    [
        ([200, 200, 90], 2),
        ([200, 105, 90], 3),
        ([105, 200, 90], 3),
        ([200], 1),
        ([100, 100, 200, 200], 4),
    ],
)
def test_no_more_are_tried_when_the_first_two_are_much_longer(lengths: list[int], tried: int) -> None:
    placements = iter([(NOTHING, length) for length in lengths])
    assert [horizon for _, horizon in _hopeful(placements, 100)] == lengths[:tried]
