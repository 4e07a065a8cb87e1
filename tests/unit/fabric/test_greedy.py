"""How long placements of one kind are tried."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ipu21.fabric.greedy import _NEAR, _STALE, _hopeful

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
    placements = iter([(NOTHING, length, 0) for length in lengths])
    assert [horizon for _, horizon, _ in _hopeful(placements, 100, 10)] == lengths[:tried]


@pytest.mark.parametrize(("bound", "tried"), [(round(100 / _NEAR), _STALE + 1), (50, 3 * _STALE)])
def test_no_more_are_tried_when_many_are_no_better_and_the_bound_is_near(bound: int, tried: int) -> None:
    lengths = [99] + [100] * (3 * _STALE - 1)
    placements = iter([(NOTHING, length, 0) for length in lengths])
    assert len(list(_hopeful(placements, 100, bound))) == tried
