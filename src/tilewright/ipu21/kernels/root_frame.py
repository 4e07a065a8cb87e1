"""What the supervisor of the root kernels leaves to its workers, and the worker code that reads it first.

Every worker has a frame of its own; behind the six lies one they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .text import bundle

NONE, TANH, EXACT = "none", "tanh", "exact"
WIDE, PLAIN, POINT = "wide", "plain", "point"
"""Ways a worker takes: loads of 16 or 8 bytes, or no remote partials and nothing else to add."""

OWN, OUT, ROWS, PANELS, SHARED, JUMP, BIAS = range(7)
"""Words of a worker's own frame."""
COUNT, ALONG, BACK, TO_REMOTE, TO_RESIDUAL, MORE, BIAS_JUMP, RETURN, WORKER, CONSTANT = range(10)
"""Words of the shared frame, behind the six. Constants of the activation end it."""


@dataclass(frozen=True)
class Member:
    """One member of a root family.

    Attributes:
        family: its symbol without options.
        row_bytes: of 16 columns.
    """

    bias: bool
    residual: bool
    activation: str
    family: ClassVar[str]
    row_bytes: ClassVar[int]

    @property
    def symbol(self) -> str:
        name = self.family + "_bias" * self.bias + "_residual" * self.residual
        return name if self.activation == NONE else f"{name}_{self.activation}"

    @property
    def summed(self) -> bool:
        """True if the residual joins the float32 sum."""
        return self.residual and self.activation == NONE

    @property
    def ways(self) -> tuple[str, ...]:
        """Ways that exist."""
        return (WIDE, PLAIN)

    @property
    def constants(self) -> Sequence[int]:
        """What the supervisor leaves at `CONSTANT`, below 2^20."""
        return ()

    @property
    def row_shift(self) -> int:
        return self.row_bytes.bit_length() - 1

    @property
    def words(self) -> int:
        """Words of a worker's own frame."""
        return BIAS + 1 if self.bias else BIAS

    def shared(self, word: int) -> int:
        """Word of the whole frame."""
        return 6 * self.words + word

    @property
    def frame_bytes(self) -> int:
        return -(-(6 * self.words + CONSTANT + max(1, len(self.constants))) // 2) * 8


def start_lines(member: Member, auxiliary: Sequence[str] = ("fnop", "fnop", "fnop")) -> list[str]:
    """A worker's pointers and counts; `auxiliary` may use $a4.

    Leaves $m0 own, $m1 remote, $m2 out, $m3 remote partials, $m4 the step to the next one, $m5 to the next
    row, $m6 rows and $m7 panels after the first, $m8 bias, $m9 residual, $m10 the shared frame.
    """
    lines = [
        bundle(f"ld32 $m6, $mvertex_base, $mzero, {ROWS}", "setzi $a4, 8"),
        bundle(f"ld32 $m7, $mvertex_base, $mzero, {PANELS}", "uput $FP_CLR, $a4"),  # clear all accumulators
        "brneg $m6, .Lroot_exit",
        "brneg $m7, .Lroot_exit",
        f"ld32 $m10, $mvertex_base, $mzero, {SHARED}",
        bundle(f"ld32 $m2, $mvertex_base, $mzero, {OUT}", auxiliary[0]),
        bundle(f"ld32 $m0, $mvertex_base, $mzero, {OWN}", auxiliary[1]),
        bundle(f"ld32 $m1, $m10, $mzero, {TO_REMOTE}", auxiliary[2]),
        f"ld32 $m3, $m10, $mzero, {COUNT}",
        f"ld32 $m4, $m10, $mzero, {ALONG}",
        f"ld32 $m5, $m10, $mzero, {BACK}",
        "add $m1, $m1, $m2",
    ]
    if member.residual:
        lines += [f"ld32 $m9, $m10, $mzero, {TO_RESIDUAL}", "add $m9, $m9, $m2"]
    if member.bias:
        lines += [f"ld32 $m8, $mvertex_base, $mzero, {BIAS}"]
    return lines


def next_lines(member: Member, label: str) -> list[str]:
    """Behind the rows of a panel: leave or go to `<label>_panel`. Uses $m11."""
    jumped = ["$m0", "$m1", "$m2", *(["$m9"] if member.residual else [])]
    return [
        bundle("brz $m7, .Lroot_exit"),
        bundle(f"ld32 $m11, $mvertex_base, $mzero, {JUMP}"),
        *(bundle(f"add {pointer}, {pointer}, $m11") for pointer in jumped),
        bundle(f"ld32 $m11, $m10, $mzero, {MORE}"),
        bundle("add $m0, $m0, $m11"),
        *(
            [bundle(f"ld32 $m11, $m10, $mzero, {BIAS_JUMP}"), bundle("add $m8, $m8, $m11")]
            if member.bias
            else []
        ),
        bundle(f"ld32 $m6, $mvertex_base, $mzero, {ROWS}"),
        bundle(f"brnzdec $m7, {label}_panel"),
    ]


def load_lines(way: str, pointer: str, step: str, first_aux: str) -> list[str]:
    """Loads $a0:3; `step` counts accesses, from the last access of a load to the first of the next."""
    if way == WIDE:
        return [bundle(f"ld128step $a0:3, $mzero, {pointer}+=, {step}", first_aux)]
    return [
        bundle(f"ld64step $a0:1, $mzero, {pointer}+=, 1", first_aux),
        bundle(f"ld64step $a2:3, $mzero, {pointer}+=, {step}"),
    ]
