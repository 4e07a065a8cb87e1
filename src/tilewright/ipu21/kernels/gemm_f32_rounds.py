"""The AMP instructions of the float32 matrix kernels.

A panel is 8 inner elements x 16 columns. A round of the AMP has eight phases: phase p multiplies inner
element p, takes in partial word p of the next row and gives out result word p of the row before (a "word" is
two singles). Even phases move the first set of units, odd ones the second: columns 0, 1, 4, 5, ... go to the
first set and 2, 3, 6, 7, ... to the second, so that words come in natural order.
"""

from __future__ import annotations

from .text import bundle

ROW_BYTES = 64
"""Of a row of C, and from one column group's part of a start row to the next."""
RESULT = "$a2:3"


def amp(x: str, pushed: str, t: int, out: str = RESULT) -> str:
    """The instruction of bundle t."""
    return f"f32sisov2amp {out}, {x}, {pushed}, TAMP_F32_E4_P{t % 8}"


def push(pair: str, word: int) -> str:
    """Push a partial without multiplying: by a phase of the word's set that does not begin a round."""
    return amp("$azero", pair, 2 - word % 2)


def partial_pair(t: int) -> str:
    """Where bundle t of a row finds a partial word, and leaves the one after the next."""
    return "$a0:1" if t % 2 == 0 else "$a4:5"


def x_of(t: int) -> str:
    """The inner element of bundle t."""
    return "$a6" if t % 2 == 0 else "$a7"


def fill(pointer: str, around: bool, ahead: int, last: str = "nop") -> list[str]:
    """Push row 0's partials, load `ahead` further words; `around`: those of one row over again.

    Args:
        last: goes along with the last push if nothing is loaded ahead.
    """
    lines = []
    for word in range(9 + max(ahead - 1, 0)):
        step = -7 if word == 7 and around else 1
        load = f"ld64step {partial_pair(word)}, $mzero, {pointer}+=, {step}" if word < 8 + ahead else last
        pushed = push(partial_pair(word - 1), word - 1) if 0 < word < 9 else ""
        lines.append(bundle(load, pushed) if pushed else load)
    return lines
