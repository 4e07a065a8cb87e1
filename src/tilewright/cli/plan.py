"""`tilewright plan`: what the planner chose for every operation, what else it weighed, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .compile import CHIP_TILES, TilesOption
from .console import JsonOption, byte_size, console, count, print_json, progress
from .tables import facts, listing

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.ipu21.fit import Fitted
    from tilewright.ipu21.plan.steps import Report

ALTERNATIVES = 3
"""Other plans shown per operation; `--json` prints all that were judged."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", no_args_is_help=True)(plan_command)


def plan_command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A ready model, file.py:function, or file.graph.")
    ],
    tiles: TilesOption = CHIP_TILES,
    json: JsonOption = False,
) -> None:
    """Say what the planner chose for every operation, and what else it weighed.

    Plans and places the model as compile does, without emitting anything.
    Cycles are predicted, bytes are those of the fullest tile.

    Example: tilewright plan digits --tiles 64
    """
    from tilewright.models.loader import load_model

    with progress("plan") as report:
        report("read the model")
        graph = load_model(model)
        from tilewright.compiler.pipeline import plan_only

        fitted = plan_only(graph, tiles=tiles, progress=report)
    if json:
        print_json(as_json(fitted))
    else:
        show(console(), fitted)


def as_json(fitted: Fitted) -> dict[str, Any]:
    """Everything that was decided, as one object."""
    plan = fitted.work.plan
    return {
        "tiles": plan.tiles,
        "predicted_cycles": round(plan.cycles()),
        "price": fitted.prices.general.kept,
        "working_price": fitted.prices.general.working,
        "single_prices": {name: price.kept for name, price in fitted.prices.single.items()},
        "tile_classes": len(fitted.work.classes),
        "loops": [{"first": loop.first, "end": loop.end, "count": loop.count} for loop in plan.loops],
        "operations": [
            {
                "operation": report.operation,
                "plan": report.chosen,
                "predicted_cycles": {name: round(value) for name, value in report.cycles.items()},
                "tile_bytes": report.bytes,
                "weighed": [
                    {"plan": text, "predicted_cycles": round(cycles), "tile_bytes": size}
                    for text, cycles, size in report.weighed
                ],
            }
            for report in plan.reports
        ],
        "steps": [
            {"step": step.name, "predicted_cycles": round(step.cycles), "times": times}
            for step, times in zip(plan.steps, plan.times(), strict=True)
        ],
        "layouts": {name: buffer.layout.describe() for name, buffer in plan.buffers.items()},
    }


def show(out: Console, fitted: Fitted) -> None:
    """A summary, then one table per operation."""
    plan = fitted.work.plan
    pairs = [
        ("tiles", f"{count(plan.tiles)}, {count(len(fitted.work.classes))} kinds of them"),
        ("predicted", f"{count(round(plan.cycles()))} cycles"),
        ("steps", ", ".join([count(len(plan.steps)), *(f"a loop of {loop.count}" for loop in plan.loops)])),
        ("memory", _price(fitted.prices.general.kept)),
    ]
    facts(out, pairs)
    for report in plan.reports:
        _operation(out, report, fitted.prices.of(report.first).kept)


def _price(price: float) -> str:
    if not price:
        return "everything fits beside each other; the fastest plans were taken"
    return f"short: a plan may be {price:g} cycles slower for each byte that it saves per tile"


def _operation(out: Console, report: Report, price: float) -> None:
    total = sum(report.cycles.values())
    stages = ", ".join(f"{name} {count(round(value))}" for name, value in report.cycles.items() if value)
    rows = [(report.chosen, count(round(total)), byte_size(report.bytes), "chosen")]
    for text, cycles, size in report.weighed[:ALTERNATIVES]:
        more, saved = cycles - total, report.bytes - size
        reason = f"{more:+,.0f} cycles" if not price else f"{more:+,.0f} cycles, {-saved:+,} B"
        rows.append((text, count(round(cycles)), byte_size(size), reason))
    listing(out, report.operation, ("plan", ">cycles", ">bytes", "against it"), rows)
    if stages:
        out.print(f"  {stages}\n", highlight=False)
