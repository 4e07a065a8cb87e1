"""Worker code of the float16 matrix kernels for up to `FEW_ROWS` rows where accumulators survive: two rows
per worker in one endless AMP stream.

Bundles 0 to 3 of a panel multiply row 0, 4 to 7 row 1, as in `gemm_stream`, whose conventions hold wherever
sums change between accumulators and memory. Within a column group they do not: while one row is multiplied
the other one's sums leave the delay line, are rounded to halves and are pushed back as that row's partials. A
word comes out one instruction before it can go in; a fifth instruction, which multiplies zeros, closes the
circle.

Kinds of a panel's first half: `OPEN` begins a call, `FIRST` a later column group (stores row 1 of the one
before), `MIDDLE`. Of the second half: `LAST` stores row 0 of the column group and pushes where the next one
starts, `FINAL` stores both rows, `MIDDLE`. Behind `MIDDLE`, input words 0 and 1 are in $a0:1 and $a2:3;
behind `LAST`, registers are as between the panels of `gemm_stream`.

A worker with one row does it twice; one without rows multiplies somebody else's and stores nothing. Where
only an input word is wanted, the start pointer goes round a row beside it, always at a word of the other
parity, and the word it loads is dropped.

Worker registers, kept from panel to panel:
    $m0:1 packed input, start and store pointers    $m2 strides: f1 = -3; f2 from the end of row 1 to
    $m3   rows, if workers may be without               the next K group or column; f3 from row 0 to row 1
With one K group, f1 is the way back from the end of the input; with a start row that is f1 of $m7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .gemm_few import FINAL, FIRST, LAST, MIDDLE, OPEN, Routine
from .gemm_frame import (
    ADD,
    BLOCKS,
    CHUNK_C,
    OWN_BACK,
    OWN_STRIDES,
    ROW,
    ROWS_OF_A,
    ROWS_OF_C,
    STARTS,
    ZERO,
    few_routine,
)
from .gemm_stream import FIELD1, FIELD2, FIELD3, REPLACE, drain_lines, multiply, push, row_bundle
from .text import CLEAR_ACCUMULATORS, bundle, count_instructions, from_frame

INPUT, START, ROWS, STRIDES, BACK, SECOND = ROWS_OF_A, ROWS_OF_C, BLOCKS, OWN_STRIDES, OWN_BACK, CHUNK_C
"""First of six words of the frame, one per worker: $m0 and $m1 at first; rows; $m2; the way back from the end
of the input, in bytes or as strides; where row 1 starts (`ADD` only)."""
BLOCK_STRIDES, BLOCK_BACK, BLOCK_SECOND = range(3)
"""Words of a block from which the supervisor makes these, beside `gemm_few.ROWS`."""

_RING = "$a4:5"
_INPUTS = ("$a0:1", "$a2:3")
_ZEROS = "$azeros"


class FewPanel(Routine):
    """One worker routine, by its halves."""

    FAMILY = "gemm_few"

    @property
    def lines(self) -> list[str]:
        return few_lines(self)


def few_lines(panel: FewPanel) -> list[str]:
    """The worker routine of one panel kind, from its label on."""
    return few_routine(panel.label, _halves(panel), stores=panel.stores)


def _halves(panel: FewPanel) -> list[str]:
    if panel.first == MIDDLE:
        ends = {MIDDLE: _ring_middle, FINAL: _ring_final}
        return ends[panel.second]() if panel.second in ends else _ring_last(panel.mode)
    second = {MIDDLE: _ring_second, LAST: _last_second, FINAL: _final_second}
    return [*_first_half(panel), *second[panel.second](panel)]


def _load(pair: str, load: int = REPLACE, start: int = REPLACE, dropped: str = _ZEROS) -> str:
    """Load an input word, and a word of where sums start; `load`, `start`: selectors."""
    return f"ld2x64pace {pair}, {dropped}, $m0:1+=, $m2, {load | start << 2:#06b}"


def _turn(t: int, x: str, main: str = "") -> str:
    """Bundle t, which pushes back what came out with the one before."""
    amp = multiply(t, _RING, x, _RING if t % 4 else _ZEROS)
    return bundle(main or "nop", amp)


def _close(main: str = "", out: str = _RING) -> str:
    """Push back a row's last word; what comes out is nothing."""
    return bundle(main or "nop", push(_RING, out))


