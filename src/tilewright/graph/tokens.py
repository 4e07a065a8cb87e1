"""Words of the graph's text form, each with its place."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import NoReturn

from tilewright.errors import GraphError

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r]+|\#[^\n]*)
    | (?P<newline>\n)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<number>[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    | (?P<value>%[A-Za-z_][A-Za-z0-9_.]*)
    | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
    | (?P<mark>[{}()\[\],:=@])
    """,
    re.VERBOSE,
)

MAX_DIGITS = 24
"""Longest number that is read; more is a mistake, not a value."""


@dataclass(frozen=True)
class Token:
    """`kind` is string, number, value, word, mark, newline or end; line and column count from 1."""

    kind: str
    text: str
    line: int
    column: int

    def __str__(self) -> str:
        return {"newline": "the end of the line", "end": "the end of the file"}.get(
            self.kind, f"{self.text!r}"
        )


class Tokens:
    """A cursor over the tokens of one file."""

    def __init__(self, source: str, filename: str) -> None:
        self.filename = filename
        self._tokens = list(self._split(source))
        self._next = 0

    def _split(self, source: str) -> list[Token]:
        tokens: list[Token] = []
        position, line, line_start = 0, 1, 0
        while position < len(source):
            match = _TOKEN.match(source, position)
            column = position - line_start + 1
            if match is None:
                self.fail(f"unexpected character {source[position]!r}", Token("mark", "", line, column))
            kind = match.lastgroup or ""
            if kind != "space":
                tokens.append(Token(kind, match.group(), line, column))
            position = match.end()
            if kind == "newline":
                line, line_start = line + 1, position
        tokens.append(Token("end", "", line, position - line_start + 1))
        return tokens

    def fail(self, what: str, token: Token) -> NoReturn:
        """Raise GraphError at `token`."""
        raise GraphError(what, where=f"{self.filename}:{token.line}:{token.column}")

    @property
    def ahead(self) -> Token:
        """The next token, not consumed."""
        return self._tokens[self._next]

    def take(self) -> Token:
        """Consume and return the next token; the end is never passed."""
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def skip_blank_lines(self) -> None:
        """Consume ends of lines."""
        while self.ahead.kind == "newline":
            self.take()

    def accept(self, text: str) -> bool:
        """Consume the mark or word `text` if it is next."""
        if self.ahead.kind in ("mark", "word") and self.ahead.text == text:
            self.take()
            return True
        return False

    def expect(self, text: str) -> Token:
        """Consume the mark or word `text`, or fail."""
        token = self.ahead
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {token}", token)
        return token

    def expect_kind(self, kind: str, what: str) -> Token:
        """Consume a token of one kind, or fail saying that `what` was expected."""
        token = self.take()
        if token.kind != kind:
            self.fail(f"expected {what}, found {token}", token)
        return token

    def integer(self, what: str, *, signed: bool = False) -> int:
        """Consume a whole number of at most `MAX_DIGITS` digits; with a sign only when `signed`."""
        token = self.expect_kind("number", what)
        digits = token.text.lstrip("+-") if signed else token.text
        if not digits.isdigit() or len(token.text) > MAX_DIGITS:
            self.fail(f"expected {what}, found {token}", token)
        return int(token.text)

    def string(self, what: str) -> str:
        """Consume a quoted string."""
        token = self.expect_kind("string", what)
        try:
            value = ast.literal_eval(token.text)
        except (SyntaxError, ValueError):
            self.fail(f"bad escape in {token.text}", token)
        assert isinstance(value, str)
        return value

    def end_of_line(self) -> None:
        """Consume the end of a line, or be at the end of the file."""
        token = self.ahead
        if token.kind not in ("newline", "end"):
            self.fail(f"expected the end of the line, found {token}", token)
        self.take()
