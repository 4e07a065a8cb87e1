"""Assembly of `softmax_f16` and `softmax_causal_f16`.

Worker w takes the rows w, w + 6, ... A row's valid columns are `whole` panels and `tail` columns of the next
one. First pass: the largest score, in four lanes. Second pass: exp(score - largest) in place of the scores,
eight columns at a time into the accumulators; zeros go where no column counts. The tail's columns are limited
by a row of a table that says +65504 for a column that counts and -65504 for others.

In the second pass the store of a half row's second word is one half row late; until there is one it writes
the place of the first word, whose pointer stays ($m10 = 0).

Every worker has a frame of its own. Where all columns of all panels count, there is no look at a tail
(`softmax_full_source`), and rows of one panel are straight code (`softmax_narrow_source`).

Worker registers:
    $m0, $m1 row of the scores and of p    $m2 row's state    $m3 further rows of the worker
    $m4 whole panels    $m5 tail
    $m6 panels from the tail's on; causal: columns that count for the row, unlimited
    $m7, $m8 word of the scores and of p   $m9 words from a panel's last to the next one's first
    $m10, $m11 scratch
    $a4 minus the largest score, $a0:3 and $a6:7 words
"""

from __future__ import annotations

from functools import cache

from ..machine.timing import MULTI_SLOT, WORKER_SLOTS
from .launch import SIXTH
from .softmax_full_source import full
from .softmax_narrow_source import narrow
from .softmax_unsummed_source import unsummed
from .softmax_words import JUMP, LOWEST, PROBABILITIES, ROWS, SCORES, STATE, WORDS
from .supervisor import call_cycles, launch, schedule, to_frame, to_frames
from .text import CLEAR_ACCUMULATORS, bundle, count_instructions, from_frame, section, worker

WHOLE, TAIL, ZEROS = 5, 6, 7
DIAGONAL, VALID, PANELS = 5, 6, 7
"""Further words of a worker's frame: not causal, and causal."""
FRAME_BYTES = 4 * WORDS * WORKER_SLOTS

_HIGHEST = 0x7BFF
_ONES = 0x3C003C00
_MAXIMUM = "f16v4max $a4:5, $a4:5, {}"


def _load(pair: str, pointer: str, step: str) -> str:
    return f"ld64step {pair}, $mzero, {pointer}+=, {step}"


def _store(pair: str, step: str) -> str:
    return f"st64step {pair}, $mzero, $m8+=, {step}"


def _half_row(step: str, late: str, extra: str) -> list[str]:
    """Eight columns of the second pass; `step` from the second word on, `late` for the late store."""
    return [
        bundle(_load("$a0:1", "$m7", "1"), "f16v8acc $a0:3"),
        bundle(_load("$a6:7", "$m7", step), "f16v4add $a0:1, $a4:BL, $a0:1"),
        bundle(_store("$a2:3", late), "f16v2exp $a0, $a0"),
        bundle(extra, "f16v2exp $a1, $a1"),
        bundle("nop", "f16v4add $a2:3, $a4:BL, $a6:7"),
        bundle(_store("$a0:1", "1"), "f16v2exp $a2, $a2"),
        bundle("nop", "f16v2exp $a3, $a3"),
    ]


def _tail(symbol: str, body: list[str]) -> list[str]:
    """A loop over the words of the tail, $m11 = their row of the table."""
    return [
        bundle(f"setzi $m10, .L{symbol}_table"),
        bundle("shl $m11, $m5, 5"),
        bundle("add $m11, $m11, $m10"),
        bundle("add $m10, $m5, 3"),
        bundle("shr $m10, $m10, 2"),
        bundle(f"rpt $m10, {len(body) - 1}"),
        *body,
    ]


FIRST_TAIL = [
    bundle(_load("$a2:3", "$m11", "1")),
    bundle(_load("$a0:1", "$m7", "1")),
    bundle("nop", "f16v4min $a0:1, $a0:1, $a2:3"),
    bundle("nop", _MAXIMUM.format("$a0:1")),
]
SECOND_TAIL = [
    bundle(_load("$a0:1", "$m7", "1")),
    bundle(_load("$a2:3", "$m11", "1"), "f16v4add $a0:1, $a4:BL, $a0:1"),
    bundle("nop", "f16v4cmpgt $a2:3, $a2:3, $azeros"),
    bundle("nop", "f16v2exp $a0, $a0"),
    bundle("nop", "f16v2exp $a1, $a1"),
    bundle("nop", "and64 $a0:1, $a0:1, $a2:3"),
    bundle(_store("$a0:1", "1"), "f16v4acc $a0:1"),
]
FIRST_PANEL = [
    bundle(_load(pair, "$m7", step), _MAXIMUM.format(before))
    for pair, before, step in (
        ("$a0:1", "$a2:3", "1"),
        ("$a2:3", "$a0:1", "1"),
        ("$a0:1", "$a2:3", "1"),
        ("$a2:3", "$a0:1", "$m9"),
    )
]
SECOND_PANEL = [*_half_row("1", "$m10", "mov $m10, $m9"), *_half_row("$m9", "1", "nop")]
ZERO_PANEL = [bundle(_store("$azeros", step)) for step in ("1", "1", "1", "$m9")]

