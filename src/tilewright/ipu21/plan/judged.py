"""Ways of carrying out one operation, weighed against each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from .steps import Report


class Describable(Protocol):
    def describe(self) -> str:
        """The grid in words."""


G = TypeVar("G", bound=Describable)


@dataclass(frozen=True)
class Judged(Generic[G]):
    """A grid, its cycles by stage from the traffic it really causes, its bytes on the fullest tile.

    Attributes:
        ahead: cycles that what follows is expected to take with the result where this grid leaves it.
    """

    grid: G
    cycles: dict[str, float]
    bytes: int
    ahead: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.cycles.values()) + self.ahead


def best_first(judged: Iterable[Judged[G]], price: float) -> tuple[Judged[G], ...]:
    """In order of what they cost, where a byte is worth `price` cycles."""
    return tuple(sorted(judged, key=lambda item: item.total + price * item.bytes))


COMPARED, NEAR = 3, 1.08
"""How many of the best are compared more closely, and how far from the best they may be."""


def closest(judged: Sequence[Judged[G]], price: float) -> tuple[Sequence[Judged[G]], Sequence[Judged[G]]]:
    """Those that are worth a closer look, and the others; best first."""
    least = judged[0].total + price * judged[0].bytes
    count = sum(item.total + price * item.bytes <= NEAR * least for item in judged[:COMPARED])
    return judged[:count], judged[count:]


def report_of(operation: str, judged: Sequence[Judged[G]]) -> Report:
    """The first was chosen, the others were weighed: what follows counts as far as it takes more or less."""
    best, *others = judged
    weighed = [
        (item.grid.describe(), item.total - (best.ahead if item.ahead else 0.0), item.bytes)
        for item in others
    ]
    return Report(operation, best.grid.describe(), best.cycles, best.bytes, weighed)
