"""The placer: no two living buffers overlap, element rules hold, wishes are granted where there is room."""

from __future__ import annotations

import pytest
from hypothesis import given
from placements import START, faults, request_sets

from tilewright.ipu21.machine.memory import LOADABLE_END, REGION1_BASE
from tilewright.ipu21.place.placer import place
from tilewright.ipu21.place.request import NoRoomError, Request

pytestmark = pytest.mark.unit

REGION1_BYTES = LOADABLE_END - REGION1_BASE


@given(requests=request_sets())
def test_placements_keep_all_rules(requests: list[Request]) -> None:
    try:
        placed = place(requests, START)
    except NoRoomError as error:
        assert error.request in requests
        return
    assert list(faults(requests, placed)) == []
    assert place(requests, START) == placed


@given(requests=request_sets(most=20, largest=160_000))
def test_crowded_placements_keep_all_rules(requests: list[Request]) -> None:
    try:
        placed = place(requests, START)
    except NoRoomError:
        return
    assert list(faults(requests, placed)) == []


def test_disjoint_lifetimes_share_memory() -> None:
    a = Request("a", 300_000, True, 0, 1)
    b = Request("b", 300_000, True, 2, 3)
    placed = place([a, b], START)
    assert placed["a"].address == placed["b"].address == REGION1_BASE


def test_a_preference_gives_way_when_memory_is_short() -> None:
    size = 190_000
    wanted = [Request("a", size, True, 0, 1, prefer_apart=frozenset({"b"})), Request("b", size, True, 0, 1)]
    placed = place(wanted, START)
    assert {placed["a"].address, placed["b"].address} == {REGION1_BASE, REGION1_BASE + 6 * 32768}
    tight = [Request(r.name, 212_000, True, 0, 1, prefer_apart=r.prefer_apart) for r in wanted]
    placed = place(tight, START)
    assert sorted(item.address for item in placed.values()) == [REGION1_BASE, REGION1_BASE + 212_000]


def test_what_prefers_interleaved_memory_gets_it_beside_what_must_lie_there() -> None:
    must = Request("must", 300_000, True, 0, 1)
    small, large = (
        Request(name, size, False, 0, 1, prefer_interleaved=True)
        for name, size in (("small", 100_000), ("large", 120_000))
    )
    placed = place([small, large, must], START)
    assert placed["must"].address == REGION1_BASE
    assert placed["large"].address == REGION1_BASE + 300_000
    assert placed["small"].address == START


def test_preferring_interleaved_memory_never_costs_the_placement() -> None:
    a = Request("a", 120_000, False, 0, 1, prefer_interleaved=True)
    b = Request("b", REGION1_BYTES - 64, False, 0, 1)
    placed = place([a, b], START)
    assert placed["a"].address == START and placed["b"].address == REGION1_BASE


def test_buffers_of_one_class_are_placed_in_some_milliseconds_worth_of_work() -> None:
    # Not timed: that first fit needs no search here is what makes it fast.
    requests = [Request(f"b{i}", 500 + 37 * i, i % 5 == 0, i // 4, i // 4 + 3) for i in range(400)]
    assert list(faults(requests, place(requests, START))) == []


def test_nothing_and_no_room_below_region_1() -> None:
    assert place([], START) == {}
    assert place([Request("a", 1, False, 0, 0)], REGION1_BASE)["a"].address == REGION1_BASE


def test_constants_lie_between_what_is_large_and_what_is_small_and_must_be_apart_from_it() -> None:
    constants = [
        Request(name, size, False, -1, 9, prefer_interleaved=True)
        for name, size in (("wq", 147_456), ("w1", 122_880), ("w2", 122_880))
    ]
    partial = Request("partial", 8_192, True, 1, 3, apart=frozenset({"gathered"}))
    gathered = Request("gathered", 8_512, False, 2, 3, prefer_interleaved=True)
    scores = Request("scores", 2_688, True, 4, 5)
    out = Request("out", 3_584, True, 5, 6, apart=frozenset({"scores"}))
    # Below there is no room for any of the constants.
    placed = place([*constants, partial, gathered, scores, out], START + 0x8000)
    assert all(item.address >= REGION1_BASE for item in placed.values())
