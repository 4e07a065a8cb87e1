"""Rules of a placement, and all placements there are, by means that share nothing with the placer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from hypothesis import strategies as st

from tilewright.ipu21.machine.memory import (
    LOADABLE_END,
    REGION1_BASE,
    effective_elements,
    next_element_boundary,
)
from tilewright.ipu21.place.request import Placed, Request

START = 0x60000


@st.composite
def request_sets(draw: st.DrawFn, most: int = 14, largest: int = 60_000) -> list[Request]:
    count = draw(st.integers(1, most))
    requests = []
    for index in range(count):
        first = draw(st.integers(0, 9))
        names = [f"b{other}" for other in range(count) if other != index]
        requests.append(
            Request(
                name=f"b{index}",
                bytes=draw(st.integers(1, largest)),
                interleaved=draw(st.booleans()),
                first=first,
                last=draw(st.integers(first, 10)),
                apart=frozenset(draw(st.lists(st.sampled_from(names), max_size=2)) if names else ()),
                prefer_apart=frozenset(draw(st.lists(st.sampled_from(names), max_size=2)) if names else ()),
                prefer_interleaved=draw(st.booleans()),
                alignment=draw(st.sampled_from([32, 32, 64, 1024])),
            )
        )
    return requests


def share_element(one: Request, at: int, other: Request, there: int) -> bool:
    mine, theirs = effective_elements(at, at + one.bytes), effective_elements(there, there + other.bytes)
    return bool(set(mine) & set(theirs))


def faults(requests: Sequence[Request], placed: dict[str, Placed]) -> Iterator[str]:
    """Every rule that a placement breaks."""
    for request in requests:
        at = placed[request.name].address
        if at % request.alignment:
            yield f"{request.name} is not aligned"
        if at < (REGION1_BASE if request.interleaved else START) or at + request.bytes > LOADABLE_END:
            yield f"{request.name} lies outside its memory"
        if at < REGION1_BASE < at + request.bytes and (
            request.prefer_interleaved or request.bytes <= REGION1_BASE - START
        ):
            yield f"{request.name} lies in two regions"
    for i, one in enumerate(requests):
        for other in requests[:i]:
            if not (one.first <= other.last and other.first <= one.last):
                continue
            a, b = placed[one.name].address, placed[other.name].address
            if a < b + other.bytes and b < a + one.bytes:
                yield f"{one.name} and {other.name} overlap"
            if (one.name in other.apart or other.name in one.apart) and share_element(one, a, other, b):
                yield f"{one.name} and {other.name} share an element"


def can_be_placed(requests: Sequence[Request]) -> bool:
    """True if some placement keeps the hard rules: every order is tried, and both regions."""
    return any(_extend(list(order), {}) for order in permutations(requests))


def _extend(rest: list[Request], placed: dict[str, Placed]) -> bool:
    if not rest:
        return True
    request = rest[0]
    for begin, end in ((START, REGION1_BASE), (REGION1_BASE, LOADABLE_END)):
        if request.interleaved and begin < REGION1_BASE:
            continue
        edges = [begin]
        for item in placed.values():
            edges += [item.end, next_element_boundary(item.end)]
        for edge in sorted(edge for edge in edges if edge >= begin):
            at = -(-edge // request.alignment) * request.alignment
            trial = {**placed, request.name: Placed(request, at)}
            if at + request.bytes <= end and not any(faults([p.request for p in trial.values()], trial)):
                if _extend(rest[1:], trial):
                    return True
                break
    return False
