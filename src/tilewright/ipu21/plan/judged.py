"""Ways of carrying out one operation, weighed against each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from .price import Price
from .steps import Report


class Describable(Protocol):
    def describe(self) -> str:
        """The grid in words."""


G = TypeVar("G", bound=Describable)
G_co = TypeVar("G_co", bound=Describable, covariant=True)


@dataclass(frozen=True)
class Judged(Generic[G_co]):
    """A grid, its cycles by stage from the traffic it really causes, its bytes on the fullest tile.

    Attributes:
        kept: bytes, of all, that are there from beginning to end.
        ahead: cycles that what follows is expected to take with the result where this grid leaves it.
    """

    grid: G_co
    cycles: dict[str, float]
    bytes: int
    kept: int = 0
    ahead: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.cycles.values()) + self.ahead

    def cost(self, price: Price) -> float:
        """Cycles, and those that its bytes are worth."""
        return self.total + float(price.of(self.bytes, self.kept))


def best_first(judged: Iterable[Judged[G]], price: Price) -> tuple[Judged[G], ...]:
    """In order of what they cost."""
    return tuple(sorted(judged, key=lambda item: item.cost(price)))


COMPARED, NEAR = 3, 1.08
"""How many of the best are compared more closely, and how far from the best they may be."""


def closest(judged: Sequence[Judged[G]], price: Price) -> tuple[Sequence[Judged[G]], Sequence[Judged[G]]]:
    """Those that are worth a closer look, and the others; best first."""
    least = judged[0].cost(price)
    count = sum(item.cost(price) <= NEAR * least for item in judged[:COMPARED])
    return judged[:count], judged[count:]


def report_of(operation: str, judged: Sequence[Judged[G]]) -> Report:
    """The first was chosen, the others were weighed: what follows counts as far as it takes more or less."""
    best, *others = judged
    weighed = [
        (item.grid.describe(), item.total - (best.ahead if item.ahead else 0.0), item.bytes)
        for item in others
    ]
    return Report(operation, best.grid.describe(), best.cycles, best.bytes, weighed)
