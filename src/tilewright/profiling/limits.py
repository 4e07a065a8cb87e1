"""Bounds of a profile. They exist so that a small file cannot ask for a large amount of memory."""

from __future__ import annotations

MAX_INTERVALS = 1 << 26
"""All runs together."""
MAX_COLUMN_BYTES = 22 * MAX_INTERVALS
"""All columns together, uncompressed."""
MAX_RUNS = 1 << 16
MAX_STEPS = 1 << 16
MAX_METADATA = 64
"""Names with values per step."""
MAX_CYCLE = 1 << 62
MAX_INSTANCES = 1 << 31
MAX_CLOCK_HZ = 1 << 40
