"""Which worker routines the matrix kernels' supervisor picks: one table per start mode and kind of call."""

from __future__ import annotations

from . import gemm_few as few
from .gemm_few import FewPanel, few_lines, few_start_lines
from .gemm_frame import ADD, CHUNK_ROWS, ZERO
from .gemm_short import ShortPanel, short_lines, short_start_lines
from .gemm_stream import Panel, opening_lines, panel_lines, start_lines
from .text import worker

STREAM_NEAR, STREAM, STREAM_ONLY, FEW, FEW_ONLY = range(5)
"""The tables of a start mode, by what they are for; `ONLY`: one K group."""
START_OF, CHOICE_OF, FIRST_OF, MIDDLE_OF, LAST_OF, FINAL_OF = range(6)
TABLE_BYTES = 24
"""Words of a table: where a call begins, and 0 or 1 to choose between two first panels there; a column
group's first, middle and last panel; the call's last panel. A product with one K group is done like one with
one column group, as if its column groups were K groups."""


def tables(mode: str) -> list[str]:
    """The words of a start mode: bytes of the start operand from chunk to chunk, then its tables."""
    last, final = Panel(mode, last=True).label, Panel(last=True, final=True).label

    def stream_table(near: bool) -> list[str]:
        first, middle = Panel(mode, first=True, near=near), Panel(near=near)
        return [_start(mode, False), str(int(not near)), first.label, middle.label, last, final]

    def pair(first: str, second: str) -> str:
        return FewPanel(mode, first, second).label

    only = Panel(mode, first=True, last=True)
    only_final = Panel(mode, first=True, last=True, final=True)
    few_final = FewPanel(ZERO, few.MIDDLE, few.FINAL).label
    few_panels = [pair(few.FIRST, few.MIDDLE), FewPanel().label, pair(few.MIDDLE, few.LAST), few_final]
    few_ends = [pair(few.FIRST, few.LAST), pair(few.FIRST, few.FINAL), pair(few.FIRST, few.FINAL)]
    words = [str(32 * CHUNK_ROWS if mode == ADD else 0)]
    words += stream_table(True) + stream_table(False)
    words += [_start(mode, True), "1", "0", only.label, only_final.label, only_final.label]
    words += [_few_start(mode, False), "0", *few_panels]
    words += [_few_start(mode, True), "1", "0", *few_ends]
    return words


def _start(mode: str, single: bool) -> str:
    return f".Lgemm_start_{mode}{'_single' if single else ''}"


def _few_start(mode: str, single: bool) -> str:
    return f".Lgemm_few_start_{mode}{'_single' if single else ''}"


def mode_routines(mode: str) -> list[str]:
    """All worker routines that only this start mode uses."""
    lines = []
    for falls, other in (
        (Panel(mode, first=True), Panel(mode, first=True, near=True)),
        (Panel(mode, first=True, last=True), Panel(mode, first=True, last=True, final=True)),
    ):
        start = [*start_lines(mode, other), *opening_lines(falls), *panel_lines(falls)]
        lines += worker(_start(mode, falls.last), start)
        lines += _routine([*opening_lines(other), *panel_lines(other)])
    lines += _routine(panel_lines(Panel(mode, last=True)))
    for single in (False, True):
        lines += worker(_few_start(mode, single), few_start_lines(mode, single))
    for halves in (
        (few.OPEN, few.FINAL),
        (few.FIRST, few.MIDDLE),
        (few.FIRST, few.LAST),
        (few.FIRST, few.FINAL),
        (few.MIDDLE, few.LAST),
    ):
        lines += _routine(few_lines(FewPanel(mode, *halves)))
    return lines


def shared_routines() -> list[str]:
    """The worker routines that do not see where sums start."""
    return [
        *_routine(panel_lines(Panel())),
        *_routine(panel_lines(Panel(near=True))),
        *_routine(panel_lines(Panel(last=True, final=True))),
        *_routine(few_lines(FewPanel())),
        *_routine(few_lines(FewPanel(ZERO, few.MIDDLE, few.FINAL))),
    ]


def short_tables(mode: str) -> list[str]:
    """`tables` where accumulators do not survive."""

    def table(is_few: bool) -> list[str]:
        first, middle, last = (
            ShortPanel(mode, *ends, is_few).label for ends in ((True, False), (False, False), (False, True))
        )
        return [_short_start(mode, is_few, False), "0", first, middle, last, last]

    def only(is_few: bool) -> list[str]:
        return [_short_start(mode, is_few, True), "0", "0", *[ShortPanel(mode, True, True, is_few).label] * 3]

    step = str(32 * CHUNK_ROWS if mode == ADD else 0)
    return [step, *table(False), *table(False), *only(False), *table(True), *only(True)]


def short_routines(mode: str) -> list[str]:
    """`mode_routines` where accumulators do not survive."""
    lines = []
    for is_few in (False, True):
        for single in (False, True):
            first = short_lines(ShortPanel(mode, True, single, is_few))
            lines += worker(_short_start(mode, is_few, single), [*short_start_lines(mode, is_few), *first])
        for last in (False, True):
            lines += _routine(short_lines(ShortPanel(mode, False, last, is_few)))
    return lines


def _short_start(mode: str, is_few: bool, single: bool) -> str:
    return f".Lgemm_short_start_{mode}{'_few' if is_few else ''}{'_single' if single else ''}"


def _routine(lines: list[str]) -> list[str]:
    return worker(lines[0].removesuffix(":"), lines[1:])
