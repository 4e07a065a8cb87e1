"""Expressions of `#if`: C's integer operators, `defined`, unknown names are zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .expansion import Macro, expand
from .faults import PreprocessorFault
from .tokens import Token, spell, tokenise

_LEVELS: dict[str, int] = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    ">": 7,
    "<=": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
_MAXIMUM_DEPTH = 100
_HAS_INCLUDE = "__has_include"
_MASK = (1 << 64) - 1


Exists = Callable[[str, bool], bool]
"""Whether a file can be included: its name, and whether the including file's folder is searched."""


def holds(text: str, macros: Mapping[str, Macro], exists: Exists) -> bool:
    """Whether a condition holds. Raises PreprocessorFault."""
    tokens = _without_includes(_without_defined(tokenise(text.strip()), macros), exists)
    return _Reader(expand(tokens, macros)).whole() != 0


def _without_includes(tokens: list[Token], exists: Exists) -> list[Token]:
    """`__has_include("file")` and `__has_include(<file>)` replaced by 1 or 0."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if token.text != _HAS_INCLUDE:
            result.append(token)
            continue
        end = next((place for place in range(index, len(tokens)) if tokens[place].text == ")"), None)
        if end is None or tokens[index].text != "(":
            raise PreprocessorFault(f"`{_HAS_INCLUDE}` needs a file in parentheses")
        name = spell(tokens[index + 1 : end]).strip()
        if len(name) < 3 or name[0] + name[-1] not in ('""', "<>"):
            raise PreprocessorFault(f'expected "file" or <file> after {_HAS_INCLUDE}')
        result.append(Token("number", str(int(exists(name[1:-1], name[0] == '"'))), True))
        index = end + 1
    return result


def _without_defined(tokens: list[Token], macros: Mapping[str, Macro]) -> list[Token]:
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind != "name" or token.text != "defined":
            result.append(token)
            index += 1
            continue
        rest = [item.text for item in tokens[index + 1 : index + 4]]
        if len(rest) == 3 and rest[0] == "(" and rest[2] == ")":
            name, index = rest[1], index + 4
        elif rest and rest[0] != "(":
            name, index = rest[0], index + 2
        else:
            raise PreprocessorFault("`defined` needs a name")
        result.append(Token("number", str(int(name in macros or name == _HAS_INCLUDE)), True))
    return result


def _number(text: str) -> int:
    digits = text.lower().rstrip("ul").replace("'", "")
    try:
        if digits.startswith("0") and digits.isdigit():
            return int(digits, 8)
        return int(digits, 0)
    except ValueError:
        raise PreprocessorFault(f"{text} is no integer") from None


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


class _Reader:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    def whole(self) -> int:
        if not self._tokens:
            raise PreprocessorFault("the condition is empty")
        value = self._ternary()
        if self._index < len(self._tokens):
            raise PreprocessorFault(f"unexpected `{self._next}` in the condition")
        return value

    @property
    def _next(self) -> str:
        return self._tokens[self._index].text if self._index < len(self._tokens) else ""

    def _take(self, text: str) -> None:
        if self._next != text:
            raise PreprocessorFault(f"expected `{text}` in the condition")
        self._index += 1

    def _ternary(self) -> int:
        self._depth += 1
        if self._depth > _MAXIMUM_DEPTH:
            raise PreprocessorFault("the condition is nested too deeply")
        value = self._binary(0)
        if self._next == "?":
            self._index += 1
            first = self._ternary()
            self._take(":")
            second = self._ternary()
            value = first if value else second
        self._depth -= 1
        return value

    def _binary(self, minimum: int) -> int:
        left = self._unary()
        while _LEVELS.get(self._next, 0) > minimum:
            operator = self._next
            self._index += 1
            left = _apply(operator, left, self._binary(_LEVELS[operator]))
        return left

    def _unary(self) -> int:
        token = self._next
        if token in ("-", "+", "!", "~") and token:
            self._depth += 1
            if self._depth > _MAXIMUM_DEPTH:
                raise PreprocessorFault("the condition is nested too deeply")
            self._index += 1
            value = self._unary()
            self._depth -= 1
            return {"-": _signed(-value), "+": value, "!": int(not value), "~": ~value}[token]
        if token == "(":
            self._index += 1
            value = self._ternary()
            self._take(")")
            return value
        if self._index >= len(self._tokens):
            raise PreprocessorFault("the condition ends too early")
        item = self._tokens[self._index]
        self._index += 1
        if item.kind == "number":
            return _signed(_number(item.text))
        if item.kind == "name":
            return 0
        if item.kind == "string" and item.text[0] == "'" and len(item.text) == 3:
            return ord(item.text[1])
        raise PreprocessorFault(f"unexpected `{item.text}` in the condition")


def _apply(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%"):
        if right == 0:
            # Skipped by C where a short circuit decides; there the value does not matter either.
            return 0
        quotient = abs(left) // abs(right)
        quotient = quotient if (left < 0) == (right < 0) else -quotient
        return _signed(quotient if operator == "/" else left - right * quotient)
    if operator in ("<<", ">>"):
        if not 0 <= right < 64:
            raise PreprocessorFault(f"shift by {right} in the condition")
        return _signed(left << right if operator == "<<" else left >> right)
    simple = {
        "||": int(bool(left) or bool(right)),
        "&&": int(bool(left) and bool(right)),
        "|": left | right,
        "^": left ^ right,
        "&": left & right,
        "==": int(left == right),
        "!=": int(left != right),
        "<": int(left < right),
        ">": int(left > right),
        "<=": int(left <= right),
        ">=": int(left >= right),
        "+": left + right,
        "-": left - right,
        "*": left * right,
    }
    return _signed(simple[operator])
