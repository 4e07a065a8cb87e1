"""What a byte of tile memory is worth to the planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Price:
    """Cycles that a plan may be slower for each byte per tile that it saves.

    Attributes:
        kept: a byte that is there from beginning to end: constants, those of all iterations of a loop.
        working: a byte that one operation needs while it runs; others use the same memory before and after.
    """

    kept: float = 0.0
    working: float = 0.0

    def of(self, held: Any, kept: Any) -> Any:
        """Cycles that `held` bytes are worth, `kept` of them from beginning to end; numbers or arrays."""
        return self.working * held + (self.kept - self.working) * kept


FREE = Price()


@dataclass(frozen=True)
class Prices:
    """The prices of a plan.

    Attributes:
        general: of all operations but some.
        single: of those, by the name of their first result.
    """

    general: Price = FREE
    single: Mapping[str, Price] = field(default_factory=dict)

    def of(self, operation: str) -> Price:
        """What an operation pays."""
        return self.single.get(operation, self.general)
