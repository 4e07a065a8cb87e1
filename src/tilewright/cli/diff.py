"""`tilewright diff`: what changed between two packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import JsonOption, console, count, print_json
from .tables import listing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

SECTIONS = (
    ("bindings", "Inputs and outputs"),
    ("operations", "Predicted cycles by operation"),
    ("steps", "Steps"),
    ("plans", "Plans"),
    ("layouts", "Buffers and layouts"),
    ("kernels", "Code"),
    ("weights", "Weights"),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diff", no_args_is_help=True)(diff_command)


def diff_command(
    one: Annotated[Path, typer.Argument(metavar="A.ipuexe", help="Package before.")],
    other: Annotated[Path, typer.Argument(metavar="B.ipuexe", help="Package after.")],
    json: JsonOption = False,
) -> None:
    """Say what changed between two packages: predicted cycles, memory, layouts, code, weights.

    Example: tilewright diff before.ipuexe after.ipuexe
    """
    from tilewright.package import load_package
    from tilewright.profiling.package_diff import diff_packages

    result = diff_packages(load_package(one), load_package(other))
    if json:
        print_json(result)
    else:
        show_diff(console(), result)


def show_diff(out: Console, result: Mapping[str, Any]) -> None:
    """Totals side by side, then whatever differs."""
    if result["same"] and not result["changes"]:
        out.print("The packages do the same, byte for byte.", markup=False)
        return
    listing(
        out,
        "Whole package",
        ("", ">before", ">after", ">change"),
        [
            (entry["name"], count(entry["one"]), count(entry["other"]), _change(entry["one"], entry["other"]))
            for entry in result["totals"]
        ],
    )
    for key, title in SECTIONS:
        entries = result[key]
        if key == "operations":
            entries = sorted(entries, key=lambda e: -abs((e["other"] or 0) - (e["one"] or 0)))
        rows = [
            (entry["name"], _text(entry["one"]), _text(entry["other"]))
            if key != "operations"
            else (entry["name"], f"{count(entry['one'] or 0)}", f"{count(entry['other'] or 0)}")
            for entry in entries
        ]
        aligned = ("name", ">before", ">after") if key == "operations" else ("name", "before", "after")
        listing(out, f"{title} ({count(len(rows))} changed)", aligned, rows)


def _text(value: Any) -> str:
    return "-" if value is None else str(value)


def _change(one: float, other: float) -> str:
    if one == other:
        return ""
    return f"{other - one:+,}" + (f" ({(other - one) / one:+.1%})" if one else "")
