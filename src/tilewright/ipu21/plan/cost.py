"""What a stage costs, in simulated device cycles. Kernel figures come from the kernels' own formulas; the
exchange is estimated from its busiest receiver, since rows exist only later.

All functions work on integers and on NumPy arrays alike.
"""

from __future__ import annotations

from typing import Any

from ..machine.timing import BARRIER_INTERNAL

PHASE_FIXED = BARRIER_INTERNAL + 150
"""Barrier, worker drain, row entry, and the route time of the first and last word (derived)."""
SCHEDULE_LENGTH = 1.12
"""Length of a schedule over its busiest receiver's words, for regular phases (derived)."""
FRAGMENT = 8
"""Cycles a change of source adds at a receiver: controls, and senders that are not adjacent (assumed)."""


def exchange(words: Any, fragments: Any) -> Any:
    """Cycles of one phase whose busiest receiver takes `words` in `fragments` pieces (0 words: no phase)."""
    return (words > 0) * (PHASE_FIXED + SCHEDULE_LENGTH * words + FRAGMENT * fragments)
