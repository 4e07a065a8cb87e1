"""Assembly of the `root_f16` family.

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

import re
from dataclasses import dataclass
from functools import cache

from ..machine.memory import REGION1_BASE
from ..machine.timing import MULTI_SLOT
from .grid import THIRD, choose
from .supervisor import call_cycles, schedule
from .text import bundle, section, worker

INTERLEAVED_SHIFT = 19
"""Bit set in all addresses of region 1 and in none below."""

NONE, TANH, EXACT = "none", "tanh", "exact"

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


def is_wide(own: int, remote: int, own_stride: int, remote_stride: int, remote_count: int) -> bool:
    """True if a call loads 16 bytes at a time for these arguments."""
    remote = remote if remote_count else own
    aligned = (own | remote | own_stride | remote_stride) % 16 == 0
    return aligned and own >= REGION1_BASE and remote >= REGION1_BASE


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


def _row(variant: Variant, wide: bool, label: str) -> list[str]:
    """One half row; entered at `<label>_first`, left when no row follows."""
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


def _worker(variant: Variant, wide: bool) -> list[str]:
    label = f".Lroot_{'wide' if wide else 'plain'}"
    body = [*_panel(variant, label), *_row(variant, wide, label), *_next(variant, label)]
    exits = [".Lroot_exit:", "exitz $m15"] if not wide else []
    return worker(label, [*_start(variant), *body, *exits])


def _store(register: str, word: int) -> str:
    return f"st32 {register}, $m11, $mzero, {word}"


def _frames(variant: Variant) -> list[str]:
    """Pointers of the six workers, from the first's and bytes from pair to pair %dense, %along, %wider."""
    fields = [(OUT, "out", "%dense"), (OWN, "own", "%along")] + [(BIAS, "bias", "%wider")] * variant.bias
    lines = []
    for word, name, along in fields:
        lines += [f"ld32 %{name}, $m11, $mzero, {word}", f"add %{name}_upper, %{name}, 16"]
        for pair in range(3):
            for half, pointer in enumerate((f"%{name}", f"%{name}_upper")):
                lines.append(_store(pointer, (2 * pair + half) * variant.words + word))
                if pair < 2:
                    lines.append(f"add {pointer}, {pointer}, {along}")
    lines.append(f"add %shared, $m11, {4 * variant.shared(0)}")
    return lines + [_store("%shared", index * variant.words + SHARED) for index in range(6)]


def _counts(variant: Variant, pair: int, rows: str, panels: str, jump: str) -> list[str]:
    """Stores a pair's rows - 1, panels - 1 and jump."""
    return [
        _store(register, index * variant.words + word)
        for index in (2 * pair, 2 * pair + 1)
        for register, word in ((rows, ROWS), (panels, PANELS), (jump, JUMP))
    ]


def _by_row(variant: Variant) -> list[str]:
    """The workers' frames where they share the rows."""
    lines = [
        "shl %dense, %chunk, 5",
        "shl %along, %chunk, 5",
        "add %panels, %panels, -1",
        "shl %panel, %rows, 5",
        "sub %more, %stride, %panel",
        _store("%more", variant.shared(MORE)),
        "mov %left0, %rows",
    ]
    for pair in range(3):
        lines += [
            f"min %rows{pair}, %chunk, %left{pair}",
            *([f"sub %left{pair + 1}, %left{pair}, %chunk"] if pair < 2 else []),
            f"sub %jump{pair}, %rows, %rows{pair}",
            f"shl %jump{pair}, %jump{pair}, 5",
            f"add %rows{pair}, %rows{pair}, -1",
            *_counts(variant, pair, f"%rows{pair}", "%panels", f"%jump{pair}"),
        ]
    if variant.bias:
        lines += ["setzi %step, 32", _store("%step", variant.shared(BIAS_JUMP)), "setzi %wider, 0"]
    return [*lines, *_frames(variant)]


def _by_panel(variant: Variant) -> list[str]:
    """The workers' frames where they share the panels."""
    lines = [
        "shl %dense, %rows, 5",
        "mov %along, %stride",
        "shl %jump, %rows, 6",
        "sub %more, %stride, %dense",
        "mul %more, %more, 3",
        _store("%more", variant.shared(MORE)),
        "add %rows, %rows, -1",
        f"setzi %third, {THIRD}",
    ]
    for pair in range(3):
        lines += [
            f"add %panels{pair}, %panels, {2 - pair}",
            f"mul %panels{pair}, %panels{pair}, %third",
            f"shr %panels{pair}, %panels{pair}, 16",
            f"add %panels{pair}, %panels{pair}, -1",
            *_counts(variant, pair, "%rows", f"%panels{pair}", "%jump"),
        ]
    if variant.bias:
        lines += ["setzi %step, 96", _store("%step", variant.shared(BIAS_JUMP)), "setzi %wider, 32"]
    return [*lines, *_frames(variant)]


