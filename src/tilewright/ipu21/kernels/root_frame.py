"""What the supervisor of the root kernels leaves to its workers, and the worker code that reads it first.

Every worker has a frame of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .text import Pair, bundle, from_frame, lines_of

NONE, TANH, EXACT = "none", "tanh", "exact"
WIDE, PLAIN, POINT = "wide", "plain", "point"
"""Ways a worker takes: loads of 16 or 8 bytes, or no remote partials and nothing else to add."""

HALF_ROW_ROWS = 3
"""Each worker has as many half rows of a panel as there are such groups of rows."""

OWN, OUT, REMOTE, SHARE, JUMP, OWN_JUMP, PARTIALS, ALONG, BACK, MORE = range(10)
"""Words of a worker's frame. OWN: negative without work. SHARE: rows - 1, negative without work, and
panels - 1 above them. PARTIALS: their number, and bytes to the next panel's bias above it. MORE: bias and
residual, as far as there are such."""


@dataclass(frozen=True)
class Member:
    """One member of a root family.

    Attributes:
        early: the residual is added before an activation, not behind it, and is called addend.
        family: its symbol without options.
        row_bytes: of 16 columns.
        straight_counts: numbers of remote partials for which there may be code without a loop over them.
    """

    bias: bool
    residual: bool
    activation: str
    early: bool = False
    family: ClassVar[str]
    row_bytes: ClassVar[int]
    straight_counts: ClassVar[range] = range(0)

    def straight_name(self, count: int, *, wide: bool = False, half_rows: int = 0) -> str:
        """Symbol of the code for so many remote partials; `wide`: and a residual in interleaved memory;
        `half_rows`: and at most so many for each worker, 0 for any.
        """
        limit = ("", "_once", "_twice", "_thrice")[half_rows]
        return f"{self.symbol}_of_{count}{'_wide' if wide else ''}{limit}"

    @property
    def most_half_rows(self) -> int:
        """Half rows of each worker up to which there may be code for their number."""
        return 3 if self.activation == NONE else 1

    @property
    def straight_ways(self) -> tuple[bool, ...]:
        """Whether such code loads the residual 16 bytes at a time: as it says for each that there is."""
        return (False, True) if self.summed and self.straight_counts else (False,)

    @property
    def symbol(self) -> str:
        name = self.family + "_bias" * self.bias
        if self.residual:
            name += "_addend" if self.early else "_residual"
        return name if self.activation == NONE else f"{name}_{self.activation}"

    @property
    def summed(self) -> bool:
        """True if the residual joins the float32 sum."""
        return self.residual and (self.early or self.activation == NONE)

    @property
    def ways(self) -> tuple[str, ...]:
        """Ways that exist."""
        return (WIDE, PLAIN)

    @property
    def row_shift(self) -> int:
        return self.row_bytes.bit_length() - 1

    @property
    def residual_word(self) -> int:
        return MORE + self.bias

    @property
    def words(self) -> int:
        """Words of a worker's frame."""
        return MORE + self.bias + self.residual

    @property
    def frame_bytes(self) -> int:
        return 4 * 6 * self.words


def _half(register: str, word: int, part: int) -> str:
    """Loads a half of a word of the frame, sign-extended."""
    return f"lds16 {register}, $mvertex_base, $mzero, {2 * word + part}"


OUT_LOAD = from_frame("$m2", OUT)
BACK_LOAD = from_frame("$m5", BACK)
PANELS_LOAD = _half("$m7", SHARE, 1)
ROWS_LOAD = _half("$m6", SHARE, 0)
"""Loads of a worker's start that need not come first."""
BEGIN: tuple[Pair, ...] = (
    (from_frame("$m0", OWN), "setzi $a4, 8"),
    ("brneg $m0, .Lroot_exit", "uput $FP_CLR, $a4"),
)
"""Leaves a worker without work, and clears all accumulators."""


def start_pairs(member: Member, without: Collection[str] = ()) -> list[Pair]:
    """A worker's pointers and counts.

    Leaves $m0 own, $m1 remote, $m2 out, $m3 remote partials, $m4 the step to the next one, $m5 to the next
    row, $m6 rows and $m7 panels after the first, $m8 bias, $m9 residual, but for those `without`.
    """
    loads = {
        "$m6": ROWS_LOAD,
        "$m7": PANELS_LOAD,
        "$m2": OUT_LOAD,
        "$m1": from_frame("$m1", REMOTE),
        "$m3": _half("$m3", PARTIALS, 0),
        "$m4": from_frame("$m4", ALONG),
        "$m5": BACK_LOAD,
    }
    if member.residual:
        loads["$m9"] = from_frame("$m9", member.residual_word)
    if member.bias:
        loads["$m8"] = from_frame("$m8", MORE)
    return [
        *BEGIN,
        *((load, "fnop") for register, load in loads.items() if register not in without),
    ]


def start_lines(member: Member, auxiliary: Sequence[str] = ()) -> list[str]:
    """`start_pairs`, and `auxiliary`, which may use $a4, in the first free places."""
    return lines_of(fill(start_pairs(member), auxiliary=auxiliary))


def fill(pairs: Sequence[Pair], mains: Sequence[str] = (), auxiliary: Sequence[str] = ()) -> list[Pair]:
    """The pairs with these instructions, in order, in the first places that have nothing else to do."""
    columns = [list(column) for column in zip(*pairs, strict=True)]
    for column, nothing, instructions in zip(columns, ("nop", "fnop"), (mains, auxiliary), strict=True):
        free = [index for index, instruction in enumerate(column) if instruction == nothing]
        for index, instruction in zip(free[: len(instructions)], instructions, strict=True):
            column[index] = instruction
    return list(zip(*columns, strict=True))


def jump_lines(member: Member) -> list[str]:
    """From the end of a panel's rows to the next panel of a worker's. Uses $m11."""
    jumped = ["$m1", "$m2", *(["$m9"] if member.residual else [])]
    bias = [bundle(_half("$m11", PARTIALS, 1)), bundle("add $m8, $m8, $m11")]
    return [
        bundle(from_frame("$m11", JUMP)),
        *(bundle(f"add {pointer}, {pointer}, $m11") for pointer in jumped),
        bundle(from_frame("$m11", OWN_JUMP)),
        bundle("add $m0, $m0, $m11"),
        *(bias if member.bias else []),
        bundle(ROWS_LOAD),
    ]


def next_lines(member: Member, label: str) -> list[str]:
    """Behind the rows of a panel: leave or go to `<label>_panel`. Uses $m11."""
    return [bundle("brz $m7, .Lroot_exit"), *jump_lines(member), bundle(f"brnzdec $m7, {label}_panel")]


def load_pairs(way: str, pointer: str, step: str, first_aux: str) -> list[Pair]:
    """Loads $a0:3; `step` counts accesses, from the last access of a load to the first of the next."""
    if way == WIDE:
        return [(f"ld128step $a0:3, $mzero, {pointer}+=, {step}", first_aux)]
    return [
        (f"ld64step $a0:1, $mzero, {pointer}+=, 1", first_aux),
        (f"ld64step $a2:3, $mzero, {pointer}+=, {step}", "fnop"),
    ]


def load_lines(way: str, pointer: str, step: str, first_aux: str) -> list[str]:
    """`load_pairs` as bundles."""
    return [bundle(*pair) for pair in load_pairs(way, pointer, step, first_aux)]
