"""Worker code of the float16 matrix kernels where accumulators do not survive the workers' exit.

Each panel takes its partials from memory, from where sums start or from C, and drains all its results. Main
registers survive (known). The rounds are those of `gemm_stream` and `gemm_few`, whose conventions hold; a
panel that is `last` of a column group moves on to the next one.

Worker registers of more than `FEW_ROWS` rows, as in `gemm_stream` but for:
    $m4 input rows of the present K group   $m5 C, $m9 start rows of the present column group
    $m6, $m7 from input word 1 to the next and to the first K group     $m10 pointer of the first partials
Of few rows, as in `gemm_few`, and:
    $m5, $m9 as above       $m2 bytes from column to column       $m10, $m11 pointers to partials and results
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from . import gemm_few as few
from . import gemm_stream as stream
from .gemm_frame import ADD, ROW, ZERO, from_block, share_lines, source_line
from .gemm_stream import FIELD1, FIELD3, REPLACE, row_bundle
from .text import bundle, count_instructions


@dataclass(frozen=True)
class ShortPanel:
    """One worker routine. `first`, `last`: of a column group; `few`: for `FEW_ROWS` rows or less."""

    mode: str
    first: bool = False
    last: bool = False
    few: bool = False

    @property
    def label(self) -> str:
        kinds = [name for name in ("few", "first", "last") if getattr(self, name)]
        return "_".join([".Lgemm_short", self.mode, *(kinds or ["middle"])])

    @property
    def source(self) -> str:
        """Where partials come from: as with a start mode, from C as with `ADD`."""
        return self.mode if self.first else ADD

    @property
    def slots(self) -> int:
        """Issue slots of a worker of few rows; otherwise, those beyond four per row."""
        return _slots(self)


@cache
def _slots(panel: ShortPanel) -> int:
    count = count_instructions(short_lines(panel))
    return count if panel.few else count - 4 * stream.SHORTEST - 4


def short_lines(panel: ShortPanel) -> list[str]:
    """The worker routine of one panel kind, from its label on."""
    onward = []
    if panel.last:
        column = "$m2" if panel.few else "$m8"
        onward.append(f"add $m5, $m5, {column}")
        if panel.mode != ZERO:
            onward.append(f"add $m9, $m9, {column if panel.mode == ADD else stream.ROW_BYTES}")
    lines = _few_panel(panel) if panel.few else _stream_panel(panel)
    leave = [f"{panel.label}_exit:"] if panel.few else []
    return [f"{panel.label}:", *lines, *onward, *leave, "exitz $m15"]


def _few_panel(panel: ShortPanel) -> list[str]:
    pointers = few.Pointers("$m10", "$m11", "$m8" if panel.last else "$m7")
    lines = [f"brz $m3, {panel.label}_exit", "ld64step $a0:1, $mzero, $m4+=, 1"]
    if panel.source == ZERO:
        push = few.amp("$azeros", "$azeros", 1)
        lines += [bundle("mov $m11, $m5", push), *(bundle("nop", push) for _ in range(3))]
    else:
        lines.append(f"mov $m10, {'$m9' if panel.first else '$m5'}")
        lines += few.fill("mov $m11, $m5", "-3" if panel.source == ROW else "$m6", "$m10")
    between = "" if panel.source == ZERO else "1"
    return [*lines, *few.exchange(0, between, "", pointers), *few.store_both(pointers)]


def _stream_panel(panel: ShortPanel) -> list[str]:
    loads = panel.source != ZERO
    cycling = panel.source == ROW
    strides, cycle = ("$m11", FIELD1) if cycling else ("$m2", REPLACE)

    def row(t: int, loads: bool = loads, pushes: bool = loads, load: int = 0, partial: int = 0) -> str:
        return row_bundle(t, strides, loads, pushes, load, partial)

    lines = ["ld64step $a4:5, $mzero, $m4+=, 1"]
    if loads:
        lines.append(f"mov $m10, {'$m9' if panel.first else '$m5'}")
        lines += stream.fill(-3 if cycling else 1, "$m10")
    else:
        lines += [bundle("nop", stream.push("$azeros"))] * 4
    lines.append(f"tapack $m0:1, $m4, {'$m10' if loads else '$m5'}, $m5")
    lines.append(f"add $m4, $m4, {'$m7' if panel.last else '$m6'}")
    # Nothing to store yet.
    for t in range(5):
        low, high, other = ("$a0:1", "$a2:3", "$a4:5") if t % 2 == 0 else ("$a4:5", "$a6:7", "$a0:1")
        partial = (cycle or FIELD3) if t == 1 else REPLACE
        main = f"ld2x64pace {low}, {high}, $m0:1+=, {strides}, {partial << 2:#06b}"
        if not loads:
            main = f"ld2x64pace {low}, $azeros, $m0:1+=, $mzero, {FIELD1 << 2:#06b}"
        lines.append(bundle(main, stream.multiply(t, other, other, high if loads else "$azeros")))
    lines.append(bundle("rpt $m3, 3"))
    lines += [row(1, partial=cycle), row(2), row(3), row(0), row(1)]
    lines += [row(2, False, load=FIELD3), row(3, False)]
    lines += [row(t, False, False) for t in (4, 5, 6)]
    return [*lines, *stream.drain_lines()]


def short_start_lines(mode: str, is_few: bool) -> list[str]:
    """Worker code at the start of a call, before its first panel."""
    if is_few:
        words = (
            (6, few.BETWEEN_ROWS),
            (7, few.NEXT_GROUP),
            (8, few.FIRST_GROUP),
            (3, few.ROWS),
            (2, few.COLUMN),
        )
        loads = [from_block(f"$m{register}", word) for register, word in words]
        return [*share_lines(), *loads, *source_line(mode)]
    return [
        *share_lines(),
        from_block("$m2", stream.STRIDES),
        from_block("$m3", stream.REPEATS),
        from_block("$m6", stream.NEXT_GROUP),
        from_block("$m7", stream.FIRST_GROUP),
        from_block("$m8", stream.COLUMN),
        *source_line(mode),
        # From the end of a worker's rows to the next ones to: from word 1 of a K group on.
        "sub $m7, $m7, $m6",
        "add $m6, $m8, -8",
        "add $m7, $m7, $m6",
        *([from_block("$m11", stream.BY_MODE)] if mode == ROW else []),
    ]


@cache
def short_start_slots(mode: str, is_few: bool) -> int:
    """Issue slots of a call before its first panel."""
    return len(short_start_lines(mode, is_few))
