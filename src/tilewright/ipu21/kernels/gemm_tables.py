"""Which worker routines the matrix kernels' supervisor picks: one table per start mode and kind of call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ...arithmetic import ceil_div
from ..machine.timing import WORKER_SLOTS
from . import gemm_few as few
from .gemm_few_stream import OPENINGS, FewPanel, Opening, few_lines, opening_lines
from .gemm_frame import ADD, CHUNK_ROWS, MODES, NEAR_ROWS, PART_ROWS, ZERO
from .gemm_short import ShortPanel, short_lines, short_start_lines
from .gemm_stream import SHORTEST, STRAIGHT, UNROLLED, Panel, panel_lines
from .text import routine, section, worker

STREAM_NEAR, STREAM, STREAM_ONLY, FEW, FEW_ONLY, FEW_LESS, FEW_LESS_ONLY, STREAM_FIVE, STREAM_THREE = range(9)
"""The tables of a start mode, by what they are for. `ONLY`: one K group; `LESS`: workers may be without rows;
`FIVE`, `THREE`: straight panels of so many rows. Behind `THREE` are those of three rows and one K group."""
OPENING_OF, LONE_OF, FIRST_OF, MIDDLE_OF, LAST_OF, FINAL_OF = range(6)
TABLE_BYTES = 24
"""Words of a table: where a call of several column groups begins, and one of one; a column group's first,
middle and last panel; the call's last panel. A product with one K group is done like one with one column
group, as if its column groups were K groups; with few rows, the place of its start mode in `MODES` is where
the first panel would be."""


def tables(mode: str) -> list[str]:
    """The words of a start mode: bytes of the start operand from chunk to chunk, then its tables."""

    def stream_table(near: bool, rows: int = 0) -> list[str]:
        first = Panel(mode, first=True, near=near, rows=rows)
        opening = replace(first, opening=True)
        panels = [opening, replace(opening, lone=near), first, Panel(near=near, rows=rows)]
        panels += [Panel(mode, last=True, rows=rows), Panel(last=True, final=True, rows=rows)]
        return [panel.label for panel in panels]

    def only_table(rows: int = 0) -> list[str]:
        only = Panel(mode, first=True, last=True, rows=rows)
        final = replace(only, final=True)
        openings = [replace(only, opening=True).label, replace(final, opening=True, lone=True).label]
        return [*openings, "0", only.label, final.label, final.label]

    words = [str(32 * PART_ROWS if mode == ADD else 0), *stream_table(True), *stream_table(False)]
    words += only_table() + _few_table(mode, "_all") + _few_table(mode, "")
    return words + stream_table(True, 5) + stream_table(False, SHORTEST) + only_table(SHORTEST)


def straight_names() -> list[str]:
    """Symbols of all straight middle panels."""
    return [_straight_name(panel) for panel in _straight_panels()]


def straight_of(rows: int) -> str | None:
    """Symbol of the straight middle panel that a call with so many rows and three K groups or more asks for,
    if there is one.
    """
    last = rows - ceil_div(max(rows - CHUNK_ROWS, 0), PART_ROWS) * PART_ROWS
    panel = Panel(near=rows <= NEAR_ROWS, rows=ceil_div(last, WORKER_SLOTS))
    wanted = panel.rows in STRAIGHT and not (panel.near and panel.rows in UNROLLED)
    return _straight_name(panel) if wanted else None


def straight_sources() -> dict[str, Callable[[], str]]:
    """What makes the assembly of each, by symbol."""
    return {_straight_name(panel): partial(_straight_source, panel) for panel in _straight_panels()}


def _straight_panels() -> list[Panel]:
    """In the order that the supervisor counts on."""
    near = [Panel(near=True, rows=rows) for rows in STRAIGHT if WORKER_SLOTS * (rows - 1) < NEAR_ROWS]
    return [*(Panel(rows=rows) for rows in STRAIGHT), *near]


def _straight_name(panel: Panel) -> str:
    return f"gemm_f16_{'near' if panel.near else 'far'}_{panel.rows}"


def _straight_source(panel: Panel) -> str:
    _, *lines = panel_lines(panel)
    return section(_straight_name(panel), lines)


def _few_table(mode: str, stores: str) -> list[str]:
    """Both tables of few rows; `stores`: what the labels of routines that store end in."""

    def opening(single: bool, lone: bool) -> str:
        return Opening(mode, single, lone).label + stores

    def pair(first: str, second: str, mode: str = mode) -> str:
        return FewPanel(mode, first, second).label + stores

    several = [*[opening(False, False)] * 2, pair(few.FIRST, few.MIDDLE), FewPanel().label]
    several += [pair(few.MIDDLE, few.LAST), pair(few.MIDDLE, few.FINAL, ZERO)]
    final = pair(few.FIRST, few.FINAL)
    single = [opening(True, False), opening(True, True), str(MODES.index(mode)), pair(few.FIRST, few.LAST)]
    return [*several, *single, final, final]


def mode_routines(mode: str) -> list[str]:
    """All worker routines that only this start mode uses."""
    far = Panel(mode, first=True)
    panels = [far, replace(far, opening=True)]
    for rows in (0, *UNROLLED):
        first = replace(far, near=rows != SHORTEST, rows=rows)
        openings = [
            replace(first, opening=True, lone=lone) for lone in ((False, True) if first.near else (False,))
        ]
        panels += [*openings, first, Panel(mode, last=True, rows=rows)]
    for rows in (0, SHORTEST):
        only = replace(far, last=True, rows=rows)
        final = replace(only, final=True)
        panels += [only, replace(only, opening=True), final, replace(final, opening=True, lone=True)]
    lines = [line for panel in panels for line in routine(panel_lines(panel))]
    for kind in OPENINGS:
        lines += routine(opening_lines(Opening(mode, *kind)))
    for halves in (
        (few.FIRST, few.MIDDLE),
        (few.FIRST, few.LAST),
        (few.FIRST, few.FINAL),
        (few.MIDDLE, few.LAST),
    ):
        lines += routine(few_lines(FewPanel(mode, *halves)))
    return lines


def shared_routines() -> list[str]:
    """The worker routines that do not see where sums start."""
    final = Panel(last=True, final=True)
    panels = [Panel(), Panel(near=True), final]
    panels += [
        panel
        for rows in UNROLLED
        for panel in (Panel(near=rows != SHORTEST, rows=rows), replace(final, rows=rows))
    ]
    return [
        *(line for panel in panels for line in routine(panel_lines(panel))),
        *routine(few_lines(FewPanel())),
        *routine(few_lines(FewPanel(ZERO, few.MIDDLE, few.FINAL))),
    ]


def short_tables(mode: str) -> list[str]:
    """`tables` where accumulators do not survive."""

    def table(is_few: bool) -> list[str]:
        first, middle, last = (
            ShortPanel(mode, *ends, is_few).label for ends in ((True, False), (False, False), (False, True))
        )
        return [*[_short_start(mode, is_few, False)] * 2, first, middle, last, last]

    def only(is_few: bool) -> list[str]:
        panel = ShortPanel(mode, True, True, is_few).label
        return [*[_short_start(mode, is_few, True)] * 2, "0", panel, panel, panel]

    step = str(32 * PART_ROWS if mode == ADD else 0)
    few_tables = [*table(True), *only(True)]
    return [step, *table(False), *table(False), *only(False), *few_tables, *few_tables]


def short_routines(mode: str) -> list[str]:
    """`mode_routines` where accumulators do not survive."""
    lines = []
    for is_few in (False, True):
        for single in (False, True):
            first = short_lines(ShortPanel(mode, True, single, is_few))
            lines += worker(_short_start(mode, is_few, single), [*short_start_lines(mode, is_few), *first])
        for last in (False, True):
            lines += routine(short_lines(ShortPanel(mode, False, last, is_few)))
    return lines


def _short_start(mode: str, is_few: bool, single: bool) -> str:
    return f".Lgemm_short_start_{mode}{'_few' if is_few else ''}{'_single' if single else ''}"
