"""Workers of the `root_f16` family for a fixed number of remote partials, all loaded 16 bytes at a time.

Loads are written out one after the other, so none takes a slot for repeating, and the last one goes on to
the next half row. The load after which the sums are complete leaves its place to the store of a half row's
second word, one half row late; the first half row of a panel has a beginning of its own without it. That of
the first panel is written out to its end: what only its end needs is loaded there, where the activation or
taking out the sums leaves room. An activation also leaves room to find out early whether another panel
follows, so nobody asks behind the last half row.

Each number is a routine of its own, and a second one where a residual that is summed lies in interleaved
memory too; they are linked only if a program asks for them. Worker registers are those of `root_worker`, but
that $m3 is not 0 in the last half row of a panel that is not the last, $m11 is scratch, and $m5 counts
accesses, from the last partial to the first one of the next half row. Of one partial both steps are known
behind the first half row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from ..machine.timing import MULTI_SLOT
from .root_frame import (
    BACK_LOAD,
    NONE,
    OUT_LOAD,
    PANELS_LOAD,
    PLAIN,
    ROWS_LOAD,
    WIDE,
    fill,
    jump_lines,
    load_pairs,
    start_pairs,
)
from .root_worker import VARIANTS, Variant, factor_lines, finish_pairs, rest
from .text import Pair, bundle, count_instructions, lines_of, section

_ACCUMULATE = "f16v8acc $a0:3"
_LATE_STORE = "st64step $a6:7, $mzero, $m2+=, 3"
_LEAVING = ("cmpeq $m3, $m6, 0", "mul $m3, $m3, $m7")
_BACK = (BACK_LOAD, "shl $m11, $m5, 4", "add $m1, $m1, $m11")
"""Loads $m5 and takes a step of it."""


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

    @property
    def activated(self) -> bool:
        return self.variant.activation != NONE

    @property
    def deferred(self) -> tuple[str, ...]:
        """What the end of the first half row does of the start's work; where there is an activation, it also
        takes the step to the next one's partials.
        """
        if self.variant.bias and not self.activated:
            return ()
        if not self.activated:
            return (OUT_LOAD, PANELS_LOAD)
        # At a shorter start the factors of the activation find no room.
        rows = (ROWS_LOAD,) if self.variant.bias or self.variant.residual or self.count > 1 else ()
        return (*rows, OUT_LOAD, PANELS_LOAD, *_BACK)

    @property
    def known(self) -> tuple[str, ...]:
        """Registers that the start does not load."""
        steps = ("$m4", "$m5") if self.count == 1 else ()
        later = {ROWS_LOAD: "$m6", OUT_LOAD: "$m2", PANELS_LOAD: "$m7", BACK_LOAD: "$m5"}
        return ("$m3", *steps, *(later[line] for line in self.deferred if line in later))


def _sum(code: Straight, last: str, *, first: bool = False) -> list[Pair]:
    """Everything that is added up for a half row; `last` goes along with the last addition. `first`: of the
    first panel.
    """
    variant, count = code.variant, code.count
    pairs = load_pairs(WIDE, "$m0", "2", _ACCUMULATE if variant.bias else "fnop")
    if variant.summed:
        way, step = (WIDE, "2") if code.wide else (PLAIN, "3")
        pairs += load_pairs(way, "$m9", step, _ACCUMULATE)
    steps = [*["$m4"] * (count - 1), "$m5" if count > 1 else "2"]
    # What was loaded before is added while the next is.
    pairs += [pair for step in steps for pair in load_pairs(WIDE, "$m1", step, _ACCUMULATE)]
    if first and code.activated:
        pairs[-1] = ("ld128 $a0:3, $mzero, $m1, 0", _ACCUMULATE)
    return [*pairs, (last, _ACCUMULATE)]


def _bias_loads(code: Straight) -> list[Pair]:
    loads = [(f"ld64 $a{2 * word}:{2 * word + 1}, $m8, $mzero, {word}", "fnop") for word in (0, 1)]
    return loads if code.variant.bias else []


def _finish(code: Straight, more: Sequence[str] = ()) -> list[Pair]:
    """The end of a half row and the branches behind it, with `more` in its free places."""
    leave = f"brnz $m3, {code.label}_leave" if code.activated else "nop"
    pairs = finish_pairs(code.variant, f"brnzdec $m6, {code.label}_row", leave)
    return fill(pairs, [*more, *(_LEAVING if code.activated else ())])


def _end(code: Straight) -> list[str]:
    """Behind the last half row of a panel."""
    again = [] if code.activated else [bundle(f"brnz $m7, {code.label}_next")]
    return [bundle(_LATE_STORE), *again, "exitz $m15"]


def _begin(code: Straight) -> list[Pair]:
    """The first half row of all."""
    start = [*start_pairs(code.variant, code.known), *_bias_loads(code), *_sum(code, "nop", first=True)]
    return [*fill(start, auxiliary=factor_lines(code.variant)), *_finish(code, code.deferred)]


def _row(code: Straight) -> list[Pair]:
    """Another half row."""
    return [*_sum(code, _LATE_STORE), *_finish(code)]


def _next(code: Straight) -> list[str]:
    """From the last half row of a panel, or where an activation leaves it, to the sums of the next one's
    first.
    """
    left: list[Pair] = []
    if code.activated:
        remaining = _finish(code)[-rest(code.variant) :]
        left = [*(("nop", auxiliary) for _, auxiliary in remaining), (_LATE_STORE, "fnop")]
    first = [*_bias_loads(code), *_sum(code, f"bri {code.label}_first")]
    return [
        *lines_of(left),
        f"{code.label}_next:",
        *jump_lines(code.variant),
        "add $m7, $m7, -1",
        *lines_of(first),
    ]


def _source(code: Straight) -> str:
    sums = len(_sum(code, ""))
    row = lines_of(_row(code))
    lines = [
        *lines_of(_begin(code)),
        *_end(code),
        f"{code.label}_row:",
        *row[:sums],
        f"{code.label}_first:",
        *row[sums:],
        *_end(code)[:-1],
        ".Lroot_exit:",
        "exitz $m15",
        f"{code.label}_leave:",
        *_next(code),
    ]
    return section(code.symbol, lines)


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
def straight_slots(variant: Variant, count: int, wide: bool) -> tuple[int, int, int]:
    """(slots of a half row, slots of a panel beside those of its rows, the jump to the next one included, and
    what the first panel takes beside that); `wide` as in `Straight`.
    """
    code = Straight(variant, count, wide)

    def slots(lines: list[str]) -> int:
        waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f16v2sigm"] - 1)
        return count_instructions(lines) + waits

    row, begin, sums = (slots(lines_of(pairs)) for pairs in (_row(code), _begin(code), _sum(code, "")))
    end = len(_end(code))
    # Where an activation leaves the last half row, as much of it is left out as is made up for.
    panel = slots(_next(code)) - sums + (-rest(variant) if code.activated else end - 1)
    return row, panel, begin - row + end - panel
