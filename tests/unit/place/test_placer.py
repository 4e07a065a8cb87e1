"""The placer: no two living buffers overlap, element rules hold, wishes are granted where there is room."""

from __future__ import annotations

from dataclasses import replace

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
    b = Request("b", REGION1_BYTES - 64, True, 0, 1)
    placed = place([a, b], START)
    assert placed["a"].address == START and placed["b"].address == REGION1_BASE


BORDER_WISHES = [
    Request("left", 32_768, False, 1, 2, prefer_interleaved=True),
    Request("partial", 12_288, True, 2, 4, apart=frozenset({"w", "gathered"})),
    Request("gathered", 10_752, False, 3, 4, prefer_interleaved=True),
]


def test_what_may_lie_anywhere_crosses_the_border_where_that_grants_wishes() -> None:
    w = Request("w", 393_216, False, -1, 7)
    placed = place([w, *BORDER_WISHES], START)
    assert list(faults([w, *BORDER_WISHES], placed)) == []
    assert placed["w"].address == START and placed["w"].end > REGION1_BASE
    assert all(placed[request.name].address >= placed["w"].end for request in BORDER_WISHES)


@pytest.mark.parametrize(
    ("size", "interleaved", "prefers"),
    # All wishes are granted anyway; it would fit below; it must, or should, lie above.
    [
        (300_000, False, False),
        (REGION1_BASE - START, False, False),
        (393_216, True, False),
        (393_216, False, True),
    ],
)
def test_nothing_else_crosses_the_border(size: int, interleaved: bool, prefers: bool) -> None:
    w = Request("w", size, interleaved, -1, 7, prefer_interleaved=prefers)
    placed = place([w, *BORDER_WISHES], START)
    assert placed["w"].address >= REGION1_BASE or placed["w"].end <= REGION1_BASE


def test_nothing_crosses_the_border_for_what_may_lie_below_it() -> None:
    requests = [Request("w", 300_000, False, -1, 7), Request("below", 5_000, False, -1, 7), *BORDER_WISHES]
    placed = place(requests, START)
    assert placed["below"].address < REGION1_BASE <= placed["w"].address


def test_nothing_crosses_the_border_where_that_leaves_less_room() -> None:
    a = Request("a", REGION1_BASE - START + 32, False, 0, 1)
    must = Request("must", 8 * 32_768, True, 0, 1)
    wish = Request("wish", 40_000, False, 0, 1, prefer_interleaved=True)
    beside = Request("beside", REGION1_BASE - START - wish.bytes, False, 0, 1)
    assert place([a, must, wish, beside], START)["a"].end == REGION1_BASE + 32
    # Now what lies behind the end of "a" in its last element would be lost.
    requests = [a, replace(must, apart=frozenset({"a"})), wish, beside]
    placed = place(requests, START)
    assert list(faults(requests, placed)) == []
    assert placed["a"].address >= REGION1_BASE


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
