"""Plain Python functions as the lowering sees them: syntax tree, annotations, link name."""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Callable
from functools import cache
from typing import Any

Function = Callable[..., Any]


@cache
def tree_of(function: Function) -> ast.FunctionDef:
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


@cache
def hints_of(function: Function) -> dict[str, Any]:
    return typing.get_type_hints(function)


def result_type(function: Function) -> str:
    hint = hints_of(function)["return"]
    if hint is int or hint is bool:
        return "i64"
    return "double" if hint is float else "{ i64, i64 }"


def symbol(function: Function) -> str:
    """Link name of a function."""
    return f"tw.{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"
