"""Worker code of the float16 matrix kernels for more than `FEW_ROWS` rows: one endless AMP stream.

The stream. A worker multiplies its n rows with one 16 x 16 weight panel after the other. Count bundles t = 0,
1, ... within a panel, four per row (one per AMP phase). Bundle t multiplies input word t, pushes the partial
sums of word t + 4 (they belong to the next row) into the delay line, and takes out result word t - 4 (of the
row before). Around that:

    loads input word t + 1, loads partial word t + 6, stores result word t - 5      (a "word" is four halves)

Partials come two words ahead, so that in interleaved memory their load and the store have opposite parity and
never meet in one element. The registers take turns: bundle t loads into quad Q = $a0:3 (even t) or $a4:7 (odd
t), low pair input, high pair partial; its AMP reads the other quad's low pair and Q's old high pair and
writes the other low pair, which the next bundle stores while it loads into it. Nothing is filled or drained
between panels: when the weights have been replaced, the stream goes on where it stopped. Accumulators,
registers and packed pointers survive `exitz` and `runall` (documented; no published kernel relies on it for
the accumulators: open on hardware).

Pointers wrap at the panel's end, each at its own time: the store after t = 4, the partials after t = 4n - 7,
the input after t = 4n - 2. The repeated body therefore runs from t = 5 to t = 4n - 12, n - 4 times, and the
stream needs three rows. That is also what keeps a result's store (t = w + 5) before its reload as a partial
(t = w + 4n - 6). All workers do as many rows: who has one less does its last one twice, with equal results;
on the way to the row after the last but one all pointers use a stride field that is -3 words then, else 1.

Panel kinds: `first` of a column group starts a new column of C and takes the partials from where sums start,
`last` fetches those of the next column group's first row, `final` ends the call by draining the last row.
A panel that is first and last belongs to a product with one K group. An `opening` one begins the call: it
loads the registers that are needed, pushes the first row's partials, and has no results to store at first.

Worker registers, kept from panel to panel:
    $m0:1 packed input, partial and store pointers       $m2 strides: f1 = 1 - 4n, f2 = 4(R - n) + 1,
    $m3   n - 4 of the busiest worker                         f3 = 1 or, with a row less, -3 words
    $m4   address of input word 6 of the first K group   $m5 this worker's rows in the next column of C
    $m6   input step to the next K group, 32(R - n), if the input does not wrap by f2
    $m7   input step back to the first K group
    $m8   32 R, bytes per K group of A and per column of C
With a start row: $m9 its word 3 in this column group, $m10 from there to C, $m11 strides with f1 = -3 words.
With a start array: $m9 its word 11 in this column, $m10 from C to it, $m11 the same plus $m8.
Those of $m4 to $m9 that only further column groups need are not set where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .gemm_frame import ADD, ROW, ZERO, from_block, share_lines, source_line
from .text import bundle, count_instructions

REPLACE, FIELD1, FIELD2, FIELD3 = 0, 1, 2, 3
"""Selectors of a paced access: next word, stride fields."""

STRIDES, REPEATS, NEXT_GROUP, FIRST_GROUP, COLUMN, BY_MODE = range(6)
"""The words of a worker's block; `BY_MODE`: for a start row, the strides with f1 = -3, for a start array, the
step from word 6 of row 0 to $m9 of the next column."""
SHORTEST = 3
"""Rows a worker does at least."""
UNROLLED = (3, 5)
"""Rows of the busiest worker for which all panels are straight code, which saves a slot each and costs a KiB
per start mode: three are too few for a loop, and five is what a fifth of 128 rows comes to. Those of three do
not wrap the input by a stride field, so that any number of rows may be in memory."""
STRAIGHT = range(4, 49)
"""Rows for which there is a straight middle panel, linked if it is asked for: code of 32 bytes per row."""
ROW_BYTES = 32
"""From one column group's part of a start row to the next."""


@dataclass(frozen=True)
class Panel:
    """One worker routine.

    Attributes:
        near: the input wraps by a stride field.
        lone: of an opening one, there is no other column group.
        rows: all workers do so many, in straight code. If 0, there is a loop, and they do four or more.
    """

    mode: str = ZERO
    first: bool = False
    last: bool = False
    final: bool = False
    near: bool = False
    opening: bool = False
    lone: bool = False
    rows: int = 0

    @property
    def label(self) -> str:
        names = ("opening", "lone", "first", "last", "final", "near")
        kinds = [name for name in names if getattr(self, name)] + ([str(self.rows)] if self.rows else [])
        return "_".join([".Lgemm", self.mode, *(kinds or ["middle"])])

    @property
    def extra_slots(self) -> int:
        """Issue slots beyond four per row."""
        return _extra_slots(self)


