"""Operands of lowered functions, and what Python's operators are called in LLVM."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...isa.meaning import arrays

POINTERS: dict[Any, tuple[str, str]] = {
    arrays.Bytes: ("i8", "unsigned"),
    arrays.Words: ("i32", "unsigned"),
    arrays.Marks: ("i16", "signed"),
    arrays.Integers: ("i64", "signed"),
    arrays.Singles: ("float", "float"),
}
"""Array annotation to element type and how it is read."""


@dataclass(frozen=True)
class Value:
    """An operand: i integer, f double, s float32, b truth value, c Python constant, t tuple, p pointer.

    Attributes:
        kind: see above.
        text: as LLVM writes it.
        constant: of a `c`.
        items: of a `t`.
        element: of a `p`, (element type, how it is read).
    """

    kind: str
    text: str = ""
    constant: Any = None
    items: tuple[Value, ...] = ()
    element: tuple[str, str] = ("", "")


def constant(value: Any) -> Value:
    return Value("c", constant=value)


UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: lambda value: -value,
    ast.Invert: lambda value: ~value,
    ast.Not: lambda value: not value,
}
PLAIN: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}
FLOAT: dict[type[ast.operator], str] = {
    ast.Add: "fadd",
    ast.Sub: "fsub",
    ast.Mult: "fmul",
    ast.Div: "fdiv",
}
INTEGER: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.LShift: "shl",
    ast.RShift: "ashr",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
INTEGER_COMPARE = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
}
FLOAT_COMPARE = {
    ast.Eq: "oeq",
    ast.NotEq: "une",
    ast.Lt: "olt",
    ast.LtE: "ole",
    ast.Gt: "ogt",
    ast.GtE: "oge",
}


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def as_load(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    assert isinstance(node, ast.Subscript)
    return ast.Subscript(node.value, node.slice, ast.Load())


def log2_of(value: int) -> int:
    if value & (value - 1):
        raise ValueError(f"division by {value}")
    return value.bit_length() - 1
