"""Expressions: operators over numbers and symbols, folded as soon as everything in them is known.

Operator order is that of the GNU assembler and of the vendor's (known: its tool chain is of the LLVM family,
which follows GNU): `*` and shifts first, then `|`, `^` and `&`, then `+` and `-`, then comparisons. A
comparison that holds is -1.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from .diagnostics import SourceFault
from .lexer import Token, float_value, number_value, string_bytes
from .symbols import Symbol

MAXIMUM_DEPTH = 100
_LIMIT = 1 << 64

_LEVELS: dict[str, int] = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("==", "!=", "<>", "<", "<=", ">", ">="), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("|", "^", "&"), 5),
    **dict.fromkeys(("*", "/", "%", "<<", ">>"), 6),
}
"""Operator -> level; a higher one binds tighter."""


@dataclass(frozen=True, slots=True)
class Address:
    """A symbol plus a constant; `modifier` is the relocation spelling after it, such as `19@s2`."""

    symbol: Symbol
    addend: int
    modifier: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """An operation whose operands are not known yet. `left` is None for a unary operator."""

    operator: str
    left: Value | None
    right: Value
    offset: int


Value = int | Address | Node


class Scope(Protocol):
    """What names mean at the point of use."""

    def name(self, name: str, offset: int) -> Value: ...

    def local(self, reference: str, offset: int) -> Value: ...

    def register(self, name: str, offset: int) -> Value: ...

    def here(self) -> Value: ...


def _divide(left: int, right: int, offset: int) -> int:
    if right == 0:
        raise SourceFault("division by zero", offset)
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _shift_amount(amount: int, offset: int) -> int:
    if not 0 <= amount < 64:
        raise SourceFault(f"shift by {amount}", offset, hint="shift amounts lie in 0..63")
    return amount


_COMPARE: dict[str, Callable[[int], bool]] = {
    "==": lambda d: d == 0,
    "!=": lambda d: d != 0,
    "<>": lambda d: d != 0,
    "<": lambda d: d < 0,
    "<=": lambda d: d <= 0,
    ">": lambda d: d > 0,
    ">=": lambda d: d >= 0,
}


def _fold_numbers(operator: str, left: int, right: int, offset: int) -> int:
    if operator == "+":
        value = left + right
    elif operator == "-":
        value = left - right
    elif operator == "*":
        value = left * right
    elif operator == "/":
        value = _divide(left, right, offset)
    elif operator == "%":
        value = left - right * _divide(left, right, offset)
    elif operator == "&":
        value = left & right
    elif operator == "|":
        value = left | right
    elif operator == "^":
        value = left ^ right
    elif operator == "<<":
        value = left << _shift_amount(right, offset)
    elif operator == ">>":
        value = left >> _shift_amount(right, offset)
    elif operator == "&&":
        value = int(bool(left) and bool(right))
    elif operator == "||":
        value = int(bool(left) or bool(right))
    else:
        value = -int(_COMPARE[operator](left - right))
    if not -_LIMIT < value < _LIMIT:
        raise SourceFault("the value does not fit in 64 bits", offset)
    return value


def difference(left: Address, right: Address) -> int | None:
    """Bytes from `right` to `left`, or None while that is not known."""
    if left.symbol is right.symbol:
        return left.addend - right.addend
    if left.symbol.section is not None and left.symbol.section is right.symbol.section:
        return left.symbol.offset + left.addend - right.symbol.offset - right.addend
    return None


def combine(operator: str, left: Value, right: Value, offset: int) -> Value:
    """Apply a binary operator as far as the operands are known. Raises SourceFault on nonsense."""
    if isinstance(left, int) and isinstance(right, int):
        return _fold_numbers(operator, left, right, offset)
    for operand in (left, right):
        if isinstance(operand, Address) and operand.modifier is not None:
            raise SourceFault(
                "nothing can be computed with a relocated symbol", offset, hint="write (a+b)@modifier"
            )
    if operator == "+":
        if isinstance(left, Address) and isinstance(right, int):
            return Address(left.symbol, left.addend + right)
        if isinstance(left, int) and isinstance(right, Address):
            return Address(right.symbol, right.addend + left)
    elif operator == "-":
        if isinstance(left, Address) and isinstance(right, int):
            return Address(left.symbol, left.addend - right)
        if isinstance(left, Address) and isinstance(right, Address):
            known = difference(left, right)
            if known is not None:
                return known
        if right == 0:
            return left
    elif operator in _COMPARE and isinstance(left, Address) and isinstance(right, Address):
        known = difference(left, right)
        if known is not None:
            return -int(_COMPARE[operator](known))
    return Node(operator, left, right, offset)


def apply_unary(operator: str, operand: Value, offset: int) -> Value:
    """Apply `-`, `~`, `!` or `+`."""
    if operator == "+":
        return operand
    if isinstance(operand, int):
        return -operand if operator == "-" else ~operand if operator == "~" else int(not operand)
    return Node(operator, None, operand, offset)


def evaluate(value: Value, depth: int = 0) -> int | Address:
    """Final value once every symbol of the source is placed. Raises SourceFault when it is not of a form
    that a number or one relocation can express."""
    if isinstance(value, int):
        return value
    if depth > MAXIMUM_DEPTH:
        raise SourceFault("the definition refers to itself or is nested too deeply")
    if isinstance(value, Address):
        assigned = value.symbol.value
        if assigned is None:
            return value
        total = combine("+", evaluate(assigned, depth + 1), value.addend, 0)
        if isinstance(total, Address) and value.modifier is not None:
            return Address(total.symbol, total.addend, value.modifier)
        return evaluate(total, depth + 1) if isinstance(total, Node) else total
    right = evaluate(value.right, depth + 1)
    if value.left is None:
        result = apply_unary(value.operator, right, value.offset)
    else:
        result = combine(value.operator, evaluate(value.left, depth + 1), right, value.offset)
    if isinstance(result, Node):
        names = sorted({name for name in _names(result) if not name.startswith(".L ")})
        about = f" of {', '.join(names)}" if names else ""
        raise SourceFault(
            f"`{value.operator}` needs numbers, but the value{about} is known only after linking",
            value.offset,
            hint="only symbol + constant can be relocated; a difference needs two labels of one section",
        )
    return result


def _names(value: Value) -> list[str]:
    if isinstance(value, Address):
        return [value.symbol.name]
    if isinstance(value, Node):
        return (_names(value.left) if value.left is not None else []) + _names(value.right)
    return []


class ExpressionParser:
    """Reads one expression from a token list; `index` is left behind it."""

    __slots__ = ("_depth", "index", "scope", "tokens")

    def __init__(self, tokens: Sequence[Token], index: int, scope: Scope) -> None:
        self.tokens = tokens
        self.index = index
        self.scope = scope
        self._depth = 0

    def parse(self) -> Value:
        return self._binary(0)

    def _binary(self, minimum: int) -> Value:
        left = self._unary()
        while True:
            token = self.tokens[self.index]
            level = _LEVELS.get(token.text, 0) if token.kind == "operator" else 0
            if level <= minimum:
                return left
            self.index += 1
            left = combine(token.text, left, self._binary(level), token.offset)

    def _unary(self) -> Value:
        token = self.tokens[self.index]
        if token.kind == "operator" and token.text in ("-", "~", "!", "+"):
            self._depth += 1
            if self._depth > MAXIMUM_DEPTH:
                raise SourceFault("the expression is nested too deeply", token.offset)
            self.index += 1
            following = self.tokens[self.index]
            if token.text == "-" and following.kind == "float":
                # The minus belongs to the number: it flips the sign bit, it does not negate the bit pattern.
                self.index += 1
                self._depth -= 1
                return _float_bits(following) ^ (0x8000 if following.text.endswith("h") else 0x80000000)
            operand = self._unary()
            self._depth -= 1
            return apply_unary(token.text, operand, token.offset)
        return self._atom()

    def _atom(self) -> Value:
        token = self.tokens[self.index]
        kind = token.kind
        self.index += 1
        if kind == "number":
            value = self._number(token)
            if value >= _LIMIT:
                raise SourceFault("the number does not fit in 64 bits", token.offset)
            return value
        if kind == "name":
            named = self.scope.here() if token.text == "." else self.scope.name(token.text, token.offset)
            return self._modified(named)
        if kind == "local":
            return self._modified(self.scope.local(token.text, token.offset))
        if kind == "register":
            return self.scope.register(token.text, token.offset)
        if kind == "character":
            data = string_bytes(token)
            if len(data) != 1:
                raise SourceFault("a character constant is one byte", token.offset)
            return data[0]
        if kind == "float":
            return _float_bits(token)
        if token.text == "(":
            self._depth += 1
            if self._depth > MAXIMUM_DEPTH:
                raise SourceFault("the expression is nested too deeply", token.offset)
            inner = self.parse()
            self._depth -= 1
            closing = self.tokens[self.index]
            if closing.text != ")":
                raise SourceFault("expected `)`", closing.offset)
            self.index += 1
            return self._modified(inner)
        if kind == "end":
            raise SourceFault("expected an expression", token.offset)
        raise SourceFault(f"expected an expression, found `{token.text}`", token.offset)

    @staticmethod
    def _number(token: Token) -> int:
        try:
            return number_value(token.text)
        except ValueError:
            raise SourceFault(
                f"{token.text} is not an octal number", token.offset, hint="a leading zero means octal"
            ) from None

    def _modified(self, value: Value) -> Value:
        """`value`, with a relocation spelling attached if one follows."""
        tokens, index = self.tokens, self.index
        at = tokens[index]
        if at.text != "@":
            return value
        words: list[str] = []
        while tokens[index].text == "@" and tokens[index + 1].kind in ("name", "number"):
            words.append(tokens[index + 1].text)
            index += 2
        if not words:
            raise SourceFault("expected a relocation after `@`", at.offset)
        self.index = index
        if isinstance(value, int):
            raise SourceFault("a relocation needs a symbol", at.offset)
        if isinstance(value, Node) or value.modifier is not None:
            raise SourceFault("only symbol + constant can be relocated", at.offset)
        return Address(value.symbol, value.addend, "@".join(words))


def _float_bits(token: Token) -> int:
    """Bits of a floating-point constant: 16 with an `h` suffix, otherwise 32."""
    half = token.text.endswith("h")
    try:
        packed = struct.pack("<e" if half else "<f", float_value(token.text))
    except OverflowError:
        raise SourceFault(f"{token.text} is out of range", token.offset) from None
    except ValueError:
        raise SourceFault(f"{token.text} is no number", token.offset) from None
    return int.from_bytes(packed, "little")
