"""Assembly of `gemm_f16`: one endless AMP stream, cut into panels only where the weights change.

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
the input after t = 4n - 2. The repeated body therefore runs from t = 5 to t = 4n - 8, n - 3 times, and n >=
3. That is also what keeps a result's store (t = w + 5) before its reload as a partial (t = w + 4n - 6).

Panel kinds: `first` of a column group pushes zeros instead of partials and starts a new column of C; `last`
pushes zeros for the next column group's first row; `final` ends the call by draining the last row.

Worker registers, kept from panel to panel:
    $m0:1 packed input, partial and store pointers      $m2 strides: f1 = 1 - 4n, f2 = 4(R - n) + 1 words
    $m3   n - 3                                          $m4 address of input word 6 of the first K group
    $m5   this worker's rows in the next column of C     $m6 input step to the next K group, 32(R - n)
    $m7   input step back to the first K group           $m8 32 R, bytes per K group of A and per column of C
Where wraps fit no field ("long"), $m2 is -32n, $m4 moves with the K group, and $m9, $m10 are the worker's
rows in the
present column of C and word 11 behind: the pointers are packed anew after t = 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from .text import bundle, section, worker

STRIDE_ROWS = 768
"""Most rows for which f1 (10 bits signed, at most 128 rows per worker) reaches."""
NEAR_ROWS = 152
"""Most rows for which f2 reaches, so that the input wraps without an instruction of its own."""

FRAME_BYTES = 32
FRAME_SIXTHS, FRAME_C, FRAME_A, FRAME_GROUP, FRAME_ALL_GROUPS, FRAME_STRIDES = range(6)

REPLACE, FIELD1, FIELD2 = 0, 1, 2
"""Selectors of a paced access: next word, stride field 1, stride field 2."""


@dataclass(frozen=True)
class Panel:
    """One worker routine. `near`: the input wraps by a stride field. `long`: no wrap fits a field."""

    name: str
    first: bool = False
    last: bool = False
    final: bool = False
    near: bool = False
    long: bool = False

    @property
    def label(self) -> str:
        return f".Lgemm_{self.name}"

    @property
    def extra_slots(self) -> int:
        """Issue slots beyond four per row."""
        slots = 2  # rpt, exitz
        if self.first:
            slots += 4 if self.long else 2
        elif self.long:
            slots += 2
            if not self.last:
                slots += 1
            elif not self.final:
                slots += 3
        if self.final:
            slots += 5
        elif not self.near:
            slots += 1
        return slots


FIRST = Panel("first", first=True)
FIRST_NEAR = Panel("first_near", first=True, near=True)
FIRST_LONG = Panel("first_long", first=True, long=True)
MIDDLE = Panel("middle")
MIDDLE_NEAR = Panel("middle_near", near=True)
MIDDLE_LONG = Panel("middle_long", long=True)
LAST = Panel("last", last=True)
LAST_LONG = Panel("last_long", last=True, long=True)
FINAL = Panel("final", last=True, final=True)
FINAL_LONG = Panel("final_long", last=True, final=True, long=True)
ONLY = Panel("only", first=True, last=True)
ONLY_FINAL = Panel("only_final", first=True, last=True, final=True)


def panel_lines(panel: Panel) -> list[str]:
    """The worker routine of one panel kind."""
    first, last = panel.first, panel.last
    wrap = FIELD1 if not first and not panel.long else REPLACE
    lines = [_row_bundle(t, load_partial=not first, push_zero=first) for t in range(4)]
    lines.append(_row_bundle(4, load_partial=not first, push_zero=first, store=wrap))
    if first:
        lines.append("tapack $m0:1, $m4, $m5, $m5")
        lines += ["mov $m9, $m5", "add $m10, $m5, 88"] if panel.long else []
        lines.append("add $m5, $m5, $m8")
    elif panel.long:
        lines += ["add $m4, $m4, $m8", "tapack $m0:1, $m4, $m10, $m9"]
    lines.append(bundle("rpt $m3, 3"))
    lines += [_row_bundle(t, load_partial=not first, push_zero=first) for t in (1, 2, 3, 0)]
    # From here t counts from 4n - 8: t = 1 is bundle 4n - 7.
    lines.append(_row_bundle(1, load_partial=not first, push_zero=first, partial=REPLACE if last else wrap))
    if panel.long and not first and not last:
        lines.append("add $m1, $m1, $m2")
    lines += [_row_bundle(t, load_partial=not last, push_zero=first) for t in (2, 3)]
    lines += [_row_bundle(t, load_partial=not last, push_zero=last) for t in (4, 5)]
    lines.append(
        _row_bundle(6, load_partial=not last, push_zero=last, load=FIELD2 if panel.near else REPLACE)
    )
    if not panel.final:
        if not panel.near:
            lines.append(f"add $m0, $m0, {'$m7' if last else '$m6'}")
        lines.append(_row_bundle(7, load_partial=not last, push_zero=last))
        if panel.long and last:
            lines += ["add $m4, $m4, $m8", "sub $m4, $m4, $m6", "add $m4, $m4, $m7"]
    else:
        lines.append(_drain_bundle(7, "$a0:1"))
        lines += [_drain_bundle(t, "$azeros") for t in range(4)]
        lines.append("st64pace $a0:1, $m0:1+=, $m2, 0")
    return [f"{panel.label}:", *lines, "exitz $m15"]


def _row_bundle(
    t: int, *, load_partial: bool, push_zero: bool, load: int = 0, partial: int = 0, store: int = 0
) -> str:
    """Bundle t of a row: loads, store, and AMP phase t modulo 4; `load`, `partial`, `store` are selectors."""
    quad, low, high, other = (
        ("$a0:3", "$a0:1", "$a2:3", "$a4:5") if t % 2 == 0 else ("$a4:7", "$a4:5", "$a6:7", "$a0:1")
    )
    if load_partial:
        main = f"ld2xst64pace {quad}, {low}, $m0:1+=, $m2, {load | partial << 2 | store << 4:#08b}"
    else:
        main = f"ldst64pace {low}, {low}, $m0:1+=, $m2, {load | store << 2:#06b}"
    pushed = "$azeros" if push_zero else high
    return bundle(main, f"f16v4hihov4amp {other}, {other}, {pushed}, TAMP_F16V4_E4_P{t % 4}")


def _drain_bundle(t: int, x: str) -> str:
    """A bundle without loads: store a result, take out the next one, multiply `x`."""
    low, other = ("$a0:1", "$a4:5") if t % 2 == 0 else ("$a4:5", "$a0:1")
    return bundle(
        f"st64pace {low}, $m0:1+=, $m2, 0", f"f16v4hihov4amp {other}, {x}, $azeros, TAMP_F16V4_E4_P{t % 4}"
    )


START = (
    bundle("get $m0, $WSR", "setzi $a0, 8"),
    bundle("and $m0, $m0, 7", "uput $FP_CLR, $a0"),  # 8: clear all accumulators
    f"ld32 $m1, $mvertex_base, $mzero, {FRAME_SIXTHS}",
    "mul $m0, $m0, $m1",
    "add $m1, $m0, $m1",
    "shr $m0, $m0, 16",
    "shr $m1, $m1, 16",
    "sub $m3, $m1, $m0",  # n
    "shl $m0, $m0, 5",
    f"ld32 $m5, $mvertex_base, $mzero, {FRAME_C}",
    "add $m5, $m5, $m0",
    f"ld32 $m4, $mvertex_base, $mzero, {FRAME_A}",
    "add $m4, $m4, $m0",
    "ld64step $a4:5, $mzero, $m4+=, 1",
    "tapack $m0:1, $m4, $m5, $m5",
    "add $m4, $m4, 40",
    f"ld32 $m8, $mvertex_base, $mzero, {FRAME_GROUP}",
    "shl $m6, $m3, 5",
    "sub $m6, $m8, $m6",
    f"ld32 $m7, $mvertex_base, $mzero, {FRAME_ALL_GROUPS}",
    "sub $m7, $m6, $m7",
    "add $m3, $m3, -3",
)
"""Worker code at the start of a call; falls into the first panel.

