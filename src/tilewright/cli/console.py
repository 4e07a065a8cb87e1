"""What every command shares: where text goes, how JSON is printed, when a progress bar may appear.

Results go to standard output; everything else (errors, progress, logs) goes to standard error, so that
a pipe sees results only.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.compiler.progress import Progress

from . import interrupts

if TYPE_CHECKING:
    from rich.console import Console

_log = logging.getLogger(__name__)

WIDTH = 80
"""Columns of output when standard output is no terminal; a narrower terminal wraps."""


@dataclass
class Settings:
    """The global options of one invocation."""

    quiet: bool = False
    debug: bool = False
    log_json: bool = False


settings = Settings()
"""Set once by the root command before any other command runs."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
"""Type of a command's `json` parameter: `json: JsonOption = False`."""


def console() -> Console:
    """Console on standard output, for results."""
    from rich.console import Console

    output = Console(highlight=False, soft_wrap=False)
    if not output.is_terminal:
        output.width = WIDTH
    return output


def error_line(text: str) -> None:
    """Write `error: ...` on standard error; with `--log-json`, as one structured line."""
    _to_stderr("error", text, f"error: {text}")


def interrupted_line() -> None:
    """Write `interrupted` on standard error."""
    _to_stderr("error", "interrupted", "interrupted")


def note(text: str) -> None:
    """Write a remark such as `wrote digits.ipuexe` on standard error, unless `--quiet`."""
    if not settings.quiet:
        _to_stderr("info", text, text)


def note_native_code(seconds: float) -> None:
    """Remark what making native code took, if it had to be made: no other time that is shown holds it."""
    if seconds:
        note(f"built native code of ours first, once for this computer, in {seconds:.1f} s")


def _to_stderr(level: str, message: str, plain: str) -> None:
    if settings.log_json:
        from .logs import structured_line

        plain = structured_line(level, "tilewright.cli", message)
    sys.stderr.write(f"{plain}\n")
    sys.stderr.flush()


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON value on standard output. Not-a-number and infinity are refused as JSON has none."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """Tell of stages: as log records (`--log-level info`), and on a terminal as a line that goes when done.

    The line shows the current stage and the time. It is left out under `--quiet` and `--log-json`.
    """
    from rich.console import Console

    errors = Console(stderr=True)
    if settings.quiet or settings.log_json or not errors.is_terminal:
        yield lambda stage: _stage(title, stage)
        return
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=None)

        def advance(stage: str) -> None:
            _stage(title, stage)
            bar.update(task, description=f"{title}: {stage}")

        yield advance


def _stage(title: str, stage: str) -> None:
    interrupts.check()
    _log.info("%s: %s", title, stage, extra={"stage": stage})


def count(number: int) -> str:
    """A number with separators: 1,472."""
    return f"{number:,}"


def byte_size(number: int) -> str:
    """A size in the binary unit that keeps it readable: 812 B, 12.4 KiB, 3.1 MiB."""
    size = float(number)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{number} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
