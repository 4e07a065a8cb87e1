"""`tilewright exchange`: what the exchange phases of a package do, and how well they are scheduled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.errors import UsageError

from .console import JsonOption, console, note, print_json

if TYPE_CHECKING:
    from tilewright.ipu21.exchange.phases import Phase
    from tilewright.package import Package

PackageArgument = Annotated[Path, typer.Argument(metavar="PACKAGE", help="Package (.ipuexe).")]
PhaseOption = Annotated[
    str | None, typer.Option("--phase", metavar="P", help="Step name or number of an exchange phase.")
]


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)
    group.command("inspect", no_args_is_help=True)(inspect_command)
    group.command("html", no_args_is_help=True)(html_command)
    group.command("save", no_args_is_help=True)(save_command)
    group.command("replay", no_args_is_help=True)(replay_command)
    group.callback()(exchange_group)
    app.add_typer(group, name="exchange")


def exchange_group() -> None:
    """Look into exchange phases: rows, timelines, schedules.

    Example: tilewright exchange inspect digits.ipuexe
    """


def inspect_command(
    package: PackageArgument,
    phase: PhaseOption = None,
    tile: Annotated[
        int | None, typer.Option("--tile", metavar="T", help="Physical tile: its row and its timeline.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the exchange phases of a package; the tiles of one phase; the row of one tile.

    Example: tilewright exchange inspect digits.ipuexe --phase hidden.receive --tile 0
    """
    from tilewright.ipu21.exchange.phases import find_phase, list_phases

    from .exchange_report import (
        describe_phase,
        describe_phases,
        describe_tile,
        show_phase,
        show_phases,
        show_tile,
    )

    content = _load(package)
    report: dict[str, Any]
    if phase is None and tile is None:
        report, show = describe_phases(list_phases(content)), show_phases
    else:
        chosen = find_phase(content, phase)
        if tile is None:
            report, show = describe_phase(chosen), show_phase
        else:
            report, show = describe_tile(chosen, tile), show_tile
    if json:
        print_json(report)
    else:
        show(console(), report)


def html_command(
    package: PackageArgument,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.html", help="File to write.")],
    phase: PhaseOption = None,
) -> None:
    """Draw a phase: one page, tiles against cycles, who sends to whom. It needs no network.

    Example: tilewright exchange html digits.ipuexe --phase hidden.receive -o phase.html
    """
    from tilewright.files import write_whole
    from tilewright.ipu21.exchange.flows import follow

    from .exchange_page import phase_page

    chosen = _phase(package, phase)
    page = phase_page(chosen.name, package.name, follow(chosen.rows))
    write_whole(output, page.encode())
    note(f"wrote {output}")


def save_command(
    package: PackageArgument,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.npz", help="File to write.")],
    phase: PhaseOption = None,
) -> None:
    """Save the transfers of a phase, to schedule them again with `replay`.

    Example: tilewright exchange save digits.ipuexe --phase hidden.receive -o phase.npz
    """
    from tilewright.ipu21.exchange.flows import follow
    from tilewright.ipu21.exchange.saved import save_transfers, transfers_of

    chosen = _phase(package, phase)
    save_transfers(output, *transfers_of(follow(chosen.rows)))
    note(f"wrote {output}")


def replay_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.npz", help="Saved transfers.")],
    json: JsonOption = False,
) -> None:
    """Schedule saved transfers: length, bound, bytes of rows, time.

    Example: tilewright exchange replay phase.npz
    """
    from tilewright.ipu21.exchange.replay import replay
    from tilewright.ipu21.exchange.saved import load_transfers

    from .exchange_report import show_replay

    report = replay(*load_transfers(file))
    if json:
        print_json(report)
    else:
        show_replay(console(), report)


def _load(path: Path) -> Package:
    from tilewright.package import load_package

    return load_package(path)


def _phase(path: Path, wanted: str | None) -> Phase:
    from tilewright.ipu21.exchange.phases import find_phase

    if path.suffix == ".npz":
        raise UsageError(
            "a package is wanted", where=str(path), hint="`exchange replay` takes saved transfers"
        )
    return find_phase(_load(path), wanted)
