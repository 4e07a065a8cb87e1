"""`tilewright debug`: a debugger for a package on the simulated chip."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.errors import TilewrightError, UsageError

from .console import error_line, note

if TYPE_CHECKING:
    from numpy import generic
    from numpy.typing import NDArray

    from tilewright.package import Package

PROMPT = "(tilewright) "


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("debug", no_args_is_help=True)(debug_command)


def debug_command(
    package: Annotated[Path, typer.Argument(metavar="FILE.ipuexe", help="Package to run.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=FILE.npy", help="Array for an input; random if not given."),
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option("--script", metavar="FILE", help="Commands, one a line; the first wrong one ends it."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option("--reference", metavar="MODEL", help="Where comparisons take constants from."),
    ] = None,
) -> None:
    """Stop a run on the simulated chip anywhere, and look: registers, code, memory, tensors of the graph.

    Break at operators, kernels, addresses and exchange phases; step by instruction, phase and operator.
    Holding tiles changes no cycle. `help` lists the commands.

    Example: tilewright debug digits.ipuexe --input x=images.npy
    """
    from tilewright.debugging import Debugger
    from tilewright.debugging.commands import Commands
    from tilewright.package import load_package

    content = load_package(package)
    arrays = _inputs(content, inputs or [])
    graph = None
    if reference is not None:
        from tilewright.models.loader import load_model

        graph = load_model(reference)
    lines = _script(script) if script is not None else _typed()
    with Debugger(content, arrays, graph=graph) as debugger:
        commands = Commands(debugger, typer.echo)
        for number, line in lines:
            try:
                commands.run(line)
            except TilewrightError as error:
                if script is None and not debugger.over:
                    error_line(str(error))
                    continue
                if script is None:
                    raise
                where = f"{script}:{number}" + (f": {error.where}" if error.where else "")
                raise UsageError(error.what, where=where, hint=error.hint) from error
            sys.stdout.flush()
            if commands.ended:
                break


def _script(path: Path) -> Iterator[tuple[int, str]]:
    from tilewright.files import read_file

    try:
        text = read_file(path, limit=1 << 20).decode()
    except UnicodeDecodeError as error:
        raise UsageError("not a text in UTF-8", where=str(path)) from error
    yield from enumerate(text.splitlines(), 1)


def _typed() -> Iterator[tuple[int, str]]:
    """Lines from standard input; an empty one repeats the last, as debuggers do."""
    import contextlib

    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - gives `input` editing and a history
    number, last = 0, ""
    while True:
        try:
            line = input(PROMPT if sys.stdin.isatty() else "")
        except EOFError:
            return
        number += 1
        last = line if line.strip() else last
        yield number, last


def _inputs(package: Package, options: list[str]) -> dict[str, NDArray[generic]]:
    """Arrays for all inputs: from files, the others random but always the same."""
    import numpy as np

    from tilewright.runtime.arrays import check_inputs

    from .package import array_files, load_array

    arrays = {name: load_array(path) for name, path in array_files(options, "--input").items()}
    generator = np.random.default_rng(0)
    for binding in package.inputs:
        if binding.name not in arrays:
            drawn = generator.standard_normal(binding.shape)
            arrays[binding.name] = drawn.astype(binding.host_dtype)
            note(f"input {binding.name}: random numbers, as no file is given")
    return check_inputs(package.inputs, arrays)
