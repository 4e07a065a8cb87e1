"""Assembly of the root families: the supervisor, which gives every worker a frame of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

from ..machine.memory import REGION1_BASE, REGION1_SHIFT
from .grid import choose, third
from .root_frame import (
    ALONG,
    BACK,
    HALF_ROW_ROWS,
    JUMP,
    MORE,
    OUT,
    OWN,
    OWN_JUMP,
    PARTIALS,
    POINT,
    REMOTE,
    SHARE,
    Member,
)
from .supervisor import call_cycles, launch, load_back, to_frame, to_frames
from .text import section


def is_wide(own: int, remote: int, own_stride: int, remote_stride: int, remote_count: int) -> bool:
    """True if a call loads 16 bytes at a time for these arguments."""
    remote = remote if remote_count else own
    aligned = (own | remote | own_stride | remote_stride) % 16 == 0
    return aligned and own >= REGION1_BASE and remote >= REGION1_BASE


def _pointers(member: Member, word: int, along: str) -> list[str]:
    """Pointers of all workers from the first one's: pairs lie `along` bytes apart, the last one $m4 bytes
    further. Uses $m3, $m9.
    """
    lines = [load_back("$m3", word)]
    for pair in range(3):
        lines += [f"add $m3, $m3, {step}" for step in ((), (along,), (along, "$m4"))[pair]]
        lines += [
            to_frame("$m3", 2 * pair * member.words + word),
            "add $m9, $m3, 16",
            to_frame("$m9", (2 * pair + 1) * member.words + word),
        ]
    return lines


def _way(member: Member) -> list[str]:
    """Everything about loads: partials, steps, and the workers' code to $m9; stride of own to $m8."""
    point = [
        load_back("$m0", PARTIALS),
        "cmpeq $m0, $m0, 0",
        "setzi $m1, .Lroot_point",
        "movnz $m9, $m0, $m1",
    ]
    straight = bool(member.straight_counts)
    return [
        "shr $m0, $m8, 20",
        to_frame("$m0", PARTIALS),
        *(_find_straight(member) if straight else []),
        "mul $m1, $m9, $m0",
        "sub $m6, 32, $m1",
        "shl $m8, $m8, 12",
        "shr $m8, $m8, 12",
        # Wide: both in region 1, and no lowest four bits. Without remote partials, own decides.
        "mov $m1, $m3",
        "movnz $m1, $m0, $m4",
        "or $m0, $m8, $m9",
        "or $m0, $m0, $m3",
        "or $m0, $m0, $m1",
        "and $m0, $m0, 15",
        "cmpeq $m0, $m0, 0",
        "and $m1, $m1, $m3",
        f"shr $m1, $m1, {REGION1_SHIFT}",
        "and $m0, $m0, $m1",
        *(_LOADS_OF_STRAIGHT if straight else []),
        *to_frames("$m6", BACK, member.words),
        # From one remote partial to the next in accesses: of 16 bytes, or of 8 from second half to first.
        "add $m1, $m9, -8",
        "shrs $m1, $m1, 3",
        "shrs $m9, $m9, 4",
        "movnz $m1, $m0, $m9",
        *to_frames("$m1", ALONG, member.words),
        "setzi $m9, .Lroot_plain",
        "setzi $m1, .Lroot_wide",
        "movnz $m9, $m0, $m1",
        *(point if POINT in member.ways else []),
        *(["movnz $m9, $m5, $m5"] if straight else []),
    ]


def _find_straight(member: Member) -> list[str]:
    """The code for $m0 remote partials to $m5, or 0 if there is none."""
    return [
        f"cmpult $m2, $m0, {member.straight_counts.stop}",
        "mul $m2, $m2, $m0",
        *(_wide_residual(member) if True in member.straight_ways else []),
        *_few(member),
        "shl $m2, $m2, 2",
        "setzi $m5, .Lroot_straight",
        "ld32 $m5, $m5, $m2, 0",
    ]


