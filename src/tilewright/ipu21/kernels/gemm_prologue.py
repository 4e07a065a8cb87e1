"""Supervisor code of the matrix kernels up to the first panel: the workers' frame, and the table of routines.

Names of the float16 and float32 members' own parts: %q is the fewer rows of a worker, %shape K groups and
column groups. $m0 table, $m1 bytes of a K group of A with 32 bytes per row; all other registers are free.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...arithmetic import ceil_div
from ..machine.memory import REGION1_SHIFT
from . import gemm_few as few
from . import gemm_stream as stream
from .gemm_frame import (
    BLOCK_BYTES,
    BLOCKS,
    CHUNK_A,
    CHUNK_C,
    CHUNK_SHAPE,
    CHUNK_START,
    FINAL,
    FRAME_BYTES,
    GO,
    GROUP,
    LARGER,
    LEFT,
    NEAR_ROWS,
    RETURN,
    ROWS_OF_A,
    ROWS_OF_C,
    SHAPE,
    SMALLER,
    SOURCE,
    STARTS,
    TABLES,
    W_FIRST,
    W_INNER,
    W_STRIDE,
    block_offset,
)
from .gemm_stream import STRAIGHT
from .gemm_tables import (
    FEW,
    FINAL_OF,
    LAST_OF,
    LONE_OF,
    MIDDLE_OF,
    OPENING_OF,
    STREAM_FIVE,
    STREAM_THREE,
    TABLE_BYTES,
)
from .supervisor import load_back, schedule, to_frame

INNER_MASK = 0xFFF
FREE = ("$m2", "$m3", "$m4", "$m5", "$m6", "$m8", "$m9")
GIVEN = {"%q": "$m10", "%shape": "$m7"}
"""What the code that goes from the first table to that of a call may use, and what it finds there."""


def table_entry(register: str, word: int) -> str:
    """Load a word of the table at $m0; one word lies in front of the first table."""
    return f"ld32 {register}, $m0, $mzero, {1 + word}"


def prologue(
    chunk_rows: int,
    few_rows: int,
    row_bytes: int,
    stream_frame: Sequence[str],
    few_frame: Sequence[str],
    *,
    straight: bool = False,
    listed: bool = False,
) -> list[str]:
    """From the call to the panel loops.

    Args:
        straight: there may be a straight middle panel, see `STRAIGHT_MIDDLE`.
        listed: $m4 is the list of panels instead of the first of them, $m8 has the bits that all their
            addresses have in common, and the loops begin with the list.
    """
    ways = [*schedule(_straight_middle(), FREE), *schedule(stream_frame, FREE, GIVEN)]
    ways = ways if straight else schedule(stream_frame, FREE, GIVEN)
    if few_frame:
        ways = ["brnz $m6, .Lgemm_few", *ways, "bri .Lgemm_settle", ".Lgemm_few:", *few_frame]
    return [
        "shr $m1, $m7, 16",
        f"add $m11, $m11, -{FRAME_BYTES}",
        "brz $m6, .Lgemm_leave",
        "brz $m1, .Lgemm_leave",
        "shl $m1, $m6, 5",
        ".Lgemm_chunk:",
        to_frame("$m10", GO),
        f"cmpult $m10, $m6, {chunk_rows + 1}",
        *([] if listed else ["put $CCCSLOAD, $m4"]),
        "brz $m10, .Lgemm_part",
        "mov $m10, $m6",
        ".Lgemm_shared:",
        *schedule(_arrive(few_rows, row_bytes), ("$m6",), _ARGUMENTS),
        load_back("$m2", _ARRAY),
        load_back("$m6", _FEW),
        load_back("$m0", _TABLES),
        load_back("$m1", _GROUP),
        load_back("$m7", SHAPE),
        load_back("$m10", _Q),
        "brz $m2, .Lgemm_ways",
        *schedule(_shares_of_start(), ("$m2", "$m3", "$m4", "$m5", "$m8", "$m9")),
        ".Lgemm_ways:",
        *ways,
        ".Lgemm_settle:",
        *schedule(_settle(straight, listed)),
        "brz $m5, .Lgemm_narrow",
    ]


_KEPT = ((2, CHUNK_C), (3, CHUNK_A), (5, CHUNK_START), (1, GROUP), (0, TABLES), (6, LEFT), (7, CHUNK_SHAPE))


def leaves(part_rows: int, row_bytes: int, most: int) -> list[str]:
    """The end of a call without work; what a chunk that is not the last leaves to the next one, and how that
    begins.

    Args:
        most: bytes an immediate operand can add.
    """
    steps = ceil_div(part_rows * row_bytes, most)
    further = [part_rows * row_bytes // steps] * steps
    return [
        ".Lgemm_leave:",
        f"add $m11, $m11, {FRAME_BYTES}",
        "br $m10",
        ".Lgemm_part:",
        f"setzi $m10, {part_rows}",
        "sub $m6, $m6, $m10",
        *(to_frame(f"$m{register}", word) for register, word in _KEPT),
        load_back("$m6", GO),
        to_frame("$m6", RETURN),
        "setzi $m6, .Lgemm_next_chunk",
        to_frame("$m6", GO),
        "bri .Lgemm_shared",
        ".Lgemm_next_chunk:",
        f"add $m11, $m11, -{FRAME_BYTES}",
        *(load_back(f"$m{register}", word) for register, word in _KEPT),
        load_back("$m8", W_INNER),
        load_back("$m4", W_FIRST),
        "ld32 $m9, $m0, $mzero, 0",
        load_back("$m10", RETURN),
        *(f"add $m{register}, $m{register}, {step}" for register in (2, 3) for step in further),
        "add $m5, $m5, $m9",
        load_back("$m9", W_STRIDE),
        "bri .Lgemm_chunk",
    ]


_ARGUMENTS = dict(
    zip(
        ("%tables", "%group", "%c", "%a", "%w", "%start", "%shape", "%w_inner", "%w_stride", "%rows"),
        (f"$m{register}" for register in (0, 1, 2, 3, 4, 5, 7, 8, 9, 10)),
        strict=True,
    )
)
_Q, _TABLES, _GROUP, _EVEN, _FEW, _ARRAY = range(LARGER, LARGER + 6)
"""Where the fewer rows of a worker, the tables, the bytes of a K group, whether all workers have as many
rows, whether rows are few and whether sums start from an array lie until these words get their values."""
BEGIN = SHAPE
"""Where the entry of the first panel's routine lies behind the prologue."""
STRAIGHT_MIDDLE = FINAL
"""Where the entry of a straight middle panel lies until then, or 0."""


