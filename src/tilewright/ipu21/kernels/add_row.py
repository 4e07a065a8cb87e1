"""`add_row_f16`: A [N/16, R, 16] plus a row [N/16, 16], anywhere, in place if wanted.

A worker keeps eight columns of the row in registers and walks the rows of one column group after the other.
Which half of the record: worker & 1; the three pairs of workers share either the column groups or the rows of
each group, whichever the supervisor finds shorter.

Where A and C are interleaved and equal in address bit 3, one slot per 8-byte word loads word t, adds to word
t - 1 and stores word t - 3: an odd distance, so the two accesses have opposite parity. The sum goes through
`f16v4mix` with factors of one, which delivers one step late. Elsewhere, and for a worker with a single row, a
word takes two slots.

Worker registers:
    $m0 pace strides: f1 = 3 words   $m1 rows     $m2, $m3 pointers to C and A   $m4 pointer to the row
    $m5 groups after this one        $m8 rows - 2 $m9 words from the second of the row's two words to the next
    group's
    $m6, $m7 bytes to the next group, for C and A, from where the loop leaves the pointers   $m10:11 packed
    pointers
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arithmetic import ceil_div
from ..machine.memory import REGION1_BASE, REGION1_SHIFT
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from .add import reference as add_reference
from .grid import THIRD
from .halves import Halves
from .kernel import Contract, Kernel, Operand, Scalar
from .launch import RETURN
from .text import bundle, section, worker

_CHUNK, _ROWS, _OUT, _IN, _ROW, _COLUMNS, _GROUP = range(7)
_FRAME_BYTES = 32

_POINTERS = (
    f"ld32 $m2, $mvertex_base, $mzero, {_OUT}",
    f"ld32 $m3, $mvertex_base, $mzero, {_IN}",
    "add $m2, $m2, $m0",
    "add $m3, $m3, $m0",
    f"ld32 $m7, $mvertex_base, $mzero, {_ROW}",
    "add $m4, $m4, $m7",
)
"""From $m0 = byte offset in A and C, $m4 = byte offset in the row."""

_WHO = (
    bundle("get $m0, $WSR", "setzi $a0, 0x03c00"),
    bundle("and $m4, $m0, 1", "or $a0, $a0, 0x3c000000"),
    bundle("and $m0, $m0, 7", "uput $TAS, $a0"),  # both factors of mix: 1
    "shr $m0, $m0, 1",
)
_SHARE_GROUPS = (
    *_WHO,
    f"ld32 $m5, $mvertex_base, $mzero, {_COLUMNS}",
    "sub $m5, $m5, $m0",
    "add $m5, $m5, -1",
    "brneg $m5, .Ladd_row_exit",
    f"mul $m5, $m5, {THIRD}",
    "shr $m5, $m5, 16",
    f"ld32 $m1, $mvertex_base, $mzero, {_ROWS}",
    f"ld32 $m6, $mvertex_base, $mzero, {_GROUP}",
    "shl $m4, $m4, 4",
    "shl $m8, $m0, 5",
    "mul $m0, $m0, $m6",
    "add $m0, $m0, $m4",
    "add $m4, $m4, $m8",
    *_POINTERS,
    "shl $m6, $m6, 1",  # over two groups
    "setzi $m9, 11",
)
_SHARE_ROWS = (
    *_WHO,
    f"ld32 $m2, $mvertex_base, $mzero, {_CHUNK}",
    f"ld32 $m1, $mvertex_base, $mzero, {_ROWS}",
    "mul $m0, $m0, $m2",
    "sub $m1, $m1, $m0",
    "min $m1, $m1, $m2",  # never below 0: a call with one row shares the groups
    "shl $m4, $m4, 4",
    "shl $m0, $m0, 5",
    "add $m0, $m0, $m4",
    *_POINTERS,
    f"ld32 $m5, $mvertex_base, $mzero, {_COLUMNS}",
    "add $m5, $m5, -1",
    f"ld32 $m6, $mvertex_base, $mzero, {_GROUP}",
    "shl $m7, $m1, 5",
    "sub $m6, $m6, $m7",  # over the other workers' rows
    "setzi $m9, 3",
)

_LOAD_ROW = ("ld64step $a4:5, $mzero, $m4+=, 1", "ld64step $a6:7, $mzero, $m4+=, $m9")


def _plain(label: str) -> list[str]:
    """All column groups of a worker, two slots per word."""
    return [
        f"{label}_group:",
        *_LOAD_ROW,
        bundle("rpt $m1, 3"),
        bundle("ld64step $a0:1, $mzero, $m3+=, 1"),
        bundle("ld64step $a2:3, $mzero, $m3+=, 3", "f16v4add $a0:1, $a0:1, $a4:5"),
        bundle("st64step $a0:1, $mzero, $m2+=, 1", "f16v4add $a2:3, $a2:3, $a6:7"),
        bundle("st64step $a2:3, $mzero, $m2+=, 3"),
        "add $m2, $m2, $m6",
        "add $m3, $m3, $m6",
        f"brnzdec $m5, {label}_group",
    ]


def _paced(label: str, plain_label: str) -> list[str]:
    """All column groups of a worker of two rows or more, one slot per word; others go to `plain_label`."""
    first, second = "f16v4mix $a2:3, $a0:1, $a4:5", "f16v4mix $a2:3, $a0:1, $a6:7"
    return [
        "add $m8, $m1, -2",
        f"brneg $m8, {plain_label}_group",
        "shl $m7, $m1, 5",
        "add $m6, $m6, $m7",
        "add $m7, $m6, -40",
        "setzi $m0, 3",
        f"{label}_group:",
        *_LOAD_ROW,
        "ld64step $a0:1, $mzero, $m3+=, 1",
        bundle("ld64step $a0:1, $mzero, $m3+=, 3", first),
        bundle("ld64step $a0:1, $mzero, $m3+=, 1", second),
        "tapack $m10:11, $m3, $m3, $m2",
        bundle("rpt $m8, 1"),
        bundle("ldst64pace $a0:1, $a2:3, $m10:11+=, $m0, 0b0001", first),
        bundle("ldst64pace $a0:1, $a2:3, $m10:11+=, $m0, 0b0100", second),
        bundle("ldst64pace $a0:1, $a2:3, $m10:11+=, $m0, 0b0001", first),
        bundle("st64pace $a2:3, $m10:11+=, $m0, 0b01", second),
        bundle("st64pace $a2:3, $m10:11+=, $m0, 0b00", "f16v4mix $a2:3, $azeros, $azeros"),
        "st64pace $a2:3, $m10:11+=, $m0, 0b00",
        "add $m2, $m2, $m6",
        "add $m3, $m3, $m7",
        f"brnzdec $m5, {label}_group",
    ]


PLAIN_GROUP, PACED_GROUP = 6, 10
"""Slots per column group beside those per row, four plain and two paced."""
PACED_START = 6
"""Further slots of a worker before its first paced group."""


def _source() -> str:
    return section(
        "add_row_f16",
        [
            "brz $m5, .Ladd_row_return",
            "brz $m6, .Ladd_row_return",
            "add $m0, $m5, 2",
            "add $m1, $m6, 2",
            f"add $m9, $m11, -{_FRAME_BYTES}",
            "shl $m7, $m5, 5",
            "and $m8, $m2, $m3",
            f"mul $m0, $m0, {THIRD}",
            f"mul $m1, $m1, {THIRD}",
            f"st32 $m2, $m9, $mzero, {_OUT}",
            "xor $m2, $m2, $m3",
            f"st32 $m3, $m9, $mzero, {_IN}",
            f"shr $m8, $m8, {REGION1_SHIFT}",
            f"st32 $m4, $m9, $mzero, {_ROW}",
            "shr $m0, $m0, 16",
            "shr $m1, $m1, 16",
            "shr $m2, $m2, 3",
            f"st32 $m7, $m9, $mzero, {_GROUP}",
            f"st32 $m5, $m9, $mzero, {_ROWS}",
            f"st32 $m6, $m9, $mzero, {_COLUMNS}",
            f"st32 $m0, $m9, $mzero, {_CHUNK}",
            "andc $m8, $m8, $m2",  # 1: paced
            "sub $m4, 2, $m8",
            "shl $m3, $m8, 2",
            "shl $m2, $m0, $m4",
            "shl $m7, $m5, $m4",
            f"add $m3, $m3, {PLAIN_GROUP}",
            "setzi $m4, .Ladd_row_by_row_paced",
            "add $m2, $m2, $m3",
            "add $m7, $m7, $m3",
            "setzi $m3, .Ladd_row_by_group_paced",
            "mul $m2, $m2, $m6",
            "mul $m7, $m7, $m1",
            "brnz $m8, .Ladd_row_choose",
            "setzi $m3, .Ladd_row_by_group",
            "setzi $m4, .Ladd_row_by_row",
            ".Ladd_row_choose:",
            "cmpult $m2, $m2, $m7",
            "brz $m2, .Ladd_row_launch",
            "mov $m3, $m4",
            ".Ladd_row_launch:",
            "runall $m3, $m9, 0",
            "sync 2",
            ".Ladd_row_return:",
            "br $m10",
            *worker(".Ladd_row_by_group", [*_SHARE_GROUPS, *_plain(".Ladd_row_groups"), "exitz $m15"]),
            *worker(".Ladd_row_by_row", [*_SHARE_ROWS, *_plain(".Ladd_row_rows"), "exitz $m15"]),
            *worker(
                ".Ladd_row_by_group_paced",
                [*_SHARE_GROUPS, *_paced(".Ladd_row_groups_paced", ".Ladd_row_groups"), "exitz $m15"],
            ),
            *worker(
                ".Ladd_row_by_row_paced",
                [
                    *_SHARE_ROWS,
                    *_paced(".Ladd_row_rows_paced", ".Ladd_row_rows"),
                    ".Ladd_row_exit:",
                    "exitz $m15",
                ],
            ),
        ],
    )


def is_paced(a: int, c: int) -> bool:
    """True if a call takes a single slot per word for these addresses of A and C."""
    return a >= REGION1_BASE and c >= REGION1_BASE and (a ^ c) & 8 == 0


BY_GROUP, BY_ROW, PACED_CHOICE = 74 + RUN_LAUNCH + RUN_RELEASE, 75 + RUN_LAUNCH + RUN_RELEASE, 1
"""Cycles of a call beside its workers, by what they share, and one more if paced."""


def cycles(rows: Any, columns: Any, paced: bool = True) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays. See `Kernel.cycles` and `is_paced`."""
    rows, columns = np.asarray(rows), np.asarray(columns)
    grouped = _slots(rows, ceil_div(columns, 3), paced)
    rowed = _slots(ceil_div(rows, 3), columns, paced)
    fixed, slope = (PACED_GROUP, 2) if paced else (PLAIN_GROUP, 4)
    by_row = columns * (fixed + slope * ceil_div(rows, 3)) < ceil_div(columns, 3) * (fixed + slope * rows)
    grouped = BY_GROUP + WORKER_SLOTS * (len(_SHARE_GROUPS) + grouped)
    rowed = BY_ROW + WORKER_SLOTS * (len(_SHARE_ROWS) + rowed)
    busy = np.where(by_row, rowed, grouped) + (PACED_CHOICE if paced else 0)
    return np.where(rows * columns > 0, busy, RETURN + (rows > 0))


def _slots(rows: Any, groups: Any, paced: bool) -> Any:
    """Slots of a worker behind its start, exit included."""
    plain = groups * (PLAIN_GROUP + 4 * rows) + 1
    if not paced:
        return plain
    return np.where(rows > 1, PACED_START + groups * (PACED_GROUP + 2 * rows) + 1, 2 + plain)


def reference(a: Halves, row: Halves) -> Halves:
    """A [N/16, R, 16] plus row [N/16, 16], one rounding."""
    return add_reference(a, row[:, None, :])


KERNEL = Kernel(
    "add_row_f16",
    _source,
    Contract(
        operands=(Operand("c", "a16", "out"), Operand("a", "a16", "in"), Operand("row", "row16", "in")),
        scalars=(
            Scalar("rows", "rows of A and C in memory", 0, 32765),
            Scalar("columns", "groups of 16 columns", 0, 32765),
        ),
        may_alias=(("c", "a"),),
        notes="$TAS is clobbered. Fastest where A and C lie in interleaved memory, equal in address bit 3.",
    ),
    cycles,
    reference,
)
