"""What to compute: typed values, operations, tracing, and the text form. No placement, no machine."""

from __future__ import annotations

from tilewright.tensor_type import TensorType

from .files import load_graph, save_graph
from .graph import Graph, Operation, Region, Value
from .text import parse_graph, print_graph
from .trace import trace, trace_function

__all__ = [
    "Graph",
    "Operation",
    "Region",
    "TensorType",
    "Value",
    "load_graph",
    "parse_graph",
    "print_graph",
    "save_graph",
    "trace",
    "trace_function",
]