def _arrive(few_rows: int, row_bytes: int) -> list[str]:
    """Arguments into the frame, and each worker's share."""
    lines = [
        to_frame("%w", W_FIRST),
        to_frame("%w_inner", W_INNER),
        to_frame("%w_stride", W_STRIDE),
        to_frame("%start", LARGER + SOURCE),
        to_frame("%start", SMALLER + SOURCE),
        to_frame("%shape", SHAPE),
        "ld32 %array, %tables, $mzero, 0",
        to_frame("%array", _ARRAY),
        to_frame("%tables", _TABLES),
        to_frame("%group", _GROUP),
        f"cmpult %few, %rows, {few_rows + 1}",
        to_frame("%few", _FEW),
        f"mul %bytes, %rows, {row_bytes}",
        "mul %q, %rows, 10923",  # 65536 / 6: exact up to here
        "shr %q, %q, 16",
        to_frame("%q", _Q),
        f"mul %share, %q, {row_bytes}",
        "mul %six, %share, 6",
        "sub %more, %bytes, %six",  # rows that are left, in bytes: so many workers have one more
        "cmpult %even, %more, 1",
        to_frame("%even", _EVEN),
        # Workers without rows get the last one.
        "cmpult %none, %q, 1",
        f"mul %none, %none, {row_bytes}",
        "sub %most, %more, %none",
    ]
    for worker in range(6):
        lines += [
            f"cmpult %fewer{worker}, %more, {row_bytes * worker + 1}",
            f"mul %block{worker}, %fewer{worker}, {BLOCK_BYTES}",
            f"add %block{worker}, %block{worker}, {block_offset(worker)}",
            to_frame(f"%block{worker}", BLOCKS + worker),
        ]
        if not worker:
            lines += [to_frame("%a", ROWS_OF_A), to_frame("%c", ROWS_OF_C)]
            continue
        lines += [
            f"min %offset{worker}, %most, {row_bytes * worker}",
            f"mul %whole{worker}, %share, {worker}",
            f"add %offset{worker}, %offset{worker}, %whole{worker}",
            f"add %a{worker}, %offset{worker}, %a",
            to_frame(f"%a{worker}", ROWS_OF_A + worker),
            f"add %c{worker}, %offset{worker}, %c",
            to_frame(f"%c{worker}", ROWS_OF_C + worker),
        ]
    return lines


