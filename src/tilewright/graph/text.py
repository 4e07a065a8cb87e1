"""The graph as readable text, version 1. The data of constants lies beside it, in a safetensors file.

    tilewright graph 1
    graph digits {
      input %x : float32[360, 64]
      constant %w0 : float32[64, 128]
      %matmul_0 = matmul(%x, %w0) : float32[360, 128]  @ "model.py:12"
      %gelu_0 = gelu(%matmul_0, approximate="tanh") : float32[360, 128]
      output logits = %gelu_0
    }

A loop is an operation with a region:

    %repeat_0 = repeat(%x, %w, count=6) : float32[8, 64] {
      carried %x_1 : float32[8, 64]
      iterated %w_1 : float32[64, 64]
      %matmul_0 = matmul(%x_1, %w_1) : float32[8, 64]
      next %matmul_0
    }

One statement a line; `#` begins a comment. Inputs come first, then constants, operations, outputs. The
text after `@` is the line that a message about the operation points to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from tilewright.operators.parameter import Attribute

from .graph import Graph, Operation, Value
from .loop import REPEAT, Loop

VERSION = 1

_INDENT = "  "


def print_graph(graph: Graph) -> str:
    """Text of `graph`. The same graph gives the same text on every machine."""
    lines = [f"tilewright graph {VERSION}", f"graph {graph.name} {{"]
    lines += [f"{_INDENT}input {_declared(value)}" for value in graph.inputs]
    lines += [f"{_INDENT}constant {_declared(value)}" for value, _ in graph.constants]
    lines += [_INDENT + line for operation in graph.operations for line in _operation(operation)]
    lines += [f"{_INDENT}output {name} = %{value.name}" for name, value in graph.outputs]
    return "\n".join([*lines, "}", ""])


def _operation(operation: Operation) -> Iterator[str]:
    """Lines of one operation, those of its region indented."""
    arguments = [f"%{value.name}" for value in operation.operands]
    # Flags are unset by default (a test holds all operators to it), and shown only when set.
    shown = {name: value for name, value in operation.attributes.items() if value is not False}
    arguments += [f"{name}={_attribute(value)}" for name, value in shown.items()]
    types = ", ".join(str(value.type) for value in operation.results)
    place = f"  @ {json.dumps(operation.location)}" if operation.location else ""
    line = f"{_names(operation.results)} = {operation.name}({', '.join(arguments)}) : {types}{place}"
    if operation.name != REPEAT:
        yield line
        return
    yield f"{line} {{"
    loop = Loop(operation)
    for keyword, values in (("carried", loop.entering), ("iterated", loop.slices)):
        yield from (f"{_INDENT}{keyword} {_declared(value)}" for value in values)
    for inside in loop.region.operations:
        yield from (_INDENT + text for text in _operation(inside))
    yield f"{_INDENT}next {_names(loop.leaving)}"
    yield "}"


def _declared(value: Value) -> str:
    return f"%{value.name} : {value.type}"


def _names(values: Iterable[Value]) -> str:
    return ", ".join(f"%{value.name}" for value in values)


def _attribute(value: Attribute) -> str:
    return json.dumps(value)
