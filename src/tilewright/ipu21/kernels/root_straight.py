"""Workers of the `root_f16` family for a fixed number of remote partials, all loaded 16 bytes at a time.

Loads are written out one after the other, so none takes a slot for repeating, and the last one goes on to
the next half row. The load after which the sums are complete leaves its place to the store of a half row's
second word, one half row late; the first half row of a panel has a beginning of its own without it. Each
number is a routine of its own, linked only if a program asks for it. Worker registers are those of
`root_worker`, but that $m3 is free and $m5 counts accesses, from the last partial to the first one of the
next half row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ..machine.timing import MULTI_SLOT
from .root_frame import WIDE, load_lines, next_lines
from .root_worker import VARIANTS, Variant, finish_lines, start_worker
from .text import bundle, section

_ACCUMULATE = "f16v8acc $a0:3"


def _sum(variant: Variant, count: int, last: str) -> list[str]:
    """Everything that is added up for a half row; `last` goes along with the last addition."""
    lines = load_lines(WIDE, "$m0", "2", _ACCUMULATE if variant.bias else "fnop")
    if variant.summed:
        lines += [
            bundle("ld64step $a0:1, $mzero, $m9+=, 1", _ACCUMULATE),
            bundle("ld64step $a2:3, $mzero, $m9+=, 3"),
        ]
    steps = [*["$m4"] * (count - 1), "$m5"]
    # What was loaded before is added while the next is.
    lines += [line for step in steps for line in load_lines(WIDE, "$m1", step, _ACCUMULATE)]
    return [*lines, bundle(last, _ACCUMULATE)]


def _label(variant: Variant, count: int) -> str:
    return f".L{variant.straight_name(count)}"


def _panel(variant: Variant, count: int) -> list[str]:
    """A panel up to the sums of its first half row."""
    loads = [bundle(f"ld64 $a{2 * word}:{2 * word + 1}, $m8, $mzero, {word}") for word in (0, 1)]
    label = _label(variant, count)
    first = _sum(variant, count, f"bri {label}_first")
    return [f"{label}_panel:", *(loads if variant.bias else []), *first]


def _row(variant: Variant, count: int) -> list[str]:
    """One half row, left when no row follows."""
    label = _label(variant, count)
    summed = _sum(variant, count, "st64step $a6:7, $mzero, $m2+=, 3")
    return [f"{label}_row:", *summed, f"{label}_first:", *finish_lines(variant, label, ["nop"] * 2)]


def _next(variant: Variant, count: int) -> list[str]:
    return [bundle("st64step $a6:7, $mzero, $m2+=, 3"), *next_lines(variant, _label(variant, count))]


def _source(variant: Variant, count: int) -> str:
    parts = [part(variant, count) for part in (_panel, _row, _next)]
    lines = [line for part in (start_worker(variant, counted=False), *parts) for line in part]
    return section(variant.straight_name(count), [*lines, ".Lroot_exit:", "exitz $m15"])


def straight_sources() -> dict[str, Callable[[], str]]:
    """What makes the assembly of each, by symbol."""
    return {
        variant.straight_name(count): partial(_source, variant, count)
        for variant in VARIANTS
        for count in variant.straight_counts
    }


@cache
def straight_slots(variant: Variant) -> tuple[int, int]:
    """(slots of a half row beside those per remote partial, slots of a panel beside those of its rows), the
    jump to the next one included.
    """

    def slots(lines: list[str]) -> int:
        waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f16v2sigm"] - 1)
        return sum(not line.endswith(":") for line in lines) + waits

    beside = slots(_panel(variant, 1)) - slots(_sum(variant, 1, "")) + slots(_next(variant, 1))
    return slots(_row(variant, 1)) - 1, beside
