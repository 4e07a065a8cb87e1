"""Collects what a traced function does, and turns it into a graph."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError
from tilewright.operators.operator import Attributes, Operator, as_float32
from tilewright.source_location import user_frame, user_location
from tilewright.tensor_type import TensorType

from .array_names import name_of_array
from .graph import Graph, Operation, Region, Value
from .names import Names, legal
from .traced import Traced, unwrap


class Recorder:
    """The state of one trace. Values get their final ids only in `finish`, when dead ones are gone."""

    def __init__(self, name: str, inputs: Mapping[str, TensorType]) -> None:
        self.name = name
        self._names = Names()
        self._inputs = [Value(-1, type_, self._names.unique(name)) for name, type_ in inputs.items()]
        self._constants: dict[bytes, tuple[Value, NDArray[Any]]] = {}
        self._operations: list[Operation] = []
        self._open = True

    @property
    def arguments(self) -> dict[str, Traced]:
        """Traced inputs by name."""
        return {value.name: Traced(self, value) for value in self._inputs}

    def apply(self, operator: Operator, operands: tuple[object, ...], attributes: Attributes) -> Value:
        """Record one operation and return its result. Raises ShapeError, GraphError."""
        if not self._open:
            raise GraphError("this traced value is used after its function has returned")
        values = tuple(self._lift(operand, operator, index) for index, operand in enumerate(operands))
        result_type = operator.infer(attributes, *(value.type for value in values))
        result = Value(-1, result_type, self._names.numbered(operator.name))
        location = user_location()
        where = location.short if location else ""
        self._operations.append(Operation(operator.name, values, (result,), dict(attributes), where))
        return result

    def _lift(self, operand: object, operator: Operator, index: int) -> Value:
        """The operand's value; an array becomes a constant, the same one for equal contents."""
        if isinstance(operand, Traced):
            return unwrap(operand, self)
        # A copy, so that what happens to the array later does not reach the graph.
        array = np.array(as_float32(operand, f"{operator.name}: operand {index}"), order="C")
        type_ = TensorType(array.shape)
        digest = hashlib.sha256(repr(array.shape).encode() + array.tobytes()).digest()
        if digest not in self._constants:
            array.flags.writeable = False
            self._constants[digest] = (Value(-1, type_, self._constant_name(operand)), array)
        return self._constants[digest][0]

    def _constant_name(self, array: object) -> str:
        wanted = name_of_array(array, user_frame())
        return self._names.unique(legal(wanted, "constant")) if wanted else self._names.numbered("constant")

    def finish(self, outputs: Sequence[tuple[str, object]]) -> Graph:
        """The graph that computes `outputs`, without what none of them needs, verified."""
        self._open = False
        results = [unwrap(value, self) for _, value in outputs]
        operations = _needed(self._operations, results)
        used = {value for operation in operations for value in operation.operands}
        constants = [entry for entry in self._constants.values() if entry[0] in used]
        order = [*self._inputs, *(v for v, _ in constants), *(v for o in operations for v in o.results)]
        final = {value: replace(value, id=number) for number, value in enumerate(order)}
        body = Region(
            arguments=[final[value] for value in self._inputs],
            operations=[
                replace(
                    operation,
                    operands=tuple(final[value] for value in operation.operands),
                    results=tuple(final[value] for value in operation.results),
                )
                for operation in operations
            ],
            results=[final.get(value, value) for value in results],
        )
        graph = Graph(
            self.name, body, [(final[v], array) for v, array in constants], [name for name, _ in outputs]
        )
        graph.verify()
        return graph


def _needed(operations: Sequence[Operation], results: Sequence[Value]) -> list[Operation]:
    """Operations that some result depends on, in order."""
    wanted = set(results)
    kept: list[Operation] = []
    for operation in reversed(operations):
        if wanted.intersection(operation.results):
            wanted.update(operation.operands)
            kept.append(operation)
    kept.reverse()
    return kept
