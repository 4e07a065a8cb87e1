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

The first panel of a call has no results to store at first. Where sums start from zeros, no partials are
loaded for the first panel of a column group: then the first packed pointer is the input's up to the partials
of the next panel. Other partials that nobody needs are loaded from the column before, and zeros are pushed.

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
Those of $m4, $m5, $m8, $m9 that only further column groups need are not set where there is one.
Pairs: $a0:1, $a4:5 partials loaded in even and odd bundles, $a2:3 results, $a6:7 input.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .gemm_f32_rounds import RESULT, ROW_BYTES, amp, fill, partial_pair, x_of
from .gemm_frame import ADD, ROW, ZERO, from_block, share_lines, source_line
from .text import bundle, count_instructions

SHORTEST = 3
"""Rows a worker does at least."""
STRIDES, REPEATS, AWAY, STEP, BOTH_STEPS, COLUMN, NEXT_START = range(7)
"""The words of a worker's block; `NEXT_START`: step from word 10 of a start array's row 0 to $m9 of the next
column."""
NEXT, WRAP, ALONG, REPLACE = range(4)
"""Selectors of a paced access: next word, back over a column, next row of A; and the third field."""
_USUAL, _AWAY = "$m2", "$m7"
INPUT_AHEAD = 72
"""From a worker's first input word to where its pointer is behind bundle 8."""


@dataclass(frozen=True)
class StreamPanel:
    """One worker routine.

    Attributes:
        first, last: of a column group. opening, final: of the call, too.
        lone: of an opening one, there is no other column group.
    """

    mode: str = ZERO
    first: bool = False
    last: bool = False
    opening: bool = False
    final: bool = False
    lone: bool = False

    @property
    def label(self) -> str:
        kinds = [name for name in ("opening", "lone", "first", "last", "final") if getattr(self, name)]
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
    more = not (panel.last and panel.mode == ZERO)
    """Partials are pushed for the next panel. There is none behind a final one, whose mode is `ZERO`."""
    lines = [f"{panel.label}:"]
    lines += _start_lines(panel) if panel.opening else []
    for t in range(9):
        lines.append(
            _open_bundle(t, own, REPLACE if t == 5 and not cycling else NEXT)
            if panel.opening
            else row_bundle(
                t,
                pushes=own,
                partial=REPLACE if t == 5 and not cycling else NEXT,
                store=REPLACE if t == 0 else WRAP if t == 8 and not panel.first else NEXT,
            )
        )
        if t == 5 and cycling:
            lines.append(f"add $m0, $m0, -{ROW_BYTES}")
    if panel.first and not panel.opening:
        lines += _next_column(panel)
    elif from_zero:
        lines += ["tapack $m0:1, $m4, $m5, $m5", *([] if panel.lone else ["add $m5, $m5, $m8"])]
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


def _open_bundle(t: int, own: bool, partial: int) -> str:
    """Bundle t of a call's first row, of which nothing is stored; `own`: partials are loaded and pushed.

    Without them, the input comes by a pointer of its own.
    """
    if own:
        pair = partial_pair(t)
        if t % 2 == 0:
            main = f"ld2x64pace {pair}, $azeros, $m0:1+=, $mzero, {WRAP << 2:#06b}"
        else:
            onward = ALONG if t % 8 == 5 else NEXT
            main = f"ld2x64pace {pair}, $a6:7, $m0:1+=, {_USUAL}, {partial | onward << 2:#06b}"
        return bundle(main, amp(x_of(t), pair, t))
    main = f"ld64step $a6:7, $mzero, $m4+=, {5 if t == 5 else 1}" if t % 2 else "nop"
    return bundle(main, amp(x_of(t), "$azeros", t))


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
    return {
        ZERO: [],  # middle and final panels too
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


def _start_lines(panel: StreamPanel) -> list[str]:
    """Worker code at the start of a call, up to its first bundle."""
    mode, more = panel.mode, not panel.lone
    words = [(2, STRIDES), (3, REPEATS), (7, AWAY)] + ([(8, COLUMN)] if more else [])
    loads = [from_block(f"$m{register}", word, "$m11") for register, word in words]
    last = [from_block("$m6", STEP, "$m11"), from_block("$m11", BOTH_STEPS, "$m11")]
    begin = [*share_lines("$m11"), *source_line(mode, "$m11"), "ld64step $a6:7, $mzero, $m4+=, 1"]
    if mode == ZERO:
        return [*begin, *loads, *last, "setzi $m10, 0xfffff"]
    away = ["sub $m10, $m5, $m9", f"add $m10, $m10, -{ROW_BYTES}"] if mode == ROW else ["sub $m10, $m9, $m5"]
    pointers = "tapack $m0:1, $m9, $m4, $m5"
    onward = [f"add $m4, $m4, {INPUT_AHEAD - 8}", "add $m5, $m5, $m8"] if more else []
    if more and mode == ROW:
        onward.append(f"add $m9, $m9, {8 + ROW_BYTES}")  # from word 2 to word 3 of the next column's row
    elif more:
        onward += [from_block("$m6", NEXT_START, "$m11"), "add $m9, $m9, $m6"]
    return [*begin, *away, *fill("$m9", mode == ROW, 2), *loads, pointers, *onward, *last]