def _shares_of_start() -> list[str]:
    """Each worker's rows of a start array: as far from those of C as the array is."""
    lines = [load_back("%start", LARGER + SOURCE), load_back("%c", ROWS_OF_C), "sub %away, %start, %c"]
    for worker in range(6):
        lines += [
            load_back(f"%c{worker}", ROWS_OF_C + worker),
            f"add %start{worker}, %c{worker}, %away",
            to_frame(f"%start{worker}", STARTS + worker),
        ]
    return lines


def _settle(straight: bool, listed: bool) -> list[str]:
    """Registers for the panel loops, see `gemm_source`, from the table at $m0; $m5 whether W is interleaved,
    $m8 whether there is one panel.

    One K group and several column groups are taken as several K groups and one column group.
    """
    middle = [load_back("$m5", STRAIGHT_MIDDLE), "movnz $m2, $m5, $m5"] if straight else []
    step = [load_back("$m6", W_INNER), "movnz $m6, $m1, $m9"]
    weights = [
        "mov $m7, $m6",
        "add $m6, $m10, $m6",
        f"shr $m5, $m10, {REGION1_SHIFT}",
        "add $m10, $m10, $m9",
    ]
    if listed:
        step, weights = [], ["mov $m7, $m10", f"shr $m5, $m9, {REGION1_SHIFT}"]
    return [
        load_back("$m7", SHAPE),
        "shr $m8, $m7, 16",
        f"and $m7, $m7, {INNER_MASK:#x}",
        "cmpeq $m1, $m7, 1",
        "cmpeq $m2, $m8, 1",
        f"mul $m5, $m2, {4 * (LONE_OF - OPENING_OF)}",
        f"ld32 $m5, $m0, $m5, {1 + OPENING_OF}",
        to_frame("$m5", BEGIN),
        load_back("$m9", W_INNER if listed else W_STRIDE),
        load_back("$m10", W_FIRST),
        table_entry("$m3", LAST_OF),
        table_entry("$m4", FINAL_OF),
        "and $m6, $m1, $m2",
        "movnz $m3, $m2, $m4",
        table_entry("$m2", MIDDLE_OF),
        *middle,
        to_frame("$m4", FINAL),
        "add $m4, $m8, -1",
        "movnz $m4, $m1, $mzero",
        "movnz $m7, $m1, $m8",
        "mov $m8, $m6",
        *step,
        "add $m1, $m7, -2",
        *weights,
    ]


def both(register: str, word: int) -> list[str]:
    """A word that does not depend on n into both blocks."""
    return [to_frame(register, place + word) for place in (LARGER, SMALLER)]


def falling(register: str, word: int, less: int) -> list[str]:
    """A word that is `less` smaller for one row more into both blocks, from its value for fewer rows."""
    return [
        to_frame(register, SMALLER + word),
        f"add {register}_too, {register}, -{less}",
        to_frame(f"{register}_too", LARGER + word),
    ]


def repeats(word: int, *, signed: bool = False) -> list[str]:
    """n - 3 into both blocks; at least 0 unless `signed`."""
    return [
        "add %repeats, %q, -2",
        to_frame("%repeats", LARGER + word),
        "add %repeats_too, %q, -3",
        *([] if signed else ["max %repeats_too, %repeats_too, $mzero"]),
        to_frame("%repeats_too", SMALLER + word),
    ]


def _same_rows() -> list[str]:
    """All workers do as many rows; who has one less does its last one twice."""
    return [
        load_back("%even", _EVEN),
        "sub %double, 1, %even",
        "add %busiest, %q, %double",
        "cmpeq %three, %busiest, 3",
        f"add %of_three, %single, {STREAM_THREE}",
        "movnz %table, %three, %of_three",
        "cmpeq %five, %busiest, 5",
        "andc %five, %five, %single",
        "and %five, %five, %near",
        f"add %of_five, $mzero, {STREAM_FIVE}",
        "movnz %table, %five, %of_five",
        f"add %repeats, %busiest, -{STRAIGHT[0]}",  # below 0 for three, which have no loop
        *both("%repeats", stream.REPEATS),
    ]


