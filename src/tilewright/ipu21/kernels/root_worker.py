"""Assembly of the `root_f16` family: the workers.

Workers share the piece as `grid` says. Per half row (8 columns) a worker adds own, remote partials, bias and,
if it is `summed`, the residual into the float32 accumulators by `f16v8acc` and takes the sums out, which
leaves zeros: by `f16v2gina`, or the second word's by the `f16v4mix` of the first word's gate. Loads are 16
bytes ("wide") where the supervisor finds own and remote interleaved and everything aligned to 16 bytes, and
8 bytes ("plain") elsewhere.

The store of a half row's second word is one half row late. Until there is one, it writes the place of the
first word and the pointer stays ($m11 = 0); where the residual might lie there unread, the late store is
skipped instead. An addend comes the way that remote partials come, and has been read by then.

Worker registers:
    $m0 own    $m1 remote    $m2 out    $m3 remote partials    $m4 to the next one    $m5 to the next row
    $m6 rows after this one    $m7 panels after this one    $m8 bias    $m9 residual
    $m11 step of the late store; scratch between panels
    $a0:3 loads and work, $a4:7 sums
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..machine.timing import MULTI_SLOT
from .gelu import CUBIC, LINEAR
from .reduce_source import TAKE_OUT
from .root_frame import (
    EXACT,
    NONE,
    PLAIN,
    POINT,
    TANH,
    WIDE,
    Member,
    fill,
    load_lines,
    next_lines,
    start_lines,
)
from .text import Pair, bundle, worker

STRAIGHT_COUNTS = 16
"""Fewer remote partials than this have code of their own, see `root_straight`."""

FACTORS = {TANH: (LINEAR, CUBIC), EXACT: (0x3E65, 0x2C7F)}
"""Halves c1, c3 of the gate sigm(c1 x + c3 x^3): those of the tanh form, and those with the least error of
GeLU itself after all rounding."""


@dataclass(frozen=True)
class Variant(Member):
    """One member of the family."""

    family: ClassVar[str] = "root_f16"
    row_bytes: ClassVar[int] = 32
    straight_counts: ClassVar[range] = range(1, STRAIGHT_COUNTS)

    @property
    def late(self) -> bool:
        """True if the late store costs no slot; False: it has one of its own and is skipped at first."""
        return (self.early or not self.residual) and not (self.bias and self.activation == NONE)

    @property
    def late_residual(self) -> bool:
        """True if the residual is added behind the activation."""
        return self.residual and not self.summed

    @property
    def ways(self) -> tuple[str, ...]:
        alone = self.activation != NONE and not self.bias and not self.residual
        return (WIDE, PLAIN, POINT) if alone else (WIDE, PLAIN)


VARIANTS = tuple(
    Variant(bias, residual, activation)
    for bias in (False, True)
    for residual in (False, True)
    for activation in (NONE, TANH, EXACT)
) + tuple(Variant(False, True, activation, early=True) for activation in (TANH, EXACT))


_GATE = (
    "f16v4mul $a0:1, $a4:5, $a4:5",
    "f16v4mul $a0:1, $a0:1, $a4:5",
    "f16v4mix {before}, $a4:5, $a0:1",
    "f16v4mul $a2:3, $a6:7, $a6:7",
    "f16v4mul $a2:3, $a2:3, $a6:7",
    "f16v4mix $a0:1, $a6:7, $a2:3",
)
"""From x in $a4:7 to the sigmoid's arguments, of its first word in $a0:1 and of the second in the
accumulators. `before` gets what these held, as halves."""
SECOND_WORD = "f16v4mix {word}, $azeros, $azeros"
"""What the accumulators hold of the second word, its arguments or sums; leaves zeros."""
_POINT_GATE = (*(line.format(before="$azeros") for line in _GATE), SECOND_WORD.format(word="$a2:3"))
_SUMS_GATE = (*TAKE_OUT[:2], *(line.format(before="$a6:7") for line in _GATE))
"""The same from sums in the accumulators: the first word's gate takes the second word out of them."""


