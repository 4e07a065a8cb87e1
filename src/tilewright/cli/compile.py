"""`tilewright compile`: a model becomes a package."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tilewright.errors import UsageError

from .console import JsonOption, byte_size, count, note, note_native_code, print_json, progress

CHIP_TILES = 1472
"""Tiles of an IPU21, repeated here because reading it from the machine description costs start-up time;
a test holds the two together."""

TilesOption = Annotated[
    int, typer.Option("--tiles", min=1, max=CHIP_TILES, help="Tiles that may hold data and compute.")
]

NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Compile anew, and keep nothing for the next time.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compile")(compile_command)


def compile_command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A ready model, file.py:function, or file.graph.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.ipuexe", help="Package to write.")],
    tiles: TilesOption = CHIP_TILES,
    check: Annotated[
        bool, typer.Option("--check", help="Verify the exchange rows by independent means; takes longer.")
    ] = False,
    precision: Annotated[
        str, typer.Option("--precision", metavar="TYPE", help="float16, or float32 at a quarter of the rate.")
    ] = "float16",
    stochastic_rounding: Annotated[
        bool, typer.Option("--stochastic-rounding", help="Round to float16 at random, unbiased.")
    ] = False,
    no_cache: NoCacheOption = False,
    json: JsonOption = False,
) -> None:
    """Compile a model into a package that holds everything a run needs.

    MODEL is the name of a ready model (digits), a function in a Python file
    (which is run), or a graph's text form with a .safetensors file beside it.
    What was compiled before is taken from the cache (see tilewright cache).

    Example: tilewright compile digits -o digits.ipuexe --tiles 64
    """
    check_writable(output)
    from tilewright.models.loader import load_model

    with progress("compile") as report:
        report("read the model")
        graph = load_model(model)
        started = time.perf_counter()
        from tilewright.compiler.cache import compile_cached, package_cache
        from tilewright.files import write_whole
        from tilewright.package import package_digest

        cache = None if no_cache else package_cache()
        options: dict[str, bool | int | float | str] = {
            "precision": precision,
            "stochastic_rounding": stochastic_rounding,
        }
        made = compile_cached(graph, cache=cache, tiles=tiles, check=check, options=options, progress=report)
        seconds = time.perf_counter() - started - made.native_seconds
        write_whole(output, made.file_bytes())
    package = made.package
    from .tile_memory import tile_bytes_max

    used, size = tile_bytes_max(package), output.stat().st_size
    if json:
        print_json(
            {
                "package": str(output),
                "package_bytes": size,
                "digest": package_digest(package),
                "tiles": tiles,
                "tile_bytes_max": used,
                "compile_seconds": round(seconds, 3),
                "cached": made.cached,
            }
        )
        return
    whole = byte_size(package.tile_memory_size)
    how = "found in the cache" if made.cached else "compiled"
    note(f"wrote {output}: {byte_size(size)} for {count(tiles)} tiles, {how} in {seconds:.1f} s")
    note(f"the fullest tile uses {byte_size(used)} of {whole}")
    note_native_code(made.native_seconds)


def check_writable(path: Path) -> None:
    """Refuse an output path that surely cannot be written, before any work. Raises UsageError."""
    if path.is_dir():
        raise UsageError("is a folder, not a file", where=str(path))
    if not path.parent.is_dir():
        raise UsageError("the folder does not exist", where=str(path.parent))
