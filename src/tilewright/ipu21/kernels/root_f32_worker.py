"""Assembly of the `root_f32` family: the workers.

As in `root_worker`, but a half row is 32 bytes and taken in two quarters of four columns: worker w takes the
columns 4 (w & 1) .. and 8 + 4 (w & 1) .. of a panel, so that a quarter follows the one before at a distance
of 32 bytes everywhere, whatever row or half it belongs to. Per quarter a worker adds bias, residual (without
an activation), own and remote partials into the accumulators by `f32v4acc` and takes the sums out by
`f32v2gina`, two at a time, which leaves zeros. Without an activation the first quarter's second word is
stored while the second quarter's sums come out.

Worker registers: as `root_frame` leaves them, $m11 factors of the activation or, between panels, scratch.
Pairs: $a0:3 loads and work, $a4:5 sums, $a6:7 sums or factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..machine.timing import MULTI_SLOT
from .root_frame import EXACT, NONE, TANH, WIDE, Member, load_lines, next_lines, start_lines
from .text import bundle, worker

LINEAR = np.float32(2 * np.sqrt(2 / np.pi))
CUBIC = np.float32(2 * np.sqrt(2 / np.pi) * 0.044715)
"""Factors of the tanh form's gate sigm(x (LINEAR + CUBIC x^2))."""
LIMIT = np.float32(30.25)
POLYNOMIAL = tuple(
    np.float32(value)
    for value in (
        *(1.59577167, 7.26604602e-02, -5.97481741e-05, -1.12801074e-04),
        *(8.35075457e-06, -3.04488476e-07, 5.27066478e-09, -2.77896990e-11),
    )
)
"""The exact form's gate is sigm(x p(min(x^2, LIMIT))) with these coefficients of p, lowest first: fitted to
ln(Phi(x) / Phi(-x)) / x, Phi the normal distribution, for equal errors of the result up to x = 5.5."""

_ACCUMULATE = "f32v4acc $a0:3"
_TAKE_OUT = ("f32v2gina $a4:5, $azeros, 0", "f32v2gina $a6:7, $azeros, 0")
_STORE = ("st64step $a4:5, $mzero, $m2+=, 1", "st64step $a6:7, $mzero, $m2+=, 3")
_LAST_STORE = "st64step $a4:5, $mzero, $m2+=, 3"


@dataclass(frozen=True)
class SingleMember(Member):
    """One member of the family."""

    family: ClassVar[str] = "root_f32"
    row_bytes: ClassVar[int] = 64


MEMBERS = tuple(
    SingleMember(bias, residual, activation)
    for activation in (NONE, TANH, EXACT)
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
    """A quarter with its activation, two elements at a time in $a4:5."""
    lines = _sum(member, way, quarter, False)
    for store, step in (("nop", 1), (_STORE[0], 3)):
        gate = [(store, _TAKE_OUT[0]), *_gate(member.activation)]
        if member.residual:
            gate[-2] = (f"ld64step $a0:1, $mzero, $m9+=, {step}", gate[-2][1])
            gate.append(("nop", "f32v2add $a4:5, $a4:5, $a0:1"))
        lines += [bundle(*pair) for pair in gate]
    return [*lines, bundle(_LAST_STORE)]


def _gate(activation: str) -> list[tuple[str, str]]:
    """(main, aux) of the activation of $a4:5; uses $a0:3 and $a6:7."""

    def factors(word: int) -> str:
        return f"ld64 $a6:7, $m11, $mzero, {word}"

    lines = [(factors(0), "f32v2mul $a0:1, $a4:5, $a4:5")]
    if activation == TANH:
        lines += [("nop", "f32v2mul $a2:3, $a6:B, $a0:1"), ("nop", "f32v2add $a2:3, $a7:B, $a2:3")]
    else:
        lines += [(factors(1), "f32v2min $a0:1, $a0:1, $a6:7"), ("nop", "f32v2mul $a2:3, $a6:B, $a0:1")]
        for index in range(1, len(POLYNOMIAL)):
            more = index % 2 == 1 and index + 1 < len(POLYNOMIAL)
            main = factors((index + 3) // 2) if more else "nop"
            lines.append((main, f"f32v2add $a2:3, $a{6 + index % 2}:B, $a2:3"))
            if index + 1 < len(POLYNOMIAL):
                lines.append(("nop", "f32v2mul $a2:3, $a2:3, $a0:1"))
    ends = ("f32v2mul $a2:3, $a2:3, $a4:5", "f32sigm $a2, $a2", "f32sigm $a3, $a3")
    return [*lines, *(("nop", auxiliary) for auxiliary in (*ends, "f32v2mul $a4:5, $a4:5, $a2:3"))]


def _factors(activation: str) -> list[str]:
    """What $m11 points to, in the order of use."""
    values = [CUBIC, LINEAR] if activation == TANH else [LIMIT, LIMIT, *reversed(POLYNOMIAL)]
    words = [f".word {int(value.view(np.uint32)):#x}" for value in values]
    return [".balign 8", ".Lroot_factors:", *words]


def _panel(member: SingleMember, label: str) -> list[str]:
    """In front of the rows of a panel."""
    return [f"{label}_panel:", *([bundle("setzi $m11, .Lroot_factors")] if member.activation != NONE else [])]


def worker_lines(member: SingleMember) -> list[str]:
    """All ways of the workers; `.Lroot_<way>` is where one begins."""
    lines = []
    for way in member.ways:
        label = f".Lroot_{way}"
        body = [*_panel(member, label), *_row(member, way, label), *next_lines(member, label)]
        lines += worker(label, [*start_lines(member), *body])
    factors = _factors(member.activation) if member.activation != NONE else []
    return [*lines, ".Lroot_exit:", "exitz $m15", *factors]


def start_slots(member: SingleMember) -> int:
    """Slots of a worker in front of its first panel."""
    return len(start_lines(member))


def next_slots(member: SingleMember) -> int:
    """Slots between two panels."""
    return len(next_lines(member, ""))


def panel_slots(member: SingleMember) -> int:
    """Slots of a panel beside those of its rows, the jump to the next one included."""
    return len(_panel(member, "")) - 1 + next_slots(member)


def row_slots(member: SingleMember, way: str) -> int:
    """Slots of a half row beside those per remote partial, multi-slot instructions counted as such."""
    lines = [line for line in _row(member, way, "") if not line.endswith(":")]
    waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f32sigm"] - 1)
    return len(lines) - (2 if way == WIDE else 4) + waits