_NOTHING = (f"setzi $a4, {LOWEST:#x}", "f16v4add $a2:3, $a4:BL, $azeros")
"""Four times -65504."""
BEFORE_FIRST = [
    bundle("mov $m7, $m0", "or64 $a4:5, $a2:3, $a2:3"),
    bundle(f"rpt $m4, {len(FIRST_PANEL) - 1}"),
]
BETWEEN = [
    bundle("mov $m7, $m0", "f16v4maxc $a4, $a4:5"),
    bundle("mov $m8, $m1", "f16tof32 $a5, $a4"),
    bundle("st32step $a5, $mzero, $m2+=, 1", "f16v2sub $a4, $azero, $a4"),
    bundle("setzi $m10, 0", "or64 $a0:1, $azeros, $azeros"),
    bundle(f"rpt $m4, {len(SECOND_PANEL) - 1}", "or64 $a2:3, $azeros, $azeros"),
]
_FIRST_LANES = "f32v2gina $a0:1, $azeros, 0"
_NEXT_LANES = "f32v2gina $a2:3, $azeros, 0"
ENDING = [
    bundle("add $m0, $m0, 192", _FIRST_LANES),
    bundle("add $m1, $m1, 192", _NEXT_LANES),
    bundle("nop", "f32v2add $a0:1, $a0:1, $a2:3"),
    bundle("nop", "f32add $a0, $a0, $a1"),
    bundle("st32step $a0, $mzero, $m2+=, 11", _NOTHING[0]),
]


def _zeros(symbol: str) -> list[str]:
    """Zeros behind the tail and in $m7 panels from the tail's on."""
    return [
        bundle(f"brz $m5, .L{symbol}_zero_panels"),
        bundle("add $m10, $m5, 3"),
        bundle("shr $m10, $m10, 2"),
        bundle("sub $m10, 4, $m10"),
        bundle("rpt $m10, 0"),
        bundle(_store("$azeros", "1")),
        bundle("shl $m10, $m9, 3"),
        bundle("add $m8, $m8, $m10"),
        bundle("add $m8, $m8, -8"),
        bundle("add $m7, $m7, -1"),
        f".L{symbol}_zero_panels:",
        bundle(f"rpt $m7, {len(ZERO_PANEL) - 1}"),
        *ZERO_PANEL,
    ]


TAIL_SLOTS, ZERO_TAIL_SLOTS = 6, 8
"""Slots around the tail's loops, and of the zeros behind the tail beside one per word."""

LIMIT = [
    bundle("max $m11, $m6, 0"),
    bundle(from_frame("$m4", VALID)),
    bundle("min $m11, $m11, $m4"),
    bundle("shr $m4, $m11, 4"),
    bundle("and $m5, $m11, 15"),
    bundle("add $m6, $m6, 6"),
]
"""Causal: the columns that count for a row."""


def start(symbol: str, causal: bool) -> list[str]:
    """A worker's first row."""
    lines = [
        bundle(from_frame("$m3", ROWS), CLEAR_ACCUMULATORS[0]),
        bundle(f"brneg $m3, .L{symbol}_exit", CLEAR_ACCUMULATORS[1]),
        bundle(from_frame("$m0", SCORES), _NOTHING[0]),
        bundle(from_frame("$m1", PROBABILITIES), _NOTHING[1]),
        from_frame("$m2", STATE),
        from_frame("$m9", JUMP),
    ]
    if causal:
        return [*lines, from_frame("$m6", DIAGONAL)]
    return [*lines, from_frame("$m4", WHOLE), from_frame("$m5", TAIL), from_frame("$m6", ZEROS)]


def _worker(symbol: str, causal: bool) -> list[str]:
    label = f".L{symbol}"
    return [
        *start(symbol, causal),
        f"{label}_row:",
        *(LIMIT if causal else []),
        *BEFORE_FIRST,
        *FIRST_PANEL,
        bundle(f"brz $m5, {label}_second", _MAXIMUM.format("$a2:3")),
        *_tail(symbol, FIRST_TAIL),
        f"{label}_second:",
        *BETWEEN,
        *SECOND_PANEL,
        bundle(f"brz $m4, {label}_no_late", "f16v8acc $a0:3"),
        bundle(_store("$a2:3", "$m9")),
        f"{label}_no_late:",
        bundle(f"brz $m5, {label}_sum"),
        *_tail(symbol, SECOND_TAIL),
        f"{label}_sum:",
        bundle(from_frame("$m7", PANELS) if causal else "nop", _FIRST_LANES),
        bundle("sub $m7, $m7, $m4" if causal else "mov $m7, $m6", _NEXT_LANES),
        bundle(f"brz $m7, {label}_ending", "f32v4acc $a0:3"),
        *_zeros(symbol),
        f"{label}_ending:",
        *ENDING,
        bundle(f"brnzdec $m3, {label}_row", _NOTHING[1]),
        f"{label}_exit:",
        "exitz $m15",
    ]


