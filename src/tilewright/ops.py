"""Operators as plain functions: `ops.matmul(a, b)`, `ops.add(a, b)`, `ops.gelu(x)`.

On NumPy arrays each computes its float32 reference; while a function is traced, it records an operation.
Each function is the one of the same name in `tilewright.operators.<name>`, where its documentation is.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tilewright.operators import operator_names


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_") or name not in operator_names():
        listed = ", ".join(operator_names())
        raise AttributeError(f"tilewright.ops has no operator {name!r}; there are {listed}")
    function: Callable[..., Any] = getattr(import_module(f"tilewright.operators.{name}"), name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return list(operator_names())