def _straight_middle() -> list[str]:
    """Finds the straight middle panel for the rows of the busiest worker, if it is linked."""
    return [
        load_back("%slot", _Q),
        load_back("%even", _EVEN),
        load_back("%shape", SHAPE),
        "sub %slot, %slot, %even",
        f"add %slot, %slot, {1 - STRAIGHT[0]}",
        f"cmpult %fits, %slot, {len(STRAIGHT)}",
        f"and %shape, %shape, {INNER_MASK:#x}",
        "cmpeq %single, %shape, 1",
        "andc %fits, %fits, %single",
        f"cmpult %near, $m1, {32 * NEAR_ROWS + 1}",
        f"mul %near, %near, {len(STRAIGHT)}",
        "add %slot, %slot, %near",
        "mul %slot, %slot, %fits",
        "shl %slot, %slot, 2",
        "setzi %straight, .Lgemm_straight",
        "ld32 %straight, %straight, %slot, 0",
        "mul %straight, %straight, %fits",
        to_frame("%straight", STRAIGHT_MIDDLE),
    ]


def stream_frame(*, even: bool = False, signed_repeats: bool = False) -> list[str]:
    """What the workers of the float16 stream need, and $m0 = the table.

    Args:
        even: all workers do as many rows, and there are straight panels.
        signed_repeats: workers want n - 3 below 0 too.
    """
    rows = ["cmpeq %double, %q, 2", *repeats(stream.REPEATS, signed=signed_repeats)]
    return [
        f"and %inner, %shape, {INNER_MASK:#x}",
        f"cmpult %near, $m1, {32 * NEAR_ROWS + 1}",
        "sub %table, 1, %near",
        "cmpeq %single, %inner, 1",
        "add %twofold, %single, %single",
        "max %table, %table, %twofold",
        *(_same_rows() if even else rows),
        f"mul %table, %table, {TABLE_BYTES}",
        "add $m0, $m0, %table",
        "mul %all, $m1, %inner",
        *both("$m1", stream.COLUMN),
        "shl %fewer, %q, 5",
        "sub %next, $m1, %fewer",
        *falling("%next", stream.NEXT_GROUP, 32),
        "sub %back, %next, %all",
        *falling("%back", stream.FIRST_GROUP, 32),
        "shl %words, %q, 2",
        "sub %strides, 1025, %words",  # f1 = 1 - 4n
        "shr %onward, $m1, 3",
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
        "shl %twice, %double, 22",  # f3 = -3
        "sub %smaller, %strides, %twice",
        to_frame("%smaller", SMALLER + stream.STRIDES),
        load_back("%array", _ARRAY),
        "andc %larger, %larger, 0x3ff",
        "or %larger, %larger, 0x3fd",
        "andc %smaller, %smaller, 0x3ff",
        "or %smaller, %smaller, 0x3fd",
        # From word 6 to word 11, or 7 if the second row is done twice.
        "add %column, $m1, 40",
        "movnz %larger, %array, %column",
        "cmpeq %two, %q, 2",
        "shl %row, %two, 5",
        "sub %column, %column, %row",
        "movnz %smaller, %array, %column",
        to_frame("%larger", LARGER + stream.BY_MODE),
        to_frame("%smaller", SMALLER + stream.BY_MODE),
    ]


def few_frame() -> list[str]:
    """The same for few rows. Steps in words: between rows 1 or, for one row, -3; to the next K group; to the
    first. A worker without rows stays where it is: -3 each.
    """
    lines = [
        *both("$m1", few.COLUMN),
        f"and %inner, %shape, {INNER_MASK:#x}",
        "shr %group, $m1, 3",
        "mul %all, %group, %inner",
        "cmpult %none, %q, 1",
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
    lines = [
        *lines,
        to_frame("%q", SMALLER + few.ROWS),
        "add %q_more, %q, 1",
        to_frame("%q_more", LARGER + few.ROWS),
        "cmpeq %single, %inner, 1",
        *few_table(),
    ]
    return few_code(lines)


def few_code(lines: Sequence[str]) -> list[str]:
    """Supervisor code that knows the fewer rows of a worker and the shape."""
    return schedule(lines, FREE, GIVEN)


def few_table() -> list[str]:
    """$m0 = the table of few rows, from whether there is one K group and whether workers are without rows."""
    return [
        "add %table, %none, %none",
        "add %table, %table, %single",
        f"mul %table, %table, {TABLE_BYTES}",
        "add $m0, $m0, %table",
        f"add $m0, $m0, {TABLE_BYTES * FEW}",
    ]
