"""What a tile class asks of the placer, and what it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..machine.memory import LOADABLE_END, REGION1_BASE

ALIGNMENT = 32
"""Bytes; an AMP record, and what 128-bit accesses and host reads need."""


@dataclass(frozen=True)
class Request:
    """A buffer that wants an address.

    Attributes:
        name: unique within the class.
        bytes: size with its access tail, at least 1.
        interleaved: must lie in region 1.
        first, last: step indices, inclusive, between which its contents matter. What lives inside a loop and
            outside it lives during the whole loop.
        apart: names of buffers it must share no memory element with while both live.
        prefer_apart: the same, but only if there is room; the exchange then needs fewer pauses.
        owner: who asked, for messages.
        prefer_interleaved: should lie in region 1 if there is room beside those that must.
        alignment: of the address, in bytes; a power of two.
    """

    name: str
    bytes: int
    interleaved: bool
    first: int
    last: int
    apart: frozenset[str] = frozenset()
    prefer_apart: frozenset[str] = frozenset()
    owner: str = ""
    prefer_interleaved: bool = False
    alignment: int = ALIGNMENT


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
        request: the buffer that found no place when the largest were placed first.
        requests: everything that was asked for.
        standard_start: first byte of region 0 that was free for data.
        lacking: bytes by which `request` would have reached past the end of memory.
        proven: true if no placement exists; false if none was found with the work allowed.
    """

    def __init__(
        self, request: Request, requests: Sequence[Request], standard_start: int, lacking: int, proven: bool
    ) -> None:
        super().__init__(request.name)
        self.request = request
        self.requests = list(requests)
        self.standard_start = standard_start
        self.lacking = lacking
        self.proven = proven

    @property
    def room(self) -> int:
        """Bytes of the tile's memory that data may use."""
        return max(REGION1_BASE - self.standard_start, 0) + LOADABLE_END - REGION1_BASE

    @property
    def interleaved_is_short(self) -> bool:
        """True if the buffers that must lie in region 1 alone need more than it has."""
        return self._peak(interleaved=True)[1] > LOADABLE_END - REGION1_BASE

    @property
    def step(self) -> int:
        """The step at which the live buffers need the most, of the memory that is short."""
        return self.peak()[0]

    @property
    def over(self) -> int:
        """Bytes that must go: what the live buffers of `step` need beyond the memory, or, if their sum fits,
        `lacking`: gaps and element rules then cost the rest."""
        limit = LOADABLE_END - REGION1_BASE if self.interleaved_is_short else self.room
        return max(self.peak()[1] - limit, 0) or self.lacking

    def peak(self) -> tuple[int, int]:
        """(step, bytes) at which the live buffers need the most, element rules left aside."""
        return self._peak(interleaved=self.interleaved_is_short)

    def _peak(self, *, interleaved: bool) -> tuple[int, int]:
        counted = [r for r in self.requests if r.interleaved or not interleaved]
        steps = sorted({request.first for request in counted})
        sizes = [(sum(r.bytes for r in counted if r.first <= step <= r.last), -step) for step in steps]
        size, negative = max(sizes, default=(0, 0))
        return -negative, size

    def largest(self, count: int = 10) -> list[Request]:
        """The largest buffers that live at the peak, of those that need the memory that is short."""
        step, only = self.step, self.interleaved_is_short
        live = [r for r in self.requests if r.first <= step <= r.last and (r.interleaved or not only)]
        return sorted(live, key=lambda r: (-r.bytes, r.name))[:count]
