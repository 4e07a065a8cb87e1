"""Supervisor code of the float16 matrix kernels that leaves few rows' workers what `gemm_few_stream` needs.

As in `gemm_prologue`, %q is the fewer rows of a worker, $m0 the table and $m1 bytes of a K group.
"""

from __future__ import annotations

from ..machine.timing import WORKER_SLOTS
from . import gemm_few as few
from . import gemm_few_stream as few_stream
from .gemm_frame import (
    ADD,
    BASE_STEP,
    BLOCK_BYTES,
    BLOCKS,
    LARGER,
    MODES,
    ROW,
    ROWS_OF_A,
    ROWS_OF_C,
    SHAPE,
    SMALLER,
    SOURCE,
    STARTS,
    ZERO,
)
from .gemm_prologue import FREE, GIVEN, INNER_MASK, STRAIGHT_MIDDLE, few_table, table_entry
from .gemm_tables import FEW_ONLY, FIRST_OF, TABLE_BYTES
from .supervisor import load_back, schedule, to_frame


def _mode(register: str) -> str:
    """Load the place of the start mode in `MODES` from the tables at $m0."""
    return table_entry(register, TABLE_BYTES // 4 * FEW_ONLY + FIRST_OF)


_SINGLE = (load_back("%inner", SHAPE), f"and %inner, %inner, {INNER_MASK:#x}", "cmpeq %single, %inner, 1")
"""%inner K groups; %single: there is one."""


def _unless_none(name: str) -> list[str]:
    """0 instead of a value if some workers are without rows."""
    return ["cmpult %none, %q, 1", "add %none, %none, -1", f"and {name}, {name}, %none"]


def few_stream_frame() -> list[str]:
    """What depends on n goes into the blocks, and from there to the workers, one after the other.

    In between, $m2 is the worker's base, $m9 counts workers, and a start is $m3 + the rows in C & $m4.
    """
    here = ".Lgemm_few_worker"
    return [
        *schedule(_few_blocks(), FREE, GIVEN),
        *schedule(_few_back(), FREE),
        *schedule(_few_starts(), ("$m1", *_LOOP)),
        "mov $m2, $m11",
        f"setzi $m9, {WORKER_SLOTS}",
        f"{here}:",
        *schedule(_few_worker(), ("$m1", *_LOOP)),
        f"add $m2, $m2, {4 * BASE_STEP}",
        f"brnz $m9, {here}",
    ]


_LOOP = ("$m5", "$m6", "$m7", "$m8", "$m10")


def _few_blocks() -> list[str]:
    """Rows, strides and the way to row 1 of a start; see `gemm_few_stream`. A worker without rows stays where
    it is: -3 each.
    """
    lines = [
        to_frame("$mzero", STRAIGHT_MIDDLE),
        to_frame("%q", SMALLER + few.ROWS),
        "add %more, %q, 1",
        to_frame("%more", LARGER + few.ROWS),
        _mode("%row"),
        f"cmpeq %row, %row, {MODES.index(ROW)}",
        f"and %inner, %shape, {INNER_MASK:#x}",
        "cmpeq %wraps, %inner, 1",
        "andc %wraps, %wraps, %row",
        "shl %wraps, %wraps, 2",
        "add %row, %row, -1",
        "shr %group, $m1, 3",
    ]
    for place, q in ((LARGER, 1), (SMALLER, 2)):
        if place == SMALLER:
            lines += _unless_none("%group")
        lines += [
            f"cmpeq %two{q}, %q, {q}",
            f"mul %wrap{q}, %two{q}, %wraps",
            f"sub %wrap{q}, 0x3fd, %wrap{q}",
            f"shl %between{q}, %two{q}, 2",
            f"add %between{q}, %between{q}, -3",
            f"shl %two{q}, %two{q}, 5",
            f"and %two{q}, %two{q}, %row",
            to_frame(f"%two{q}", place + few_stream.BLOCK_SECOND),
            f"sub %next{q}, %group, %between{q}",
            f"add %next{q}, %next{q}, -6",
            f"and %next{q}, %next{q}, 0x3ff",
            f"shl %next{q}, %next{q}, 10",
            f"shl %between{q}, %between{q}, 20",
            f"or %wrap{q}, %wrap{q}, %next{q}",
            f"or %wrap{q}, %wrap{q}, %between{q}",
            to_frame(f"%wrap{q}", place + few_stream.BLOCK_STRIDES),
        ]
    return lines


def _few_back() -> list[str]:
    """The way back from the end of the input: bytes from behind its last word; strides if there is one K
    group.
    """
    lines = [
        load_back("%q", SMALLER + few.ROWS),
        *_SINGLE,
        "add %all, %inner, -1",
        "mul %all, %all, $m1",
    ]
    for place, q in ((LARGER, 1), (SMALLER, 2)):
        if place == SMALLER:
            lines += _unless_none("%all")
        lines += [
            f"cmpeq %two{q}, %q, {q}",
            f"shl %row{q}, %two{q}, 5",
            f"add %row{q}, %row{q}, %all",
            f"sub %row{q}, -32, %row{q}",
            f"shl %two{q}, %two{q}, 2",
            f"sub %two{q}, 0x3fd, %two{q}",
            f"movnz %row{q}, %single, %two{q}",
            to_frame(f"%row{q}", place + few_stream.BLOCK_BACK),
        ]
    return lines


def _few_starts() -> list[str]:
    return [
        _mode("%mode"),
        load_back("%first", ROWS_OF_C),
        load_back("%source", LARGER + SOURCE),
        f"cmpeq %zero, %mode, {MODES.index(ZERO)}",
        "movnz %source, %zero, $mzero",
        f"cmpeq %add, %mode, {MODES.index(ADD)}",
        "mul %first, %first, %add",
        "sub $m3, %source, %first",
        f"cmpeq %row, %mode, {MODES.index(ROW)}",
        "add $m4, %row, -1",
        *_SINGLE,
        load_back("%none", SMALLER + few.ROWS),
        "cmpult %none, %none, 1",
        *few_table(),
    ]


def _few_worker() -> list[str]:
    """One worker's words. The packed start pointer is at word 1 of row 0, of row 1 with a start array;
    without anything to start from, it is kept in C.
    """

    def load(register: str, word: int) -> str:
        return f"ld32 {register}, $m2, $mzero, {word}"

    def store(register: str, word: int) -> str:
        return f"st32 {register}, $m2, $mzero, {word}"

    def own(name: str, word: int) -> list[str]:
        fewer = f"%{name}_fewer"
        loads = [load_back(f"%{name}", LARGER + word), load_back(fewer, SMALLER + word)]
        return [*loads, f"movnz %{name}, %fewer, {fewer}"]

    return [
        "add $m9, $m9, -1",
        load("%fewer", BLOCKS),
        f"shr %fewer, %fewer, {BLOCK_BYTES.bit_length() - 1}",
        load("%c", ROWS_OF_C),
        "and %start, %c, $m4",
        "add %start, %start, $m3",
        store("%start", STARTS),
        *own("second", few_stream.BLOCK_SECOND),
        "add %second, %second, %start",
        store("%second", few_stream.SECOND),
        "shr %high, %c, 11",
        "shl %high, %high, 21",
        "add %high, %high, 8",
        "add %high, %high, %second",
        store("%high", few_stream.START),
        load("%a", ROWS_OF_A),
        "shl %c, %c, 21",
        "or %c, %c, %a",
        store("%c", few_stream.INPUT),
        *own("strides", few_stream.BLOCK_STRIDES),
        store("%strides", few_stream.STRIDES),
        *own("back", few_stream.BLOCK_BACK),
        store("%back", few_stream.BACK),
        *own("rows", few.ROWS),
        store("%rows", few_stream.ROWS),
    ]
