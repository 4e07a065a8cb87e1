"""Operators: one module each, found by name. A new operator is a new file here and nothing else.

A module `x.py` that defines `OPERATOR` is the operator `x`; it is imported when first asked for.
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from tilewright.errors import UnsupportedError

from .operator import Operator

__all__ = ["Operator", "operator", "operator_names"]


@cache
def operator_names() -> tuple[str, ...]:
    """Names of all operators, sorted."""
    modules = sorted(module.name for module in iter_modules(__path__))
    return tuple(name for name in modules if hasattr(import_module(f"{__name__}.{name}"), "OPERATOR"))


@cache
def operator(name: str) -> Operator:
    """The operator called `name`. Raises UnsupportedError that lists what there is."""
    if name in (module.name for module in iter_modules(__path__)):
        found = getattr(import_module(f"{__name__}.{name}"), "OPERATOR", None)
        if isinstance(found, Operator):
            return found
    near = difflib.get_close_matches(name, operator_names(), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(operator_names())}"
    raise UnsupportedError(f"unknown operator {name!r}", hint=hint)
