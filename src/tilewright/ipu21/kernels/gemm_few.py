"""Worker code of the float16 matrix kernels for up to `FEW_ROWS` rows: at most two rows per worker.

Both rows' sums stay in the accumulators. Rounds of the AMP alternate between them: phase 0 exchanges working
and delayed accumulators, so that while one row is multiplied the other one's sums leave the delay line, are
rounded to halves, and are pushed back as that row's partials. A word comes out one instruction before it
can go in; a fifth instruction, which multiplies zeros, closes the circle. At the start of a panel the delay
line holds row 0's partials and the working accumulators row 1's sums.

A panel has two halves, one per row. Kinds of the first half: `open` begins a call, `first` begins a later
column group (stores row 1 of the one before), `middle`. Of the second half: `last` stores row 0 of the column
group and pushes where the next one starts, `final` stores both rows, `middle`.

A worker with one row does it twice; one without rows multiplies somebody else's and stores nothing. All
accesses are single, so no operand must be kept apart from another here.

Worker registers, kept from panel to panel (steps in words of 8 bytes):
    $m3 rows: 0 to 2      $m4 input pointer     $m5 store pointer       $m6 step behind a row 0
    $m7 step behind a row 1, to the next K group or column              $m8 the same, to the first K group
    $m9 pointer to where sums start
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .gemm_frame import ADD, BLOCKS, ROW, ZERO, few_routine, from_block, share_lines, source_line
from .text import bundle, count_instructions, from_frame

BETWEEN_ROWS, NEXT_GROUP, FIRST_GROUP, ROWS, COLUMN = range(5)
"""The words of a worker's block; `COLUMN`, bytes from column to column, is for `gemm_short`."""

OPEN, FIRST, MIDDLE, LAST, FINAL = "open", "first", "middle", "last", "final"
_INPUT, _RING, _START_WORD = "$a0:1", "$a4:5", "$a6:7"
_SPARE = "$a2:3"
"""Input word 5, where an exchange in the second half follows a ring; word 1 of a start row, at first."""


@dataclass(frozen=True)
class Pointers:
    """Registers a round uses beside the input pointer; `onward`: step of that behind word 7."""

    start: str
    store: str
    onward: str


KEPT = Pointers("$m9", "$m5", "$m8")


@dataclass(frozen=True)
class FewPanel:
    """One worker routine, by its halves."""

    mode: str = ZERO
    first: str = MIDDLE
    second: str = MIDDLE

    @property
    def label(self) -> str:
        return f".Lgemm_few_{self.mode}_{self.first}_{self.second}"

    @property
    def stores(self) -> bool:
        """It stores results."""
        return self.first == FIRST or self.second != MIDDLE

    @property
    def slots(self) -> int:
        """Issue slots of a worker where all have rows."""
        return _slots(self)


@cache
def _slots(panel: FewPanel) -> int:
    return count_instructions(few_lines(panel)) - panel.stores


def few_lines(panel: FewPanel) -> list[str]:
    """The worker routine of one panel kind, from its label on."""
    return few_routine(panel.label, [*_first_half(panel), *_second_half(panel)], stores=panel.stores)


def _first_half(panel: FewPanel) -> list[str]:
    if panel.first == MIDDLE:
        return _ring_half(0, panel.second != MIDDLE)
    start = {ZERO: "", ROW: "1", ADD: "$m7"}[panel.mode]
    kept = 2 if panel.first == OPEN and panel.mode == ROW else 0
    return exchange(0, start, "$m7" if panel.first == FIRST else "", kept=kept)


def _second_half(panel: FewPanel) -> list[str]:
    early = panel.first == MIDDLE
    if panel.second == MIDDLE:
        return _ring_half(1)
    if panel.second == LAST:
        return exchange(1, {ZERO: "", ROW: "-3", ADD: "$m6"}[panel.mode], "$m6", early=early)
    return store_both(early=early)


def _ring_half(half: int, early: bool = False) -> list[str]:
    """A round in which the other row's sums go round through the rounding to halves.

    Args:
        early: input word 5 is loaded too.
    """
    words = range(4 * half, 4 * half + 4)
    lines = [bundle(_load(word + 1, "$m7"), amp(_INPUT, _RING, word % 4)) for word in words]
    return [*lines, bundle(_load(5, "", _SPARE) if early else "nop", amp("$azeros", _RING, 1))]


