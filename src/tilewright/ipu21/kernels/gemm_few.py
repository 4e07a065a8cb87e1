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

from .gemm_frame import ADD, CHOICE, FRAME_START, ROW, ZERO, few_routine, share_lines, variant
from .text import bundle, count_instructions

BETWEEN_ROWS, NEXT_GROUP, FIRST_GROUP, ROWS = range(4)
"""The words that depend on n."""

OPEN, FIRST, MIDDLE, LAST, FINAL = "open", "first", "middle", "last", "final"
_RING, _START_WORD = "$a4:5", "$a6:7"


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
    def slots(self) -> int:
        """Issue slots of a worker with rows."""
        return _slots(self)


@cache
def _slots(panel: FewPanel) -> int:
    return count_instructions(few_lines(panel))


def few_lines(panel: FewPanel) -> list[str]:
    """The worker routine of one panel kind, from its label on."""
    stores = panel.first == FIRST or panel.second != MIDDLE
    return few_routine(panel.label, [*_first_half(panel), *_second_half(panel)], stores=stores)


def _first_half(panel: FewPanel) -> list[str]:
    if panel.first == MIDDLE:
        return _ring_half(0)
    start = {ZERO: "", ROW: "1", ADD: "$m7"}[panel.mode]
    return exchange(0, start, "$m7" if panel.first == FIRST else "")


def _second_half(panel: FewPanel) -> list[str]:
    if panel.second == MIDDLE:
        return _ring_half(1)
    if panel.second == LAST:
        return exchange(1, {ZERO: "", ROW: "-3", ADD: "$m6"}[panel.mode], "$m6")
    return store_both()


def _ring_half(half: int) -> list[str]:
    """A round in which the other row's sums go round through the rounding to halves."""
    words = range(4 * half, 4 * half + 4)
    lines = [bundle(_load(word + 1, "$m7"), amp(_input(word), _RING, word % 4)) for word in words]
    return [*lines, bundle("nop", amp("$azeros", _RING, 1))]


def exchange(half: int, start: str, store: str, ahead: bool = True, pointers: Pointers = KEPT) -> list[str]:
    """A round in which the other row's sums come out and its next start goes in.

    Args:
        start: step of the start pointer behind word 3; empty if sums start from zeros.
        store: step of the store pointer behind word 3; empty if nothing is stored.
        ahead: the word behind this row is loaded too.
    """
    pushed = _START_WORD if start else "$azeros"
    lines = []
    for p in range(4):
        word = 4 * half + p
        loads = [_load(word + 1, pointers.onward)] if p < 3 or ahead else []
        if start:
            lines.append(f"ld64step {_START_WORD}, $mzero, {pointers.start}+=, {start if p == 3 else 1}")
        main = loads.pop() if p == 0 or not store else f"st64step {_RING}, $mzero, {pointers.store}+=, 1"
        lines += [bundle(main, amp(_input(word), pushed, p)), *loads]
    return [*lines, f"st64step {_RING}, $mzero, {pointers.store}+=, {store}"] if store else lines


def store_both(pointers: Pointers = KEPT) -> list[str]:
    """Row 1's round; then both rows are stored."""
    lines = exchange(1, "", "$m6", False, pointers)
    stored = [lines.pop(), *(f"st64step {_RING}, $mzero, {pointers.store}+=, 1" for _ in range(3))]
    drain = [bundle(store, amp("$azeros", "$azeros", min(p, 1))) for p, store in enumerate(stored)]
    return [*lines, *drain, stored[-1]]


def fill(last: str, fourth: str, pointer: str = "$m9") -> list[str]:
    """Push row 0's partials; `fourth` is the step behind word 3, `last` goes along with the last push."""
    return [
        f"ld64step {_START_WORD}, $mzero, {pointer}+=, 1",
        bundle(f"ld64step $a2:3, $mzero, {pointer}+=, 1", amp("$azeros", _START_WORD, 1)),
        bundle(f"ld64step {_START_WORD}, $mzero, {pointer}+=, 1", amp("$azeros", "$a2:3", 1)),
        bundle(f"ld64step $a2:3, $mzero, {pointer}+=, {fourth}", amp("$azeros", _START_WORD, 1)),
        bundle(last, amp("$azeros", "$a2:3", 1)),
    ]


def _input(word: int) -> str:
    return "$a0:1" if word % 2 == 0 else "$a2:3"


def _load(word: int, onward: str) -> str:
    """Load an input word of the panel; word 8 is the next panel's first.

    `onward`: step behind word 7, to the next panel's rows.
    """
    return f"ld64step {_input(word)}, $mzero, $m4+=, {'$m6' if word == 3 else onward if word == 7 else 1}"


def amp(x: str, pushed: str, phase: int) -> str:
    return f"f16v4hihov4amp {_RING}, {x}, {pushed}, TAMP_F16V4_E4_P{phase}"


def few_start_lines(mode: str, single: bool) -> list[str]:
    """Worker code at the start of a call: registers, first input word, row 0's partials.

    Args:
        single: there is one K group. Then it goes to the panel that is first and last of the call if the
            frame's `CHOICE` is 0; otherwise, and with several K groups, it falls into the first panel.
    """
    leave = f".Lgemm_few_{mode}_none{int(single)}"
    choice = [f"ld32 $m11, $mvertex_base, $mzero, {CHOICE}"] if single else []
    lines = [
        *share_lines(limited=True),
        variant(6, BETWEEN_ROWS),
        variant(7, NEXT_GROUP),
        variant(8, FIRST_GROUP),
        variant(3, ROWS),
        *([f"ld32 $m9, $mvertex_base, $mzero, {FRAME_START}"] if mode != ZERO else []),
        *(["add $m9, $m9, $m0"] if mode == ADD else []),
        "ld64step $a0:1, $mzero, $m4+=, 1",
        f"brz $m3, {leave}",
    ]
    if mode == ZERO:
        lines += choice
    else:
        lines += fill(choice[0] if single else "nop", "-3" if mode == ROW else "$m6")
    if single:
        lines.append(f"brz $m11, {FewPanel(mode, OPEN, FINAL).label}")
    first = few_lines(FewPanel(mode, OPEN, LAST if single else MIDDLE))
    return [*lines, *first, f"{leave}:", "exitz $m15"]


@cache
def few_start_slots(mode: str, single: bool) -> int:
    """Issue slots of a call before its first panel."""
    first = FewPanel(mode, OPEN, LAST if single else MIDDLE)
    return count_instructions(few_start_lines(mode, single)) - first.slots - 1
