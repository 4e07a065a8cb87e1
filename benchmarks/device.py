"""Simulated device cycles of whole workloads, and what the compiler needs for them.

    python benchmarks/device.py [ROW ...] [--json] [--check] [--detail] [--compile-only]

Device cycles are those of the simulated chip at 1.5 GHz, from the first step after the inputs have arrived
to the last before the outputs leave; every activation lies on one tile at the beginning. `peak` is the
share of the matrix units' multiply-adds, `split` divides the critical path into computing, exchanging,
synchronising and idling. `predicted` is what the compiler said. Results are compared with float32
references; a row whose error is too large is reported as wrong, whatever its cycles. Rows `compile_s_*` are
seconds of processor time of one compile without the package cache; `native_code_s` is what the compiler's
own native code took, if this machine had not got it. Nothing here ran on a card.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from device_workloads import WORKLOADS, Workload

import tilewright as tw
from tilewright.ipu21.compile import prepare
from tilewright.ipu21.machine.topology import TILES
from tilewright.package.records import Package
from tilewright.profiling import ProfileBuilder
from tilewright.profiling.summary import summarize

RATES = {"float16": 64, "float32": 16}
"""Multiply-adds of a tile per cycle."""
COMPILE_GOALS = {"minilm_b1": 20.0, "siglip_mlp_b1": 5.0, "gemm_f16_4096": 10.0}
COMPILE_NAMES = {"minilm_b1": "minilm", "siglip_mlp_b1": "siglip_mlp", "gemm_f16_4096": "gemm_4096"}


@dataclass
class Measured:
    """One workload.

    Attributes:
        cycles, predicted: simulated device cycles, and what the compiler expected.
        compile_seconds: processor time; simulate_seconds: wall time.
        error: largest absolute difference from the float32 reference; `right`: small enough.
        split: cycles of the critical path by kind.
        plan: per operation, what was chosen.
        slowest: steps that take most of the critical path, with their cycles.
    """

    name: str
    compile_seconds: float
    cycles: int = 0
    predicted: int = 0
    simulate_seconds: float = 0.0
    error: float = 0.0
    right: bool = True
    split: dict[str, int] = field(default_factory=dict)
    plan: list[str] = field(default_factory=list)
    slowest: list[tuple[str, int]] = field(default_factory=list)


def measure(workload: Workload, *, tiles: int, check: bool, simulate: bool, detail: bool) -> Measured:
    """Compile, simulate, compare. `detail`: also split exchange phases, which takes memory."""
    graph = workload.graph()
    begin = time.process_time()
    package = tw.compile(graph, tiles=tiles, precision=workload.precision)
    result = Measured(workload.name, time.process_time() - begin, predicted=predicted_cycles(package))
    program = package.program
    if program is not None:
        result.plan = [f"{item.name}: {item.plan[0]}" for item in program.operations if item.plan]
    if not simulate:
        return result
    inputs = workload.inputs()
    begin = time.perf_counter()
    with (
        tw.open_device("sim", check=check) as device,
        tw.Session(device, package, activity=detail) as session,
    ):
        outputs = session.run(inputs)
        record = session.last_run
    result.simulate_seconds = time.perf_counter() - begin
    assert record is not None and record.cycles is not None
    result.cycles = record.cycles
    builder = ProfileBuilder(package, name=workload.name, device="sim")
    builder.add(record)
    summary = summarize(builder.profile())
    result.split = {group["name"]: group["critical_cycles"] for group in summary["by_kind"]}
    steps = sorted(summary["by_step"], key=lambda group: -group["critical_cycles"])
    result.slowest = [(group["name"], group["critical_cycles"]) for group in steps[:5]]
    for name, expected in graph.evaluate(inputs).items():
        error = np.abs(outputs[name].astype(np.float64) - expected)
        result.error = max(result.error, float(error.max()))
        scale = float(np.abs(expected).max())
        allowed = workload.allowed if workload.allowed is not None else 0.01 * scale
        result.right &= bool(np.isfinite(error).all()) and result.error <= allowed
    return result


def predicted_cycles(package: Package) -> int:
    """What the compiler expects of one run: its steps, those of a loop as often as it runs."""
    program = package.program
    if program is None:
        return 0
    times = np.ones(len(program.steps))
    for loop in program.loops:
        times[loop.first : loop.last + 1] = loop.count
    return round(sum(step.cycles * count for step, count in zip(program.steps, times, strict=True)))


def rows_of(result: Measured, workload: Workload) -> list[dict[str, Any]]:
    """Rows of the table, in the common form."""
    rows: list[dict[str, Any]] = []
    if result.cycles:
        rate = RATES[workload.precision] * TILES
        rows.append(
            {
                "name": result.name,
                "value": result.cycles,
                "unit": "simulated cycles",
                "goal": workload.goal,
                "better": "lower",
                "published": workload.published,
                "predicted": result.predicted,
                "peak": round(workload.multiply_adds / rate / result.cycles, 3),
                "split": result.split,
                "plan": result.plan,
                "slowest": result.slowest,
                "error": result.error,
                "allowed": workload.allowed,
                "right": result.right,
                "simulate_seconds": round(result.simulate_seconds, 1),
            }
        )
    if result.name in COMPILE_GOALS:
        rows.append(
            {
                "name": f"compile_s_{COMPILE_NAMES[result.name]}",
                "value": round(result.compile_seconds, 2),
                "unit": "s",
                "goal": COMPILE_GOALS[result.name],
                "better": "lower",
            }
        )
    return rows


def show(row: dict[str, Any]) -> None:
    """One row for people."""
    verdict = "no goal"
    if row["goal"] is not None:
        verdict = f"goal {row['goal']:,}, {'met' if row['value'] <= row['goal'] else 'missed'}"
    if row["unit"] == "s":
        print(f"{row['name']}: {row['value']:.2f} s ({verdict})")
        return
    off = row["predicted"] / row["value"] - 1
    print(
        f"{row['name']}: {row['value']:,} simulated cycles ({verdict}), predicted {off:+.1%}, "
        f"{row['peak']:.0%} of peak, error {row['error']:.2g}{'' if row['right'] else ' WRONG'}"
    )
    print("  " + ", ".join(f"{kind} {cycles:,}" for kind, cycles in row["split"].items()))
    print("  slowest " + ", ".join(f"{step} {cycles:,}" for step, cycles in row["slowest"]))
    for line in row["plan"]:
        print(f"  {line}")


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md."""
    lines = [
        "| workload | published, card | simulated | goal | of peak | predicted | largest error |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        if row["unit"] == "s":
            continue
        published = f"{row['published']:,}" if row["published"] else ""
        goal = f"{row['goal']:,}" if row["goal"] else ""
        lines.append(
            f"| `{row['name']}` | {published} | {row['value']:,} | {goal} | {row['peak']:.0%} | "
            f"{row['predicted'] / row['value'] - 1:+.1%} | {row['error']:.1e} |"
        )
    lines += ["", "| compile, processor seconds | measured | goal |", "|---|---:|---:|"]
    for row in rows:
        if row["unit"] == "s" and row["goal"]:
            lines.append(f"| `{row['name']}` | {row['value']:.1f} | {row['goal']:g} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="ROW", help="rows to measure; all if none is given")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tiles", type=int, default=TILES)
    parser.add_argument("--check", action="store_true", help="simulate with all checks on")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--markdown", action="store_true", help="print the tables of docs/performance.md")
    parser.add_argument("--detail", action="store_true", help="split exchange phases; takes longer")
    options = parser.parse_args()
    known = {workload.name: workload for workload in WORKLOADS}
    compiles = {f"compile_s_{short}": name for name, short in COMPILE_NAMES.items()}
    unknown = [name for name in options.names if name not in known and name not in compiles]
    if unknown:
        parser.error(f"no row {unknown[0]}; there are {', '.join([*known, *compiles])}")
    rows: list[dict[str, Any]] = []
    if (native := prepare()) > 0:
        rows.append({"name": "native_code_s", "value": round(native, 1), "unit": "s", "goal": None})
        if not options.json and not options.markdown:
            show(rows[0])
    for asked in options.names or known:
        name = compiles.get(asked, asked)
        result = measure(
            known[name],
            tiles=options.tiles,
            check=options.check,
            simulate=asked == name and not options.compile_only,
            detail=options.detail,
        )
        made = rows_of(result, known[name])
        rows += made
        if not options.json and not options.markdown:
            for row in made:
                show(row)
            sys.stdout.flush()
    if options.markdown:
        print(markdown(rows))
    if options.json:
        print(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
