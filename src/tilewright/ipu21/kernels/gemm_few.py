"""Worker code of the float16 matrix kernels for up to `FEW_ROWS` rows where accumulators do not survive: at
most two rows per worker, whose rounds of the AMP alternate.

Kinds of a panel's halves, one per row, for all members that keep few rows in accumulators: `OPEN` begins a
call, `FIRST` a later column group, `LAST` and `FINAL` end a column group and the call.

All accesses are single, so no operand must be kept apart from another here.

Worker registers, kept from panel to panel (steps in words of 8 bytes):
    $m3 rows: 0 to 2      $m4 input pointer     $m6 step behind a row 0
    $m7 step behind a row 1, to the next K group                $m8 the same, to the first K group
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from .gemm_frame import ZERO
from .text import bundle, count_instructions

BETWEEN_ROWS, NEXT_GROUP, FIRST_GROUP, ROWS, COLUMN = range(5)
"""The words of a worker's block; `COLUMN`: bytes from column to column."""

OPEN, FIRST, MIDDLE, LAST, FINAL = "open", "first", "middle", "last", "final"
_INPUT, _RING, _START_WORD = "$a0:1", "$a4:5", "$a6:7"


@dataclass(frozen=True)
class Routine(ABC):
    """One worker routine of a member that keeps few rows in accumulators: a panel, by its halves."""

    FAMILY: ClassVar[str]

    mode: str = ZERO
    first: str = MIDDLE
    second: str = MIDDLE

    @property
    def label(self) -> str:
        return f".L{self.FAMILY}_{self.mode}_{self.first}_{self.second}"

    @property
    def stores(self) -> bool:
        """It stores results."""
        return self.first == FIRST or self.second != MIDDLE

    @property
    def slots(self) -> int:
        """Issue slots of a worker where all have rows."""
        return _slots(self)

    @property
    @abstractmethod
    def lines(self) -> list[str]:
        """Its assembly, from its label on."""


@cache
def _slots(panel: Routine) -> int:
    return count_instructions(panel.lines) - panel.stores


@dataclass(frozen=True)
class Pointers:
    """Registers a round uses beside the input pointer; `onward`: step of that behind word 7."""

    start: str
    store: str
    onward: str


def exchange(half: int, start: str, store: str, pointers: Pointers, *, ahead: bool = True) -> list[str]:
    """A round in which the other row's sums come out and its next start goes in.

    Args:
        start: step of the start pointer behind word 3; empty if sums start from zeros.
        store: step of the store pointer behind word 3; empty if nothing is stored.
        ahead: the word behind this row is loaded too.
    """
    lines = []
    for p in range(4):
        word = 4 * half + p
        loads = [_load(word + 1, pointers.onward)] if p < 3 or ahead else []
        if start:
            lines.append(f"ld64step {_START_WORD}, $mzero, {pointers.start}+=, {start if p == 3 else 1}")
        pushed = _START_WORD if start else "$azeros"
        main = loads.pop() if p == 0 or not store else f"st64step {_RING}, $mzero, {pointers.store}+=, 1"
        lines += [bundle(main, amp(_INPUT, pushed, p)), *loads]
    return [*lines, f"st64step {_RING}, $mzero, {pointers.store}+=, {store}"] if store else lines


def store_both(pointers: Pointers) -> list[str]:
    """Row 1's round; then both rows are stored."""
    lines = exchange(1, "", "$m6", pointers, ahead=False)
    stored = [lines.pop(), *(f"st64step {_RING}, $mzero, {pointers.store}+=, 1" for _ in range(3))]
    drain = [bundle(store, amp("$azeros", "$azeros", min(p, 1))) for p, store in enumerate(stored)]
    return [*lines, *drain, stored[-1]]


def fill(last: str, fourth: str, pointer: str) -> list[str]:
    """Push row 0's partials; `fourth` is the step behind word 3, `last` goes along with the last push."""
    return [
        f"ld64step {_START_WORD}, $mzero, {pointer}+=, 1",
        bundle(f"ld64step $a2:3, $mzero, {pointer}+=, 1", amp("$azeros", _START_WORD, 1)),
        bundle(f"ld64step {_START_WORD}, $mzero, {pointer}+=, 1", amp("$azeros", "$a2:3", 1)),
        bundle(f"ld64step $a2:3, $mzero, {pointer}+=, {fourth}", amp("$azeros", _START_WORD, 1)),
        bundle(last, amp("$azeros", "$a2:3", 1)),
    ]


def _load(word: int, onward: str) -> str:
    """Load an input word of the panel; word 8 is the next panel's first.

    `onward`: step behind word 7, to the next panel's rows.
    """
    return f"ld64step {_INPUT}, $mzero, $m4+=, {'$m6' if word == 3 else onward if word == 7 else 1}"


def amp(x: str, pushed: str, phase: int) -> str:
    return f"f16v4hihov4amp {_RING}, {x}, {pushed}, TAMP_F16V4_E4_P{phase}"
