"""Assembly of the `root_f32` family: the workers.

As in `root_worker`, but a half row is 32 bytes and taken in two quarters of four columns: worker w takes the
columns 4 (w & 1) .. and 8 + 4 (w & 1) .. of a panel, so that a quarter follows the one before at a distance
of 32 bytes everywhere, whatever row or half it belongs to. Per quarter a worker adds bias, residual (without
an activation), own and remote partials into the accumulators by `f32v4acc` and takes the sums out by
`f32v2gina`, which leaves zeros. Without an activation the first quarter's second word is stored while the
second quarter's sums come out.

Worker registers: as `root_frame` leaves them, $m11 scratch between panels; $a0:3 loads and work, $a4:7 sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..machine.timing import MULTI_SLOT
from .root_frame import CONSTANT, NONE, TANH, WIDE, Member, load_lines, next_lines, start_lines
from .text import bundle, worker

LINEAR = np.float32(2 * np.sqrt(2 / np.pi))
CUBIC = np.float32(2 * np.sqrt(2 / np.pi) * 0.044715)
"""Factors of the gate sigm(x (LINEAR + CUBIC x^2))."""

_ACCUMULATE = "f32v4acc $a0:3"
_TAKE_OUT = ("f32v2gina $a4:5, $azeros, 0", "f32v2gina $a6:7, $azeros, 0")
_STORE = ("st64step $a4:5, $mzero, $m2+=, 1", "st64step $a6:7, $mzero, $m2+=, 3")


@dataclass(frozen=True)
class SingleMember(Member):
    """One member of the family."""

    family: ClassVar[str] = "root_f32"
    row_bytes: ClassVar[int] = 64

    @property
    def constants(self) -> Sequence[int]:
        return () if self.activation == NONE else (int(CUBIC.view(np.uint32)), int(LINEAR.view(np.uint32)))


MEMBERS = tuple(
    SingleMember(bias, residual, activation)
    for activation in (NONE, TANH)
    for bias in (False, True)
    for residual in (False, True)
)


def _sum(member: SingleMember, way: str, quarter: int, ahead: bool) -> list[str]:
    """All addends of a quarter into the accumulators; `ahead`: the bias's first word is in $a0:1."""
    lines: list[str] = []
    pending = "fnop"
    if member.bias:
        first = 4 * quarter
        loads = [f"ld64 $a{2 * half}:{2 * half + 1}, $m8, $mzero, {first + half}" for half in (0, 1)]
        lines += map(bundle, loads[1:] if ahead else loads)
        pending = _ACCUMULATE
    if member.summed:
        lines += [bundle("ld64step $a0:1, $mzero, $m9+=, 1", pending)]
        lines += [bundle("ld64step $a2:3, $mzero, $m9+=, 3")]
        pending = _ACCUMULATE
    step = "2" if way == WIDE else "3"
    return [
        *lines,
        *load_lines(way, "$m0", step, pending),
        bundle(f"rpt $m3, {0 if way == WIDE else 1}"),
        *load_lines(way, "$m1", "$m4", _ACCUMULATE),
        bundle("add $m1, $m1, $m5", _ACCUMULATE),
    ]


def _row(member: SingleMember, way: str, label: str) -> list[str]:
    """One half row."""
    again = bundle(f"brnzdec $m6, {label}_row")
    if member.activation != NONE:
        quarters = [line for quarter in (0, 1) for line in _activated(member, way, quarter)]
        return [f"{label}_row:", *quarters, again]
    early = "ld64 $a0:1, $m8, $mzero, 4" if member.bias else "nop"
    return [
        f"{label}_row:",
        *_sum(member, way, 0, False),
        bundle(early, _TAKE_OUT[0]),
        bundle(_STORE[0], _TAKE_OUT[1]),
        *_sum(member, way, 1, True),
        bundle(_STORE[1], _TAKE_OUT[0]),
        bundle(_STORE[0], _TAKE_OUT[1]),
        bundle(_STORE[1]),
        again,
    ]


def _activated(member: SingleMember, way: str, quarter: int) -> list[str]:
    """A quarter with its activation."""
    constants = [f"ld32 ${register}, $m10, $mzero, {CONSTANT + i}" for i, register in enumerate(("a2", "a3"))]
    first, second = _gate("$a4:5"), _gate("$a6:7")
    second[1] = (_STORE[0], second[1][1])
    if member.residual:
        for lines, step in ((first, 1), (second, 3)):
            lines[4] = (f"ld64step $a2:3, $mzero, $m9+=, {step}", lines[4][1])
        first.append((constants[0], "f32v2add $a4:5, $a4:5, $a2:3"))
        second.append(("nop", "f32v2add $a6:7, $a6:7, $a2:3"))
        second[0] = (constants[1], second[0][1])
    return [
        *_sum(member, way, quarter, False),
        *map(bundle, constants, _TAKE_OUT),
        *(bundle(*pair) for pair in (*first, *second)),
        bundle(_STORE[1]),
    ]


def _gate(x: str) -> list[tuple[str, str]]:
    """(main, aux) of the activation of two elements; $a2 and $a3 hold the factors, $a0:1 is free."""
    return [
        ("nop", auxiliary)
        for auxiliary in (
            f"f32v2mul $a0:1, {x}, {x}",
            "f32v2mul $a0:1, $a2:B, $a0:1",
            "f32v2add $a0:1, $a3:B, $a0:1",
            f"f32v2mul $a0:1, $a0:1, {x}",
            "f32sigm $a0, $a0",
            "f32sigm $a1, $a1",
            f"f32v2mul {x}, {x}, $a0:1",
        )
    ]


def worker_lines(member: SingleMember) -> list[str]:
    """All ways of the workers; `.Lroot_<way>` is where one begins."""
    lines = []
    for way in member.ways:
        label = f".Lroot_{way}"
        body = [f"{label}_panel:", *_row(member, way, label), *next_lines(member, label)]
        lines += worker(label, [*start_lines(member), *body])
    return [*lines, ".Lroot_exit:", "exitz $m15"]


def start_slots(member: SingleMember) -> int:
    """Slots of a worker in front of its first panel."""
    return len(start_lines(member))


def next_slots(member: SingleMember) -> int:
    """Slots between two panels."""
    return len(next_lines(member, ""))


def row_slots(member: SingleMember, way: str) -> int:
    """Slots of a half row beside those per remote partial, multi-slot instructions counted as such."""
    lines = [line for line in _row(member, way, "") if not line.endswith(":")]
    waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f32sigm"] - 1)
    return len(lines) - (2 if way == WIDE else 4) + waits
