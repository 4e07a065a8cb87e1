"""Cycles of the device kernels on the simulated tile, against their goals.

python benchmarks/kernels.py            a table
python benchmarks/kernels.py --json     {"rows": [{"name", "value", "unit", "goal", "better"}, ...]}
python benchmarks/kernels.py --timing   docs/timing.md: published figures beside ours
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.ipu21.kernels import KERNELS, link_kernels
from tilewright.ipu21.machine.memory import REGION1_BASE
from tilewright.ipu21.simulator.single import run_function

LEFT = 0x5C000
OTHER = REGION1_BASE + 0x40000

PLACES: dict[str, dict[str, int]] = {
    "gemm_f16": {"c": REGION1_BASE, "a": LEFT, "w": OTHER},
    "add_f16": {"c": LEFT, "a": REGION1_BASE, "b": OTHER},
    "add_row_f16": {"c": REGION1_BASE, "a": REGION1_BASE, "row": LEFT},
    "gelu_f16": {"out": REGION1_BASE, "x": REGION1_BASE},
    "reduce_f16": {"out": LEFT, "own": OTHER, "remote": REGION1_BASE},
    "copy_u64": {"destination": LEFT, "source": REGION1_BASE},
    "fill_u64": {"destination": LEFT},
}


@dataclass(frozen=True)
class Measured:
    """Cycles of one call and the issue slots of its busiest worker."""

    cycles: int
    slots: int


def measure(symbol: str, scalars: Mapping[str, int]) -> Measured:
    """Run one kernel call on memory that holds small numbers."""
    image = link_kernels([symbol], {})
    registers = KERNELS[symbol].contract.registers(**PLACES[symbol], **scalars)
    data = np.random.default_rng(0).standard_normal(0x8C000 // 2).astype(np.float16)
    result = run_function(
        image,
        symbol,
        registers,
        {LEFT: data.tobytes()},
    )
    return Measured(result.cycles, int(result.slots.max()))


def gemm(rows: int, inner: int, columns: int) -> Measured:
    strides = {"w_inner_stride": 512, "w_column_stride": 512 * inner}
    return measure("gemm_f16", {"rows": rows, "inner": inner, "columns": columns, **strides})


def reduction(remote: int, words: int, columns: int) -> Measured:
    strides = {"own_stride": 8 * words + 64, "remote_stride": 8 * words * columns}
    return measure("reduce_f16", {"remote_count": remote, "words": words, "columns": columns, **strides})


@dataclass(frozen=True)
class Row:
    """One line of the benchmark. `goal` 0: none set."""

    name: str
    value: float
    unit: str
    goal: float
    better: str = "lower"


def rows() -> list[Row]:
    """All measurements. A panel's cycles are the difference that one more inner group makes."""
    result = []
    for height in (6, 12, 18, 24, 25, 48, 64, 152, 153, 365, 586, 768):
        panel = gemm(height, 5, 1).cycles - gemm(height, 4, 1).cycles
        result.append(Row(f"gemm_f16 panel, {height} rows", panel, "cycles", 4 * height + 130))
    for height, inner, columns in ((24, 8, 4), (64, 10, 10), (128, 4, 8), (365, 8, 4)):
        goal = inner * columns * (4 * height + 130) + 294
        name = f"gemm_f16 {height} rows, {inner} inner, {columns} column groups"
        result.append(Row(name, gemm(height, inner, columns).cycles, "cycles", goal))
    for remote, words, columns in ((1, 96, 8), (3, 60, 9), (7, 60, 9), (12, 20, 9), (25, 36, 9)):
        sent = 8 * (remote + 1) * words * columns
        rate = sent / reduction(remote, words, columns).cycles
        name = f"reduce_f16 {remote + 1} partials of {words * columns} words"
        result.append(Row(name, round(rate, 2), "bytes/cycle", 8 if remote >= 7 else 0, "higher"))
    for words in (60, 600, 6000):
        per_element = measure("gelu_f16", {"words": words}).cycles / (4 * words)
        result.append(
            Row(
                f"gelu_f16 {4 * words} elements",
                round(per_element, 2),
                "cycles/element",
                2.4 if words > 100 else 0,
            )
        )
    for symbol, words in (("add_f16", 600), ("copy_u64", 8), ("copy_u64", 1024)):
        cycles = measure(symbol, {"words": words}).cycles
        result.append(Row(f"{symbol} {words} words", cycles, "cycles", 1308 if words == 1024 else 0))
    fill = measure("fill_u64", {"words": 1024, "low": 0, "high": 0}).cycles
    result.append(Row("fill_u64 1024 words", fill, "cycles", 0))
    for height, columns in ((24, 9), (64, 10)):
        cycles = measure("add_row_f16", {"rows": height, "columns": columns}).cycles
        result.append(Row(f"add_row_f16 {height} rows, {columns} column groups", cycles, "cycles", 0))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print rows for tools")
    parser.add_argument("--timing", action="store_true", help="print docs/timing.md")
    options = parser.parse_args()
    if options.timing:
        from timing_table import timing_page

        print(timing_page(), end="")
        return
    measured = rows()
    if options.json:
        listed = [
            {"name": r.name, "value": r.value, "unit": r.unit, "goal": r.goal or None, "better": r.better}
            for r in measured
        ]
        print(json.dumps({"rows": listed}, indent=1))
        return
    width = max(len(row.name) for row in measured)
    for row in measured:
        goal = f"goal {row.goal:g}" if row.goal else ""
        print(f"{row.name:<{width}}  {row.value:>9g} {row.unit:<15} {goal}")


if __name__ == "__main__":
    main()
