"""What to compute: typed values, operations, tracing, and the text form. No placement, no machine."""

from __future__ import annotations

from tilewright.tensor_type import TensorType

from .files import load_graph, save_graph
from .graph import Graph, Operation, Region, Value
from .loop import Loop
from .parse import parse_graph
from .text import print_graph
from .trace import trace, trace_function

__all__ = [
    "Graph",
    "Loop",
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
