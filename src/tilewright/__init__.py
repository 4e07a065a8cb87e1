"""Tilewright: one static program for every tile of a tile processor, from a neural network."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import ops as ops
    from .api import compile as compile
    from .graph import Graph as Graph
    from .graph import load_graph as load_graph
    from .graph import save_graph as save_graph
    from .graph import trace as trace
    from .models.definition import model as model
    from .package import load_package as load_package
    from .package import save_package as save_package
    from .runtime import Session as Session
    from .runtime import open_device as open_device
    from .tensor_type import TensorType as TensorType

_HOMES = {
    "Graph": "graph",
    "Session": "runtime",
    "TensorType": "tensor_type",
    "compile": "api",
    "load_graph": "graph",
    "load_package": "package",
    "model": "models.definition",
    "open_device": "runtime",
    "save_graph": "graph",
    "save_package": "package",
    "trace": "graph",
}
"""Module of each public name. Nothing is imported before it is used, so that the command line starts fast."""


def __getattr__(name: str) -> Any:
    if name == "ops":
        return import_module("tilewright.ops")
    if name not in _HOMES:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    value = getattr(import_module(f"tilewright.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "ops"})
