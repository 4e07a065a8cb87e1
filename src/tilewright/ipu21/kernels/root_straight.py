"""Workers of the `root_f16` family for a fixed number of remote partials, all loaded 16 bytes at a time.

Loads are written out one after the other, so none takes a slot for repeating, and the last one goes on to
the next half row. The load after which the sums are complete leaves its place to the store of a half row's
second word, one half row late; the first half row of a panel has a beginning of its own without it. Each
number is a routine of its own, and a second one where a residual that is summed lies in interleaved memory
too; they are linked only if a program asks for them. Worker registers are those of
`root_worker`, but that $m3 is free and $m5 counts accesses, from the last partial to the first one of the
next half row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from ..machine.timing import MULTI_SLOT
from .root_frame import PLAIN, WIDE, load_lines, next_lines
from .root_worker import VARIANTS, Variant, finish_lines, start_worker
from .text import bundle, section

_ACCUMULATE = "f16v8acc $a0:3"


@dataclass(frozen=True)
class Straight:
    """Code of a member for so many remote partials.

    Attributes:
        wide: the residual is loaded 16 bytes at a time too.
    """

    variant: Variant
    count: int
    wide: bool = False

    @property
    def symbol(self) -> str:
        return self.variant.straight_name(self.count, wide=self.wide)

    @property
    def label(self) -> str:
        return f".L{self.symbol}"


def _sum(code: Straight, last: str) -> list[str]:
    """Everything that is added up for a half row; `last` goes along with the last addition."""
    variant, count = code.variant, code.count
    lines = load_lines(WIDE, "$m0", "2", _ACCUMULATE if variant.bias else "fnop")
    if variant.summed:
        way, step = (WIDE, "2") if code.wide else (PLAIN, "3")
        lines += load_lines(way, "$m9", step, _ACCUMULATE)
    steps = [*["$m4"] * (count - 1), "$m5"]
    # What was loaded before is added while the next is.
    lines += [line for step in steps for line in load_lines(WIDE, "$m1", step, _ACCUMULATE)]
    return [*lines, bundle(last, _ACCUMULATE)]


def _panel(code: Straight) -> list[str]:
    """A panel up to the sums of its first half row."""
    loads = [bundle(f"ld64 $a{2 * word}:{2 * word + 1}, $m8, $mzero, {word}") for word in (0, 1)]
    first = _sum(code, f"bri {code.label}_first")
    return [f"{code.label}_panel:", *(loads if code.variant.bias else []), *first]


def _row(code: Straight) -> list[str]:
    """One half row, left when no row follows."""
    summed = _sum(code, "st64step $a6:7, $mzero, $m2+=, 3")
    finish = finish_lines(code.variant, code.label, ["nop"] * 2)
    return [f"{code.label}_row:", *summed, f"{code.label}_first:", *finish]


def _next(code: Straight) -> list[str]:
    return [bundle("st64step $a6:7, $mzero, $m2+=, 3"), *next_lines(code.variant, code.label)]


def _source(code: Straight) -> str:
    lines = [*start_worker(code.variant, counted=False), *_panel(code), *_row(code), *_next(code)]
    return section(code.symbol, [*lines, ".Lroot_exit:", "exitz $m15"])


def straight_sources() -> dict[str, Callable[[], str]]:
    """What makes the assembly of each, by symbol."""
    every = [
        Straight(variant, count, wide)
        for variant in VARIANTS
        for wide in variant.straight_ways
        for count in variant.straight_counts
    ]
    return {code.symbol: partial(_source, code) for code in every}


@cache
def straight_slots(variant: Variant, wide: bool) -> tuple[int, int]:
    """(slots of a half row beside those per remote partial, slots of a panel beside those of its rows), the
    jump to the next one included; `wide` as in `Straight`.
    """
    code = Straight(variant, 1, wide)

    def slots(lines: list[str]) -> int:
        waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f16v2sigm"] - 1)
        return sum(not line.endswith(":") for line in lines) + waits

    beside = slots(_panel(code)) - slots(_sum(code, "")) + slots(_next(code))
    return slots(_row(code)) - 1, beside
