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
    """A grid, its cycles by stage from the traffic it really causes, its bytes on the fullest tile."""

    grid: G
    cycles: dict[str, float]
    bytes: int

    @property
    def total(self) -> float:
        return sum(self.cycles.values())


def best_first(judged: Iterable[Judged[G]], price: float) -> tuple[Judged[G], ...]:
    """In order of what they cost, where a byte is worth `price` cycles."""
    return tuple(sorted(judged, key=lambda item: item.total + price * item.bytes))


def report_of(operation: str, judged: Sequence[Judged[G]]) -> Report:
    """The first was chosen, the others were weighed."""
    best, *others = judged
    weighed = [(item.grid.describe(), item.total, item.bytes) for item in others]
    return Report(operation, best.grid.describe(), best.cycles, best.bytes, weighed)
