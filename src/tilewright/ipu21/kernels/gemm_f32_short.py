"""Worker code of the float32 matrix kernels where accumulators do not survive the workers' exit.

Every panel takes its partials from memory, where sums start or C, and drains all results. Main registers
survive (known). The rounds are those of `gemm_f32_stream`; bundle t of a worker with n >= 3 rows

    pushes partial word t + 8, loads partial word t + 10, stores result word t - 9,
    and if t is odd loads the input word (two elements) for t + 1 and t + 2.

Workers with one or two rows do them one after the other.

Worker registers:
    $m0:1 packed partial, input and store pointers        $m3 n - 3              $m4 input rows
    $m5 C, $m9 start rows of the present column group     $m6, $m7 steps to the next and the first K group
    $m8 bytes from column to column, 64 R                 $m10 partial pointer   $m11 strides, -7 and 5 words
Pairs: $a0:1, $a4:5 partials loaded in even and odd bundles, $a2:3 results, $a6:7 input.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .gemm_f32_rounds import RESULT, ROW_BYTES, amp, fill, partial_pair, push, x_of
from .gemm_frame import ADD, CHUNK_ROWS, ROW, ZERO, from_block, share_lines, source_line
from .gemm_stream import COLUMN, FIRST_GROUP, NEXT_GROUP, REPEATS
from .text import bundle, routine, worker

FIRST_STEP = 24
"""Bytes from input word 1 of an even K group to the odd one beside it."""
SHORTEST = 3
"""Rows from which on a worker overlaps them."""


@dataclass(frozen=True)
class SinglePanel:
    """One worker routine. `first`, `last`: of a column group."""

    mode: str
    first: bool = False
    last: bool = False

    @property
    def label(self) -> str:
        kinds = [name for name in ("first", "last") if getattr(self, name)]
        return "_".join([".Lgemm_f32", self.mode, *(kinds or ["middle"])])

    @property
    def source(self) -> str:
        """Where partials come from: as with a start mode, from C as with `ADD`."""
        return self.mode if self.first else ADD

    def slots(self, rows: int) -> int:
        """Issue slots of a worker with so many rows."""
        return _slots(self, rows)


@cache
def _slots(panel: SinglePanel, rows: int) -> int:
    if rows < SHORTEST:
        return 1 + len(_FEW_BEGIN) + 1 + rows * (len(_single_row(panel)) + 1) + len(_onward(panel)) + 1
    return 3 + len(_rows(panel)) - 8 + 8 * (rows - SHORTEST) + len(_onward(panel))


def panel_lines(panel: SinglePanel) -> list[str]:
    """The worker routine of one panel kind, from its label on."""
    few, row, leave = (f"{panel.label}_{name}" for name in ("few", "row", "exit"))
    return [
        f"{panel.label}:",
        f"brneg $m3, {few}",
        _first_partial(panel),
        *_rows(panel),
        *_onward(panel),
        "exitz $m15",
        f"{few}:",
        _FEW_BEGIN[0],
        f"brneg $m2, {leave}",
        *_FEW_BEGIN[2:],
        _first_partial(panel),
        f"{row}:",
        *_single_row(panel),
        f"brnzdec $m2, {row}",
        *_onward(panel),
        f"{leave}:",
        "exitz $m15",
    ]


_FEW_BEGIN = ("add $m2, $m3, 2", "brneg", "mov $m0, $m4", "add $m4, $m4, 8", "mov $m1, $m5")
"""Pointers of one or two rows."""


def _onward(panel: SinglePanel) -> list[str]:
    """From input word 1 to the next panel's rows; the steps along K alternate."""
    if not panel.last:
        return ["add $m4, $m4, $m6", "sub $m6, $m8, $m6", "add $m6, $m6, -16"]
    start = {ZERO: [], ROW: [f"add $m9, $m9, {ROW_BYTES}"], ADD: ["add $m9, $m9, $m8"]}[panel.mode]
    return ["add $m4, $m4, $m7", f"setzi $m6, {FIRST_STEP}", "add $m5, $m5, $m8", *start]


def _single_row(panel: SinglePanel) -> list[str]:
    """One row by itself."""
    lines = [*_fill(panel, 0), "ld64step $a6:7, $mzero, $m0+=, 1"]
    for t in range(8):
        main = f"ld64step $a6:7, $mzero, $m0+=, {5 if t == 5 else 1}" if t % 2 and t < 7 else "nop"
        lines.append(bundle(main, amp(x_of(t), "$azeros", t)))
    store = f"st64step {RESULT}, $mzero, $m1+=, 1"
    lines += [bundle(store if t else "nop", amp("$azero", "$azeros", t)) for t in range(8)]
    return [*lines, store]


def _first_partial(panel: SinglePanel) -> str:
    return f"mov $m10, {'$m9' if panel.first and panel.mode != ZERO else '$m5'}"


