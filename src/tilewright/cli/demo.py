"""`tilewright demo`: complete examples that need nothing but this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .compile import NoCacheOption, TilesOption
from .console import JsonOption, byte_size, console, count, note_native_code, print_json, progress
from .profile import ProfileOption, check_folder, write_profile_file

if TYPE_CHECKING:
    from .digits_demo import DigitsResult

SHOWN_DISAGREEMENTS = 10


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(rich_markup_mode="rich")
    group.command("digits")(digits_command)
    # With a callback, the group stays a group although it has one command.
    group.callback()(demo_group)
    app.add_typer(group, name="demo")


def demo_group() -> None:
    """Complete examples, from training to a run on the simulated chip.

    Example: tilewright demo digits
    """


def digits_command(
    tiles: TilesOption = 64,
    no_cache: NoCacheOption = False,
    profile: ProfileOption = None,
    json: JsonOption = False,
) -> None:
    """Classify handwritten digits on a simulated chip, and compare with a float32 reference.

    Trains a small network in NumPy, compiles it to machine code, and runs that
    code instruction by instruction on all 360 held-out images at once.

    Example: tilewright demo digits --tiles 16
    """
    check_folder(profile)
    with progress("digits") as report:
        from tilewright.compiler.cache import package_cache

        from .digits_demo import run_digits

        cache = None if no_cache else package_cache()
        result = run_digits(tiles, report, profile=profile is not None, cache=cache)
    if result.profile is not None and profile is not None:
        write_profile_file(result.profile, profile)
    note_native_code(result.native_seconds)
    if json:
        print_json(summary(result))
    else:
        _print(result)


def summary(result: DigitsResult) -> dict[str, float | int]:
    """The numbers of the demo, as `--json` prints them."""
    return {
        "accuracy": result.accuracy,
        "reference_accuracy": result.reference_accuracy,
        "agreement": result.agreement,
        "cycles": result.cycles,
        "tile_bytes_max": result.tile_bytes_max,
        "compile_seconds": round(result.compile_seconds, 3),
        "cached": result.cached,
        "simulate_seconds": round(result.simulate_seconds, 3),
        "tiles": result.tiles,
    }


def _print(result: DigitsResult) -> None:
    from rich.table import Table

    output = console()
    images = len(result.labels)
    share = result.tile_bytes_max / result.tile_bytes
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column()
    table.add_row("accuracy", f"{result.accuracy:.2%}", "simulated chip, float16")
    table.add_row("", f"{result.reference_accuracy:.2%}", "float32 reference in NumPy")
    table.add_row("agreement", f"{result.agreement:.2%}", f"{len(result.disagreements)} of {images} differ")
    table.add_row("device cycles", count(result.cycles), f"simulated, for the batch of {images}")
    table.add_row(
        "tile memory",
        byte_size(result.tile_bytes_max),
        f"on the fullest tile, {share:.1%} of {result.tile_bytes // 1024} KiB",
    )
    table.add_row("train", f"{result.train_seconds:.1f} s", "in NumPy, on this computer")
    origin = "from the cache" if result.cached else "graph to package"
    table.add_row("compile", f"{result.compile_seconds:.1f} s", origin)
    table.add_row("simulate", f"{result.simulate_seconds:.1f} s", "load, weights, one batch")

    output.print(
        f"Handwritten digits, 64 -> 128 -> 64 -> 10, on {count(result.tiles)} tiles of a simulated IPU21\n"
    )
    output.print(table)
    _print_disagreements(result)
    output.print("\nNext:")
    compile_command = f"tilewright compile digits -o digits.ipuexe --tiles {result.tiles}"
    for what, why in (
        (compile_command, "keep the package"),
        ("tilewright inspect digits.ipuexe", "see what is in it"),
        ("examples/quickstart.py", "the same from Python"),
        ("docs/architecture.md", "how it works"),
    ):
        output.print(f"  {what:55}  {why}")


def _print_disagreements(result: DigitsResult) -> None:
    from rich.table import Table

    if not result.disagreements:
        return
    table = Table(box=None, padding=(0, 2), title="Where they disagree", title_justify="left")
    for name in ("image", "label", "chip", "reference"):
        table.add_column(name, justify="right")
    for index in result.disagreements[:SHOWN_DISAGREEMENTS]:
        cells = (index, result.labels[index], result.chip[index], result.reference[index])
        table.add_row(*map(str, cells))
    output = console()
    output.print()
    output.print(table)
    hidden = len(result.disagreements) - SHOWN_DISAGREEMENTS
    if hidden > 0:
        output.print(f"  and {hidden} more")