@cache
def _extra_slots(panel: Panel) -> int:
    count = count_instructions(panel_lines(panel))
    return count - 4 * panel.rows if panel.rows else count - 4 * (SHORTEST + 1) - 4


def panel_lines(panel: Panel) -> list[str]:
    """The worker routine of one panel kind, from its label on."""
    started = panel.mode != ZERO
    own = started or not panel.first
    """Partials are loaded for this panel."""
    more = (started or not panel.last) and not panel.final
    """And for the next one."""
    cycling = panel.first and panel.mode == ROW
    strides = "$m11" if cycling else "$m2"
    wrap = REPLACE if panel.first and panel.last else FIELD1

    def row(
        t: int, loads: bool = own, pushes: bool = own, load: int = 0, partial: int = 0, store: int = 0
    ) -> str:
        return row_bundle(t, strides, loads, pushes, load, partial, store)

    cycle = FIELD1 if cycling else REPLACE
    lines = [row(0, store=FIELD3), row(1, partial=_second(panel)), row(2), row(3)]
    if panel.opening:
        lines = [*_start_lines(panel), *_open_rows(panel)]
    elif panel.first:
        lines += [row(4), f"tapack $m0:1, $m4, {'$m9' if started else '$m5'}, $m5", "add $m5, $m5, $m8"]
        if started and not panel.final:
            lines.append(f"add $m9, $m9, {'$m8' if panel.mode == ADD else ROW_BYTES}")
    else:
        lines.append(row(4, store=FIELD1))
    again = [row(1, partial=cycle), row(2), row(3), row(0)]
    lines += again * (panel.rows - SHORTEST - 1) if panel.rows else [bundle("rpt $m3, 3"), *again]
    if panel.rows != SHORTEST:
        lines += [row(1, partial=cycle or FIELD3), row(2), row(3), row(0)]
    # From here t counts from 4n - 8: t = 1 is bundle 4n - 7.
    lines.append(row(1, partial=wrap))
    if more:
        lines += _turn(panel)
    lines += [row(2, more, load=FIELD3), row(3, more), row(4, more, more)]
    if panel.mode == ROW and panel.last and more:
        lines.append(row_bundle(5, "$m11", True, True, partial=FIELD1))
    else:
        lines.append(row(5, more, more))
    lines.append(row(6, more, more, load=FIELD2 if panel.near else REPLACE))
    if panel.final:
        lines += drain_lines()
    else:
        if not panel.near:
            lines.append(f"add $m0, $m0, {'$m7' if panel.last else '$m6'}")
        lines.append(row(7, more, more))
    return [f"{panel.label}:", *lines, "exitz $m15"]


def _second(panel: Panel) -> int:
    """Selector of the partial of bundle 1, the last of row 1 unless it is a start row's."""
    if panel.first and panel.mode == ROW:
        return FIELD1
    return FIELD3 if panel.rows == SHORTEST else REPLACE


def _turn(panel: Panel) -> list[str]:
    """Move the partial pointer to the next panel's first word."""
    if panel.mode == ZERO:  # as middle panels are
        return []
    if panel.mode == ADD:
        if panel.first and panel.last:
            return ["add $m1, $m1, $m6"]
        return ["sub $m1, $m1, $m10" if panel.first else "add $m1, $m1, $m11"]
    if panel.first:
        return [] if panel.last else ["add $m1, $m1, $m10"]
    return [f"add $m10, $m10, -{ROW_BYTES}", "sub $m1, $m1, $m10", "add $m10, $m10, $m8"]


def row_bundle(
    t: int, strides: str, loads: bool, pushes: bool, load: int = 0, partial: int = 0, store: int = 0
) -> str:
    """Bundle t of a row: loads, store, and AMP phase t modulo 4; `load`, `partial`, `store` are selectors."""
    quad, low, high, other = (
        ("$a0:3", "$a0:1", "$a2:3", "$a4:5") if t % 2 == 0 else ("$a4:7", "$a4:5", "$a6:7", "$a0:1")
    )
    if loads:
        main = f"ld2xst64pace {quad}, {low}, $m0:1+=, {strides}, {load | partial << 2 | store << 4:#08b}"
    else:
        main = f"ldst64pace {low}, {low}, $m0:1+=, {strides}, {load | store << 2:#06b}"
    pushed = high if pushes else "$azeros"
    return bundle(main, multiply(t, other, other, pushed))


def drain_lines() -> list[str]:
    """From t = 4n - 1 on: the last multiplication, and all results that are left."""
    lines = []
    for t, x in ((7, "$a0:1"), *((t, "$azeros") for t in range(4))):
        low, other = ("$a0:1", "$a4:5") if t % 2 == 0 else ("$a4:5", "$a0:1")
        store = f"st64pace {low}, $m0:1+=, $m2, {FIELD3 if t == 0 else REPLACE}"
        lines.append(bundle(store, multiply(t, other, x, "$azeros")))
    return [*lines, "st64pace $a0:1, $m0:1+=, $m2, 0"]


