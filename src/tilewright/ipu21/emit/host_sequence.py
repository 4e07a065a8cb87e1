"""Host code of one tile, phase after phase, before it has an address."""

from __future__ import annotations

from ..isa import build
from ..machine import sync_zones

COUNTER = 9
"""Register of counted loops: nothing that host code calls runs inside one."""
STRAIGHT = 2
"""Absences in a row up to which a loop would not be shorter than its unrolled form."""


class HostSequence:
    """Words of consecutive phases. Runs of phases that the tile sits out become counted loops."""

    def __init__(self) -> None:
        self._parts: list[list[int] | tuple[int, int]] = []

    def add(self, words: list[int]) -> None:
        """Append code that runs wherever it lies."""
        self._parts.append(words)

    def absent(self, barriers: int) -> None:
        """Sit out one phase of 1 (internal) or 2 (host) barriers."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, tuple) and last[0] == barriers:
            self._parts[-1] = (barriers, last[1] + 1)
        else:
            self._parts.append((barriers, 1))

    def extend(self, other: HostSequence) -> None:
        """Append another sequence. A run that ends here and goes on there stays two runs."""
        self._parts += other._parts

    def words(self, address: int) -> list[int]:
        """The code for a byte address; its length depends on no address."""
        words: list[int] = []
        for part in self._parts:
            if isinstance(part, list):
                words += part
            else:
                words += _absences(*part, address + 4 * len(words))
        return words

    def __len__(self) -> int:
        return len(self.words(0))


def _absences(barriers: int, count: int, address: int) -> list[int]:
    body = [build.sans(barriers - 1), build.sync(sync_zones.ABSENT)]
    if count <= STRAIGHT:
        return body * count
    return [build.setzi(COUNTER, count - 1), *body, build.brnzdec(COUNTER, address + 4)]