def _wide_residual(member: Member) -> list[str]:
    """Takes the second half of the table ($m2) where the residual ($m6) allows loads of 16 bytes."""
    return [
        "and $m5, $m6, 15",
        "cmpeq $m5, $m5, 0",
        f"shr $m1, $m6, {REGION1_SHIFT}",
        "and $m5, $m5, $m1",
        f"mul $m5, $m5, {member.straight_counts.stop}",
        "cmpult $m1, $mzero, $m2",
        "mul $m5, $m5, $m1",
        "add $m2, $m2, $m5",
    ]


def _few(member: Member) -> list[str]:
    """Takes a further part of the whole table ($m2) where workers have few half rows each: the next one for
    the most of them.
    """
    return [
        f"setzi $m5, {1 << 16:#x}",  # no rows of one panel
        "sub $m5, $m7, $m5",
        f"cmpult $m1, $m5, {HALF_ROW_ROWS + 1}",
        *(
            line
            for number in range(2, member.most_half_rows + 1)
            for line in (
                f"cmpult $m3, $m5, {number * HALF_ROW_ROWS + 1}",
                "add $m1, $m1, $m3",
            )
        ),
        f"mul $m1, $m1, {member.straight_counts.stop * len(member.straight_ways)}",
        "cmpult $m5, $mzero, $m2",
        "mul $m5, $m5, $m1",
        "add $m2, $m2, $m5",
        *([load_back("$m3", OWN)] if member.most_half_rows > 1 else []),
    ]


_LOADS_OF_STRAIGHT = [
    "mul $m5, $m5, $m0",
    "add $m2, $m6, $m9",
    "shrs $m2, $m2, 4",
    "movnz $m6, $m5, $m2",
]
"""Only wide: and from the last remote partial to the first of the next half row, in accesses."""


def _straight_table(member: Member) -> list[str]:
    """The code for each number of remote partials, 0 where nobody has asked for it."""
    lines = [".balign 4", ".Lroot_straight:"]
    limits = (0, *range(member.most_half_rows, 0, -1))
    for half_rows, wide in product(limits, member.straight_ways):
        names = [
            member.straight_name(count, wide=wide, half_rows=half_rows) for count in member.straight_counts
        ]
        lines += [".word 0", *(line for name in names for line in (f".weak {name}", f".word {name}"))]
    return lines


def _shares(member: Member, two: int, kept: int) -> list[str]:
    """Rows and panels of all workers and their jumps; the workers' code, from the word `kept`, to $m9.

    From rows $m0, panels $m1, $m2 = 1 if the panels are shared, rows of a pair $m4, the stride of own less a
    dense panel $m8, $m7 = the rows that the pairs before took of each panel; the word `two` is 1 if there are
    two panels.
    """
    lines = [
        "shl $m5, $m2, 1",
        "add $m5, $m5, 1",  # panels between two of a worker's
        "mul $m8, $m8, $m5",
        "mul $m5, $m5, $m0",
        "sub $m2, 1, $m2",
    ]
    for pair in range(3):
        first, second = 2 * pair * member.words, (2 * pair + 1) * member.words
        # The last pair has rows of a panel of its own, if there are two.
        again = [load_back("$m9", two), "shl $m9, $m9, 16", "add $m0, $m0, $m9"] if pair == 2 else []
        lines += [
            *again,
            "min $m3, $m4, $m0",
            "sub $m0, $m0, $m7",
            "sub $m6, $m5, $m3",
            f"shl $m6, $m6, {member.row_shift}",
            *(to_frame("$m6", frame + JUMP) for frame in (first, second)),
            "add $m6, $m6, $m8",
            *(to_frame("$m6", frame + OWN_JUMP) for frame in (first, second)),
            *third("$m6", "$m1", 2 - pair),
            "movnz $m6, $m2, $m1",
            *([] if pair == 1 else [load_back("$m9", two), "sub $m6, $m6, $m9"]),
            "add $m6, $m6, -1",
            "add $m3, $m3, -1",
            "shrs $m9, $m6, 31",
            "or $m3, $m3, $m9",
            "shr $m9, $m3, 31",
            "shl $m9, $m9, 31",
            "shl $m3, $m3, 16",
            "shr $m3, $m3, 16",
            "shl $m6, $m6, 16",
            "or $m3, $m3, $m6",
            *_marked(first + OWN),
            *_marked(second + OWN),
            *([load_back("$m9", kept)] if pair == 2 else []),
            *(to_frame("$m3", frame + SHARE) for frame in (first, second)),
        ]
    return lines