@cache
def supervisor(symbol: str, causal: bool) -> tuple[str, ...]:
    """From the arguments to the workers' end."""
    if causal:
        choice = []
        common = [("%valid", VALID), ("%panels", PANELS)]
    else:
        choice = [
            f"setzi %full, .L{symbol}_full",
            f"setzi %narrow, .L{symbol}_narrow",
            "cmpeq %one, %panels, 1",
            "movnz %full, %one, %narrow",
            "shl %all, %panels, 4",
            "cmpeq %all, %valid, %all",
            "cmpult %some, $mzero, %panels",
            "and %all, %all, %some",
            "movnz $m9, %all, %full",
            "shr %whole, %valid, 4",
            "and %tail, %valid, 15",
            "sub %zeros, %panels, %whole",
            # Or, from behind a row to its first panel and to the next row.
            "shl %back, %shape, 16",
            "shr %back, %back, 11",
            "mul %back, %back, %panels",
            "sub %back, 0, %back",
            "movnz %tail, %all, %back",
            f"add %back, %back, {32 * WORKER_SLOTS}",
            "movnz %zeros, %all, %back",
        ]
        common = [("%whole", WHOLE), ("%tail", TAIL), ("%zeros", ZEROS)]
    lines = [
        f"add $m11, $m11, -{FRAME_BYTES}",
        "shr %panels, %shape, 16",
        f"setzi $m9, .L{symbol}_worker",
        *choice,
        *(line for register, word in common for line in to_frames(register, word, WORDS)),
        "shl %rows, %shape, 16",
        "shr %jump, %rows, 14",
        "add %jump, %jump, -3",
        *to_frames("%jump", JUMP, WORDS),
        "shr %rows, %rows, 16",
        f"add %rows, %rows, {WORKER_SLOTS - 1}",
        *(["add %diagonal, %diagonal, 1"] if causal else []),
        f"setzi %sixth, {SIXTH}",
        f"setzi %table, .L{symbol}_table",
    ]
    for number, frame in enumerate(range(0, WORDS * WORKER_SLOTS, WORDS)):
        lines += [
            to_frame("%p", frame + PROBABILITIES),
            to_frame("%state", frame + STATE),
            f"mul %more{number}, %rows, %sixth",
            f"shr %more{number}, %more{number}, 18",
            f"add %more{number}, %more{number}, -1",
            to_frame(f"%more{number}", frame + ROWS),
            # Without rows a worker may look at the table.
            f"cmpslt %more{number}, %more{number}, 0",
            f"mov %scores{number}, %scores",
            f"movnz %scores{number}, %more{number}, %table",
            to_frame(f"%scores{number}", frame + SCORES),
            *([to_frame("%diagonal", frame + DIAGONAL), "add %diagonal, %diagonal, 1"] if causal else []),
            "add %p, %p, 32",
            "add %scores, %scores, 32",
            "add %state, %state, 8",
            "add %rows, %rows, -1",
        ]
    given = {"%p": "$m2", "%scores": "$m3", "%state": "$m4", "%shape": "$m5", "%valid": "$m6"}
    free = ["$m0", "$m1", "$m8"]
    if causal:
        given["%diagonal"] = "$m7"
    else:
        free.append("$m7")
    return (*schedule(lines, free, given), *launch(FRAME_BYTES, WORDS))


def source(symbol: str, causal: bool, summed: bool = True) -> str:
    """The whole kernel.

    Args:
        summed: where all columns of several panels count, rows are summed too.
    """
    whole = full(symbol, FIRST_PANEL, SECOND_PANEL) if summed else unsummed(symbol, FIRST_PANEL)
    table = [
        f".word {_bound(2 * word, valid) | _bound(2 * word + 1, valid) << 16:#x}"
        for valid in range(16)
        for word in range(8)
    ]
    lines = [
        *worker(f".L{symbol}_worker", _worker(symbol, causal)),
        *([] if causal else worker(f".L{symbol}_narrow", narrow(symbol))),
        *([] if causal else worker(f".L{symbol}_full", whole)),
        ".balign 8",
        f".L{symbol}_table:",
        *table,
        ".word 0, 0",
        f".word {_ONES:#x}, {_ONES:#x}",
    ]
    return section(symbol, [*supervisor(symbol, causal), *lines])


def _bound(column: int, valid: int) -> int:
    return _HIGHEST if column < valid else LOWEST


def supervisor_cycles(symbol: str, causal: bool) -> int:
    """Cycles of a call beside its workers' slots."""
    return call_cycles(supervisor(symbol, causal))


def slots_of(lines: list[str]) -> int:
    """Slots of instructions that are issued once each."""
    exponentials = sum("f16v2exp" in line for line in lines)
    return count_instructions(lines) + exponentials * (MULTI_SLOT["f16v2exp"] - 1)