def multiply(t: int, out: str, x: str, pushed: str) -> str:
    """The AMP instruction of bundle t."""
    return f"f16v4hihov4amp {out}, {x}, {pushed}, TAMP_F16V4_E4_P{t % 4}"


def _open_rows(panel: Panel) -> list[str]:
    """Bundles 0 to 4 of a call's first panel."""
    if panel.mode == ZERO:
        lines = []
        for t in range(5):
            low, other = ("$a0:1", "$a4:5") if t % 2 == 0 else ("$a4:5", "$a0:1")
            lines.append(bundle(f"ld64step {low}, $mzero, $m4+=, 1", multiply(t, other, other, "$azeros")))
        lines.append("tapack $m0:1, $m4, $m5, $m5")
        return lines if panel.lone else [*lines, "add $m5, $m5, $m8"]
    strides, second = "$m11" if panel.mode == ROW else "$m2", _second(panel)
    return [open_row(t, strides, second if t == 1 else REPLACE) for t in range(5)]


def open_row(t: int, strides: str, partial: int) -> str:
    """Bundle t of a first row, of which nothing is stored; `partial`: selector."""
    low, high, other = ("$a0:1", "$a2:3", "$a4:5") if t % 2 == 0 else ("$a4:5", "$a6:7", "$a0:1")
    load = f"ld2x64pace {low}, {high}, $m0:1+=, {strides}, {partial << 2:#06b}"
    return bundle(load, multiply(t, other, other, high))


def _start_lines(panel: Panel) -> list[str]:
    """Worker code at the start of a call: registers, the first input word and the first row's partials."""
    mode = panel.mode
    several, more = not panel.last, not panel.lone
    step = not panel.near if several else mode == ADD and more
    loads = [from_block("$m2", STRIDES, "$m11")]
    loads += [] if panel.rows else [from_block("$m3", REPEATS, "$m11")]
    loads += [from_block("$m6", NEXT_GROUP, "$m11")] if step else []
    loads += [from_block("$m7", FIRST_GROUP, "$m11"), from_block("$m8", COLUMN, "$m11")] if more else []
    begin = [*share_lines("$m11"), *source_line(mode, "$m11")]
    by_mode = from_block("$m11", BY_MODE, "$m11")
    if mode == ZERO:
        return [*begin, "ld64step $a4:5, $mzero, $m4+=, 1", *loads]
    pointers = "tapack $m0:1, $m4, $m9, $m5"
    onward = ["add $m4, $m4, 40", "add $m5, $m5, $m8"] if more else []
    if mode == ROW:
        # From word 2 to word 3 of the next column's row.
        onward += [f"add $m9, $m9, {8 + ROW_BYTES}"] if more else []
        back = ["sub $m10, $m5, $m9"] if several else []
        return [*begin, *back, *_fill_row(), *loads, pointers, *onward, by_mode]
    back = ["sub $m10, $m9, $m5"] if several else []
    onward += [by_mode, "add $m9, $m9, $m11"] if more else []
    onward += ["add $m11, $m10, $m8"] if several and more else []
    return [*begin, *back, *fill(1), "ld64step $a4:5, $mzero, $m4+=, 1", *loads, pointers, *onward]


def _fill_row() -> list[str]:
    """Push the words of a start row; words 4 and 5, which are 0 and 1 over again, stay in their registers."""

    def load(pair: str, step: int = 1) -> str:
        return f"ld64step {pair}, $mzero, $m9+=, {step}"

    return [
        load("$a2:3"),
        bundle(load("$a6:7"), push("$a2:3")),
        bundle(load("$a4:5"), push("$a6:7")),
        bundle(load("$a0:1", -1), push("$a4:5", "$a4:5")),
        bundle("ld64step $a4:5, $mzero, $m4+=, 1", push("$a0:1")),
    ]


def push(pair: str, out: str = "$a0:1") -> str:
    """Push a partial without multiplying."""
    return multiply(1, out, "$azeros", pair)


def fill(fourth: int, pointer: str = "$m9") -> tuple[str, ...]:
    """Push words 0 to 3, load words 4 and 5; `fourth` is the step behind word 3."""

    def load(pair: str, step: int = 1) -> str:
        return f"ld64step {pair}, $mzero, {pointer}+=, {step}"

    return (
        load("$a2:3"),
        bundle(load("$a6:7"), push("$a2:3")),
        bundle(load("$a2:3"), push("$a6:7")),
        bundle(load("$a6:7", fourth), push("$a2:3")),
        bundle(load("$a2:3"), push("$a6:7")),
        load("$a6:7"),
    )
