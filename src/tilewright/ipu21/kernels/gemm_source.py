"""Assembly of the float16 matrix kernels: supervisor code, and the parts put together.

All members of the family share one object; the linker leaves out what a program does not use. A call picks a
table of worker routines by start mode, rows, and number of K groups, and then walks column group by column
group, K group by K group: load a weight panel, start the workers, and think about what is next while they are
on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..machine.workers import ACCUMULATORS_SURVIVE_EXIT
from . import gemm_few as few
from . import gemm_stream as stream
from .gemm_frame import (
    ADD,
    CHOICE,
    CHUNK_ROWS,
    FEW_ROWS,
    FINAL,
    FRAME_A,
    FRAME_BYTES,
    FRAME_C,
    FRAME_START,
    GROUP,
    LARGER,
    LEFT,
    LIMIT,
    MODES,
    MORE_BYTES,
    NEAR_ROWS,
    Q_BYTES,
    RETURN,
    ROW,
    SHAPE,
    SMALLER,
    TABLE,
    W_FIRST,
    W_INNER,
    W_STRIDE,
    ZERO,
)
from .gemm_tables import (
    CHOICE_OF,
    FEW,
    FINAL_OF,
    FIRST_OF,
    LAST_OF,
    MIDDLE_OF,
    START_OF,
    TABLE_BYTES,
    mode_routines,
    shared_routines,
    short_routines,
    short_tables,
    tables,
)
from .supervisor import schedule, to_frame
from .text import section

SYMBOLS = {ZERO: "gemm_f16", ROW: "gemm_row_f16", ADD: "gemm_add_f16"}


@dataclass(frozen=True)
class Family:
    """What the supervisor code must know about the kernels that share it.

    Attributes:
        name: part of section names.
        symbols: entry point of each start mode.
        row_bytes: of 16 columns of A and C.
        chunk_rows: most rows at a time.
        few_rows: up to here the tables for few rows are used and workers may be without rows there.
        tables, routines: see `gemm_tables`. shared: routines of all start modes.
        stream_frame, few_frame: supervisor code that leaves the workers what they need for many and for few
            rows, and goes from the first table at $m0 to theirs.
    """

    name: str
    symbols: Mapping[str, str]
    row_bytes: int
    chunk_rows: int
    few_rows: int
    tables: Callable[[str], list[str]]
    routines: Callable[[str], list[str]]
    stream_frame: Sequence[str]
    few_frame: Sequence[str]
    shared: Sequence[str] = ()


INTERLEAVED_SHIFT = 19
"""Bit set in all addresses of region 1 and in none below."""
INNER_MASK = 0xFFF


def weight_units() -> list[int]:
    """The unit that takes each column of a panel in natural order.

    Column c goes to unit 2k, 2k + 1 for c = 4k, 4k + 1 and to 8 + 2k, 9 + 2k for the next two: then results
    and partials have natural order too (known).
    """
    return [column // 4 * 2 + column % 2 + (8 if column % 4 >= 2 else 0) for column in range(16)]


def weight_loads(wide: bool) -> list[str]:
    """Fill the weight store from one panel: 32 loads of 16 bytes or 64 of 8."""
    if wide:
        return [f"ld128putcs {4 * unit + part}" for unit in weight_units() for part in (0, 2)]
    return [f"ld64putcs {4 * unit + part}" for unit in weight_units() for part in range(4)]


def _load(register: int, word: int) -> str:
    return f"ld32 $m{register}, $m11, $mzero, {word}"


def _entry_of(register: int, word: int) -> str:
    """Load a word of the table at $m0; one word lies in front of the first table."""
    return f"ld32 $m{register}, $m0, $mzero, {1 + word}"


def _arrive(chunk_rows: int, few_rows: int) -> list[str]:
    """Arguments into the frame, and what both ways need.

    In: $m0 tables, $m1 bytes of a K group of A, $m6 rows left, the other arguments. Out: $m2 q, the fewer
    rows of a worker, $m3 bytes of the chunk's rows, $m5 bytes of A, $m6 whether they are few, $m7 K groups,
    $m8 column groups.
    """
    arguments = ((2, FRAME_C), (3, FRAME_A), (5, FRAME_START), (0, TABLE), (7, SHAPE), (1, GROUP))
    weights = ((4, W_FIRST), (8, W_INNER), (9, W_STRIDE))
    return [
        *(to_frame(f"$m{register}", word) for register, word in (*arguments, *weights)),
        f"min $m2, $m6, {chunk_rows}",
        "shl $m3, $m2, 5",
        "sub $m6, $m6, $m2",
        to_frame("$m6", LEFT),
        f"cmpult $m6, $m2, {few_rows + 1}",
        "mul $m2, $m2, 10923",  # 65536 / 6: exact up to here
        "shr $m2, $m2, 16",
        "shr $m8, $m7, 16",
        f"and $m7, $m7, {INNER_MASK:#x}",
        "mul $m5, $m1, $m7",
    ]


_GIVEN = {"%group": "$m1", "%q": "$m2", "%rows": "$m3", "%all": "$m5"}
_POOL = ("$m4", "$m6", "$m9", "$m10")


def stream_frame(signed_repeats: bool = False) -> list[str]:
    """What the workers of the float16 stream need, and $m0 = the table.

    Args:
        signed_repeats: workers want n - 3 below 0 too.
    """
    return [
        "shl %fewer, %q, 5",
        to_frame("%fewer", Q_BYTES),
        "mul %six, %fewer, 6",
        "sub %more, %rows, %six",
        to_frame("%more", MORE_BYTES),
        "sub %next, %group, %fewer",
        to_frame("%next", SMALLER + stream.NEXT_GROUP),
        "add %next_too, %next, -32",
        to_frame("%next_too", LARGER + stream.NEXT_GROUP),
        "sub %back, %next, %all",
        to_frame("%back", SMALLER + stream.FIRST_GROUP),
        "add %back_too, %back, -32",
        to_frame("%back_too", LARGER + stream.FIRST_GROUP),
        "add %repeats, %q, -2",
        to_frame("%repeats", LARGER + stream.REPEATS),
        "add %repeats_too, %q, -3",
        *([] if signed_repeats else ["max %repeats_too, %repeats_too, $mzero"]),
        to_frame("%repeats_too", SMALLER + stream.REPEATS),
        f"cmpult %near, %group, {32 * NEAR_ROWS + 1}",
        "shl %words, %q, 2",
        "sub %strides, 1025, %words",  # f1 = 1 - 4n
        "shr %onward, %group, 3",
        "sub %onward, %onward, %words",
        "add %onward, %onward, 1",
        "mul %onward, %onward, %near",  # f2 = 4(R - n) + 1, if it fits
        "shl %onward, %onward, 10",
        "or %strides, %strides, 0x100000",  # f3 = 1
        "add %strides, %strides, %onward",
        "shl %less, %near, 12",
        "add %less, %less, 4",
        "sub %larger, %strides, %less",
        to_frame("%larger", LARGER + stream.STRIDES),
        "cmpeq %twice, %q, 2",
        "shl %twice, %twice, 22",  # f3 = -3
        "sub %smaller, %strides, %twice",
        to_frame("%smaller", SMALLER + stream.STRIDES),
        "sub %table, 1, %near",
        "cmpeq %single, $m7, 1",
        "shl %single, %single, 1",
        "max %table, %table, %single",
        f"mul %table, %table, {TABLE_BYTES}",
        "add $m0, $m0, %table",
    ]


def _few_frame() -> list[str]:
    """The same for few rows. Steps in words: between rows 1 or, for one row, -3; to the next K group; to the
    first. A worker without rows stays where it is: -3 each."""
    lines = [
        "shl %fewer, %q, 5",
        to_frame("%fewer", Q_BYTES),
        "mul %six, %fewer, 6",
        "sub %more, %rows, %six",
        to_frame("%more", MORE_BYTES),
        "cmpult %none, %q, 1",
        "shl %below, %none, 5",
        "sub %limit, %more, %below",
        to_frame("%limit", LIMIT),
        "shr %group, %group, 3",
        "shr %all, %all, 3",
    ]
    for place, q, group, whole in ((LARGER, 1, "%group", "%all"), (SMALLER, 2, "%onward", "%backward")):
        if place == SMALLER:
            lines += ["add %has, %none, -1", "and %onward, %group, %has", "and %backward, %all, %has"]
        lines += [
            f"cmpeq %two{q}, %q, {q}",
            f"shl %four{q}, %two{q}, 2",
            f"add %between{q}, %four{q}, -3",
            to_frame(f"%between{q}", place + few.BETWEEN_ROWS),
            f"sub %step{q}, {group}, %between{q}",
            f"add %next{q}, %step{q}, -6",
            to_frame(f"%next{q}", place + few.NEXT_GROUP),
            f"sub %back{q}, %next{q}, {whole}",
            to_frame(f"%back{q}", place + few.FIRST_GROUP),
        ]
    return [
        *lines,
        to_frame("%q", SMALLER + few.ROWS),
        "add %q_more, %q, 1",
        to_frame("%q_more", LARGER + few.ROWS),
        "cmpeq %single, $m7, 1",
        f"mul %table, %single, {TABLE_BYTES}",
        "add $m0, $m0, %table",
        f"add $m0, $m0, {TABLE_BYTES * FEW}",
    ]


def _enter() -> list[str]:
    """Registers for the panel loops, from the table at $m0; see `_loop`. Not yet $m0 and $m5, which says
    whether W is interleaved; $m8: there is one panel.

    One K group and several column groups are taken as several K groups and one column group.
    """
    return [
        "cmpeq $m1, $m7, 1",
        "cmpeq $m2, $m8, 1",
        _load(9, W_STRIDE),
        _load(10, W_FIRST),
        _entry_of(3, LAST_OF),
        _entry_of(4, FINAL_OF),
        "and $m6, $m1, $m2",
        to_frame("$m4", FINAL),
        "movnz $m3, $m2, $m4",
        _entry_of(5, CHOICE_OF),
        "sub $m5, $m5, $m6",
        to_frame("$m5", CHOICE),
        "add $m4, $m8, -1",
        "movnz $m4, $m1, $mzero",
        "movnz $m7, $m1, $m8",
        _entry_of(2, MIDDLE_OF),
        "mov $m8, $m6",
        _load(6, W_INNER),
        "movnz $m6, $m1, $m9",
        "add $m1, $m7, -2",
        "mov $m7, $m6",
        "add $m6, $m10, $m6",
        f"shr $m5, $m10, {INTERLEAVED_SHIFT}",
        "add $m10, $m10, $m9",
    ]


def _supervisor(family: Family) -> list[str]:
    """From the call to the end."""
    return [
        "brz $m6, .Lgemm_return",
        "shl $m1, $m6, 5",
        f"add $m11, $m11, -{FRAME_BYTES}",
        to_frame("$m10", RETURN),
        ".Lgemm_chunk:",
        *schedule(_arrive(family.chunk_rows, family.few_rows)),
        "brz $m8, .Lgemm_leave",
        "put $CCCSLOAD, $m4",
        *(["brnz $m6, .Lgemm_few"] if family.few_rows else []),
        *schedule(family.stream_frame, _POOL, _GIVEN),
        ".Lgemm_enter:",
        *schedule(_enter()),
        "brz $m5, .Lgemm_narrow",
        *_loop("wide", True),
        *_finish(family.row_bytes * family.chunk_rows),
        *_few(family.few_frame),
        *_loop("narrow", False),
    ]


def _few(frame: Sequence[str]) -> list[str]:
    if not frame:
        return []
    return [".Lgemm_few:", *schedule(frame, _POOL, _GIVEN), "bri .Lgemm_enter"]


def _loop(name: str, wide: bool) -> list[str]:
    """All panels of a chunk, and what follows.

    $m0 entry of the next column's first panel, $m1 K groups - 2, $m2, $m3, $m5 entries of middle, last and
    first panels, $m4 column groups left after this one, $m6 weights of the panel after the next, $m7 bytes to
    those of the next K group, $m8 middle panels left, $m9 bytes to the next column's weights, $m10 those.

    The workers' first slot is ten cycles behind `runall`: what is done until then, and that the supervisor
    waits again by then, costs nothing.
    """
    here = f".Lgemm_{name}"
    loads = weight_loads(wide)
    return [
        f"{here}:",
        _entry_of(5, FIRST_OF),
        _entry_of(0, START_OF),
        f"brz $m8, {here}_first",
        "mov $m3, $m0",
        f"bri {here}_only",
        f"{here}_final:",
        _load(3, FINAL),
        f"bri {here}_first",
        f"{here}_column:",
        "sync 2",
        "add $m10, $m10, $m9",
        "mov $m0, $m5",
        f"brz $m4, {here}_final",
        f"{here}_first:",
        *loads,
        "runall $m0, $m11, 0",
        "put $CCCSLOAD, $m6",
        "add $m6, $m6, $m7",
        f"brz $m1, {here}_last",
        "add $m8, $m1, -1",
        f"{here}_middle:",
        "sync 2",
        *loads,
        "runall $m2, $m11, 0",
        "put $CCCSLOAD, $m6",
        "add $m6, $m6, $m7",
        f"brnzdec $m8, {here}_middle",
        f"{here}_last:",
        "sync 2",
        f"{here}_only:",
        *loads,
        "runall $m3, $m11, 0",
        "put $CCCSLOAD, $m10",
        "add $m6, $m10, $m7",
        f"brnzdec $m4, {here}_column",
        _load(6, LEFT),
        _load(10, RETURN),
        f"add $m11, $m11, {FRAME_BYTES}",
        "sync 2",
        "brnz $m6, .Lgemm_next_chunk",
        "br $m10",
    ]


def _finish(step: int) -> list[str]:
    """The end of a call; `step`: bytes of A and C from chunk to chunk."""
    parts = step // (32 * CHUNK_ROWS)  # what an immediate operand can add
    return [
        ".Lgemm_leave:",
        f"add $m11, $m11, {FRAME_BYTES}",
        ".Lgemm_return:",
        "br $m10",
        ".Lgemm_next_chunk:",
        f"add $m11, $m11, -{FRAME_BYTES}",
        _load(0, TABLE),
        *(_load(register, word) for register, word in ((2, FRAME_C), (3, FRAME_A), (5, FRAME_START))),
        _load(4, W_FIRST),
        _load(1, GROUP),
        "ld32 $m9, $m0, $mzero, 0",
        _load(7, SHAPE),
        _load(8, W_INNER),
        *(f"add $m{register}, $m{register}, {32 * CHUNK_ROWS}" for register in (2, 3) * parts),
        "add $m5, $m5, $m9",
        _load(9, W_STRIDE),
        "bri .Lgemm_chunk",
    ]


def _part(name: str, lines: list[str]) -> str:
    text = "".join(f"{line}\n" if line.endswith(":") else f"  {line}\n" for line in lines)
    return f'.section .text.{name}, "ax"\n.balign 8\n{text}'


def source(survive: bool = ACCUMULATORS_SURVIVE_EXIT) -> str:
    """The float16 family.

    Args:
        survive: the form for accumulators that keep their values from one launch of the workers to the next.
    """
    family = Family(
        "gemm",
        SYMBOLS,
        32,
        CHUNK_ROWS,
        FEW_ROWS,
        tables if survive else short_tables,
        mode_routines if survive else short_routines,
        stream_frame(),
        _few_frame(),
        shared_routines() if survive else (),
    )
    return family_source(family)


def family_source(family: Family) -> str:
    """All members of a family in one text."""
    parts = [
        section(family.symbols[mode], [f"setzi $m0, .Lgemm_tables_{mode}", "bri .Lgemm_supervisor"])
        for mode in MODES
    ]
    parts.append(_part(f"{family.name}_supervisor", [".Lgemm_supervisor:", *_supervisor(family)]))
    for mode in MODES:
        table = [f".Lgemm_tables_{mode}:", *(f".word {word}" for word in family.tables(mode))]
        parts.append(_part(f"{family.name}_tables_{mode}", table))
        parts.append(_part(f"{family.name}_panels_{mode}", family.routines(mode)))
    if family.shared:
        parts.append(_part(f"{family.name}_panels", list(family.shared)))
    return "".join(parts)
