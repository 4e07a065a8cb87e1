"""The rules every graph obeys, checked in one walk."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.errors import GraphError, TilewrightError
from tilewright.operators import operator

from .graph import Graph, Operation, Region, Value
from .names import is_name


def verify(graph: Graph) -> None:
    """Raise GraphError (ShapeError, UnsupportedError) at the first broken rule; return when all hold.

    Rules: names are legal and unique; ids count up in order of definition; a value is defined once and
    before its uses; constants carry data of their type; each operation's
    attributes and operand types pass its operator's own rules and give the stated result type; outputs
    are distinct results of operations; every input is used.
    """
    _check_name(graph.name, "graph")
    defined: dict[Value, None] = {}
    names: set[str] = set()

    def define(value: Value, what: str) -> None:
        _check_name(value.name, what)
        if value.name in names:
            raise GraphError(f"two values are called {value.name!r}")
        if value.id != len(defined):
            raise GraphError(f"value {value.name!r} has id {value.id} where {len(defined)} is next")
        names.add(value.name)
        defined[value] = None

    for value in graph.inputs:
        define(value, "input")
    for value, array in graph.constants:
        define(value, "constant")
        if array.shape != value.type.shape or array.dtype != np.dtype(value.type.dtype):
            found = f"{array.dtype}{list(array.shape)}"
            raise GraphError(f"constant {value.name!r} is declared {value.type} but its data is {found}")
    used = _check_operations(graph.body, defined, define)
    _check_outputs(graph)
    for value in graph.inputs:
        if value not in used:
            raise GraphError(
                f"input {value.name!r} is never used", hint="drop it, so that a run does not ask for it"
            )


def _check_operations(
    region: Region, defined: dict[Value, None], define: Callable[[Value, str], None]
) -> set[Value]:
    used: set[Value] = set()
    for operation in region.operations:
        try:
            _check_operation(operation, defined)
            for value in operation.results:
                define(value, "value")
        except TilewrightError as error:
            error.where = error.where or operation.location or None
            raise
        used.update(operation.operands)
    return used


def _check_operation(operation: Operation, defined: dict[Value, None]) -> None:
    rule = operator(operation.name)
    resolved = rule.resolve(operation.attributes)
    if dict(operation.attributes) != resolved:
        raise GraphError(f"{operation.name}: attributes are not complete")
    for operand in operation.operands:
        if operand not in defined:
            raise GraphError(f"{operation.name} uses {operand.name!r} before it is defined")
    if len(operation.results) != 1:
        raise GraphError(f"{operation.name} has {len(operation.results)} results, it defines one")
    inferred = rule.infer(resolved, *(operand.type for operand in operation.operands))
    stated = operation.result.type
    if inferred != stated:
        raise GraphError(f"{operation.name} gives {inferred}, but {operation.result.name!r} is {stated}")


def _check_outputs(graph: Graph) -> None:
    if len(graph.output_names) != len(graph.body.results):
        raise GraphError(f"{len(graph.body.results)} outputs have {len(graph.output_names)} names")
    if not graph.output_names:
        raise GraphError("the graph has no output")
    computed = {value for operation in graph.operations for value in operation.results}
    named: dict[Value, str] = {}
    for name, value in graph.outputs:
        _check_name(name, "output")
        if value not in computed:
            raise GraphError(f"output {name!r} is {value.name!r}, which no operation of the graph computes")
        if value in named:
            raise GraphError(f"outputs {named[value]!r} and {name!r} are the same value")
        if name in named.values():
            raise GraphError(f"two outputs are called {name!r}")
        named[value] = name


def _check_name(name: str, what: str) -> None:
    if not is_name(name):
        raise GraphError(
            f"{what} name {name[:60]!r} is not legal",
            hint="letters, digits, '_' and '.', not beginning with a digit",
        )
