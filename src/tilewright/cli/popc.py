"""`tilewright popc`: the user's own vendor compiler, with results cached."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import JsonOption, byte_size, note, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("popc", no_args_is_help=True, context_settings=settings)(popc_command)


def popc_command(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="C++ or assembly source.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="FILE.o for the ELF object, else the archive."),
    ],
    target: Annotated[str, typer.Option("--target", help="Target of the compiler.")] = "ipu21",
    popc: Annotated[
        str | None,
        typer.Option("--popc", metavar="CMD", help="The compiler; default TILEWRIGHT_POPC or popc."),
    ] = None,
    cache: Annotated[bool, typer.Option(help="Use and keep results by content.")] = True,
    json: JsonOption = False,
) -> None:
    """Compile a source with the vendor's compiler, if you have it. Other flags are passed on.

    A result is reused when preprocessed text, flags, target and compiler are the same.

    Example: tilewright popc softmax.cpp -o softmax.o -O3 -I include
    """
    from tilewright.files import write_whole
    from tilewright.ipu21.toolchain.popc import Popc, cache_folder

    done = Popc(popc).compile(
        source, flags=context.args, target=target, cache=cache_folder() if cache else None
    )
    data = done.elf(str(source)) if output.suffix == ".o" else done.archive
    write_whole(output, data)
    if json:
        print_json({"cached": done.cached, "key": done.key, "metadata": done.metadata})
        return
    note(f"wrote {output}: {byte_size(len(data))}{', from the cache' if done.cached else ''}")
