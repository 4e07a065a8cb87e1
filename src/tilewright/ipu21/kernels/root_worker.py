"""Assembly of the `root_f16` family: the workers.

Workers share the piece as `grid` says. Per half row (8 columns) a worker adds own, remote partials, bias and,
without an activation, the residual into the float32 accumulators by `f16v8acc` and takes the sums out by
`f16v2gina`, which leaves zeros. Loads are 16 bytes ("wide") where the supervisor finds own and remote
interleaved and everything aligned to 16 bytes, and 8 bytes ("plain") elsewhere.

The store of a half row's second word is one half row late. Until there is one, it writes the place of the
first word and the pointer stays ($m11 = 0); where the residual might lie there unread, the late store is
skipped instead.

Worker registers:
    $m0 own    $m1 remote    $m2 out    $m3 remote partials    $m4 to the next one    $m5 to the next row
    $m6 rows after this one    $m7 panels after this one    $m8 bias    $m9 residual    $m10 shared frame
    $m11 step of the late store; scratch between panels
    $a0:3 loads and work, $a4:7 sums
"""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.timing import MULTI_SLOT
from .text import bundle, worker

NONE, TANH, EXACT = "none", "tanh", "exact"
WIDE, PLAIN, POINT = "wide", "plain", "point"
"""Ways a worker takes: loads of 16 or 8 bytes, or no remote partials and nothing else to add."""

TANH_FACTORS = 0x2C91 << 16 | 0x3E62
"""Halves c3, c1 of the gate sigm(c1 x + c3 x^3): 2 sqrt(2 / pi) times 0.044715 and 1."""
EXACT_FACTORS = (0xD1A0, 0x4286, 0x92BE)
"""Halves a, b, c of the gate sigm(b x + c x r^2), r = min(x^2 + a, 0)."""

OWN, OUT, ROWS, PANELS, SHARED, JUMP, BIAS = range(7)
"""Words of a worker's own frame."""
COUNT, ALONG, BACK, TO_REMOTE, TO_RESIDUAL, MORE, BIAS_JUMP, RETURN, WORKER, CONSTANT = range(10)
"""Words of the shared frame, behind the six."""

TAKE_OUT = tuple(f"f16v2gina $a{register}, $azero, 0" for register in (4, 5, 6, 7))
"""Two sums each; the others move down and zeros move in."""


