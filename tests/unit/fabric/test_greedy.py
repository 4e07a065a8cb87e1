"""How long placements of one kind are tried."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from exchange_phases import SOURCE_BASE, PhaseBuilder

from tilewright.ipu21.fabric import greedy
from tilewright.ipu21.fabric.greedy import _NEAR, _STALE, Placement, _hopeful
from tilewright.ipu21.fabric.messages import Messages, cut, spans_of

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


@pytest.mark.parametrize(
    ("gangs", "kinds"), [(True, ["inserted", "inserted", "swept", "swept"]), (False, ["swept", "swept"])]
)
def test_one_kind_of_all_ways_after_the_other(
    gangs: bool, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind gangs come messages in order, which take less; without gangs receivers choose first."""
    tried: list[str] = []

    class Tables:
        def __init__(self, messages: Messages, bound: int, chained: None) -> None:
            self.messages = messages

        def first(self, known: int) -> Iterator[Placement]:
            yield from [(NOTHING, 300, 0)] * gangs

        def inserted(self, known: int) -> Iterator[Placement]:
            tried.append("inserted")
            yield NOTHING, 250, 0

        def swept(self, known: int) -> Iterator[Placement]:
            tried.append("swept")
            # Good enough: nothing more is tried.
            yield NOTHING, 100 if len(tried) == len(kinds) else 200, 0

    monkeypatch.setattr(greedy, "_Tables", Tables)
    builder = PhaseBuilder()
    builder.add(64, SOURCE_BASE, 8, [0])
    messages = cut(spans_of(*builder.build()))
    found = greedy.leaving_events([messages, messages], 100)
    assert found.horizon == 100
    assert tried == kinds
