"""The frame of the attention merges' workers, and where they keep weights."""

from __future__ import annotations

from ..machine.timing import WORKER_SLOTS

MAXIMUM_PARTS = 80
"""As many weights, and a word more at either end, lie below a worker's base register."""
WEIGHT_BYTES = 4 * (MAXIMUM_PARTS // 2 + 3)

HALVED_ROWS = 3
"""Up to here pairs of workers share a row."""

OWN_STATE, STATES, OWN, OTHERS, OUT, COLUMNS, COMMON = range(7)
WORKER_WORDS = 7
"""Words of a worker's frame where rows are few; the first one also says where whole rows begin."""
(
    ROWS,
    PANELS,
    COUNT,
    ODD,
    PAIRS,
    FIRST,
    BETWEEN,
    PART_STEP,
    BACK_HALF,
    BACK_PANEL,
    OWN_STEP,
    OUT_STEP,
    IS_ODD,
    STRAIGHT_HALF,
    STRAIGHT_PANEL,
) = range(WORKER_WORDS * WORKER_SLOTS, WORKER_WORDS * WORKER_SLOTS + 15)
FRAME_BYTES = 4 * (STRAIGHT_PANEL + 2)
"""In whole steps of 8 bytes."""
