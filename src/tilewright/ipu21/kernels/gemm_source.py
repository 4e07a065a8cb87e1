"""Assembly of the float16 matrix kernels: the supervisor's panel loops, and the parts put together.

All members of the family share one object; the linker leaves out what a program does not use. A call picks a
table of worker routines by start mode, rows, and number of K groups, and then walks column group by column
group, K group by K group: load a weight panel, start the workers, and think about what is next while they are
on their way. Where the next panel lies says a stride, or, for the `LISTED` members, a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..machine.workers import ACCUMULATORS_SURVIVE_EXIT
from .gemm_few_prologue import few_stream_frame
from .gemm_frame import (
    ADD,
    BASE_STEP,
    CHUNK_ROWS,
    FEW_ROWS,
    FINAL,
    FRAME_BYTES,
    GO,
    MODES,
    PART_ROWS,
    ROW,
    ZERO,
)
from .gemm_prologue import (
    BEGIN,
    few_frame,
    leaves,
    prologue,
    stream_frame,
    table_entry,
)
from .gemm_tables import (
    FIRST_OF,
    mode_routines,
    shared_routines,
    short_routines,
    short_tables,
    straight_names,
    tables,
)
from .supervisor import load_back
from .text import section

SYMBOLS = {ZERO: "gemm_f16", ROW: "gemm_row_f16", ADD: "gemm_add_f16"}
LISTED = {ZERO: "gemm_listed_f16", ROW: "gemm_listed_row_f16", ADD: "gemm_listed_add_f16"}
"""The members that take the addresses of weight panels from a list."""


@dataclass(frozen=True)
class Family:
    """What the supervisor code must know about the kernels that share it.

    Attributes:
        name: part of section names.
        symbols: entry point of each start mode.
        row_bytes: of 16 columns of A and C.
        chunk_rows: most rows at a time. part_rows: rows of a chunk that is not the last.
        few_rows: up to here the tables for few rows are used and workers may be without rows there.
        tables, routines: see `gemm_tables`. shared: routines of all start modes; straight: symbols of middle
            panels that may be linked.
        stream_frame, few_frame: supervisor code that leaves the workers what they need for many and for few
            rows, and goes from the first table at $m0 to theirs; see `gemm_prologue`.
        listed: entry point of each start mode with a list of panels, if there are such.
    """

    name: str
    symbols: Mapping[str, str]
    row_bytes: int
    chunk_rows: int
    part_rows: int
    few_rows: int
    tables: Callable[[str], list[str]]
    routines: Callable[[str], list[str]]
    stream_frame: Sequence[str]
    few_frame: Sequence[str]
    shared: Sequence[str] = ()
    straight: Sequence[str] = ()
    listed: Mapping[str, str] = field(default_factory=dict)


def weight_units() -> list[int]:
    """The unit that takes each column of a panel in natural order.

    Column c goes to unit 2k, 2k + 1 for c = 4k, 4k + 1 and to 8 + 2k, 9 + 2k for the next two: then results
    and partials have natural order too (known).
    """
    return [column // 4 * 2 + column % 2 + (8 if column % 4 >= 2 else 0) for column in range(16)]


def weight_loads(wide: bool) -> list[str]:
    """Fill the weight store from one panel: 32 loads of 16 bytes or 64 of 8."""
    if wide:
        return [f"ld128putcs {4 * unit + part}" for unit in weight_units() for part in (0, 2)]
    return [f"ld64putcs {4 * unit + part}" for unit in weight_units() for part in range(4)]


def _supervisor(family: Family, *, listed: bool = False) -> list[str]:
    """From the call to the end; with `listed` under other labels."""
    lines = [
        *prologue(
            family.chunk_rows,
            family.few_rows,
            family.row_bytes,
            family.stream_frame,
            family.few_frame,
            straight=bool(family.straight),
            listed=listed,
        ),
        *_loop("wide", True, listed),
        *leaves(family.part_rows, family.row_bytes, 32 * CHUNK_ROWS),
        *_loop("narrow", False, listed),
    ]
    if not listed:
        return lines
    labels = re.compile("|".join(rf"{re.escape(line[:-1])}\b" for line in lines if line.endswith(":")))
    return [labels.sub(r"\g<0>_listed", line) for line in lines]


def _loop(name: str, wide: bool, listed: bool) -> list[str]:
    """All panels of a chunk.

    $m0 entry of the next column's first panel, $m1 K groups - 2, $m2, $m3, $m5 entries of middle, last and
    first panels, $m4 column groups left after this one, $m6 weights of the panel after the next, $m7 bytes to
    those of the next K group, $m8 middle panels left, $m9 bytes to the next column's weights, $m10 those.
    With a list, $m7 is where it goes on behind what is in $m6.

    The workers' first slot is ten cycles behind `runall`: what is done until then, and that the supervisor
    waits again by then, costs nothing.
    """
    here = f".Lgemm_{name}"
    loads = weight_loads(wide)
    following = "ld32step $m6, $mzero, $m7+=, 1" if listed else "add $m6, $m6, $m7"
    first_panels = [following, "put $CCCSLOAD, $m6", following] if listed else []
    next_column = ["put $CCCSLOAD, $m6", following]
    if not listed:
        next_column = ["put $CCCSLOAD, $m10", "add $m6, $m10, $m7"]
    return [
        f"{here}:",
        table_entry("$m5", FIRST_OF),
        load_back("$m0", BEGIN),
        *first_panels,
        f"brz $m8, {here}_first",
        "mov $m3, $m0",
        f"bri {here}_only",
        f"{here}_final:",
        load_back("$m3", FINAL),
        f"bri {here}_first",
        f"{here}_column:",
        "sync 2",
        *([] if listed else ["add $m10, $m10, $m9"]),
        "mov $m0, $m5",
        f"brz $m4, {here}_final",
        f"{here}_first:",
        *loads,
        f"runall $m0, $m11, {BASE_STEP}",
        "put $CCCSLOAD, $m6",
        following,
        f"brz $m1, {here}_last",
        "add $m8, $m1, -1",
        f"{here}_middle:",
        "sync 2",
        *loads,
        f"runall $m2, $m11, {BASE_STEP}",
        "put $CCCSLOAD, $m6",
        following,
        f"brnzdec $m8, {here}_middle",
        f"{here}_last:",
        "sync 2",
        f"{here}_only:",
        *loads,
        f"runall $m3, $m11, {BASE_STEP}",
        *next_column,
        f"brnzdec $m4, {here}_column",
        load_back("$m10", GO),
        f"add $m11, $m11, {FRAME_BYTES}",
        "sync 2",
        "br $m10",
    ]


def _part(name: str, lines: list[str]) -> str:
    text = "".join(f"{line}\n" if line.endswith(":") else f"  {line}\n" for line in lines)
    return f'.section .text.{name}, "ax"\n.balign 8\n{text}'


def source(survive: bool = ACCUMULATORS_SURVIVE_EXIT) -> str:
    """The float16 family.

    Args:
        survive: the form for accumulators that keep their values from one launch of the workers to the next.
    """
    family = Family(
        "gemm",
        SYMBOLS,
        32,
        CHUNK_ROWS,
        PART_ROWS,
        FEW_ROWS,
        tables if survive else short_tables,
        mode_routines if survive else short_routines,
        stream_frame(even=survive),
        few_stream_frame() if survive else few_frame(),
        shared_routines() if survive else (),
        straight_names() if survive else (),
        LISTED,
    )
    return family_source(family)


def _listed_entry(mode: str) -> list[str]:
    """Arguments to where they are without a list: rows to $m6, groups to $m7. What the addresses of both
    arrays of panels have in common goes to $m8.
    """
    return [
        "and $m1, $m6, $m7",
        "mov $m6, $m8",
        "mov $m7, $m9",
        f"setzi $m0, .Lgemm_tables_{mode}",
        "mov $m8, $m1",
        "bri .Lgemm_supervisor_listed",
    ]


def family_source(family: Family) -> str:
    """All members of a family in one text."""
    parts = [
        section(family.symbols[mode], [f"setzi $m0, .Lgemm_tables_{mode}", "bri .Lgemm_supervisor"])
        for mode in MODES
    ]
    parts.append(_part(f"{family.name}_supervisor", [".Lgemm_supervisor:", *_supervisor(family)]))
    for mode, symbol in family.listed.items():
        parts.append(section(symbol, _listed_entry(mode)))
    if family.listed:
        listed = [".Lgemm_supervisor_listed:", *_supervisor(family, listed=True)]
        parts.append(_part(f"{family.name}_listed_supervisor", listed))
    for mode in MODES:
        table = [f".Lgemm_tables_{mode}:", *(f".word {word}" for word in family.tables(mode))]
        parts.append(_part(f"{family.name}_tables_{mode}", table))
        parts.append(_part(f"{family.name}_panels_{mode}", family.routines(mode)))
    if family.straight:
        # 0 where nobody has asked for it.
        words = [line for name in family.straight for line in (f".weak {name}", f".word {name}")]
        parts.append(_part(f"{family.name}_straight", [".Lgemm_straight:", *words]))
    if family.shared:
        parts.append(_part(f"{family.name}_panels", list(family.shared)))
    return "".join(parts)
