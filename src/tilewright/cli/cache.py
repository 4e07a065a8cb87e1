"""`tilewright cache`: what is kept between commands, and removing it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tilewright.errors import UsageError
from tilewright.user_cache import cache_area

from .console import JsonOption, byte_size, console, count, note, print_json

PACKAGES = "packages"
AREAS = {
    PACKAGES: "what was compiled; the oldest go first",
    "loops": "the compiler's native code",
    "engine": "the simulator's native code",
    "translations": "native code of tile programs",
    "popc": "what the vendor's compiler made",
}
"""What each folder of the cache holds."""


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(rich_markup_mode="rich")
    group.command("clear")(clear_command)
    group.callback(invoke_without_command=True)(cache_group)
    app.add_typer(group, name="cache")


def cache_group(context: typer.Context, json: JsonOption = False) -> None:
    """Show what is kept between commands, and where.

    Everything in it is made again when it is needed. Commands that compile
    have --no-cache.

    Example: tilewright cache
    """
    if context.invoked_subcommand is not None:
        return
    areas = {name: _measure(_area(name)) for name in AREAS}
    if json:
        data: dict[str, Any] = {"folder": str(_area(PACKAGES).parent)}
        data["areas"] = {name: {"files": files, "bytes": size} for name, (files, size) in areas.items()}
        print_json(data)
        return
    from rich.table import Table

    out = console()
    out.print(str(_area(PACKAGES).parent), markup=False, soft_wrap=True)
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column()
    for name, (files, size) in areas.items():
        noun = "file" if files == 1 else "files"
        table.add_row(name, f"{count(files)} {noun}", byte_size(size), AREAS[name])
    out.print(table)


def clear_command(
    everything: Annotated[
        bool, typer.Option("--all", help="Native code too; the next run builds it again, about a minute.")
    ] = False,
) -> None:
    """Remove the compiled packages; with --all, everything that is kept.

    Example: tilewright cache clear
    """
    areas = list(AREAS) if everything else [PACKAGES]
    before = sum(_measure(_area(name))[1] for name in areas)
    for name in areas:
        _remove(_area(name))
    left = sum(_measure(_area(name))[1] for name in areas)
    if left:
        raise UsageError(f"{byte_size(left)} could not be removed", where=str(_area(PACKAGES).parent))
    note(f"removed {byte_size(before)}")


def _area(name: str) -> Path:
    try:
        return cache_area(name)
    except RuntimeError as error:
        raise UsageError("there is no home directory, so nothing is kept") from error


def _measure(folder: Path) -> tuple[int, int]:
    """Files below a folder, and their bytes; what vanishes meanwhile is not counted."""
    files = size = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                size += path.stat().st_size
                files += 1
        except OSError:
            continue
    return files, size


def _remove(folder: Path) -> None:
    import shutil

    # Another process may be writing there; what it adds meanwhile may stay.
    shutil.rmtree(folder, ignore_errors=True)
