"""Cuts a source into statements: comments blanked, positions remembered."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(slots=True)
class Expansion:
    """The macro call or repetition a statement came from."""

    name: str
    call: Statement


@dataclass(slots=True)
class Statement:
    """One statement. `line` counts from 1, `column` from 0; both are of the first character of `text`."""

    text: str
    line: int
    column: int
    expansion: Expansion | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Line (from 1) and column (from 0) of a character of the text."""
        before = self.text[:offset]
        newlines = before.count("\n")
        if newlines:
            return self.line + newlines, offset - before.rindex("\n") - 1
        return self.line, self.column + offset


@dataclass(frozen=True, slots=True)
class CutFault:
    """Something the cutter could not make sense of. Line from 1, column from 0."""

    message: str
    line: int
    column: int
    hint: str | None = None


_SPECIAL = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|//[^\n]*|#[^\n]*|/\*.*?\*/|/\*|\"|[;{}\n]", re.DOTALL
)
_PREPROCESSOR = re.compile(
    r"#\s*(?:include\s*[<\"]|define\s+\w|undef\s+\w|(?:ifdef|ifndef)\s+\w+\s*$|if\s+[(!\d]|if\s+defined|elif\s|endif\b)"
)


def cut_statements(
    source: str, *, line: int = 1, column: int = 0, expansion: Expansion | None = None
) -> tuple[list[Statement], list[CutFault]]:
    """Statements of `source` in order, and what is wrong with its outer shape.

    Comments are `#` and `//` to the end of the line and `/* */`. A newline or `;` ends a statement; the
    braces of a bundle are statements of their own, since macros and conditions may stand between them.
    """
    statements: list[Statement] = []
    faults: list[CutFault] = []
    pieces: list[str] = []
    last = 0  # first character not yet copied into `pieces`
    first_line = line  # line of the current statement's first character
    first_column = column
    line_start = -column  # offset at which the current line starts

    def finish(end: int) -> None:
        text = source[last:end] if not pieces else "".join(pieces) + source[last:end]
        stripped = text.lstrip()
        if not stripped:
            return
        lead = text[: len(text) - len(stripped)]
        newlines = lead.count("\n")
        start = len(lead) - lead.rindex("\n") - 1 if newlines else first_column + len(lead)
        statements.append(Statement(stripped.rstrip(), first_line + newlines, start, expansion))

    for match in _SPECIAL.finditer(source):
        token = match.group()
        start = match.start()
        kind = token[0]
        if kind in "\n;{}":
            finish(start)
            pieces.clear()
            if kind == "\n":
                line += 1
                line_start = match.end()
            elif kind != ";":
                statements.append(Statement(kind, line, start - line_start, expansion))
            last, first_line, first_column = match.end(), line, match.end() - line_start
        elif token == '"':
            faults.append(CutFault("the string has no closing quote on this line", line, start - line_start))
        elif token == "/*":
            faults.append(CutFault("the comment is never closed", line, start - line_start, hint="add `*/`"))
            finish(start)
            return statements, faults
        elif kind not in "\"'":
            before = "".join(pieces) + source[last:start]
            if kind == "#" and not before.strip() and _PREPROCESSOR.match(token):
                faults.append(
                    CutFault(
                        "preprocessor lines are not supported",
                        line,
                        start - line_start,
                        hint="run the source through a C preprocessor first, or use .set, .if and .macro",
                    )
                )
            pieces.append(source[last:start])
            pieces.append("".join("\n" if character == "\n" else " " for character in token))
            last = match.end()
            newlines = token.count("\n")
            if newlines:
                line += newlines
                line_start = start + token.rindex("\n") + 1
    finish(len(source))
    return statements, faults
