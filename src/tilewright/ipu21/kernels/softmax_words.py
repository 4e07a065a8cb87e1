"""The frames of the softmax kernels' workers, one for each."""

from __future__ import annotations

LOWEST = 0xFBFF
"""-65504 in half precision."""

ZERO_WORDS, ONE_WORDS = 64, 65
"""Where a kernel's table of bounds has zeros and ones, in 8-byte words; it begins with -65504."""

ROWS, SCORES, PROBABILITIES, STATE, JUMP = range(5)
"""Words of a worker's frame: rows behind its first one (-1: it has none), its first row's places, and words
from a panel's last to the next one's first."""
WORDS = 8
"""Of a frame; what the last three hold is up to the kernel."""
