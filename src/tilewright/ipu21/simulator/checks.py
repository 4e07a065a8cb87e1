"""Which optional checks a simulated tile makes."""

from __future__ import annotations

from dataclasses import dataclass

from . import state as at


@dataclass(frozen=True)
class Checks:
    """Optional checks. Range, alignment and region of every access are always checked.

    Attributes:
        conflict: two accesses of one instruction to the same memory element are an exception, as on the chip.
        fetch: a send that reads the memory element of the running code is an exception, as on the chip.
        poison: reading bytes nobody has written is an exception. Loads into a zero register are exempt.
        budget: instructions a single `Tile.run` may issue before it is judged endless.
    """

    conflict: bool = True
    fetch: bool = True
    poison: bool = False
    budget: int = 200_000_000

    def bits(self) -> int:
        """The checks as the engine's bit mask."""
        return at.CHECK_CONFLICT * self.conflict + at.CHECK_POISON * self.poison + at.CHECK_FETCH * self.fetch
