"""`add_row_f16`: A [N/16, R, 16] plus a row [N/16, 16], anywhere, in place if wanted.

A worker keeps eight columns of the row in registers and walks the rows of one column group after the other,
two slots per 8-byte word. Which half of the record: worker & 1; the three pairs of workers share either the
column groups or the rows of each group, whichever the supervisor finds shorter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arithmetic import ceil_div
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from .add import add_reference
from .halves import Halves
from .kernel import Contract, Kernel, Operand, Scalar
from .launch import RETURN
from .text import bundle, section, worker

_THIRD = 21846
"""n * _THIRD >> 16 == n // 3 for n < 32768."""

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

_SHARE_GROUPS = (
    "get $m0, $WSR",
    "and $m4, $m0, 1",
    "and $m0, $m0, 7",
    "shr $m0, $m0, 1",
    f"ld32 $m5, $mvertex_base, $mzero, {_COLUMNS}",
    "sub $m5, $m5, $m0",
    "add $m5, $m5, -1",
    "brneg $m5, .Ladd_row_exit",
    f"mul $m5, $m5, {_THIRD}",
    "shr $m5, $m5, 16",  # groups after the first
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
    "get $m0, $WSR",
    "and $m4, $m0, 1",
    "and $m0, $m0, 7",
    "shr $m0, $m0, 1",
    f"ld32 $m2, $mvertex_base, $mzero, {_CHUNK}",
    f"ld32 $m1, $mvertex_base, $mzero, {_ROWS}",
    "mul $m0, $m0, $m2",
    "sub $m1, $m1, $m0",
    "min $m1, $m1, $m2",
    "cmpslt $m3, $m1, 1",
    "brnz $m3, .Ladd_row_exit",
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


def _groups(label: str) -> list[str]:
    """All column groups of a worker.

    $m1 rows, $m2, $m3 pointers to C and A, $m4 row pointer, $m5 groups after the first, $m6 bytes from the
    end of a group's rows to the next group's, $m9 words between its halves of two records of the row, less
    one.
    """
    return [
        f"{label}_group:",
        "ld64step $a4:5, $mzero, $m4+=, 1",
        "ld64step $a6:7, $mzero, $m4+=, $m9",
        bundle("rpt $m1, 3"),
        bundle("ld64step $a0:1, $mzero, $m3+=, 1"),
        bundle("ld64step $a2:3, $mzero, $m3+=, 3", "f16v4add $a0:1, $a0:1, $a4:5"),
        bundle("st64step $a0:1, $mzero, $m2+=, 1", "f16v4add $a2:3, $a2:3, $a6:7"),
        bundle("st64step $a2:3, $mzero, $m2+=, 3"),
        "add $m2, $m2, $m6",
        "add $m3, $m3, $m6",
        f"brnzdec $m5, {label}_group",
    ]


GROUP_SLOTS = 6
"""Slots per column group beside four per row."""


def _source() -> str:
    share_groups = [*_SHARE_GROUPS, *_groups(".Ladd_row_by_group"), ".Ladd_row_exit:", "exitz $m15"]
    share_rows = [*_SHARE_ROWS, *_groups(".Ladd_row_by_row"), "exitz $m15"]
    return section(
        "add_row_f16",
        [
            "brz $m5, .Ladd_row_return",
            "brz $m6, .Ladd_row_return",
            "add $m0, $m5, 2",
            "add $m1, $m6, 2",
            f"add $m9, $m11, -{_FRAME_BYTES}",
            "shl $m7, $m5, 5",
            "shl $m8, $m5, 2",
            f"mul $m0, $m0, {_THIRD}",
            f"mul $m1, $m1, {_THIRD}",
            f"st32 $m2, $m9, $mzero, {_OUT}",
            f"st32 $m3, $m9, $mzero, {_IN}",
            f"st32 $m4, $m9, $mzero, {_ROW}",
            f"st32 $m7, $m9, $mzero, {_GROUP}",
            "shr $m0, $m0, 16",
            "shr $m1, $m1, 16",
            f"add $m8, $m8, {GROUP_SLOTS}",
            f"st32 $m5, $m9, $mzero, {_ROWS}",
            f"st32 $m6, $m9, $mzero, {_COLUMNS}",
            "shl $m2, $m0, 2",
            f"st32 $m0, $m9, $mzero, {_CHUNK}",
            "mul $m8, $m8, $m1",
            "setzi $m3, .Ladd_row_by_group",
            f"add $m2, $m2, {GROUP_SLOTS}",
            "mul $m2, $m2, $m6",
            "cmpult $m2, $m2, $m8",
            "brz $m2, .Ladd_row_launch",
            "setzi $m3, .Ladd_row_by_row",
            ".Ladd_row_launch:",
            "runall $m3, $m9, 0",
            "sync 2",
            ".Ladd_row_return:",
            "br $m10",
            *worker(".Ladd_row_by_group", share_groups),
            *worker(".Ladd_row_by_row", share_rows),
        ],
    )


BY_GROUP, BY_ROW = 56 + RUN_LAUNCH + RUN_RELEASE, 57 + RUN_LAUNCH + RUN_RELEASE
"""Cycles of a call beside its workers, by what they share."""


def cycles(rows: Any, columns: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays. See `Kernel.cycles`."""
    rows, columns = np.asarray(rows), np.asarray(columns)
    by_group = ceil_div(columns, 3) * (GROUP_SLOTS + 4 * rows)
    by_row = columns * (GROUP_SLOTS + 4 * ceil_div(rows, 3))
    grouped = BY_GROUP + WORKER_SLOTS * (len(_SHARE_GROUPS) + by_group + 1)
    rowed = BY_ROW + WORKER_SLOTS * (len(_SHARE_ROWS) + by_row + 1)
    return np.where(rows * columns > 0, np.where(by_row < by_group, rowed, grouped), RETURN + (rows > 0))


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
    ),
    cycles,
    reference,
)
