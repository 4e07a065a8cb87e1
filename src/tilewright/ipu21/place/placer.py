"""First fit, largest first, over exact lifetimes.

Buffers whose lifetimes do not meet may share memory. Two buffers that must stay apart never share an
effective memory element while both live, since one instruction (or the exchange and a `send`) may touch both
in one cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...arithmetic import align_up
from ..machine.memory import LOADABLE_END, REGION1_BASE, effective_elements, next_element_boundary

ALIGNMENT = 32
"""Bytes; an AMP record, and what 128-bit accesses and host reads need."""


@dataclass(frozen=True)
class Request:
    """A buffer that wants an address.

    Attributes:
        name: unique within the class.
        bytes: size with its access tail.
        interleaved: must lie in region 1.
        first, last: step indices, inclusive, between which its contents matter.
        apart: names of buffers it must share no memory element with while both live.
        prefer_apart: the same, but only if there is room; the exchange then needs fewer pauses.
        owner: who asked, for messages.
    """

    name: str
    bytes: int
    interleaved: bool
    first: int
    last: int
    apart: frozenset[str] = frozenset()
    prefer_apart: frozenset[str] = frozenset()
    owner: str = ""

    def meets(self, other: Request) -> bool:
        """True if both live at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Placed:
    """A buffer with its address."""

    request: Request
    address: int

    @property
    def end(self) -> int:
        return self.address + self.request.bytes


class NoRoomError(Exception):
    """The buffers of a class do not fit.

    Attributes:
        request: the buffer that found no place.
        placed: what had been placed before it.
        requests: everything that was asked for.
    """

    def __init__(self, request: Request, placed: list[Placed], requests: Sequence[Request]) -> None:
        super().__init__(request.name)
        self.request = request
        self.placed = placed
        self.requests = list(requests)

    def peak(self) -> tuple[int, int]:
        """(step, bytes) at which the live buffers need the most, element rules left aside."""
        steps = sorted({request.first for request in self.requests})
        sizes = [(sum(r.bytes for r in self.requests if r.first <= step <= r.last), -step) for step in steps]
        size, negative = max(sizes)
        return -negative, size

    def largest(self, count: int = 3) -> list[Request]:
        """The largest buffers that live at the peak."""
        step, _ = self.peak()
        live = [r for r in self.requests if r.first <= step <= r.last]
        return sorted(live, key=lambda r: (-r.bytes, r.name))[:count]


def place(requests: Sequence[Request], standard_start: int) -> dict[str, Placed]:
    """Addresses for all buffers of one tile class, by name.

    Args:
        standard_start: first byte of region 0 that is free for data (the start of an element).

    Raises NoRoomError.
    """
    order = sorted(requests, key=lambda r: (-r.bytes, r.first - r.last, r.name))
    by_name = {request.name: request for request in requests}
    placed: list[Placed] = []
    for request in order:
        address = _first_fit(request, placed, by_name, standard_start)
        if address is None:
            raise NoRoomError(request, placed, requests)
        placed.append(Placed(request, address))
    return {item.request.name: item for item in placed}


def _first_fit(
    request: Request, placed: list[Placed], by_name: dict[str, Request], standard_start: int
) -> int | None:
    neighbours = [item for item in placed if item.request.meets(request)]
    hard = {item.request.name for item in neighbours if _separated(request, item.request, soft=False)}
    soft = hard | {item.request.name for item in neighbours if _separated(request, item.request, soft=True)}
    regions = [(REGION1_BASE, LOADABLE_END)]
    if not request.interleaved:
        regions.insert(0, (standard_start, REGION1_BASE))
    for rules in (soft, hard) if soft != hard else (hard,):
        for begin, end in regions:
            address = _fit_in(request, neighbours, rules, begin, end)
            if address is not None:
                return address
    return None


def _separated(a: Request, b: Request, *, soft: bool) -> bool:
    if soft:
        return b.name in a.prefer_apart or a.name in b.prefer_apart
    return b.name in a.apart or a.name in b.apart


def _fit_in(request: Request, neighbours: list[Placed], apart: set[str], begin: int, end: int) -> int | None:
    starts = {begin}
    for item in neighbours:
        edge = (
            next_element_boundary(item.end) if item.request.name in apart else align_up(item.end, ALIGNMENT)
        )
        if begin <= edge < end:
            starts.add(edge)
    for start in sorted(starts):
        if start + request.bytes > end:
            continue
        if all(_compatible(request, start, item, item.request.name in apart) for item in neighbours):
            return start
    return None


def _compatible(request: Request, start: int, item: Placed, apart: bool) -> bool:
    stop = start + request.bytes
    if apart:
        mine, theirs = effective_elements(start, stop), effective_elements(item.address, item.end)
        return mine.stop <= theirs.start or theirs.stop <= mine.start
    return stop <= item.address or item.end <= start