def exchange(
    half: int,
    start: str,
    store: str,
    ahead: bool = True,
    pointers: Pointers = KEPT,
    *,
    kept: int = 0,
    early: bool = False,
) -> list[str]:
    """A round in which the other row's sums come out and its next start goes in.

    Args:
        start: step of the start pointer behind word 3; empty if sums start from zeros.
        store: step of the store pointer behind word 3; empty if nothing is stored.
        ahead: the word behind this row is loaded too.
        kept: so many of the first start words are in registers already.
        early: so is the second input word.
    """
    lines = []
    for p in range(4):
        word = 4 * half + p
        loads = [_load(word + 1, pointers.onward)] if p < 3 or ahead else []
        if early and p < 3:
            # One word further, the next to the last where word 5 has been.
            loads = [_load(word + 2, pointers.onward, (_INPUT, _SPARE)[p])] if p < 2 else []
        if start and p >= kept:
            lines.append(f"ld64step {_START_WORD}, $mzero, {pointers.start}+=, {start if p == 3 else 1}")
        pushed = "$azeros" if not start else _SPARE if p == 1 < kept else _START_WORD
        main = loads.pop() if p == 0 or not store else f"st64step {_RING}, $mzero, {pointers.store}+=, 1"
        x = _SPARE if early and p % 2 else _INPUT
        lines += [bundle(main, amp(x, pushed, p)), *loads]
    return [*lines, f"st64step {_RING}, $mzero, {pointers.store}+=, {store}"] if store else lines


def store_both(pointers: Pointers = KEPT, *, early: bool = False) -> list[str]:
    """Row 1's round; then both rows are stored."""
    lines = exchange(1, "", "$m6", False, pointers, early=early)
    stored = [lines.pop(), *(f"st64step {_RING}, $mzero, {pointers.store}+=, 1" for _ in range(3))]
    drain = [bundle(store, amp("$azeros", "$azeros", min(p, 1))) for p, store in enumerate(stored)]
    return [*lines, *drain, stored[-1]]


def _fill_row(last: str) -> list[str]:
    """Push row 0's partials from a start row, of which words 0 and 1 stay for row 1."""

    def load(pair: str, step: int = 1) -> str:
        return f"ld64step {pair}, $mzero, $m9+=, {step}"

    return [
        load(_START_WORD),
        bundle(load(_SPARE), amp("$azeros", _START_WORD, 1)),
        bundle(load(_INPUT), amp("$azeros", _SPARE, 1)),
        bundle(load(_RING, -1), amp("$azeros", _INPUT, 1, _INPUT)),
        bundle(last, amp("$azeros", _RING, 1)),
    ]


def fill(last: str, fourth: str, pointer: str = "$m9") -> list[str]:
    """Push row 0's partials; `fourth` is the step behind word 3, `last` goes along with the last push."""
    return [
        f"ld64step {_START_WORD}, $mzero, {pointer}+=, 1",
        bundle(f"ld64step $a2:3, $mzero, {pointer}+=, 1", amp("$azeros", _START_WORD, 1)),
        bundle(f"ld64step {_START_WORD}, $mzero, {pointer}+=, 1", amp("$azeros", "$a2:3", 1)),
        bundle(f"ld64step $a2:3, $mzero, {pointer}+=, {fourth}", amp("$azeros", _START_WORD, 1)),
        bundle(last, amp("$azeros", "$a2:3", 1)),
    ]


def _load(word: int, onward: str, pair: str = _INPUT) -> str:
    """Load an input word of the panel; word 8 is the next panel's first.

    `onward`: step behind word 7, to the next panel's rows.
    """
    return f"ld64step {pair}, $mzero, $m4+=, {'$m6' if word == 3 else onward if word == 7 else 1}"


def amp(x: str, pushed: str, phase: int, out: str = _RING) -> str:
    return f"f16v4hihov4amp {out}, {x}, {pushed}, TAMP_F16V4_E4_P{phase}"


@dataclass(frozen=True)
class Opening:
    """The routine that begins a call. `single`: there is one K group, `lone`: one column group."""

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


def check_slots(panel: FewPanel) -> int:
    """More slots of a call's opening where workers may be without rows; 1 of a later panel that stores."""
    return 2 + panel.stores


@cache
def _opening_slots(opening: Opening) -> int:
    return count_instructions(opening_lines(opening)) - check_slots(opening.panel)


def opening_lines(opening: Opening) -> list[str]:
    """Registers, first input word, row 0's partials, and the first panel.

    Where no worker is without rows, calls begin at the label that ends in `_all`.
    """
    label, mode, panel = opening.label, opening.mode, opening.panel
    leave = f"{label}_exit"
    steps = [from_block("$m6", BETWEEN_ROWS)]
    if not (opening.single and opening.lone):
        steps.append(from_block("$m7", NEXT_GROUP))
    if not opening.lone:
        steps.append(from_block("$m8", FIRST_GROUP))
    first_word = "ld64step $a0:1, $mzero, $m4+=, 1"
    started = _fill_row(first_word) if mode == ROW else fill(first_word, "$m6")
    return [
        f"{label}:",
        from_frame("$m10", BLOCKS),
        from_block("$m3", ROWS),
        *([f"brz $m3, {leave}"] if panel.stores else []),
        f"{label}_all:",
        *share_lines(),
        *source_line(mode),
        *steps,
        *([first_word] if mode == ZERO else started),
        *_first_half(panel),
        *_second_half(panel),
        f"{leave}:",
        "exitz $m15",
    ]