def _point(label: str) -> list[str]:
    """Half rows to which nothing is added; the last step of one goes along with the next one's first load."""
    load, last = "ld64step $a4:5, $mzero, $m0+=, 1", "f16v4mul $a6:7, $a6:7, $a2:3"
    mains = ["ld64step $a6:7, $mzero, $m0+=, 3", *["nop"] * (len(_POINT_GATE) - 2)]
    return [
        bundle(load),
        bundle(f"bri {label}_first", _POINT_GATE[0]),
        f"{label}_row:",
        bundle(load, last),
        bundle("st64step $a6:7, $mzero, $m2+=, 3", _POINT_GATE[0]),
        f"{label}_first:",
        *map(bundle, mains, _POINT_GATE[1:]),
        bundle("nop", "f16v2sigm $a0, $a0"),
        bundle("nop", "f16v2sigm $a1, $a1"),
        bundle("nop", "f16v4mul $a4:5, $a4:5, $a0:1"),
        bundle("st64step $a4:5, $mzero, $m2+=, 1", "f16v2sigm $a2, $a2"),
        bundle(f"brnzdec $m6, {label}_row", "f16v2sigm $a3, $a3"),
        bundle("nop", last),
    ]


def _row(variant: Variant, way: str, label: str) -> list[str]:
    """One half row; entered at `<label>_first` where the late store is skipped, left when no row follows."""
    if way == POINT:
        return _point(label)
    bias = variant.bias
    accumulate = "f16v8acc $a0:3"
    step = "2" if way == WIDE else "3"
    late = "st64step $a6:7, $mzero, $m2+=, $m11"
    lines = [f"{label}_row:"]
    if not variant.late:
        lines.append(bundle("st64step $a6:7, $mzero, $m2+=, 3"))
    lines.append(f"{label}_first:")
    lines += load_lines(way, "$m0", step, accumulate if bias else "fnop")
    entered = "fnop"
    if variant.early:
        lines += load_lines(PLAIN, "$m9", "3", accumulate)
    elif variant.summed:
        lines += [bundle("ld64step $a4:5, $mzero, $m9+=, 1"), bundle("ld64step $a6:7, $mzero, $m9+=, 3")]
        entered = "f16v8acc $a4:7"
    lines.append(bundle(f"rpt $m3, {0 if way == WIDE else 1}", entered))
    lines += load_lines(way, "$m1", "$m4", accumulate)
    lines.append(bundle("add $m1, $m1, $m5", accumulate))
    mains = [late, "setzi $m11, 3"] if variant.late else []
    finish = fill(finish_pairs(variant, f"brnzdec $m6, {label}_row"), mains)
    return [*lines, *(bundle(*pair) for pair in finish)]


def finish_pairs(variant: Variant, again: str, leave: str = "nop", *, reload: bool = True) -> list[Pair]:
    """From a half row's sums in the accumulators, which become zeros, to the store of its first word, with
    the second in $a6:7 and the bias, if there is one and it is to `reload`, in $a0:3.

    Args:
        again: the last main instruction; leave: one in front of the last `rest` pairs, behind an activation.
    """
    bias_loads = [f"ld64 $a{2 * word}:{2 * word + 1}, $m8, $mzero, {word}" for word in (0, 1)]
    first_bias, second_bias = bias_loads if variant.bias and reload else ["nop", "nop"]
    if variant.activation == NONE:
        store = "st64step $a4:5, $mzero, $m2+=, 1"
        return list(zip((first_bias, second_bias, store, again), TAKE_OUT, strict=True))
    lines: list[Pair] = [("nop", line) for line in _SUMS_GATE]
    if variant.late_residual:
        return [
            *lines,
            ("ld64step $a2:3, $mzero, $m9+=, 1", "f16v2sigm $a0, $a0"),
            ("nop", "f16v2sigm $a1, $a1"),
            ("nop", "f16v4mul $a4:5, $a4:5, $a0:1"),
            (second_bias, "f16v4add $a4:5, $a4:5, $a2:3"),
            ("st64step $a4:5, $mzero, $m2+=, 1", SECOND_WORD.format(word="$a0:1")),
            ("ld64step $a4:5, $mzero, $m9+=, 3", "f16v2sigm $a0, $a0"),
            (leave, "f16v2sigm $a1, $a1"),
            (first_bias, "f16v4mul $a6:7, $a6:7, $a0:1"),
            (again, "f16v4add $a6:7, $a6:7, $a4:5"),
        ]
    return [
        *lines,
        (second_bias, "f16v2sigm $a0, $a0"),
        ("nop", "f16v2sigm $a1, $a1"),
        ("nop", "f16v4mul $a0:1, $a4:5, $a0:1"),
        ("st64step $a0:1, $mzero, $m2+=, 1", SECOND_WORD.format(word="$a4:5")),
        (first_bias, "f16v2sigm $a4, $a4"),
        (leave, "f16v2sigm $a5, $a5"),
        (again, "f16v4mul $a6:7, $a6:7, $a4:5"),
    ]