def _fill(panel: SinglePanel, ahead: int) -> list[str]:
    """Push row 0's partials, load `ahead` further words."""
    if panel.source == ZERO:
        return [bundle("nop", push("$azeros", word)) for word in range(8)]
    return fill("$m10", panel.source == ROW, ahead)


def _rows(panel: SinglePanel) -> list[str]:
    """All rows of a worker with three or more."""
    loads = panel.source != ZERO
    cycling = panel.source == ROW

    def pushed(t: int) -> str:
        return partial_pair(t) if loads else "$azeros"

    lines = [*_fill(panel, 2), "ld64step $a6:7, $mzero, $m4+=, 1"]
    lines.append("tapack $m0:1, $m10, $m4, $m5" if loads else "tapack $m0:1, $m4, $m5, $m5")
    # Without partials the first pointer is the input's.
    for t in range(9):
        if t % 2 == 0:
            main = f"ld2x64pace $a0:1, $azeros, {_SEL}{HOLD << 2:#06b}" if loads else "nop"
        elif not loads:
            main = f"ld2x64pace $a6:7, $azeros, {_SEL}{_along(t) | HOLD << 2:#06b}"
        else:
            partial = AROUND if cycling and t == 5 else NEXT
            main = f"ld2x64pace $a4:5, $a6:7, {_SEL}{partial | _along(t) << 2:#06b}"
        lines.append(bundle(main, amp(x_of(t), pushed(t), t)))
    lines.append(bundle("rpt $m3, 7"))
    for t in (1, 2, 3, 4, 5, 6, 7, 0):
        partial = AROUND if cycling and t == 5 else NEXT
        lines.append(bundle(_moves(t, loads, partial), amp(x_of(t), pushed(t), t)))
    # From here t counts from 8n - 16. The last partial is loaded by t = 5 (and again), the last input by 13.
    for t in range(1, 16):
        more = loads and (t < 5 or t % 2 == 1)
        main = _moves(t, more, HOLD if t >= 5 else NEXT) if t < 15 else _STORE
        lines.append(bundle(main, amp(x_of(t), pushed(t), t)))
    lines += [bundle(_STORE, amp("$azero", "$azeros", t)) for t in range(8)]
    return [*lines, _STORE]


NEXT, AROUND, ALONG, HOLD = range(4)
"""Selectors of a paced access with strides $m11: next word, back in a start row, next row of A, stay."""
STRIDES = (-7 & 0x3FF) | 5 << 10
_SEL = "$m0:1+=, $m11, "
_STORE = f"st64pace {RESULT}, {_SEL}{NEXT}"


def _along(t: int) -> int:
    """How the input pointer goes on: bundle 5 loads a row's last word."""
    return ALONG if t % 8 == 5 else NEXT


def _moves(t: int, loads: bool, partial: int) -> str:
    """Memory accesses of a bundle with a store; `partial`: how the partial pointer goes on."""
    if t % 2 == 0:
        return f"ldst64pace $a0:1, {RESULT}, {_SEL}{partial:#06b}" if loads else _STORE
    if loads:
        return f"ld2xst64pace $a4:7, {RESULT}, {_SEL}{partial | _along(t) << 2:#08b}"
    return f"ldst64pace $a6:7, {RESULT}, {_SEL}{_along(t):#06b}"


def start_lines(mode: str) -> list[str]:
    """Worker code at the start of a call, before its first panel."""
    words = ((6, NEXT_GROUP), (7, FIRST_GROUP), (3, REPEATS), (8, COLUMN))
    return [
        *share_lines(),
        *(from_block(f"$m{register}", word) for register, word in words),
        "sub $m7, $m7, $m6",
        "add $m8, $m8, $m8",
        "add $m7, $m7, $m8",
        "add $m7, $m7, -40",
        f"setzi $m6, {FIRST_STEP}",
        *source_line(mode),
        f"setzi $m11, {STRIDES:#x}",
    ]


def short_tables(mode: str) -> list[str]:
    """The words of a start mode as in `gemm_tables`; both tables are alike."""
    first, middle, last = (
        SinglePanel(mode, *ends).label for ends in ((True, False), (False, False), (False, True))
    )
    several = [*[f".Lgemm_f32_start_{mode}"] * 2, first, middle, last, last]
    return [str(ROW_BYTES * CHUNK_ROWS if mode == ADD else 0), *several, *several]


def short_routines(mode: str) -> list[str]:
    """All worker routines of a start mode."""
    first = panel_lines(SinglePanel(mode, True))
    lines = worker(f".Lgemm_f32_start_{mode}", [*start_lines(mode), *first])
    for last in (False, True):
        lines += routine(panel_lines(SinglePanel(mode, False, last)))
    return lines
