"""The placer: no two living buffers overlap, element rules hold, and what does not fit is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.machine.memory import LOADABLE_END, REGION1_BASE, effective_elements
from tilewright.ipu21.place.placer import NoRoomError, Request, place

pytestmark = pytest.mark.unit

START = 0x60000


@st.composite
def request_sets(draw: st.DrawFn) -> list[Request]:
    count = draw(st.integers(1, 14))
    requests = []
    for index in range(count):
        first = draw(st.integers(0, 9))
        names = [f"b{other}" for other in range(count) if other != index]
        requests.append(
            Request(
                name=f"b{index}",
                bytes=draw(st.integers(1, 60_000)),
                interleaved=draw(st.booleans()),
                first=first,
                last=draw(st.integers(first, 10)),
                apart=frozenset(draw(st.lists(st.sampled_from(names), max_size=2)) if names else ()),
                prefer_apart=frozenset(draw(st.lists(st.sampled_from(names), max_size=2)) if names else ()),
            )
        )
    return requests


@given(requests=request_sets())
def test_living_buffers_never_touch(requests: list[Request]) -> None:
    try:
        placed = place(requests, START)
    except NoRoomError as error:
        assert error.request in requests
        return
    for request in requests:
        item = placed[request.name]
        assert item.address % 32 == 0
        assert item.end <= LOADABLE_END
        assert item.address >= (REGION1_BASE if request.interleaved else START)
        if item.address < REGION1_BASE:
            assert item.end <= REGION1_BASE
    for a in requests:
        for b in requests:
            if a is b or not a.meets(b):
                continue
            pa, pb = placed[a.name], placed[b.name]
            assert pa.end <= pb.address or pb.end <= pa.address
            if b.name in a.apart or a.name in b.apart:
                shared = set(effective_elements(pa.address, pa.end)) & set(
                    effective_elements(pb.address, pb.end)
                )
                assert not shared


def test_disjoint_lifetimes_share_memory() -> None:
    a = Request("a", 300_000, True, 0, 1)
    b = Request("b", 300_000, True, 2, 3)
    placed = place([a, b], START)
    assert placed["a"].address == placed["b"].address == REGION1_BASE


def test_what_does_not_fit_is_named_with_its_peak() -> None:
    a = Request("a", 300_000, True, 0, 5)
    b = Request("b", 200_000, True, 3, 4)
    with pytest.raises(NoRoomError) as caught:
        place([a, b], START)
    assert caught.value.request.name == "b"
    assert caught.value.peak() == (3, 500_000)
    assert [r.name for r in caught.value.largest()] == ["a", "b"]


def test_a_preference_gives_way_when_memory_is_short() -> None:
    size = 190_000
    wanted = [Request("a", size, True, 0, 1, prefer_apart=frozenset({"b"})), Request("b", size, True, 0, 1)]
    placed = place(wanted, START)
    assert {placed["a"].address, placed["b"].address} == {REGION1_BASE, REGION1_BASE + 6 * 32768}
    tight = [Request(r.name, 212_000, True, 0, 1, prefer_apart=r.prefer_apart) for r in wanted]
    placed = place(tight, START)
    assert sorted(item.address for item in placed.values()) == [REGION1_BASE, REGION1_BASE + 212_000]
