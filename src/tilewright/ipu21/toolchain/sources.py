"""The files of one assembly: their lines, and what is told about them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .diagnostics import MAXIMUM_FAULTS, MAXIMUM_REPEATS, Diagnostic, SourceFault
from .statements import CutFault, Expansion, Statement


class TooManyFaults(Exception):
    """Enough is wrong; nothing more need be read."""


class Sources:
    """Lines of all files, faults and warnings.

    Lines are numbered through in the order they are read, so that a statement knows its place by one number;
    `origins` says which file and line each is.
    """

    def __init__(
        self,
        source: str,
        filename: str,
        origins: Sequence[tuple[str, int]],
        include_dirs: Sequence[Path],
    ) -> None:
        self.filename = filename
        self.include_dirs = tuple(include_dirs)
        self.lines = source.split("\n")
        self.origins: list[tuple[str, int]] = list(origins)
        self.origins += [(filename, line + 1) for line in range(len(self.origins), len(self.lines))]
        self.diagnostics: list[tuple[int, Diagnostic]] = []
        self.warnings: list[str] = []
        self._told_again = 0

    def add(self, name: str, source: str) -> int:
        """Lines of another file; returns the number of its first one."""
        first = len(self.lines) + 1
        lines = source.split("\n")
        self.lines += lines
        self.origins += [(name, line + 1) for line in range(len(lines))]
        return first

    def origin(self, line: int) -> tuple[str, int]:
        """File and line (from 1) of a line of any file read so far."""
        return self.origins[min(line, len(self.origins)) - 1]

    def where(self, line: int) -> str:
        """A line in words, seen from the main file: `line 3`, or `file:3`."""
        name, number = self.origin(line)
        return f"line {number}" if name == self.filename else f"{name}:{number}"

    def found(self, wanted: str, statement: Statement, place: int) -> Path:
        """A file named in the source: beside the file that names it, or in an include folder.

        Raises SourceFault.
        """
        home = Path(self.origin(statement.line)[0]).parent
        for folder in (home, *self.include_dirs):
            if (folder / wanted).is_file():
                return folder / wanted
        raise SourceFault(f"there is no file {wanted}", place, hint="give its folder with -I")

    def warn(self, text: str, statement: Statement) -> None:
        """Tell the user something that is no fault."""
        name, line = self.origin(statement.line)
        self.warnings.append(f"{name}:{line}: {text}")

    def report(self, fault: SourceFault, statement: Statement) -> None:
        """Remember a fault. Stops the assembly once there are too many."""
        statement = fault.statement or statement
        line, column = statement.position(fault.offset)
        notes: list[str] = []
        if statement.expansion is None:
            shown = self.lines[line - 1].rstrip("\r") if line <= len(self.lines) else ""
        else:
            before = statement.text[: fault.offset]
            shown = statement.text.split("\n")[before.count("\n")]
            column = fault.offset - (before.rindex("\n") + 1 if "\n" in before else 0)
            expansion: Expansion | None = statement.expansion
            while expansion is not None:
                name, number = self.origin(expansion.call.line)
                notes.append(f"in {expansion.name}, expanded at {name}:{number}")
                expansion = expansion.call.expansion
        self._add(line, column, shown, fault.message, fault.hint, tuple(notes))

    def report_cuts(self, faults: list[CutFault], statement: Statement | None) -> None:
        """Remember faults of cutting a source or an expansion (then `statement` is the call)."""
        for fault in faults:
            if statement is not None:
                self.report(SourceFault(f"in the expansion: {fault.message}", 0, hint=fault.hint), statement)
            else:
                shown = self.lines[fault.line - 1].rstrip("\r")
                self._add(fault.line, fault.column, shown, fault.message, fault.hint, ())

    def _add(
        self, line: int, column: int, shown: str, message: str, hint: str | None, notes: tuple[str, ...]
    ) -> None:
        name, number = self.origin(line)
        item = (line, Diagnostic(name, number, column + 1, message, shown, hint, notes))
        if item in self.diagnostics:
            self._told_again += 1
            if self._told_again > MAXIMUM_REPEATS:
                raise TooManyFaults
            return
        if len(self.diagnostics) >= MAXIMUM_FAULTS:
            raise TooManyFaults
        self.diagnostics.append(item)

    def faults(self) -> list[Diagnostic]:
        """Every fault so far, by place."""
        self.diagnostics.sort(key=lambda item: (item[0], item[1].column))
        return [item for _, item in self.diagnostics]