def _ring_middle() -> list[str]:
    """A panel within a column group: bundle t loads input word t + 2, 8 and 9 are the next panel's."""
    lines = []
    for t in range(8):
        x = _INPUTS[t % 2]
        load = FIELD3 if t == 1 else FIELD2 if t == 5 else REPLACE
        lines.append(_turn(t, x, _load(x, load, REPLACE if t % 4 else FIELD1)))
        lines += [_close()] if t % 4 == 3 else []
    return lines


def _ring_final() -> list[str]:
    """The last panel of several K groups: all input is loaded when the first result comes out."""
    even, odd = _INPUTS
    lines = [
        _turn(0, even, _load(even, start=FIELD1)),
        _turn(1, odd, _load(odd, FIELD3)),
        _turn(2, even, _load(even)),
        _turn(3, odd, _load(odd)),
        _close(_load("$a6:7", start=FIELD1)),
        bundle(_load(even), multiply(4, _RING, even, _ZEROS)),
    ]
    for t, x in ((5, odd), (6, "$a6:7"), (7, even), *((t, _ZEROS) for t in range(4))):
        lines.append(bundle(_store(FIELD3 if t == 0 else REPLACE), multiply(t, _RING, x, _ZEROS)))
    return [*lines, _store()]


def _store(step: int = REPLACE) -> str:
    return f"st64pace {_RING}, $m0:1+=, $m2, {step}"


def _ring_last(mode: str) -> list[str]:
    """The last panel of a column group before another one: from rounds within to the stream."""
    even, odd = _INPUTS
    onward = {ZERO: FIELD1, ROW: REPLACE, ADD: FIELD2}[mode]
    high, higher = (_ZEROS, _ZEROS) if mode == ZERO else ("$a2:3", "$a6:7")
    started = mode != ZERO
    return [
        _turn(0, even, _load(even, start=onward)),
        _turn(1, odd, from_frame("$m7", BACK)),
        _turn(2, even, _load(even, FIELD3, dropped=high)),
        _turn(3, even),
        _close(_load("$a4:5", dropped=higher), _ZEROS if started else "$a6:7"),
        _open_row(4, started),
        row_bundle(5, "$m2", started, started, partial=FIELD1 if mode == ROW else FIELD3),
        row_bundle(6, "$m2", started, started),
        "add $m0, $m0, $m7",
        row_bundle(7, "$m2", started, started),
    ]


def _open_row(t: int, pushes: bool, load: int = REPLACE, start: int = REPLACE) -> str:
    """Bundle t of the stream, with no result to store."""
    low, high, other = ("$a0:1", "$a2:3", "$a4:5") if t % 2 == 0 else ("$a4:5", "$a6:7", "$a0:1")
    main = _load(low, load, start, high if pushes else _ZEROS)
    return bundle(main, multiply(t, other, other, high if pushes else _ZEROS))


def _first_half(panel: FewPanel) -> list[str]:
    started = panel.mode != ZERO
    around = FIELD1
    if panel.second != MIDDLE and not started:
        around = FIELD3
    elif panel.second == LAST:
        around = REPLACE if panel.mode == ROW else FIELD2
    lines = []
    for t in range(4):
        load, start = FIELD3 if t == 2 else REPLACE, around if t == 1 else REPLACE
        if panel.first == FIRST:
            store = FIELD3 if t == 0 else REPLACE
            lines.append(row_bundle(t, "$m2", started, started, load, start, store))
        else:
            lines.append(_open_row(t, started, load, start))
    return lines


def _fourth(panel: FewPanel) -> str:
    """Bundle 4, which stores the last word of the column group before; what it pushes matters in `LAST`."""
    started = panel.mode != ZERO
    if panel.first == FIRST:
        return row_bundle(4, "$m2", started, started, store=FIELD2)
    return _open_row(4, started)


def _ring_second(panel: FewPanel) -> list[str]:
    """From the stream to rounds within a column group."""
    even, odd = _INPUTS
    return [
        _fourth(panel),
        _turn(5, even, _load(odd, start=FIELD1)),
        _turn(6, odd, _load(even, FIELD2)),
        _turn(7, even, _load(even)),
        _close(_load(odd)),
    ]


