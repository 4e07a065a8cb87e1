"""Operators as plain functions: `ops.matmul(a, b)`, `ops.gelu(x)`, and the loop `ops.repeat(...)`.

On NumPy arrays each computes its float32 reference; while a function is traced, it records an operation.
Each function is the one of the same name in `tilewright.operators.<name>`, where its documentation is;
`repeat` is in `tilewright.graph.repeat`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tilewright.operators import operator_names

_REPEAT = "repeat"


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_") or name not in __dir__():
        raise AttributeError(f"tilewright.ops has no operator {name!r}; there are {', '.join(__dir__())}")
    home = "graph" if name == _REPEAT else "operators"
    function: Callable[..., Any] = getattr(import_module(f"tilewright.{home}.{name}"), name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted([*operator_names(), _REPEAT])
