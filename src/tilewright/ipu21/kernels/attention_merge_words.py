"""The frame of the attention merges' workers, and where they keep weights."""

from __future__ import annotations

from ..machine.timing import WORKER_SLOTS

MAXIMUM_PARTS = 80
"""As many weights, and a word more at either end, lie below a worker's base register."""
WEIGHT_BYTES = 4 * (MAXIMUM_PARTS // 2 + 3)

LEAST = 0x0D800000
"""2^-100, against a zero sum."""

HALVED_ROWS = 3
"""Up to here pairs of workers share a row."""

OWN_STATE, STATES, OWN, OTHERS, OUT, COLUMNS, COMMON, STATE_STEP = range(8)
WORKER_WORDS = 8
"""Words of a worker's frame where rows are few; the first one also says where whole rows begin. OWN_STATE and
COLUMNS are negative without work."""
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
    LEAST_SUM,
) = range(WORKER_WORDS * WORKER_SLOTS, WORKER_WORDS * WORKER_SLOTS + 16)
FRAME_BYTES = 4 * (LEAST_SUM + 1)
"""In whole steps of 8 bytes."""
