"""Workers of the `root_f16` family for a fixed number of remote partials and at most one half row each.

They are written in order and packed into bundles. A piece of one panel and at most three rows is such; a
worker without a half row finds the sign of its pointer to own set, and asks for nothing else of its share.
Where sums have no activation, $TAS is 0 for `f16v4mix`, which takes half of them out. Linked only if a
program asks for it, as `root_straight`, and for the same ways of loads. Worker registers are those of
`root_worker`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ..machine.timing import MULTI_SLOT
from .pack import pack
from .reduce_source import TAKE_OUT
from .root_frame import ALONG, MORE, NONE, OUT_LOAD, OWN, PLAIN, REMOTE, WIDE, load_pairs
from .root_worker import SECOND_WORD, VARIANTS, Variant, factor_lines, finish_pairs
from .text import bundle, count_instructions, from_frame, lines_of, section

_BEGIN = [
    bundle(from_frame("$m0", OWN), "setzi $a4, 8"),
    bundle("brneg $m0, .Lroot_exit", "uput $FP_CLR, $a4"),  # clear all accumulators
]
_ADD = "f16v8acc $a0:3"


def _addend(way: str, pointer: str, step: str = "1") -> list[str]:
    return [*(main for main, _ in load_pairs(way, pointer, step, "")), _ADD]


def _lines(variant: Variant, count: int, wide: bool) -> list[str]:
    """From a worker's pointers to its last store."""
    lines = list(factor_lines(variant)) or ["uput $TAS, $azero"]
    if variant.bias:
        loads = [f"ld64 $a{2 * word}:{2 * word + 1}, $m8, $mzero, {word}" for word in (0, 1)]
        lines += [from_frame("$m8", MORE), *loads, _ADD]
    lines += _addend(WIDE, "$m0")
    if variant.residual:
        lines.append(from_frame("$m9", variant.residual_word))
    if variant.summed:
        lines += _addend(WIDE if wide else PLAIN, "$m9")
    lines += [from_frame("$m1", REMOTE), *([from_frame("$m4", ALONG)] if count > 1 else [])]
    for _ in range(count):
        lines += _addend(WIDE, "$m1", "$m4" if count > 1 else "1")
    if variant.activation == NONE:
        finish = [*TAKE_OUT[:2], SECOND_WORD.format(word="$a6:7"), "st64step $a4:5, $mzero, $m2+=, 1"]
    else:
        pairs = finish_pairs(variant, "nop", reload=False)
        finish = [line for main, auxiliary in pairs for line in (auxiliary, main) if line != "nop"]
    return [*lines, OUT_LOAD, *finish, "st64step $a6:7, $mzero, $m2+=, 1"]


@cache
def _body(variant: Variant, count: int, wide: bool) -> tuple[str, ...]:
    return (*_BEGIN, *lines_of(pack(_lines(variant, count, wide))), ".Lroot_exit:", "exitz $m15")


def _source(variant: Variant, count: int, wide: bool) -> str:
    return section(variant.straight_name(count, wide=wide, once=True), _body(variant, count, wide))


def once_sources() -> dict[str, Callable[[], str]]:
    """What makes the assembly of each, by symbol."""
    return {
        variant.straight_name(count, wide=wide, once=True): partial(_source, variant, count, wide)
        for variant in VARIANTS
        for wide in variant.straight_ways
        for count in variant.straight_counts
    }


@cache
def once_slots(variant: Variant, count: int, wide: bool) -> int:
    """Slots of a worker with a half row."""
    lines = _body(variant, count, wide)
    waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f16v2sigm"] - 1)
    return count_instructions(lines) + waits
