"""Faults of an assembly source: collected while assembling, shown all at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import AssemblyError

if TYPE_CHECKING:
    from .statements import Statement

MAXIMUM_FAULTS = 50
"""Faults kept per source; later ones are usually consequences of earlier ones."""
MAXIMUM_REPEATS = 500
"""How often faults may be found again, by the rounds of a repetition, before the rest is not read."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault of a source. Lines and columns count from 1; `notes` name the macro calls that led there."""

    filename: str
    line: int
    column: int
    message: str
    source: str
    hint: str | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        # Tabs before the caret are repeated, so that it stands under its character at any tab width.
        prefix = "".join("\t" if character == "\t" else " " for character in self.source[: self.column - 1])
        lines = [
            f"{self.filename}:{self.line}:{self.column}: {self.message}",
            f"    {self.source}",
            f"    {prefix}^",
        ]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        lines.extend(f"  note: {note}" for note in self.notes)
        return "\n".join(lines)


class SourceFault(Exception):
    """A fault inside a statement; `offset` counts characters of the statement's text.

    `statement` is the one at fault where that is not the one being read.
    """

    def __init__(
        self, message: str, offset: int = 0, *, hint: str | None = None, statement: Statement | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint
        self.statement = statement


class AssemblyFaults(AssemblyError):
    """Every fault found in one source, in source order (`diagnostics`)."""

    def __init__(self, filename: str, diagnostics: Sequence[Diagnostic], *, more: bool = False) -> None:
        count = len(diagnostics)
        super().__init__(f"{count} fault{'s' if count != 1 else ''} in the source", where=filename)
        self.diagnostics = tuple(diagnostics)
        self.more = more

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}", *map(str, self.diagnostics)]
        if self.more:
            lines.append(f"{self.where}: there are more; these are the first {len(self.diagnostics)}")
        return "\n".join(lines)


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """A hint naming up to three close spellings, or None."""
    close = difflib.get_close_matches(word, list(candidates), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else None
