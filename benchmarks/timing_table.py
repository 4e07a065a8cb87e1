"""The page docs/timing.md: published cycle figures beside what the simulator counts for our kernels."""

from __future__ import annotations

from dataclasses import dataclass

from kernels import gemm, measure, reduction
from panel import panel_cycles

from tilewright.ipu21.machine.timing import BARRIER_INTERNAL

HEAD = """# Timing

Cycles at tile level; slots are issues of the busiest worker. "Simulated" is what our own kernels take on the
simulator, printed by `python benchmarks/kernels.py --timing`; a test keeps this page equal to it. The kernels
differ from the published ones, so the columns need not agree: the table shows where we stand. Rows marked
"model" run the published instruction counts themselves: there the columns must agree, and tests hold them.

| what | published | simulated | ratio | published by |
|---|---:|---:|---:|---|
"""


@dataclass(frozen=True)
class Comparison:
    """One line: a published figure and ours, in the same unit."""

    what: str
    published: float
    simulated: float
    source: str
    """Where the published figure comes from, with its evidence."""

    def line(self) -> str:
        ratio = f"{self.simulated / self.published:.2f}"
        return f"| {self.what} | {self.published:g} | {self.simulated:g} | {ratio} | {self.source} |\n"


STACK = "osmarks/ipu-stack"
HARDWARE = f"{STACK}, hardware fit (derived)"
COUNTED = f"{STACK}, counted (known)"
POPLIBS = "graphcore/poplibs, interpreted (known)"
STUDY = "hand-counted loop (derived)"


def comparisons() -> list[Comparison]:
    """All lines of the table."""
    lines = []
    for rows in (48, 192, 300):
        what = f"model: the published GEMM panel, {rows} rows"
        lines.append(Comparison(what, 235 + 4 * rows, panel_cycles(rows), HARDWARE))
    # Measured beyond the last arrival and the schedule: 229 to 294.
    lines.append(
        Comparison(
            "internal barrier after the last arrival, middle of 229..294",
            (229 + 294) / 2,
            BARRIER_INTERNAL,
            f"{STACK}, hardware (known)",
        )
    )
    for rows in (48, 192, 729):
        panel = gemm(rows, 5, 1).cycles - gemm(rows, 4, 1).cycles
        lines.append(Comparison(f"float16 GEMM, one panel, {rows} rows", 235 + 4 * rows, panel, HARDWARE))
        lines.append(Comparison("- fixed part of it", 80, panel - 4 * rows, STUDY))
    for rows, inner, columns in ((48, 4, 1), (48, 4, 4), (192, 8, 4)):
        published = 294 + inner * columns * (4 * rows + 235)
        what = f"float16 GEMM call, {rows} rows, {inner} inner, {columns} column groups"
        lines.append(Comparison(what, published, gemm(rows, inner, columns).cycles, HARDWARE))
    lines.append(
        Comparison("float16 GEMM slots, 48 rows, 4 inner groups", 201, gemm(48, 4, 1).slots, COUNTED)
    )
    panel = gemm(48, 5, 1).cycles - gemm(48, 4, 1).cycles
    lines.append(
        Comparison(
            "float16 GEMM, cycles of a call beside its panels", 110, gemm(48, 4, 1).cycles - 4 * panel, STUDY
        )
    )
    for elements, slots in ((48, 49), (1000, 127)):
        found = measure("add_f16", {"words": elements // 4}).slots
        lines.append(Comparison(f"float16 addition, slots for {elements} elements", slots, found, POPLIBS))
    for elements, slots in ((48, 32), (1000, 292)):
        found = reduction(3, elements // 4, 1).slots
        lines.append(
            Comparison(f"float16 sum of 4 partials, slots for {elements} elements", slots, found, POPLIBS)
        )
    words = 20 * 9
    cycles = reduction(12, words // 9, 9).cycles
    what = f"float16 sum of 13 partials, cycles for {4 * words} elements"
    lines.append(Comparison(what, 8 * words * 13, cycles, f"{STACK}, profile (known)"))
    lines.append(Comparison("- the same", 8 * words * 13 / 8, cycles, STUDY))
    gelu = measure("gelu_f16", {"words": 600}).cycles / 2400
    lines.append(Comparison("GeLU, cycles per element of 2400", 5.5, round(gelu, 2), COUNTED))
    lines.append(Comparison("- the same, sigmoid or tanh of two slots", 2.4, round(gelu, 2), STUDY))
    copied = measure("copy_u64", {"words": 1024}).cycles
    lines.append(Comparison("copy of 8 KiB", 1308, copied, f"{STACK}, hardware (known)"))
    lines.append(
        Comparison(
            "smallest copy", 288, measure("copy_u64", {"words": 1}).cycles, f"{STACK}, hardware (known)"
        )
    )
    return lines


def timing_page() -> str:
    """The whole page."""
    return HEAD + "".join(comparison.line() for comparison in comparisons())