def _last_second(panel: FewPanel) -> list[str]:
    """Row 1 of the only K group; then the input begins anew."""
    started = panel.mode != ZERO
    around = FIELD1 if panel.mode == ROW else FIELD3
    return [
        _fourth(panel),
        row_bundle(5, "$m2", started, started, partial=around),
        row_bundle(6, "$m7" if panel.mode == ROW else "$m2", started, started, load=FIELD1),
        row_bundle(7, "$m2", started, started),
    ]


def _final_second(panel: FewPanel) -> list[str]:
    return [_fourth(panel), *(row_bundle(t, "$m2", False, False) for t in (5, 6)), *drain_lines()]


@dataclass(frozen=True)
class Opening:
    """The routine that begins a call. `single`: there is one K group, `lone`: then, one column group."""

    mode: str
    single: bool
    lone: bool

    @property
    def label(self) -> str:
        kinds = [name for name in ("single", "lone") if getattr(self, name)]
        return "_".join([".Lgemm_few_opening", self.mode, *kinds])

    @property
    def panel(self) -> FewPanel:
        second = (FINAL if self.lone else LAST) if self.single else MIDDLE
        return FewPanel(self.mode, OPEN, second)

    @property
    def slots(self) -> int:
        """Issue slots of a worker where all have rows."""
        return _opening_slots(self)


OPENINGS = ((False, False), (True, False), (True, True))
"""`single` and `lone` of all openings of a start mode."""


def check_slots(panel: FewPanel) -> int:
    """More slots of a call's opening where workers may be without rows; 1 of a later panel that stores."""
    return 1 + panel.stores


@cache
def _opening_slots(opening: Opening) -> int:
    return count_instructions(opening_lines(opening)) - check_slots(opening.panel)


def opening_lines(opening: Opening) -> list[str]:
    """Registers, first input word, row 0's partials, and the first panel.

    Where no worker is without rows, calls begin at the label that ends in `_all`.
    """
    label, panel = opening.label, opening.panel
    leave = f"{label}_exit"
    back = opening.mode == ROW and panel.second == LAST
    return [
        f"{label}:",
        from_frame("$m3", ROWS),
        *([f"brz $m3, {leave}"] if panel.stores else []),
        f"{label}_all:",
        *([from_frame("$m7", BACK)] if back else []),
        *_begin(opening.mode),
        *_halves(panel),
        f"{leave}:",
        "exitz $m15",
    ]


def _begin(mode: str) -> list[str]:
    """Pointers, input word 0, and partials: row 0's are pushed, row 1's words 0 and 1 loaded."""
    words = [("$m0", INPUT), ("$m1", START)]
    words = [*words, ("$m2", STRIDES)] if mode == ZERO else [("$m9", STARTS), *words]
    words += [("$m2", STRIDES), ("$m6", SECOND)] if mode == ADD else []
    loads = [from_frame(*word) for word in words]
    lines = [*map(bundle, loads, CLEAR_ACCUMULATORS), *loads[len(CLEAR_ACCUMULATORS) :]]
    if mode == ZERO:
        return [*lines, _load("$a4:5")]
    both = "ld2x64pace $a4:5, $a6:7, $m0:1+=, $mzero, 0b0000"

    def load(pair: str, step: int = 1) -> str:
        return f"ld64step {pair}, $mzero, $m9+=, {step}"

    def fill(main: str, pair: str) -> str:
        return bundle(main, push(pair, _ZEROS))

    if mode == ROW:  # Words 0 and 1 stay for row 1.
        return [
            *lines,
            load("$a2:3", 2),
            fill(both, "$a2:3"),
            fill(load("$a0:1"), "$a6:7"),
            fill(load("$a0:1"), "$a0:1"),
            fill(from_frame("$m2", STRIDES), "$a0:1"),
        ]
    return [
        *lines,
        load("$a2:3"),
        fill(load("$a6:7"), "$a2:3"),
        fill(load("$a2:3"), "$a6:7"),
        fill(load("$a6:7"), "$a2:3"),
        fill("ld64 $a2:3, $m6, $mzero, 0", "$a6:7"),
        both,
    ]
