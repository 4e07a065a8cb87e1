"""`tilewright memory`: what lies where on the tiles over the life of a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.errors import UsageError

from .console import JsonOption, byte_size, console, count, note, print_json
from .tables import facts, listing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

ALL = 1 << 30
FEW = 12


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("memory", no_args_is_help=True)(memory_command)


def memory_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.ipuexe", help="Package to look at.")],
    tile: Annotated[
        int | None, typer.Option("--tile", metavar="N", help="Everything on one tile (physical id).")
    ] = None,
    html: Annotated[
        bool, typer.Option("--html", help="A page for the browser, in the file that -o names.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of printing.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what lies where on the tiles: weights, activations, code, rows, stacks, and what is free.

    For each class of tiles that do the same: the most bytes in use at once, when, and how the rest is cut up.
    The page of --html is a map over address and step.

    Example: tilewright memory digits.ipuexe --html -o memory.html
    """
    if html and json:
        raise UsageError("--html and --json cannot both be written")
    if html and output is None:
        raise UsageError("--html needs a file to write", hint="-o memory.html")
    from .profile import check_folder

    check_folder(output)
    from tilewright.files import write_whole
    from tilewright.package import load_package

    package = load_package(file)
    if html:
        from tilewright.profiling.memory_page import render_memory

        data = render_memory(package, file.name, tile)
    else:
        from tilewright.profiling.memory_report import memory_summary, tile_memory

        report = memory_summary(package) if tile is None else tile_memory(package, tile)
        if output is None:
            if json:
                print_json(report)
            else:
                (show_memory if tile is None else show_tile)(console(), report)
            return
        data = _text(report, tile is None, json=json).encode()
    assert output is not None, "checked above"
    write_whole(output, data)
    note(f"wrote {output} ({byte_size(len(data))})")


def _text(report: Mapping[str, Any], summary: bool, *, json: bool) -> str:
    """What would have been printed."""
    import io
    import json as encoder

    if json:
        return encoder.dumps(report, indent=2, allow_nan=False) + "\n"
    from rich.console import Console

    stream = io.StringIO()
    (show_memory if summary else show_tile)(Console(file=stream, width=100, highlight=False), report)
    return stream.getvalue()


def show_memory(out: Console, report: Mapping[str, Any]) -> None:
    """Classes, regions and the tightest tiles of a package."""
    whole = report["tile_bytes"]
    facts(
        out,
        [
            ("tiles", f"{count(report['tiles'])} with a program, in {count(len(report['classes']))} classes"),
            (
                "fullest",
                f"{count(report['peak_bytes'])} bytes at once, {report['peak_bytes'] / whole:.1%} of a tile",
            ),
            ("median", f"{count(report['median_peak_bytes'])} bytes"),
        ],
    )
    if not report["known"]:
        out.print(
            "The package does not say what its buffers are; compile it again to see them.\n", markup=False
        )
    classes = report["classes"]
    listing(
        out,
        "Classes, by the most bytes in use at once",
        (">class", ">tiles", ">e.g.", ">peak", ">of tile", "in step"),
        [
            (
                str(item["class"]),
                count(item["tiles"]),
                str(item["tile"]),
                count(item["peak_bytes"]),
                f"{item['peak_bytes'] / whole:.1%}",
                item["peak_step_name"],
            )
            for item in classes
        ],
        limit=FEW,
    )
    listing(
        out,
        "What is in use then",
        (">class", ">weights", ">activations", ">scratch", ">code", ">rows", ">other"),
        [(str(item["class"]), *_kinds(item["by_kind"])) for item in classes],
        limit=FEW,
    )
    listing(
        out,
        "Regions, and what is free",
        (">class", ">region 0", ">region 1", ">free", ">largest span", ">fragmented"),
        [
            (
                str(item["class"]),
                *(f"{count(region['peak_bytes'])}" for region in item["regions"]),
                count(item["free_bytes"]),
                count(item["largest_free_bytes"]),
                f"{item['fragmentation']:.1%}",
            )
            for item in classes
        ],
        limit=FEW,
    )
    listing(
        out,
        "Tightest tiles",
        (">tile", ">class", ">peak", ">free"),
        [
            (str(item["tile"]), str(item["class"]), count(item["peak_bytes"]), count(item["free_bytes"]))
            for item in report["tightest"]
        ],
        limit=FEW,
    )
    _overlaps(out, [overlap for item in classes for overlap in item["overlaps"]])


def _kinds(kinds: Mapping[str, int]) -> tuple[str, ...]:
    named = ("weight", "value", "scratch", "code", "row")
    values = [kinds.get(name, 0) for name in named]
    values[1] += kinds.get("input", 0)
    other = sum(size for name, size in kinds.items() if name not in (*named, "input"))
    return tuple(count(size) for size in (*values, other))


def show_tile(out: Console, report: Mapping[str, Any]) -> None:
    """Everything on one tile."""
    steps = report["steps"]
    facts(
        out,
        [
            (
                "tile",
                f"{report['tile']} (physical), one of {count(report['tiles'])} in class {report['class']}",
            ),
            ("peak", f"{count(report['peak_bytes'])} bytes in step {report['peak_step_name']}"),
            (
                "free then",
                f"{count(report['free_bytes'])} bytes in {count(report['free_spans'])} spans, the largest "
                f"{count(report['largest_free_bytes'])}",
            ),
        ],
    )
    listing(
        out,
        "Memory by address",
        ("address", ">bytes", "kind", "name", "for", "from", "to"),
        [
            (
                f"{item['address']:#x}",
                count(item["bytes"]),
                item["kind"],
                item["name"],
                item["owner"],
                _step(steps, item["first_step"]),
                _step(steps, item["last_step"]),
            )
            for item in report["spans"]
        ],
        limit=ALL,
    )
    _overlaps(out, report["overlaps"])


def _step(steps: Sequence[str], number: int) -> str:
    return "" if number in (0, len(steps) - 1) else steps[number]


def _overlaps(out: Console, overlaps: Sequence[Mapping[str, Any]]) -> None:
    listing(
        out,
        "OVERLAPS: used by two at the same time",
        ("one", "other", "address", ">bytes", ">from step"),
        [
            (item["one"], item["other"], f"{item['address']:#x}", count(item["bytes"]), str(item["step"]))
            for item in overlaps
        ],
    )
