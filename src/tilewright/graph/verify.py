"""The rules every graph obeys, checked in one walk."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tilewright.errors import GraphError, TilewrightError
from tilewright.operators import operator
from tilewright.tensor_type import TensorType

from .graph import Graph, Operation, Region, Value
from .loop import REPEAT, Loop, argument_types, check_leaving, resolve_attributes
from .names import is_name

MAX_DEPTH = 16
"""How deep regions may nest, far beyond any model; bounds recursion."""


def verify(graph: Graph) -> None:
    """Raise GraphError (ShapeError, UnsupportedError) at the first broken rule; return when all hold.

    Rules: names are legal and unique; ids count up in order of definition; a value is defined once, before
    its uses, and seen only in its region and the regions inside; constants carry data of their type; each
    operation's attributes and operand types pass its operator's own rules and give the stated result type;
    a `repeat` leaves what it carries as it finds it, by type; outputs, and what a `repeat` carries on, are
    distinct results of operations of their region; every input and every argument of a region is used.
    """
    _check_name(graph.name, "graph")
    checker = _Checker()
    for value in graph.inputs:
        checker.define(value, "input")
    for value, array in graph.constants:
        checker.define(value, "constant")
        if array.shape != value.type.shape or array.dtype != np.dtype(value.type.dtype):
            found = f"{array.dtype}{list(array.shape)}"
            raise GraphError(f"constant {value.name!r} is declared {value.type} but its data is {found}")
    checker.operations(graph.body)
    _check_outputs(graph)
    for value in graph.inputs:
        if value not in checker.used:
            raise GraphError(
                f"input {value.name!r} is never used", hint="drop it, so that a run does not ask for it"
            )


class _Checker:
    """One walk over regions: what is defined, what is visible, what is used."""

    def __init__(self) -> None:
        self.used: set[Value] = set()
        self._names: set[str] = set()
        self._visible: set[Value] = set()
        self._depth = 0

    def define(self, value: Value, what: str) -> None:
        _check_name(value.name, what)
        if value.name in self._names:
            raise GraphError(f"two values are called {value.name!r}")
        if value.id != len(self._names):
            raise GraphError(f"value {value.name!r} has id {value.id} where {len(self._names)} is next")
        self._names.add(value.name)
        self._visible.add(value)

    def operations(self, region: Region) -> None:
        for operation in region.operations:
            try:
                for operand in operation.operands:
                    if operand not in self._visible:
                        raise GraphError(
                            f"{operation.name} uses {operand.name!r} before it is defined or outside its loop"
                        )
                self.used.update(operation.operands)
                if operation.name == REPEAT:
                    self._loop(operation)
                else:
                    _check_operation(operation)
                for value in operation.results:
                    self.define(value, "value")
            except TilewrightError as error:
                error.where = error.where or operation.location or None
                raise

    def _loop(self, operation: Operation) -> None:
        if dict(operation.attributes) != resolve_attributes(operation.attributes):
            raise GraphError("repeat: attributes are not complete")
        if len(operation.regions) != 1:
            raise GraphError(f"repeat has {len(operation.regions)} regions, it repeats one")
        if len(operation.operands) < len(operation.results):
            raise GraphError("repeat: a carried value has no initial value")
        if self._depth == MAX_DEPTH:
            raise GraphError(f"repeat: loops nest deeper than {MAX_DEPTH}")
        loop = Loop(operation)
        carried = [value.type for value in loop.initial]
        expected = argument_types(loop.count, carried, [value.type for value in loop.iterated])
        arguments = [value.type for value in loop.region.arguments]
        if arguments != expected:
            raise GraphError(
                f"repeat: the region's arguments are {_listed(arguments)}, they should be {_listed(expected)}"
            )
        around = set(self._visible)
        self._depth += 1
        for value in loop.region.arguments:
            self.define(value, "argument")
        self.operations(loop.region)
        self._depth -= 1
        self._visible = around
        check_leaving(carried, [value.type for value in loop.leaving])
        if [value.type for value in loop.results] != carried:
            raise GraphError(
                f"repeat gives {_listed(carried)}, its results are {_listed(v.type for v in loop.results)}"
            )
        self._check_carried_on(loop)

    def _check_carried_on(self, loop: Loop) -> None:
        computed = {value for operation in loop.region.operations for value in operation.results}
        for position, value in enumerate(loop.leaving):
            if value not in computed:
                raise GraphError(
                    f"repeat: carried value {position} becomes {value.name!r}, not computed by the body",
                    hint="use what does not change without carrying it",
                )
        if len(set(loop.leaving)) != len(loop.leaving):
            raise GraphError("repeat: two carried values become the same value", hint="carry it once")
        for value in loop.region.arguments:
            if value not in self.used:
                kind = "carried" if value in loop.entering else "iterated"
                raise GraphError(f"repeat: the body never uses the {kind} value {value.name!r}")


def _check_operation(operation: Operation) -> None:
    rule = operator(operation.name)
    resolved = rule.resolve(operation.attributes)
    if operation.regions:
        raise GraphError(f"{operation.name} is no loop but has a region")
    if len(operation.results) != 1:
        raise GraphError(f"{operation.name} has {len(operation.results)} results, it defines one")
    settled, inferred = rule.settle(resolved, *(operand.type for operand in operation.operands))
    if dict(operation.attributes) != settled:
        raise GraphError(f"{operation.name}: attributes are not complete")
    stated = operation.result.type
    if inferred != stated:
        raise GraphError(f"{operation.name} gives {inferred}, but {operation.result.name!r} is {stated}")


def _listed(types: Iterable[TensorType]) -> str:
    return ", ".join(map(str, types)) or "none"


def _check_outputs(graph: Graph) -> None:
    if len(graph.output_names) != len(graph.body.results):
        raise GraphError(f"{len(graph.body.results)} outputs have {len(graph.output_names)} names")
    if not graph.output_names:
        raise GraphError("the graph has no output")
    computed = {value for operation in graph.operations for value in operation.results}
    inputs = {value.name for value in graph.inputs}
    named: dict[Value, str] = {}
    for name, value in graph.outputs:
        _check_name(name, "output")
        if value not in computed:
            raise GraphError(f"output {name!r} is {value.name!r}, which no operation of the graph computes")
        if value in named:
            raise GraphError(f"outputs {named[value]!r} and {name!r} are the same value")
        if name in named.values():
            raise GraphError(f"two outputs are called {name!r}")
        if name in inputs:
            raise GraphError(
                f"output {name!r} is called like an input", hint="name the result differently, such as 'y'"
            )
        named[value] = name


def _check_name(name: str, what: str) -> None:
    if not is_name(name):
        raise GraphError(
            f"{what} name {name[:60]!r} is not legal",
            hint="letters, digits, '_' and '.', not beginning with a digit",
        )
