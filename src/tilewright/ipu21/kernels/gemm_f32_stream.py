"""Worker code of the float32 matrix kernels for more than `FEW_ROWS` rows: one endless AMP stream.

The stream is that of `gemm_stream` with eight bundles per row. Bundle t of a panel

    pushes partial word t + 8, loads partial word t + 10, stores result word t - 9,
    and if t is odd loads the input word (two elements) for t + 1 and t + 2.

A has 16 columns per row, of which a K group takes one half: an even group the first, the next one the second;
the steps along K alternate, and as K is a multiple of 16 a column group begins even and ends odd. Partials
and results have opposite parity and never meet in one element of interleaved memory.

Pointers wrap at the panel's end, each at its own time: the store after t = 8, the partials after t = 8n - 11,
the input after t = 8n - 3. The repeated body runs from t = 9 to t = 8n - 16, n - 3 times, and the stream
needs three rows; a worker with two does its second one twice.

Until the first panel of a call moves the store pointer (after nine stores), stale registers go to the
worker's own rows of C, which are stored again with their results; a start array in the same place has been
read there. Where sums start from zeros, no partials are loaded for the first panel of a column group: then
the first packed pointer is the input's up to the partials of the next panel. Other partials that nobody needs
are loaded from the column before, and zeros are pushed.

Worker registers, kept from panel to panel:
    $m0:1 packed partial, input and store pointers      $m3 n - 3, at least 0
    $m2 strides: 1 - 8n, 5, and 1 or for two rows -7 words
    $m7 strides: 1 - 8n, 5 or for two rows -3, and -7 words
    $m4 address of input word 5 (row 1, word 1) of the first K group
    $m5 this worker's rows in the next column of C      $m8 bytes from column to column, 64 R
    $m6 input step to the next K group, $m11 what it and the one after that add up to
With a start row: $m9 its word 3 in this column group, $m10 from its end there to C.
With a start array: $m9 its word 19 (or 11) in this column, $m10 from C to it.
From zeros: $m10 mask of an address.
Pairs: $a0:1, $a4:5 partials loaded in even and odd bundles, $a2:3 results, $a6:7 input.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .gemm_f32_rounds import RESULT, ROW_BYTES, amp, fill, partial_pair, x_of
from .gemm_frame import ADD, FRAME_START, GROUP, ROW, ZERO, share_lines, variant
from .text import bundle, count_instructions

SHORTEST = 3
"""Rows a worker does at least."""
STRIDES, REPEATS, AWAY, STEP = range(4)
"""The words that depend on n."""
NEXT, WRAP, ALONG, REPLACE = range(4)
"""Selectors of a paced access: next word, back over a column, next row of A; and the third field."""
_USUAL, _AWAY = "$m2", "$m7"
INPUT_AHEAD = 72
"""From a worker's first input word to where its pointer is behind bundle 8."""


@dataclass(frozen=True)
class StreamPanel:
    """One worker routine. `first`, `last`: of a column group; `opening`, `final`: of the call, too."""

    mode: str = ZERO
    first: bool = False
    last: bool = False
    opening: bool = False
    final: bool = False

    @property
    def label(self) -> str:
        kinds = [name for name in ("opening", "first", "last", "final") if getattr(self, name)]
        return "_".join([".Lgemm_f32_stream", self.mode, *(kinds or ["middle"])])

    @property
    def extra_slots(self) -> int:
        """Issue slots beyond eight per row."""
        return _extra_slots(self)


@cache
def _extra_slots(panel: StreamPanel) -> int:
    return count_instructions(panel_lines(panel)) - 8 * SHORTEST - 8


def panel_lines(panel: StreamPanel) -> list[str]:
    """The worker routine of one panel kind, from its label on."""
    from_zero = panel.first and panel.mode == ZERO
    cycling = panel.first and panel.mode == ROW
    own = not from_zero
    more = not panel.final and not (panel.last and panel.mode == ZERO)
    """Partials are pushed for the next panel."""
    lines = [f"{panel.label}:"]
    for t in range(9):
        lines.append(
            row_bundle(
                t,
                loads=not (from_zero and panel.opening),
                pushes=own,
                partial=REPLACE if t == 5 and not cycling else NEXT,
                store=REPLACE if t == 0 else WRAP if t == 8 and not panel.first else NEXT,
            )
        )
        if t == 5 and cycling:
            lines.append(f"add $m0, $m0, -{ROW_BYTES}")
    if panel.first:
        lines += _next_column(panel)
    lines.append(bundle("rpt $m3, 7"))
    for t in (1, 2, 3, 4, 5, 6, 7, 0):
        around = cycling and t == 5
        partial = REPLACE if around else NEXT
        lines.append(row_bundle(t, _AWAY if around else _USUAL, own, own, partial))
    # From here t counts from 8n - 16.
    for t in range(1, 16):
        strides, partial = _USUAL, NEXT
        if t == 5:
            strides, partial = _AWAY, NEXT if cycling else WRAP
        elif t == 13 and panel.mode == ROW and panel.last:
            strides, partial = _AWAY, REPLACE
        if t == 15:
            lines += _onward(panel)
        if t == 15 and panel.final:
            lines.append(bundle(_store(NEXT), amp(x_of(t), "$azeros", t)))
            continue
        pushes = more if t >= 8 else own
        lines.append(row_bundle(t, strides, own or t > 5, pushes, partial, along=t == 5))
        if t == 5:
            lines += _turn(panel)
    return [*lines, *(_drain() if panel.final else []), "exitz $m15"]


