"""Workers of the `root_f16` family for a fixed number of remote partials and of few half rows each.

They are written in order and packed into bundles. A piece of one panel and at most three rows, without an
activation nine, is such; a worker without a half row finds the sign of its pointer to own set, and asks for
nothing else of its share. Where sums have no activation, $TAS is 0 for `f16v4mix`, which takes half of them
out, or what takes the first ones out leaves the bias in their place. Linked only if a program asks for it, as
`root_straight`, and for the same ways of loads. Worker registers are those of `root_worker`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ..machine.timing import MULTI_SLOT
from .pack import pack
from .reduce_source import TAKE_OUT
from .root_frame import (
    ALONG,
    BACK_LOAD,
    BEGIN,
    MORE,
    NONE,
    OUT_LOAD,
    PLAIN,
    REMOTE,
    ROWS_LOAD,
    WIDE,
    load_pairs,
)
from .root_worker import SECOND_WORD, VARIANTS, Variant, factor_lines, finish_pairs
from .text import bundle, count_instructions, from_frame, lines_of, section

_ADD, _ADD_BIAS = "f16v8acc $a0:3", "f16v8acc $a4:7"
_SUMS = [*TAKE_OUT[:2], SECOND_WORD.format(word="$a6:7")]
_STORES = ("st64step $a4:5, $mzero, $m2+=, 1", "st64step $a6:7, $mzero, $m2+=, 3")


def _bias_loads(first: int) -> list[str]:
    registers = (f"$a{first}:{first + 1}", f"$a{first + 2}:{first + 3}")
    loads = [f"ld64 {pair}, $m8, $mzero, {word}" for word, pair in enumerate(registers)]
    return [from_frame("$m8", MORE), *loads]


def _addend(way: str, pointer: str, step: str) -> list[str]:
    return [*(main for main, _ in load_pairs(way, pointer, step, "")), _ADD]


def _addends(variant: Variant, count: int, wide: bool, back: str) -> list[str]:
    """All but the bias; `back`: the step from the last partial."""
    lines = _addend(WIDE, "$m0", "2")
    if variant.summed:
        lines += _addend(*((WIDE, "$m9", "2") if wide else (PLAIN, "$m9", "3")))
    for step in [*["$m4"] * (count - 1), back]:
        lines += _addend(WIDE, "$m1", step)
    return lines


def _pointers(variant: Variant, count: int) -> list[str]:
    return [
        *([from_frame("$m9", variant.residual_word)] if variant.residual else []),
        from_frame("$m1", REMOTE),
        *([from_frame("$m4", ALONG)] if count > 1 else []),
    ]


_Part = tuple[list[str], list[str]]
"""Lines on the way to a worker's last half row, and those that lead away from it behind them."""


def _one(variant: Variant, count: int, wide: bool) -> list[_Part]:
    """The only half row, from a worker's pointers to the last store."""
    lines = list(factor_lines(variant)) or ["uput $TAS, $azero"]
    if variant.bias:
        lines += [*_bias_loads(0), _ADD]
    lines += [*_pointers(variant, count), *_addends(variant, count, wide, "1"), OUT_LOAD]
    if variant.activation == NONE:
        finish = [*_SUMS, _STORES[0]]
    else:
        pairs = finish_pairs(variant, "nop", reload=False)
        finish = [line for main, auxiliary in pairs for line in (auxiliary, main) if line != "nop"]
    return [(lines_of(pack([*lines, *finish, _STORES[1]])), [])]


def _several(variant: Variant, count: int, wide: bool, half_rows: int) -> list[_Part]:
    """Several half rows, and the ends of workers that have fewer."""
    back = "$m5" if count > 1 else "2"
    bias = _bias_loads(4) if variant.bias else []
    first = [
        "uput $TAS, $azero",
        *([*bias, _ADD_BIAS] if bias else []),
        *_pointers(variant, count),
        *([BACK_LOAD] if count > 1 else []),
        *_addends(variant, count, wide, back),
        ROWS_LOAD,
    ]
    # The bias takes the places of the sums.
    sums = [f"f16v2gina $a{word}, $a{word}, 0" for word in range(4, 8)] if bias else _SUMS
    parts: list[_Part] = [(lines_of(pack(first)), [])]
    for done in range(1, half_rows):
        is_last = done + 1 == half_rows
        out, label = [OUT_LOAD] if done == 1 else [], f".Lroot_{done}"
        following = [
            *[*out, *sums[1:], *_STORES],
            *([] if is_last else bias[1:]),
            *_addends(variant, count, wide, "1" if is_last else back),
            *([*_SUMS, *_STORES] if is_last else []),
        ]
        end = [*lines_of(pack([*out, *TAKE_OUT[1:], *_STORES])), "exitz $m15", f"{label}:"]
        parts.append(([bundle(f"brnzdec $m6, {label}", sums[0])], end))
        parts.append((lines_of(pack(following)), []))
    return parts


@cache
def _parts(variant: Variant, count: int, wide: bool, half_rows: int) -> tuple[_Part, ...]:
    parts = _one(variant, count, wide) if half_rows == 1 else _several(variant, count, wide, half_rows)
    return ((lines_of(BEGIN), []), *parts, (["exitz $m15"], []))


def _source(variant: Variant, count: int, wide: bool, half_rows: int) -> str:
    lines = [line for part in _parts(variant, count, wide, half_rows) for lines in part for line in lines]
    name = variant.straight_name(count, wide=wide, half_rows=half_rows)
    return section(name, [*lines[:-1], ".Lroot_exit:", lines[-1]])


def few_sources() -> dict[str, Callable[[], str]]:
    """What makes the assembly of each, by symbol."""
    return {
        variant.straight_name(count, wide=wide, half_rows=half_rows): partial(
            _source, variant, count, wide, half_rows
        )
        for variant in VARIANTS
        for half_rows in range(1, variant.most_half_rows + 1)
        for wide in variant.straight_ways
        for count in variant.straight_counts
    }


@cache
def few_slots(variant: Variant, count: int, wide: bool, half_rows: int) -> int:
    """Slots of a worker with so many half rows, of the most that there is code for."""
    lines = [line for part, _ in _parts(variant, count, wide, half_rows) for line in part]
    waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f16v2sigm"] - 1)
    return count_instructions(lines) + waits
