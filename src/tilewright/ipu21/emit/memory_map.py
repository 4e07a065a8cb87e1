"""Where our programs put things in tile memory. The machine's own limits are in `machine.memory`.

| from    | holds                                                            | element |
|---------|------------------------------------------------------------------|---------|
| 0x4c010 | start-up, runtime routines, kernels: the same on every tile      | 19      |
| 0x50160 | scratch of closing host reads, then the staging of host data     | 20      |
| 0x54000 | host request words and packet headers of this tile               | 21      |
| 0x580e0 | worker areas, the supervisor's stack, the iteration of a loop    | 22      |
| 0x5c000 | host code, frames, step code and rows of this tile              | 23..    |
| after   | data of region 0, from the next element boundary                 |         |
| 0x80000 | interleaved data                                                 | 32..    |

Code never shares an element with anything that host or exchange traffic touches.
"""

from __future__ import annotations

from ...arithmetic import align_up
from ..machine.memory import ELEMENT_BYTES, FETCH_LOOKAHEAD_BYTES, REGION1_BASE

SCRATCH = 0x50160
SCRATCH_BYTES = 0x20
"""Where the answer to a closing zero-length read would go; contents undefined afterwards."""
STAGING = 0x50180
STAGING_BYTES = 0x1000

TABLES = 0x54000
TABLES_END = 0x58000

STACKS = 0x580E0
"""Worker areas and the supervisor's stack, up to ITERATION."""
ITERATION = 0x5BFE0
"""Number of the iteration that a loop of the program is in; one word."""

PROGRAM = 0x5C000

FRAME_ALIGNMENT = 32
"""Of the frames that lie ready for kernels, as of the supervisor's stack."""


def data_start(program_end: int) -> int:
    """First byte of region 0 free for data when programs end at `program_end`: past the fetch look-ahead."""
    end = program_end + FETCH_LOOKAHEAD_BYTES
    return min(align_up(end, ELEMENT_BYTES), REGION1_BASE)
