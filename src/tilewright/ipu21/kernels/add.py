"""`add_f16` and `add_row_f16`: sums of float16 arrays, and of an array and a row.

Neither constrains where its operands lie, and each may work in place. Per 8-byte word the first takes two
slots where a load and a store may share one (see `paced`) and three elsewhere; the second takes two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arithmetic import ceil_div
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar
from .launch import RETURN, WORDS, words_cycles
from .paced import SUPERVISOR_CYCLES, paced_kernel
from .text import bundle, section, worker


def _add_source() -> str:
    start = [
        "ld32 $m4, $mvertex_base, $mzero, 2",
        "ld32 $m5, $mvertex_base, $mzero, 3",
        "ld32 $m6, $mvertex_base, $mzero, 4",
        "add $m4, $m4, $m0",
        "add $m5, $m5, $m0",
        "add $m6, $m6, $m0",
        "ld64step $a0:1, $mzero, $m5+=, 1",
        "ld64step $a2:3, $mzero, $m6+=, 1",
        "add $m1, $m1, -1",
    ]
    end = ["f16v4add $a4:5, $a0:1, $a2:3", "st64 $a4:5, $m4, $mzero, 0"]
    return paced_kernel(
        "add_f16",
        ["$m2", "$m3", "$m4"],
        "$m5",
        load="$m3",
        store="$m2",
        plain=[
            *start,
            bundle("rpt $m1, 2"),
            bundle("ld64step $a0:1, $mzero, $m5+=, 1", "f16v4add $a4:5, $a0:1, $a2:3"),
            bundle("ld64step $a2:3, $mzero, $m6+=, 1"),
            bundle("st64step $a4:5, $mzero, $m4+=, 1"),
            *end,
        ],
        paced=[
            *start,
            "tapack $m2:3, $m5, $m5, $m4",
            bundle("rpt $m1, 1"),
            bundle("ld64step $a2:3, $mzero, $m6+=, 1", "f16v4add $a4:5, $a0:1, $a2:3"),
            bundle("ldst64pace $a0:1, $a4:5, $m2:3+=, $mzero, 0"),
            "f16v4add $a4:5, $a0:1, $a2:3",
            "st64pace $a4:5, $m2:3+=, $mzero, 0",
        ],
    )


def _add_row_source() -> str:
    """Workers 0..2 take columns 0..7 of a third of the rows each, workers 3..5 columns 8..15; all walk the
    groups.
    """
    return section(
        "add_row_f16",
        [
            "brz $m5, .Ladd_row_f16_return",
            "brz $m6, .Ladd_row_f16_return",
            "add $m0, $m5, 2",
            "add $m9, $m11, -32",
            "setzi $m8, .Ladd_row_f16_worker",
            "shl $m7, $m5, 5",
            "mul $m0, $m0, 21846",  # 65536 / 3
            "st32 $m2, $m9, $mzero, 2",
            "st32 $m3, $m9, $mzero, 3",
            "st32 $m4, $m9, $mzero, 4",
            "st32 $m5, $m9, $mzero, 1",
            "st32 $m6, $m9, $mzero, 5",
            "st32 $m7, $m9, $mzero, 6",
            "shr $m0, $m0, 16",
            "st32 $m0, $m9, $mzero, 0",
            "runall $m8, $m9, 0",
            "sync 2",
            ".Ladd_row_f16_return:",
            "br $m10",
            *worker(".Ladd_row_f16_worker", _ADD_ROW_WORKER),
        ],
    )


_ADD_ROW_START = (
    "get $m0, $WSR",
    "and $m0, $m0, 7",
    "cmpult $m4, $m0, 3",
    "sub $m4, 1, $m4",  # which half of the record
    "mul $m3, $m4, 3",
    "sub $m0, $m0, $m3",
    "ld32 $m2, $mvertex_base, $mzero, 0",
    "ld32 $m1, $mvertex_base, $mzero, 1",
    "mul $m0, $m0, $m2",
    "sub $m1, $m1, $m0",
    "min $m1, $m1, $m2",
    "cmpslt $m3, $m1, 1",
    "brnz $m3, .Ladd_row_f16_exit",
    "shl $m4, $m4, 4",
    "shl $m0, $m0, 5",
    "add $m0, $m0, $m4",
    "ld32 $m2, $mvertex_base, $mzero, 2",
    "ld32 $m3, $mvertex_base, $mzero, 3",
    "ld32 $m5, $mvertex_base, $mzero, 4",
    "add $m2, $m2, $m0",
    "add $m3, $m3, $m0",
    "add $m4, $m4, $m5",
    "ld32 $m5, $mvertex_base, $mzero, 5",
    "ld32 $m6, $mvertex_base, $mzero, 6",
    "add $m5, $m5, -1",
)
_ADD_ROW_WORKER = (
    *_ADD_ROW_START,
    ".Ladd_row_f16_group:",
    "ld64step $a4:5, $mzero, $m4+=, 1",
    "ld64step $a6:7, $mzero, $m4+=, 3",
    "mov $m7, $m2",
    "mov $m8, $m3",
    "add $m2, $m2, $m6",
    bundle("rpt $m1, 3"),
    bundle("ld64step $a0:1, $mzero, $m8+=, 1"),
    bundle("ld64step $a2:3, $mzero, $m8+=, 3", "f16v4add $a0:1, $a0:1, $a4:5"),
    bundle("st64step $a0:1, $mzero, $m7+=, 1", "f16v4add $a2:3, $a2:3, $a6:7"),
    bundle("st64step $a2:3, $mzero, $m7+=, 3"),
    "add $m3, $m3, $m6",
    "brnzdec $m5, .Ladd_row_f16_group",
    ".Ladd_row_f16_exit:",
    "exitz $m15",
)
_ADD_ROW_GROUP_SLOTS = 8
ROW_SUPERVISOR = 28 + RUN_LAUNCH + RUN_RELEASE
"""Cycles of an `add_row_f16` call beside its workers."""


def add_cycles(words: Any, way: str = "interleaved") -> Any:
    """Cycles of `add_f16` (exact on the simulator); integers or arrays. `way` of A and C: see `paced.way`."""
    once, each = (13, 3) if way == "plain" else (14, 2)
    return words_cycles(words, once, each, SUPERVISOR_CYCLES[way])


def add_row_cycles(rows: Any, columns: Any) -> Any:
    """Cycles of `add_row_f16` (exact on the simulator); integers or arrays."""
    rows, columns = np.asarray(rows), np.asarray(columns)
    slots = len(_ADD_ROW_START) + columns * (_ADD_ROW_GROUP_SLOTS + 4 * ceil_div(rows, 3)) + 1
    return np.where(rows * columns > 0, ROW_SUPERVISOR + WORKER_SLOTS * slots, RETURN + (rows > 0))


def add_reference(a: Halves, b: Halves) -> Halves:
    """a + b, each float16, one rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        return to_halves(a.astype(np.float64) + b.astype(np.float64))


def add_row_reference(a: Halves, row: Halves) -> Halves:
    """A [N/16, R, 16] plus row [N/16, 16]."""
    return add_reference(a, row[:, None, :])


ADD = Kernel(
    "add_f16",
    _add_source,
    Contract(
        operands=(Operand("c", "words", "out"), Operand("a", "words", "in"), Operand("b", "words", "in")),
        scalars=(WORDS,),
        may_alias=(("c", "a"), ("c", "b")),
    ),
    add_cycles,
    add_reference,
)

ADD_ROW = Kernel(
    "add_row_f16",
    _add_row_source,
    Contract(
        operands=(Operand("c", "a16", "out"), Operand("a", "a16", "in"), Operand("row", "row16", "in")),
        scalars=(
            Scalar("rows", "rows of A and C in memory", 0, 32766),
            Scalar("columns", "groups of 16 columns", 0, 4096),
        ),
        may_alias=(("c", "a"),),
    ),
    add_row_cycles,
    add_row_reference,
)
