"""Operands as written: registers with their decoration, or expressions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from ..isa.registers import parse_register
from .diagnostics import SourceFault
from .expressions import ExpressionParser, Scope, Value
from .lexer import Token

EXPRESSION = "expr"
_DECORATIONS = ("+=", "++", "@", ">>")
_BROADCASTS = ("B", "BL", "BU")


class Written(NamedTuple):
    """One operand. `kind` is a register kind plus decoration (`apair`, `mreg+=`, `areg:BL`) or `expr`."""

    kind: str
    value: Value
    offset: int


@functools.cache
def _register(text: str) -> tuple[str, int] | None:
    return parse_register(text)


def parse_operand(tokens: Sequence[Token], index: int, scope: Scope) -> tuple[Written, int]:
    """The operand at `tokens[index]` and the index behind it. Raises SourceFault."""
    token = tokens[index]
    if token.kind == "register":
        text, end = token.text, index + 1
        if tokens[end].text == ":" and tokens[end + 1].kind == "number":
            text += ":" + tokens[end + 1].text
            end += 2
        found = _register(text)
        if found is not None:
            kind, number = found
            suffix = tokens[end].text
            if suffix in _DECORATIONS:
                kind += suffix
                end += 1
            elif suffix == ":" and tokens[end + 1].text in _BROADCASTS:
                kind += ":" + tokens[end + 1].text
                end += 2
            return Written(kind, number, token.offset), end
        if end > index + 1:
            raise SourceFault(
                f"{text} is no register pair or quad",
                token.offset,
                hint="pairs start at even numbers ($a0:1, $m2:3), quads at multiples of four ($a0:3, $a4:7)",
            )
    parser = ExpressionParser(tokens, index, scope)
    value = parser.parse()
    return Written(EXPRESSION, value, token.offset), parser.index


def parse_operands(tokens: Sequence[Token], index: int, scope: Scope) -> list[Written]:
    """All operands up to the end of the tokens, separated by commas."""
    operands: list[Written] = []
    if tokens[index].kind == "end":
        return operands
    while True:
        operand, index = parse_operand(tokens, index, scope)
        operands.append(operand)
        token = tokens[index]
        if token.kind == "end":
            return operands
        if token.text != ",":
            raise SourceFault(
                f"expected `,` or the end of the instruction, found `{token.text}`", token.offset
            )
        index += 1
