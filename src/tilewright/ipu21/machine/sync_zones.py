"""What the operand of `sync` names (known)."""

from __future__ import annotations

RECEIVED = 0
"""Waits for the words that INCOMING_DCOUNT counts."""
ABSENT = 1
"""Waits until the barriers are over that `sans` has announced to stay away from."""
LOCAL = 2
"""Waits for the tile's own workers."""
INTERNAL = 3
"""The barrier of all tiles of the chip."""
HOST, HOST_MASTER = 7, 15
"""The barrier in which the host takes part, and its form for tiles that request traffic for others."""
