"""Preprocessing tokens, and lines joined and freed of comments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f\v]+)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')
      | (?P<punctuation>\#\#|\.\.\.|<<|>>|<=|>=|==|!=|&&|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """`kind` is name, number, string or punctuation; `blank` says that white space stands before it.

    `hidden` holds the macros this token may not be expanded by.
    """

    kind: str
    text: str
    blank: bool = False
    hidden: frozenset[str] = frozenset()


def tokenise(text: str) -> list[Token]:
    """Tokens of one logical line without comments. `$` and `.` are no part of a name, as in assembly."""
    tokens = []
    blank = False
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "blank":
            blank = True
            continue
        tokens.append(Token(kind, match.group(), blank))
        blank = False
    return tokens


def spell(tokens: list[Token]) -> str:
    """Text of tokens: a blank wherever there was one."""
    return "".join((" " if token.blank else "") + token.text for token in tokens)


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """A line after joining continuations and blanking comments. `number` and `last` count from 1."""

    text: str
    number: int
    last: int


_SPECIAL = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*|\n', re.DOTALL)


def logical_lines(source: str) -> list[LogicalLine]:
    """Lines of a source: `\\` at the end joins, `//` and `/* */` become a blank. Strings stay as they are.

    A comment that is never closed reaches to the end. A joined line counts as its first one.
    """
    joined: list[LogicalLine] = []
    pieces: list[str] = []
    number = first = 1
    position = 0

    def finish() -> None:
        joined.append(LogicalLine("".join(pieces), first, number))
        pieces.clear()

    while position < len(source):
        match = _SPECIAL.search(source, position)
        if match is None:
            pieces.append(source[position:])
            break
        pieces.append(source[position : match.start()])
        token = match.group()
        position = match.end()
        if token == "\n":
            if pieces and pieces[-1].rstrip("\r").endswith("\\"):
                pieces[-1] = pieces[-1].rstrip("\r")[:-1]
                number += 1
                continue
            finish()
            number += 1
            first = number
        elif token == "/*":
            end = source.find("*/", position)
            end = len(source) - 2 if end < 0 else end
            number += source.count("\n", position, end)
            position = end + 2
            pieces.append(" ")
        elif token.startswith("//"):
            # A comment may itself be continued.
            while token.rstrip("\r").endswith("\\") and position < len(source):
                end = source.find("\n", position + 1)
                end = len(source) if end < 0 else end
                token = source[position + 1 : end]
                number += 1
                position = end
        else:
            pieces.append(token)
    if pieces:
        finish()
    return joined