@dataclass(frozen=True)
class Variant:
    """One member of the family."""

    bias: bool
    residual: bool
    activation: str

    @property
    def symbol(self) -> str:
        name = "root_f16" + "_bias" * self.bias + "_residual" * self.residual
        return name if self.activation == NONE else f"{name}_{self.activation}"

    @property
    def summed(self) -> bool:
        """True if the residual joins the float32 sum."""
        return self.residual and self.activation == NONE

    @property
    def late(self) -> bool:
        """True if the late store costs no slot; False: it has one of its own and is skipped at first."""
        return not self.residual and not (self.bias and self.activation == NONE)

    @property
    def ways(self) -> tuple[str, ...]:
        """Ways that exist."""
        alone = self.activation != NONE and not self.bias and not self.residual
        return (WIDE, PLAIN, POINT) if alone else (WIDE, PLAIN)

    @property
    def words(self) -> int:
        """Words of a worker's own frame."""
        return BIAS + 1 if self.bias else BIAS

    def shared(self, word: int) -> int:
        """Word of the whole frame."""
        return 6 * self.words + word

    @property
    def frame_bytes(self) -> int:
        return -(-(6 * self.words + CONSTANT + 1) // 2) * 8


VARIANTS = tuple(
    Variant(bias, residual, activation)
    for bias in (False, True)
    for residual in (False, True)
    for activation in (NONE, TANH, EXACT)
)


def _load(wide: bool, pointer: str, step: str, first_aux: str) -> list[str]:
    """Loads $a0:3; `step` counts accesses, from the last access of a load to the first of the next."""
    if wide:
        return [bundle(f"ld128step $a0:3, $mzero, {pointer}+=, {step}", first_aux)]
    return [
        bundle(f"ld64step $a0:1, $mzero, {pointer}+=, 1", first_aux),
        bundle(f"ld64step $a2:3, $mzero, {pointer}+=, {step}"),
    ]


def _gate(variant: Variant) -> list[tuple[str, str]]:
    """(main, aux): from x in $a4:7 and empty accumulators to the sigmoid's arguments in $a0:3."""
    lines = []
    for x, work, constant in (("$a4:5", "$a0:1", "$a2"), ("$a6:7", "$a2:3", "$a0")):
        lines.append(("nop", f"f16v4mul {work}, {x}, {x}"))
        if variant.activation == EXACT:
            load = f"ld32 {constant}, $m10, $mzero, {CONSTANT}"
            lines[-1] = (load, lines[-1][1])
            lines.append(("nop", f"f16v4add {work}, {constant}:BL, {work}"))
            lines.append(("nop", f"f16v4min {work}, {work}, $azeros"))
            lines.append(("nop", f"f16v4mul {work}, {work}, {work}"))
        lines.append(("nop", f"f16v4mul {work}, {work}, {x}"))
        lines.append(("nop", f"f16v4mix {'$azeros' if x == '$a4:5' else '$a0:1'}, {x}, {work}"))
    return [*lines, ("nop", "f16v4mix $a2:3, $azeros, $azeros")]


def _point(variant: Variant, label: str) -> list[str]:
    """One half row to which nothing is added."""
    gate = _gate(variant)
    free = iter(("st64step $a6:7, $mzero, $m2+=, $m11", "ld64step $a6:7, $mzero, $m0+=, 3", "setzi $m11, 3"))
    first = [(next(free, "nop") if main == "nop" else main, aux) for main, aux in gate]
    return [
        f"{label}_row:",
        bundle("ld64step $a4:5, $mzero, $m0+=, 1"),
        *(bundle(*pair) for pair in first),
        bundle("nop", "f16v2sigm $a0, $a0"),
        bundle("nop", "f16v2sigm $a1, $a1"),
        bundle("nop", "f16v4mul $a4:5, $a4:5, $a0:1"),
        bundle("st64step $a4:5, $mzero, $m2+=, 1", "f16v2sigm $a2, $a2"),
        bundle("nop", "f16v2sigm $a3, $a3"),
        bundle(f"brnzdec $m6, {label}_row", "f16v4mul $a6:7, $a6:7, $a2:3"),
    ]


def _row(variant: Variant, way: str, label: str) -> list[str]:
    """One half row; entered at `<label>_first` where the late store is skipped, left when no row follows."""
    if way == POINT:
        return _point(variant, label)
    wide = way == WIDE
    bias, residual, activation = variant.bias, variant.residual, variant.activation
    accumulate = "f16v8acc $a0:3"
    step = "2" if wide else "3"
    late = "st64step $a6:7, $mzero, $m2+=, $m11"
    lines = [f"{label}_row:"]
    if not variant.late:
        lines.append(bundle("st64step $a6:7, $mzero, $m2+=, 3"))
    lines.append(f"{label}_first:")
    lines += _load(wide, "$m0", step, accumulate if bias else "fnop")
    if variant.summed:
        lines += [bundle("ld64step $a4:5, $mzero, $m9+=, 1"), bundle("ld64step $a6:7, $mzero, $m9+=, 3")]
    lines.append(bundle(f"rpt $m3, {0 if wide else 1}", "f16v8acc $a4:7" if variant.summed else "fnop"))
    lines += _load(wide, "$m1", "$m4", accumulate)
    lines.append(bundle("add $m1, $m1, $m5", accumulate))
    main = [late, "setzi $m11, 3", "nop", "nop"] if variant.late else ["nop"] * 4
    bias_loads = ["ld64 $a0:1, $m8, $mzero, 0", "ld64 $a2:3, $m8, $mzero, 1"]
    if activation == NONE:
        if bias:
            main[:2] = bias_loads
        main[2:] = ["st64step $a4:5, $mzero, $m2+=, 1", f"brnzdec $m6, {label}_row"]
        return [*lines, *map(bundle, main, TAKE_OUT)]
    lines += map(bundle, main, TAKE_OUT)
    lines += [bundle(*pair) for pair in _gate(variant)]
    store = "st64step $a4:5, $mzero, $m2+=, 1"
    again = f"brnzdec $m6, {label}_row"
    lines += [bundle("nop", "f16v2sigm $a0, $a0"), bundle("nop", "f16v2sigm $a1, $a1")]
    lines += [bundle("nop", "f16v4mul $a4:5, $a4:5, $a0:1")]
    last = "f16v4mul $a6:7, $a6:7, $a2:3"
    if not residual:
        lines += [bundle(store, "f16v2sigm $a2, $a2")]
        if not bias:
            return [*lines, bundle("nop", "f16v2sigm $a3, $a3"), bundle(again, last)]
        lines += [bundle(bias_loads[0], "f16v2sigm $a3, $a3"), bundle(bias_loads[1], last)]
        return [*lines, bundle(again)]
    lines += [
        bundle("ld64step $a0:1, $mzero, $m9+=, 1", "f16v2sigm $a2, $a2"),
        bundle("nop", "f16v2sigm $a3, $a3"),
        bundle("ld64step $a2:3, $mzero, $m9+=, 3", last),
        bundle(bias_loads[0] if bias else "nop", "f16v4add $a4:5, $a4:5, $a0:1"),
    ]
    if bias:
        return [
            *lines,
            bundle(bias_loads[1], "f16v4add $a6:7, $a6:7, $a2:3"),
            bundle(store),
            bundle(again),
        ]
    return [*lines, bundle(store, "f16v4add $a6:7, $a6:7, $a2:3"), bundle(again)]


def _start(variant: Variant) -> list[str]:
    """A worker's pointers and counts."""
    gate = variant.activation != NONE
    lines = [
        bundle(f"ld32 $m6, $mvertex_base, $mzero, {ROWS}", "setzi $a4, 8"),
        bundle(f"ld32 $m7, $mvertex_base, $mzero, {PANELS}", "uput $FP_CLR, $a4"),  # clear all accumulators
        "brneg $m6, .Lroot_exit",
        "brneg $m7, .Lroot_exit",
        f"ld32 $m10, $mvertex_base, $mzero, {SHARED}",
        bundle(f"ld32 $m2, $mvertex_base, $mzero, {OUT}", _factor(variant, 0)),
        bundle(f"ld32 $m0, $mvertex_base, $mzero, {OWN}", _factor(variant, 1)),
        bundle(f"ld32 $m1, $m10, $mzero, {TO_REMOTE}", "uput $TAS, $a4" if gate else "fnop"),
        f"ld32 $m3, $m10, $mzero, {COUNT}",
        f"ld32 $m4, $m10, $mzero, {ALONG}",
        f"ld32 $m5, $m10, $mzero, {BACK}",
        "add $m1, $m1, $m2",
    ]
    if variant.residual:
        lines += [f"ld32 $m9, $m10, $mzero, {TO_RESIDUAL}", "add $m9, $m9, $m2"]
    if variant.bias:
        lines += [f"ld32 $m8, $mvertex_base, $mzero, {BIAS}"]
    return lines


def _factor(variant: Variant, part: int) -> str:
    """Sets $a4 to the factors of `f16v4mix` in two parts."""
    if variant.activation == NONE:
        return "fnop"
    value = TANH_FACTORS if variant.activation == TANH else EXACT_FACTORS[2] << 16 | EXACT_FACTORS[1]
    return f"setzi $a4, {value & 0xFFFFF:#x}" if part == 0 else f"or $a4, $a4, {value & 0xFFF00000:#x}"


def _panel(variant: Variant, label: str) -> list[str]:
    """In front of the rows of a panel."""
    lines = [f"{label}_panel:"]
    if variant.bias:
        lines += [bundle("ld64 $a0:1, $m8, $mzero, 0"), bundle("ld64 $a2:3, $m8, $mzero, 1")]
    return [*lines, bundle("setzi $m11, 0" if variant.late else f"bri {label}_first")]


def _next(variant: Variant, label: str) -> list[str]:
    """Behind the rows of a panel."""
    jumped = ["$m0", "$m1", "$m2", *(["$m9"] if variant.residual else [])]
    return [
        bundle("st64step $a6:7, $mzero, $m2+=, 3"),
        bundle("brz $m7, .Lroot_exit"),
        bundle(f"ld32 $m11, $mvertex_base, $mzero, {JUMP}"),
        *(bundle(f"add {pointer}, {pointer}, $m11") for pointer in jumped),
        bundle(f"ld32 $m11, $m10, $mzero, {MORE}"),
        bundle("add $m0, $m0, $m11"),
        *(
            [bundle(f"ld32 $m11, $m10, $mzero, {BIAS_JUMP}"), bundle("add $m8, $m8, $m11")]
            if variant.bias
            else []
        ),
        bundle(f"ld32 $m6, $mvertex_base, $mzero, {ROWS}"),
        bundle(f"brnzdec $m7, {label}_panel"),
    ]


def worker_lines(variant: Variant) -> list[str]:
    """All ways of the workers; `.Lroot_<way>` is where one begins."""
    lines = []
    for way in variant.ways:
        label = f".Lroot_{way}"
        body = [*_panel(variant, label), *_row(variant, way, label), *_next(variant, label)]
        lines += worker(label, [*_start(variant), *body])
    return [*lines, ".Lroot_exit:", "exitz $m15"]


def start_slots(variant: Variant) -> int:
    """Slots of a worker in front of its first panel."""
    return len(_start(variant))


def panel_slots(variant: Variant) -> int:
    """Slots of a panel beside those of its rows, the jump to the next one included."""
    extra = 0 if variant.late else -1
    return len(_panel(variant, "")) - 1 + len(_next(variant, "")) + extra


def row_slots(variant: Variant, way: str) -> int:
    """Slots of a half row beside those per remote partial, multi-slot instructions counted as such."""
    lines = [line for line in _row(variant, way, "") if not line.endswith(":")]
    waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f16v2sigm"] - 1)
    return len(lines) - {WIDE: 1, PLAIN: 2, POINT: 0}[way] + waits


def next_slots(variant: Variant) -> int:
    """Slots between two panels."""
    return len(_next(variant, ""))
