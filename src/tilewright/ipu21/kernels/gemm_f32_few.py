"""Worker code of the float32 matrix kernels for up to `FEW_ROWS` rows: at most two rows per worker.

As in `gemm_few`, both rows' sums stay in the accumulators and rounds of the AMP alternate between the rows:
while one is multiplied, the other one's sums leave the delay line and are pushed back as that row's partials.
A word comes out one instruction before its set of units can take one in again, so that word w is pushed by
phase w + 2; two more instructions, which multiply zeros, close the circle. At the start of a panel the delay
line holds row 0's partials and the working accumulators row 1's sums. Sums are never rounded on the way.

Kinds of a panel's halves as in `gemm_few`. A worker with one row does it twice; one without rows multiplies
somebody else's over and over and stores nothing. All accesses are single.

Worker registers, kept from panel to panel (steps in words of 8 bytes):
    $m3 rows: 0 to 2      $m4 input pointer     $m5 store pointer     $m9 pointer to where sums start
    $m6 input step behind a row 0      $m7 behind a row 1, to the next K group, $m2 what it and the one after
    that add up to      $m8 the same, to the first K group
    $m10 step of C behind a row 0      $m11 behind a row 1, to the next column
Pairs: $a6:7 input, $a2:3 and $a4:5 sums, $a0:1 where sums start.
"""

from __future__ import annotations

from functools import cache

from .gemm_f32_rounds import RESULT, amp, fill, x_of
from .gemm_few import FIRST, LAST, MIDDLE, OPEN, Routine
from .gemm_frame import ADD, BLOCKS, ROW, ZERO, few_routine, from_block, share_lines, source_line
from .text import bundle, count_instructions, from_frame

ROWS, BETWEEN_ROWS, NEXT_GROUP, BOTH_STEPS, FIRST_GROUP, RESULT_STEP, COLUMN = range(7)
"""The words of a worker's block, for $m3, $m6, $m7, $m2, $m8, $m10, $m11."""


class FewPanel(Routine):
    """One worker routine, by its halves."""

    FAMILY = "gemm_f32_few"

    @property
    def lines(self) -> list[str]:
        return few_lines(self)


def few_lines(panel: FewPanel) -> list[str]:
    """The worker routine of one panel kind, from its label on."""
    start = {ZERO: "", ROW: "1", ADD: "$m11"}[panel.mode]
    first = _ring(0) if panel.first == MIDDLE else _exchange(0, start, "$m11" if panel.first == FIRST else "")
    if panel.second == MIDDLE:
        second = _ring(1)
    elif panel.second == LAST:
        second = _exchange(1, {ZERO: "", ROW: "-7", ADD: "$m10"}[panel.mode], "$m10")
    else:
        second = [*_exchange(1, "", "$m10", ahead=False), *_drain()]
    return few_routine(panel.label, [*first, *second], stores=panel.stores)


def _input(half: int, p: int, onward: str) -> str:
    """Load the input word behind phase p, which is odd."""
    step = ("$m6" if half == 0 else onward) if p == 5 else 1
    return f"ld64step $a6:7, $mzero, $m4+=, {step}"


def _ring(half: int) -> list[str]:
    """A round in which the other row's sums go round."""
    lines = []
    for p in range(8):
        pair = RESULT if p % 2 == 0 else "$a4:5"
        alternate = "sub $m7, $m2, $m7" if half and p == 6 else "nop"
        main = _input(half, p, "$m7") if p % 2 else alternate
        lines.append(bundle(main, amp(x_of(p), pair if p > 1 else "$azeros", p, pair)))
    return [
        *lines,
        bundle("nop", amp("$azero", RESULT, 2, RESULT)),
        bundle("nop", amp("$azero", "$a4:5", 1, "$a4:5")),
    ]


def _exchange(half: int, start: str, store: str, ahead: bool = True) -> list[str]:
    """A round in which the other row's sums come out and its next start goes in.

    Args:
        start: step of the start pointer behind word 7; empty if sums start from zeros.
        store: step of the store pointer behind word 7; empty if nothing is stored.
        ahead: the word behind this row is loaded too.
    """
    lines = ["ld64step $a0:1, $mzero, $m9+=, 1"] if start else []
    for p in range(8):
        moves = [f"st64step {RESULT}, $mzero, $m5+=, 1"] if store and p else []
        if start and p < 7:
            moves.append(f"ld64step $a0:1, $mzero, $m9+=, {start if p == 6 else 1}")
        if p % 2 and (p < 7 or ahead):
            moves.append(_input(half, p, "$m8"))
        if half and p == 6:
            moves.append("sub $m7, $m2, $m7")
        moves = moves or ["nop"]
        lines += [bundle(moves[0], amp(x_of(p), "$a0:1" if start else "$azeros", p)), *moves[1:]]
    return [*lines, f"st64step {RESULT}, $mzero, $m5+=, {store}"] if store else lines


def _drain() -> list[str]:
    """Row 1's results."""
    store = f"st64step {RESULT}, $mzero, $m5+=, 1"
    return [*(bundle(store if p else "nop", amp("$azero", "$azeros", p)) for p in range(8)), store]


CHECK_SLOTS = 2
"""More of an opening where workers may be without rows; 1 of a panel that stores."""


def opening_label(mode: str, lone: bool) -> str:
    return f".Lgemm_f32_few_opening_{mode}{'_lone' if lone else ''}"


def opening_lines(mode: str, lone: bool) -> list[str]:
    """Worker code at the start of a call: registers, first input word, row 0's partials, first panel.

    Where no worker is without rows, calls begin at the label that ends in `_all`.

    Args:
        lone: there is one column group.
    """
    label = opening_label(mode, lone)
    words = [(6, BETWEEN_ROWS), (7, NEXT_GROUP), (2, BOTH_STEPS), (10, RESULT_STEP)]
    words += [] if lone else [(8, FIRST_GROUP), (11, COLUMN)]
    lines = fill("$m9", True, 0, "ld64step $a6:7, $mzero, $m4+=, 1")
    if mode == ZERO:
        lines = ["ld64step $a6:7, $mzero, $m4+=, 1"]
    elif mode == ADD:
        lines = [line.replace("+=, -7", "+=, $m10") for line in lines]
    return [
        f"{label}:",
        from_frame("$m11", BLOCKS),
        from_block("$m3", ROWS, "$m11"),
        f"{label}_all:",
        *share_lines("$m11"),
        *source_line(mode, "$m11"),
        *(from_block(f"$m{register}", word, "$m11") for register, word in words),
        *lines,
        *few_lines(FewPanel(mode, OPEN))[1:],
    ]


@cache
def opening_slots(mode: str, lone: bool) -> int:
    """Issue slots of a worker where all have rows."""
    return count_instructions(opening_lines(mode, lone)) - CHECK_SLOTS