def rest(variant: Variant) -> int:
    """Pairs behind the place of `leave` in `finish_pairs`."""
    return 2 if variant.late_residual else 1


def start_worker(variant: Variant) -> list[str]:
    """A worker's pointers and counts, and the factors of `f16v4mix`; see `start_lines`."""
    return start_lines(variant, factor_lines(variant))


def factor_lines(variant: Variant) -> tuple[str, ...]:
    """Auxiliary instructions that set the factors of `f16v4mix`, by $a4."""
    if variant.activation == NONE:
        return ()
    linear, cubic = FACTORS[variant.activation]
    value = cubic << 16 | linear
    return (f"setzi $a4, {value & 0xFFFFF:#x}", f"or $a4, $a4, {value & 0xFFF00000:#x}", "uput $TAS, $a4")


def _panel(variant: Variant, way: str, label: str) -> list[str]:
    """In front of the rows of a panel."""
    lines = [f"{label}_panel:"]
    if way == POINT:
        return lines
    if variant.bias:
        lines += [bundle("ld64 $a0:1, $m8, $mzero, 0"), bundle("ld64 $a2:3, $m8, $mzero, 1")]
    return [*lines, bundle("setzi $m11, 0" if variant.late else f"bri {label}_first")]


def _next(variant: Variant, label: str) -> list[str]:
    """Behind the rows of a panel."""
    return [bundle("st64step $a6:7, $mzero, $m2+=, 3"), *next_lines(variant, label)]


def worker_lines(variant: Variant) -> list[str]:
    """All ways of the workers; `.Lroot_<way>` is where one begins."""
    lines = []
    for way in variant.ways:
        label = f".Lroot_{way}"
        body = [*_panel(variant, way, label), *_row(variant, way, label), *_next(variant, label)]
        lines += worker(label, [*start_worker(variant), *body])
    return [*lines, ".Lroot_exit:", "exitz $m15"]


def start_slots(variant: Variant) -> int:
    """Slots of a worker in front of its first panel."""
    return len(start_worker(variant))


def panel_slots(variant: Variant) -> int:
    """Slots of a panel beside those of its rows, the jump to the next one included.

    Where nothing is added, the last step of the last row takes the slot of the step of the late store.
    """
    extra = 0 if variant.late else -1
    return len(_panel(variant, WIDE, "")) - 1 + len(_next(variant, "")) + extra


def row_slots(variant: Variant, way: str) -> int:
    """Slots of a half row beside those per remote partial, multi-slot instructions counted as such."""
    lines = [line for line in _row(variant, way, "") if not line.endswith(":")]
    waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f16v2sigm"] - 1)
    return len(lines) - {WIDE: 1, PLAIN: 2, POINT: 3}[way] + waits


def next_slots(variant: Variant) -> int:
    """Slots between two panels."""
    return len(_next(variant, ""))
