"""Tokens of one statement."""

from __future__ import annotations

import re
from typing import NamedTuple

from .diagnostics import SourceFault


class Token(NamedTuple):
    """`kind` is register, number, float, local, name, string, character, operator or end."""

    kind: str
    text: str
    offset: int


_TOKEN = re.compile(
    r"""[ \t\r\f\v\n]*(?:
      (?P<register>\$[A-Za-z_]\w*)
    | (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[hf]?|\d+[eE][+-]?\d+[hf]?|\d+h\b
        |0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+)
    | (?P<name>[A-Za-z_.][\w.$]*)
    | (?P<operator><<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|\+\+|[-+*/%&|^~!<>(){}\[\],:;=@?])
    | (?P<number>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+(?!\d|[bf]\b))(?:[uU][lL]{0,2}\b|[lL]{1,2}\b)?)
    | (?P<local>\d+[bf]\b)
    | (?P<string>"(?:\\.|[^"\\])*")
    | (?P<character>'(?:\\.|[^'\\])'?)
    | (?P<end>\Z)
    | (?P<stray>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_DIGITS = tuple(".0123456789")
_ESCAPES = {"n": 10, "t": 9, "r": 13, "b": 8, "f": 12, "\\": 92, '"': 34, "'": 39}


def tokenise(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """Tokens of `text[start:end]`, closed by one of kind `end`. Raises SourceFault on a stray character."""
    found = _TOKEN.finditer(text, start, len(text) if end is None else end)
    tokens = [
        Token(kind, match[kind], match.start(kind))
        for match in found
        if (kind := match.lastgroup) is not None
    ]
    for token in tokens:
        if token[0] == "stray":
            raise SourceFault(f"unexpected character {token.text!r}", token.offset)
    return tokens


def number_value(text: str) -> int:
    """Value of a number token: decimal, `0x` hexadecimal, `0b` binary or leading-zero octal.

    C's suffixes `U` and `L` mean nothing, as in the vendor's assembler (known).
    """
    text = text.rstrip("uUlL")
    lowered = text.lower()
    if lowered.startswith("0x"):
        return int(lowered, 16)
    if lowered.startswith("0b"):
        return int(lowered, 2)
    if len(text) > 1 and text[0] == "0":
        return int(text, 8)
    return int(text)


def float_value(text: str) -> float:
    """Value of a float token: decimal, or hexadecimal with a binary exponent. Raises ValueError."""
    if text[:2].lower() == "0x":
        return float.fromhex(text)
    return float(text[:-1] if text[-1] in "hf" and text[-2:-1] in _DIGITS else text)


def string_bytes(token: Token) -> bytes:
    """Bytes of a string or character token, escapes resolved. Raises SourceFault on an unknown escape.

    The closing quote of a character may be left out.
    """
    quoted = token.text[1:]
    open_character = token.kind == "character" and len(quoted) == 1 + quoted.startswith("\\")
    text = quoted if open_character else quoted[:-1]
    if "\\" not in text:
        return text.encode()
    out = bytearray()
    index = 0
    while index < len(text):
        character = text[index]
        if character != "\\":
            out += character.encode()
            index += 1
            continue
        code = text[index + 1]
        octal = re.compile(r"[0-7]{1,3}").match(text, index + 1)
        hexadecimal = re.compile(r"x([0-9a-fA-F]{1,2})").match(text, index + 1)
        if octal:
            value = int(octal.group(), 8)
            if value > 255:
                raise SourceFault(f"octal escape \\{octal.group()} is over one byte", token.offset + index)
            out.append(value)
            index = octal.end()
        elif hexadecimal:
            out.append(int(hexadecimal.group(1), 16))
            index = hexadecimal.end()
        elif code in _ESCAPES:
            out.append(_ESCAPES[code])
            index += 2
        else:
            raise SourceFault(f"unknown escape \\{code}", token.offset + 1 + index)
    return bytes(out)