def _marked(word: int) -> list[str]:
    """The sign of $m9 onto a word of the frame. Uses $m6."""
    return [load_back("$m6", word), "or $m6, $m6, $m9", to_frame("$m6", word)]


@cache
def _supervisor(member: Member) -> tuple[str, ...]:
    """From the arguments to the workers' end."""
    operands = {OUT: "$m2", OWN: "$m3", REMOTE: "$m4"}
    operands |= {MORE: "$m5"} if member.bias else {}
    operands |= {member.residual_word: "$m6"} if member.residual else {}
    two, kept = 4 * member.words + SHARE, 5 * member.words + SHARE
    return (
        f"add $m11, $m11, -{member.frame_bytes}",
        *(to_frame(register, word) for word, register in operands.items()),
        *_way(member),
        to_frame("$m9", kept),
        "shl $m0, $m7, 16",
        "shr $m0, $m0, 16",
        "shr $m1, $m7, 16",
        *choose("$m0", "$m1", "$m7", "$m2", "$m3", "$m4"),
        to_frame("$m3", two),
        "mov $m4, $m7",
        "movnz $m4, $m2, $m0",
        f"shl $m5, $m4, {member.row_shift}",  # from pair to pair
        "mov $m6, $m5",
        "movnz $m6, $m2, $m8",
        # If there are two panels, from the end of the second pair's rows to the next panel.
        "shl $m4, $m5, 1",
        "sub $m4, $m8, $m4",
        "mul $m4, $m4, $m3",
        *_pointers(member, OWN, "$m6"),
        f"shl $m4, $m0, {member.row_shift}",
        "shl $m3, $m5, 1",
        "sub $m4, $m4, $m3",
        load_back("$m3", two),
        "mul $m4, $m4, $m3",
        *_pointers(member, OUT, "$m5"),
        *_pointers(member, REMOTE, "$m5"),
        *(_pointers(member, member.residual_word, "$m5") if member.residual else []),
        f"shl $m6, $m2, {member.row_shift}",
        load_back("$m4", two),
        f"shl $m4, $m4, {member.row_shift}",
        *(_pointers(member, MORE, "$m6") if member.bias else []),
        # To the next panel's bias, one panel further or three.
        "shl $m6, $m6, 1",
        f"add $m6, $m6, {member.row_bytes}",
        "shl $m6, $m6, 16",
        load_back("$m3", PARTIALS),
        "or $m3, $m3, $m6",
        *to_frames("$m3", PARTIALS, member.words),
        f"shl $m3, $m0, {member.row_shift}",
        "sub $m8, $m8, $m3",
        "mov $m4, $m7",
        "movnz $m4, $m2, $m0",
        "movnz $m7, $m2, $mzero",
        *_shares(member, two, kept),
        *launch(member.frame_bytes, member.words),
    )


def source(member: Member, workers: Sequence[str]) -> str:
    """The whole kernel, from its workers' ways `.Lroot_<way>` and their end `.Lroot_exit`."""
    table = _straight_table(member) if member.straight_counts else []
    return section(member.symbol, [*_supervisor(member), *workers, *table])


def supervisor_cycles(member: Member) -> int:
    """Cycles of a call beside its workers' slots."""
    return call_cycles(_supervisor(member))
