"""Placing where first fit fails: other orders, repair, search, and the proof that nothing fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placements import START, can_be_placed, faults, request_sets

from tilewright.ipu21.machine.memory import LOADABLE_END, REGION1_BASE
from tilewright.ipu21.place import first_fit, offset_search, placer, problem
from tilewright.ipu21.place.placer import place
from tilewright.ipu21.place.problem import as_problem
from tilewright.ipu21.place.request import NoRoomError, Request

pytestmark = pytest.mark.unit

UNIT = (LOADABLE_END - REGION1_BASE) // 12 // 32 * 32

TWELFTHS = {
    "order": [(2, 4, 5), (4, 2, 4), (5, 0, 2), (2, 3, 4), (4, 4, 5)],
    "repair": [(3, 4, 5), (4, 2, 4), (3, 2, 4), (2, 4, 5), (4, 0, 2)],
    "search": [(2, 2, 3), (5, 0, 2), (3, 3, 5), (4, 2, 3), (3, 4, 5), (3, 3, 5)],
}
"""(twelfths of region 1, first step, last step) of buffers that largest-first leaves without room, by what
finds it."""


def of_twelfths(shape: list[tuple[int, int, int]]) -> list[Request]:
    return [Request(f"b{i}", UNIT * size, True, first, last) for i, (size, first, last) in enumerate(shape)]


def largest_first_fits(requests: list[Request]) -> bool:
    asked = as_problem(requests)
    at = np.empty(len(requests), dtype=np.int64)
    order = np.array(sorted(range(len(requests)), key=lambda i: -requests[i].bytes), dtype=np.int64)
    limits = np.array([START, REGION1_BASE, LOADABLE_END], dtype=np.int64)
    return bool(first_fit.first_fit(asked.items, asked.relations, limits, order, at)[0] < 0)


@pytest.mark.parametrize("kind", TWELFTHS)
def test_room_is_found_where_largest_first_finds_none(kind: str) -> None:
    requests = of_twelfths(TWELFTHS[kind])
    assert not largest_first_fits(requests)
    assert list(faults(requests, place(requests, REGION1_BASE))) == []


def test_region_1_is_whole_whatever_lies_below_it() -> None:
    requests = of_twelfths(TWELFTHS["order"])
    assert list(faults(requests, place(requests, REGION1_BASE + 0x10000))) == []


def test_what_stays_comes_between_large_and_small_that_must_lie_in_region_1() -> None:
    requests = [
        Request("large", 100_000, True, 1, 2),
        Request("small", 10_000, True, 1, 2),
        Request("stays", 50_000, False, -1, 9, prefer_interleaved=True),
        Request("stays, small", 2_000, False, -1, 9, prefer_interleaved=True),
        Request("passes", 5_000, False, 1, 2, prefer_interleaved=True),
        Request("any", 70_000, False, 1, 2),
    ]
    orders = [[requests[i].name for i in order] for _, order in placer._orders(as_problem(requests), None)]
    assert orders[0] == ["large", "small", "stays", "passes", "stays, small", "any"]
    assert orders[1] == ["large", "stays", "stays, small", "small", "passes", "any"]
    assert orders[2] == orders[3] == ["large", "any", "stays", "small", "passes", "stays, small"]


def test_what_finds_no_place_of_its_own_is_not_moved_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, compiled = [], first_fit.first_fit

    def counted(*problem: Any) -> tuple[int, int]:
        tried.append(problem)
        return tuple(compiled(*problem))

    asked = as_problem([Request("large", LOADABLE_END, False, 0, 1), Request("small", 64, False, 0, 1)])
    limits, at = np.array([START, REGION1_BASE, LOADABLE_END], dtype=np.int64), np.zeros(2, np.int64)
    with monkeypatch.context() as patched:
        patched.setattr(placer, "first_fit", counted)
        assert not placer._repaired(asked, limits, at)
    assert len(tried) == 2, "once for each order to begin with"


def test_only_the_search_finds_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placer, "SEARCH_WORK", 0)
    with pytest.raises(NoRoomError) as caught:
        place(of_twelfths(TWELFTHS["search"]), REGION1_BASE)
    assert not caught.value.proven


def test_search_grants_wishes_where_there_is_room_left() -> None:
    requests = of_twelfths(TWELFTHS["search"])
    pair = [
        Request("wish", 4096, False, 0, 5, prefer_apart=frozenset({"other"})),
        Request("other", 4096, False, 0, 5),
    ]
    placed = place([*requests, *pair], START)
    assert list(faults([*requests, *pair], placed)) == []
    assert placed["wish"].address // 0x4000 != placed["other"].address // 0x4000


@settings(max_examples=150)
@given(requests=request_sets(most=4, largest=330_000))
def test_fits_if_and_only_if_some_order_does(requests: list[Request]) -> None:
    try:
        placed = place(requests, START)
    except NoRoomError as error:
        assert error.proven and not can_be_placed(requests)
    else:
        assert list(faults(requests, placed)) == []


@settings(max_examples=60)
@given(requests=request_sets(most=5, largest=250_000), data=st.data())
def test_search_alone_agrees_with_all_orders(requests: list[Request], data: st.DataObject) -> None:
    asked = as_problem(requests)
    items = asked.items.copy()
    items[items[:, problem.MEMORY] == problem.PREFER, problem.MEMORY] = problem.ANY
    rank = np.array(data.draw(st.permutations(range(len(requests)))), dtype=np.int64)
    at = np.empty(len(requests), dtype=np.int64)
    limits = np.array([START, REGION1_BASE, LOADABLE_END], dtype=np.int64)
    relations, twins = asked.relations, asked.twins()
    found = offset_search.search(
        items, asked.sizes, relations, limits, twins, rank, asked.sections, asked.unit - 1, 1 << 40, at
    )
    assert (found == offset_search.FOUND) == can_be_placed(requests)
    if found == offset_search.FOUND:
        named = zip(requests, at.tolist(), strict=True)
        assert list(faults(requests, {r.name: placer.Placed(r, address) for r, address in named})) == []


def test_order_of_a_similar_class_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = of_twelfths(TWELFTHS["search"])
    found = place(requests, REGION1_BASE)
    monkeypatch.setattr(placer, "SEARCH_WORK", 0)
    smaller = [Request(r.name, r.bytes - 64, r.interleaved, r.first, r.last) for r in requests]
    assert list(faults(smaller, place(smaller, REGION1_BASE, like=found))) == []