Rows are split at floor(w R / 6). Until the first panel moves the store pointer (after five stores, t = 4),
stale registers go to the worker's own first five words of C, which are stored again with their results.
"""
STRIDES = (
    f"ld32 $m2, $mvertex_base, $mzero, {FRAME_STRIDES}",
    "mul $m9, $m3, 4100",  # m3 is n - 3
    "sub $m2, $m2, $m9",
)
"""The rest of the start where wraps fit stride fields: f2 * 1024 + (f1 + 1024) with n taken out."""
STRIDE_LONG = ("sub $m2, $m6, $m8",)
"""The rest of the start where they do not: -32n."""
START_SLOTS = len(START) + len(STRIDES)
START_LONG_SLOTS = len(START) + len(STRIDE_LONG)


def weight_loads() -> list[str]:
    """32 `ld128putcs` that fill the weight store from one panel in natural column order.

    Column c goes to unit 2k, 2k + 1 for c = 4k, 4k + 1 and to 8 + 2k, 9 + 2k for the next two: then results
    and partials have natural order too (known).
    """
    lines = []
    for column in range(16):
        unit = column // 4 * 2 + column % 2 + (8 if column % 4 >= 2 else 0)
        lines += [f"ld128putcs {4 * unit}", f"ld128putcs {4 * unit + 2}"]
    return lines


def _supervisor() -> list[str]:
    """Supervisor code.

    $m0, $m5 entry of a column's first panel, $m1 K groups - 3, $m2, $m3, $m4 entries of middle, last and
    final panels, $m7 columns left after this one, $m8 middle panels left, $m9 the workers' frame.
    """
    loads = weight_loads()
    return [
        "brz $m5, .Lgemm_return",
        "brz $m6, .Lgemm_return",
        "brz $m7, .Lgemm_return",
        f"add $m9, $m11, -{FRAME_BYTES}",
        "put $CCCSLOAD, $m4",
        "shl $m4, $m5, 5",
        "mul $m8, $m5, 10923",  # 65536 / 6, exact for up to 5461 rows on six workers
        "shl $m1, $m5, 12",
        "add $m7, $m7, -1",
        f"st32 $m2, $m9, $mzero, {FRAME_C}",
        f"st32 $m3, $m9, $mzero, {FRAME_A}",
        f"st32 $m4, $m9, $mzero, {FRAME_GROUP}",
        "mul $m4, $m4, $m6",
        f"st32 $m8, $m9, $mzero, {FRAME_SIXTHS}",
        f"add $m1, $m1, {2049 - 3 * 4100}",
        "cmpeq $m0, $m6, 1",
        f"cmpult $m8, $m5, {STRIDE_ROWS + 1}",
        f"st32 $m4, $m9, $mzero, {FRAME_ALL_GROUPS}",
        f"st32 $m1, $m9, $mzero, {FRAME_STRIDES}",
        "add $m1, $m6, -3",
        f"cmpult $m6, $m5, {NEAR_ROWS + 1}",
        f"setzi $m5, {FIRST_NEAR.label}",
        f"setzi $m2, {MIDDLE_NEAR.label}",
        f"setzi $m3, {LAST.label}",
        f"setzi $m4, {FINAL.label}",
        "brnz $m0, .Lgemm_single",
        "setzi $m0, .Lgemm_start_near",
        "brnz $m6, .Lgemm_column",
        "setzi $m0, .Lgemm_start",
        f"setzi $m5, {FIRST.label}",
        f"setzi $m2, {MIDDLE.label}",
        "brnz $m8, .Lgemm_column",
        "setzi $m0, .Lgemm_start_long",
        f"setzi $m5, {FIRST_LONG.label}",
        f"setzi $m2, {MIDDLE_LONG.label}",
        f"setzi $m3, {LAST_LONG.label}",
        f"setzi $m4, {FINAL_LONG.label}",
        # A column group. Branches behind `runall` cost nothing: the workers' first slot is ten cycles away.
        ".Lgemm_column:",
        "sync 2",
        *loads,
        "runall $m0, $m9, 0",
        "mov $m0, $m5",
        "mov $m8, $m1",
        "brneg $m1, .Lgemm_choose",
        ".Lgemm_inner:",
        "sync 2",
        *loads,
        "runall $m2, $m9, 0",
        "brnzdec $m8, .Lgemm_inner",
        ".Lgemm_choose:",
        "brnz $m7, .Lgemm_end_column",
        "mov $m3, $m4",
        ".Lgemm_end_column:",
        "sync 2",
        *loads,
        "runall $m3, $m9, 0",
        "brnzdec $m7, .Lgemm_column",
        "sync 2",
        ".Lgemm_return:",
        "br $m10",
        # One K group: every panel is the first and the last of its column.
        ".Lgemm_single:",
        "setzi $m0, .Lgemm_start_only",
        "brnz $m7, .Lgemm_single_loads",
        "setzi $m0, .Lgemm_start_only_final",
        "bri .Lgemm_single_loads",
        ".Lgemm_single_next:",
        "sync 2",
        ".Lgemm_single_loads:",
        *loads[:16],
        "add $m8, $m7, -1",
        *loads[16:],
        "runall $m0, $m9, 0",
        f"setzi $m0, {ONLY.label}",
        "brz $m7, .Lgemm_single_done",
        "mov $m7, $m8",
        "brnz $m8, .Lgemm_single_next",
        f"setzi $m0, {ONLY_FINAL.label}",
        "bri .Lgemm_single_next",
        ".Lgemm_single_done:",
        "sync 2",
        "br $m10",
    ]


def source() -> str:
    """The whole kernel."""
    lines = _supervisor()
    starts = (
        (".Lgemm_start", FIRST),
        (".Lgemm_start_near", FIRST_NEAR),
        (".Lgemm_start_long", FIRST_LONG),
        (".Lgemm_start_only", ONLY),
        (".Lgemm_start_only_final", ONLY_FINAL),
    )
    for label, panel in starts:
        strides = STRIDE_LONG if panel.long else STRIDES
        lines += worker(label, [*START, *strides, *panel_lines(panel)])
    for panel in (MIDDLE, MIDDLE_NEAR, MIDDLE_LONG, LAST, LAST_LONG, FINAL, FINAL_LONG):
        lines += worker(panel.label, panel_lines(panel)[1:])
    return section("gemm_f16", lines)
