"""`tilewright explain`: the life of one operation in a package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import JsonOption, console, count, print_json
from .tables import facts, listing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

ALL = 1 << 30


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain", no_args_is_help=True)(explain_command)


def explain_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.ipuexe", help="Package to look at.")],
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="Name of what it computes.")],
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile", metavar="FILE.twprof", help="Of a run of the package: cycles as simulated."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Tell the life of one operation: layouts in and out, plan, kernels, exchanges, cycles.

    Example: tilewright explain digits.ipuexe matmul_0 --profile run.twprof
    """
    from tilewright.package import load_package
    from tilewright.profiling import load_profile
    from tilewright.profiling.explain import explain_operation

    found = load_profile(profile) if profile is not None else None
    result = explain_operation(load_package(file), operation, found)
    if json:
        print_json(result)
    else:
        show_explanation(console(), result)


def show_explanation(out: Console, result: Mapping[str, Any]) -> None:
    """An operation from its operands to its cycles."""
    simulated = result["simulated_cycles"]
    predicted = count(result["predicted_cycles"])
    facts(
        out,
        [
            ("operation", result["expression"] or result["operation"]),
            *(
                [("done as", f"part of {result['part_of']}, whose numbers these are")]
                if result["part_of"]
                else []
            ),
            ("predicted", f"{predicted} cycles"),
            *(
                []
                if simulated is None
                else [("simulated", f"{count(simulated)} cycles of the critical path")]
            ),
        ],
    )
    places = [("in", item) for item in result["operands"]] + [("out", item) for item in result["result"]]
    listing(
        out,
        "Where its operands and its result lie",
        ("", "value", "buffer", "layout"),
        [
            (side, item["value"] + (" (copy)" if item["copy"] else ""), item["buffer"], item["layout"])
            for side, item in places
        ],
        limit=ALL,
    )
    columns = ["step", "kernel", ">times", ">predicted"]
    if simulated is not None:
        columns += [">simulated", ">critical"]
    listing(
        out,
        "Steps",
        columns,
        [
            (
                item["name"],
                item["kernel"],
                count(item["times"]),
                count(item["predicted_cycles"]),
                *(
                    (count(item["simulated_cycles"]), count(item["critical_cycles"]))
                    if simulated is not None
                    else ()
                ),
            )
            for item in result["steps"]
        ],
        limit=ALL,
    )
    listing(
        out,
        "Memory it asked for",
        ("buffer", "role", ">most bytes", ">tiles", ">from step", ">to step"),
        [
            (
                item["name"],
                item["role"],
                count(item["bytes"]),
                count(item["tiles"]),
                str(item["first_step"]),
                str(item["last_step"]),
            )
            for item in result["buffers"]
        ],
        limit=ALL,
    )
    listing(out, "Plan", ("",), [(line,) for line in result["plan"]], limit=ALL)
