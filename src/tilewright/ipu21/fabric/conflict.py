"""One way in which the rows of a phase break a rule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Conflict:
    """One broken rule.

    Attributes:
        kind: `row`, `fetch`, `element`, `control`, `lane`, `cut`, `silent`, `source`, `alone`, `pair`,
            `neutral`, `pointer`, `format`, `overlap`, `address`, `guard`, `order` or `delivery`.
        tile: physical tile at which it happens.
        event: event of that tile's clock.
        element: the effective element concerned, or None.
        parties: the two things in conflict, in words.
    """

    kind: str
    tile: int
    event: int
    element: int | None
    parties: tuple[str, str]

    def __str__(self) -> str:
        element = "" if self.element is None else f", element {self.element}"
        return f"tile {self.tile}, event {self.event}{element}: {self.parties[0]} against {self.parties[1]}"
