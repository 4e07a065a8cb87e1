"""Options that several tool chain commands take, and how their values are read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tilewright.errors import UsageError


class EngineName(StrEnum):
    """The simulator's engines, repeated here because importing them costs start-up time."""

    translated = "translated"
    reference = "reference"


def number(text: str, what: str) -> int:
    """A decimal or 0x number. Raises UsageError naming `what`."""
    try:
        return int(text, 0)
    except ValueError:
        raise UsageError(
            f"{text!r} is no number", where=what, hint="decimal, or hexadecimal with 0x"
        ) from None


def _named(text: str) -> tuple[str, str]:
    """`NAME=VALUE`; a bare name is 1. Raises UsageError."""
    name, separator, value = text.partition("=")
    if not name.isidentifier():
        raise UsageError(f"{name!r} is no name", where=text, hint="write NAME=VALUE")
    return name, value if separator else "1"


def named_numbers(texts: list[str] | None) -> dict[str, int]:
    """`NAME=VALUE` of a repeatable option. Raises UsageError."""
    return {name: number(value, text) for text in texts or [] for name, value in [_named(text)]}


def definitions(texts: list[str] | None) -> dict[str, int | str]:
    """`NAME=VALUE` of a repeatable option, where the value may be any text. Raises UsageError."""
    found: dict[str, int | str] = {}
    for text in texts or []:
        name, value = _named(text)
        try:
            found[name] = int(value, 0)
        except ValueError:
            found[name] = value
    return found


def region(text: str) -> tuple[int, int]:
    """`BEGIN:END`. Raises UsageError."""
    begin, separator, end = text.partition(":")
    if not separator:
        raise UsageError(f"{text!r} is no range", hint="write BEGIN:END, such as 0x4c010:0x50000")
    return number(begin, text), number(end, text)


def use_overlay(path: Path | None) -> None:
    """Load an instruction set overlay before anything has read the table. Raises UsageError, ObjectError."""
    if path is None:
        return
    from tilewright.ipu21.overlay import use_overlay_file

    use_overlay_file(path)


DefineOption = Annotated[
    list[str] | None,
    typer.Option("--define", "-D", metavar="NAME=VALUE", help="Macro with a value; repeatable."),
]
ExternalOption = Annotated[
    list[str] | None,
    typer.Option("--external", metavar="NAME=ADDRESS", help="Symbol defined elsewhere; repeatable."),
]
IncludeOption = Annotated[
    list[Path] | None,
    typer.Option("--include", "-I", metavar="FOLDER", help="Folder of included files; repeatable."),
]
PreprocessorOption = Annotated[
    str | None,
    typer.Option(
        "--preprocessor", metavar="CMD", help="Outside C preprocessor, such as 'gcc -E'; default is our own."
    ),
]
EnginesOption = Annotated[
    EngineName | None, typer.Option("--engines", help="How to simulate; nothing but speed depends on it.")
]
OverlayOption = Annotated[
    Path | None,
    typer.Option(
        "--isa-overlay", metavar="FILE", help="Encodings found by `tilewright isa probe`, instead of ours."
    ),
]