def row_bundle(
    t: int,
    strides: str = _USUAL,
    loads: bool = True,
    pushes: bool = True,
    partial: int = NEXT,
    store: int = NEXT,
    along: bool | None = None,
) -> str:
    """Bundle t of a row: loads, store, and AMP phase t modulo 8.

    Args:
        strides: register of the stride fields.
        loads: a partial is loaded; otherwise the first pointer is the input's.
        pushes: one is pushed; otherwise zeros.
        partial, store: selectors.
        along: the input goes on to the next row; if None, as in a row that is not the last.
    """
    pointers = f"$m0:1+=, {strides}, "
    onward = ALONG if (t % 8 == 5 if along is None else along) else NEXT
    pair = partial_pair(t)
    if t % 2 == 0:
        main = f"ldst64pace {pair}, {RESULT}, {pointers}{partial | store << 2:#06b}"
        main = main if loads else _store(store)
    elif loads:
        main = f"ld2xst64pace $a4:7, {RESULT}, {pointers}{partial | onward << 2 | store << 4:#08b}"
    else:
        main = f"ldst64pace $a6:7, {RESULT}, {pointers}{onward | store << 2:#06b}"
    return bundle(main, amp(x_of(t), pair if pushes else "$azeros", t))


def _store(selector: int) -> str:
    return f"st64pace {RESULT}, $m0:1+=, {_USUAL}, {selector}"


def _next_column(panel: StreamPanel) -> list[str]:
    """Move all pointers to a column group's own; they are those of row 1 of A and row 0 of C."""
    if panel.mode == ZERO:
        return ["tapack $m0:1, $m4, $m5, $m5", "add $m5, $m5, $m8"]
    onward = "$m8" if panel.mode == ADD else str(ROW_BYTES)
    return ["tapack $m0:1, $m9, $m4, $m5", "add $m5, $m5, $m8", f"add $m9, $m9, {onward}"]


def _turn(panel: StreamPanel) -> list[str]:
    """Move the partial pointer to the next panel's first word."""
    if panel.first:
        return {
            ZERO: ["xor $m9, $m0, $m1", "and $m9, $m9, $m10", "xor $m0, $m0, $m9", "xor $m1, $m1, $m9"],
            ROW: ["add $m0, $m0, $m10"],
            ADD: ["sub $m0, $m0, $m10"],
        }[panel.mode]
    if not panel.last or panel.final:
        return []
    return {
        ZERO: [],
        ROW: ["sub $m0, $m0, $m10", "add $m10, $m10, $m8", f"add $m10, $m10, -{ROW_BYTES}"],
        ADD: ["add $m0, $m0, $m10", "add $m0, $m0, $m8"],
    }[panel.mode]


def _onward(panel: StreamPanel) -> list[str]:
    """Move the input pointer to the next panel's first word."""
    if panel.final:
        return []
    alternate = "sub $m6, $m11, $m6"
    if not panel.last:
        return ["add $m1, $m1, $m6", alternate]
    back = ["shr $m1, $m1, 21", "shl $m1, $m1, 21", "add $m1, $m1, $m4", f"add $m1, $m1, -{INPUT_AHEAD}"]
    return [*back, alternate]


def _drain() -> list[str]:
    """All results that are left."""
    lines = [bundle(_store(NEXT if t else REPLACE), amp("$azero", "$azeros", t)) for t in range(8)]
    return [*lines, _store(NEXT)]


def start_lines(mode: str) -> list[str]:
    """Worker code at the start of a call, before its first panel."""
    start = f"ld32 $m9, $mvertex_base, $mzero, {FRAME_START}"
    before = {
        ZERO: ["setzi $m10, 0xfffff"],
        ROW: [start, "sub $m10, $m5, $m9", f"add $m10, $m10, -{ROW_BYTES}", *fill("$m9", True, 2)],
        ADD: [start, "add $m9, $m9, $m0", "add $m9, $m9, $m0", "sub $m10, $m9, $m5", *fill("$m9", False, 2)],
    }[mode]
    behind = {
        ZERO: [],
        ROW: ["add $m9, $m9, 8"],  # from word 2 to word 3
        # From word 10 to word 19, or 11 if the second row is done twice: then the sign of $m2 is set.
        ADD: ["shr $m11, $m2, 25", f"and $m11, $m11, {ROW_BYTES}", "sub $m9, $m9, $m11", "add $m9, $m9, 72"],
    }[mode]
    return [
        *share_lines(limited=False),
        "add $m4, $m4, $m0",
        "add $m5, $m5, $m0",
        variant(2, STRIDES),
        variant(6, STEP),
        variant(7, AWAY),
        variant(3, REPEATS),
        f"ld32 $m8, $mvertex_base, $mzero, {GROUP}",
        "ld64step $a6:7, $mzero, $m4+=, 1",
        *before,
        "add $m0, $m5, 56",
        f"tapack $m0:1, {'$m4, $m5' if mode == ZERO else '$m9, $m4'}, $m0",
        *behind,
        f"add $m4, $m4, {INPUT_AHEAD - 8}",
        "add $m8, $m8, $m8",
        "add $m11, $m6, $m6",
        "add $m11, $m11, $m8",
        f"add $m11, $m11, -{ROW_BYTES}",
    ]


@cache
def start_slots(mode: str) -> int:
    """Issue slots of a call before its first panel."""
    return len(start_lines(mode))