def _head(variant: Variant) -> list[str]:
    """What is the same for both ways; ends with the choice of one."""
    lines = ["sub %further, $m6, %out", _store("%further", variant.shared(TO_RESIDUAL))] * variant.residual
    lines += [
        "shr %count, $m8, 20",
        "shl %stride, $m8, 12",
        "shr %stride, %stride, 12",
        _store("%count", variant.shared(COUNT)),
        "mul %back, %others, %count",
        "sub %back, 32, %back",
        _store("%back", variant.shared(BACK)),
        "sub %distance, %remote, %out",
        _store("%distance", variant.shared(TO_REMOTE)),
        # Wide: both in region 1, and no lowest four bits. Without remote partials, own decides.
        "mov %judged, %own",
        "movnz %judged, %count, %remote",
        "or %bits, %stride, %others",
        "or %bits, %bits, %own",
        "or %bits, %bits, %judged",
        "and %bits, %bits, 15",
        "and %region, %own, %judged",
        f"shr %region, %region, {INTERLEAVED_SHIFT}",
        "cmpeq %bits, %bits, 0",
        "and %region, %region, %bits",
        "setzi %worker, .Lroot_plain",
        "setzi %wide, .Lroot_wide",
        "movnz %worker, %region, %wide",
        _store("%worker", variant.shared(WORKER)),
        # From one remote partial to the next in accesses: of 16 bytes, or of 8 from second half to first.
        "add %step, %others, -8",
        "shrs %step, %step, 3",
        "shrs %others, %others, 4",
        "movnz %step, %region, %others",
        _store("%step", variant.shared(ALONG)),
    ]
    if variant.activation == EXACT:
        lines += [f"setzi %constant, {EXACT_FACTORS[0]:#x}", _store("%constant", variant.shared(CONSTANT))]
    return [*lines, *choose()]


@cache
def _supervisor(variant: Variant) -> tuple[tuple[str, ...], ...]:
    """From the arguments to the workers' end: the head, rows shared, panels shared."""
    pinned = {"%rows": "$m0", "%panels": "$m1", "%chunk": "$m7", "%stride": "$m8", "%panelwise": "$m6"}
    names = re.compile("|".join(rf"{name}\b" for name in pinned))
    pointers = {"%out": OUT, "%own": OWN} | ({"%bias": BIAS} if variant.bias else {})
    head = [
        f"add $m11, $m11, -{variant.frame_bytes}",
        "shl $m0, $m7, 16",
        "shr $m0, $m0, 16",
        "shr $m1, $m7, 16",
        _store("%return", variant.shared(RETURN)),
        *(_store(name, word) for name, word in pointers.items()),
        *(names.sub(lambda match: pinned[match[0]], line) for line in _head(variant)),
    ]
    given = {
        "%out": "$m2",
        "%own": "$m3",
        "%remote": "$m4",
        "%bias": "$m5",
        "%others": "$m9",
        "%return": "$m10",
    }
    pool = ["$m2", "$m3", "$m4", "$m5", "$m6"]
    kept = {name: register for name, register in pinned.items() if name != "%panelwise"}
    ends = [
        f"ld32 $m9, $m11, $mzero, {variant.shared(WORKER)}",
        f"ld32 $m10, $m11, $mzero, {variant.shared(RETURN)}",
    ]
    way = {True: _by_row(variant) + ends, False: _by_panel(variant) + ends}
    return tuple(
        tuple(lines)
        for lines in (
            schedule(head, (), given),
            ["brnz $m6, .Lroot_by_panel", *schedule(way[True], pool, kept), *_launch(variant)],
            [*schedule(way[False], pool, kept), *_launch(variant)],
        )
    )


def _launch(variant: Variant) -> list[str]:
    return [
        f"runall $m9, $m11, {variant.words}",
        f"add $m11, $m11, {variant.frame_bytes}",
        "sync 2",
        "br $m10",
    ]


def source(variant: Variant) -> str:
    """The whole kernel."""
    head, by_row, by_panel = _supervisor(variant)
    return section(
        variant.symbol,
        [
            *head,
            *by_row,
            ".Lroot_by_panel:",
            *by_panel,
            *_worker(variant, True),
            *_worker(variant, False),
        ],
    )


def start_slots(variant: Variant) -> int:
    """Slots of a worker in front of its first panel."""
    return len(_start(variant))


def panel_slots(variant: Variant) -> int:
    """Slots of a panel beside those of its rows, the jump to the next one included."""
    extra = 0 if variant.late else -1
    return len(_panel(variant, "")) - 1 + len(_next(variant, "")) + extra


def row_slots(variant: Variant, wide: bool) -> int:
    """Slots of a half row beside those per remote partial, multi-slot instructions counted as such."""
    lines = [line for line in _row(variant, wide, "") if not line.endswith(":")]
    waits = sum("sigm" in line for line in lines) * (MULTI_SLOT["f16v2sigm"] - 1)
    return len(lines) - (1 if wide else 2) + waits


def next_slots(variant: Variant) -> int:
    """Slots between two panels."""
    return len(_next(variant, ""))


def supervisor_cycles(variant: Variant, by_row: bool) -> int:
    """Cycles of a call beside its workers' slots."""
    head, row_way, panel_way = _supervisor(variant)
    return call_cycles([*head, *row_way] if by_row else [*head, f"!{row_way[0]}", *panel_way])
