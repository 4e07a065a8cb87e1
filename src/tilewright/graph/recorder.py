"""Collects what a traced function does, and turns it into a graph."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError
from tilewright.operators.operator import Operator, as_float32
from tilewright.operators.parameter import Attributes
from tilewright.source_location import user_frame, user_location
from tilewright.tensor_type import TensorType

from .array_names import name_of_array
from .graph import Graph, Operation, Region, Value
from .loop import REPEAT, argument_types, check_leaving, resolve_attributes
from .names import Names, legal
from .prune import prune
from .renumber import renumber
from .traced import Traced, unwrap


class Recorder:
    """The state of one trace. Values get their final ids only in `finish`, when dead ones are gone."""

    def __init__(self, name: str, inputs: Mapping[str, TensorType]) -> None:
        self.name = name
        self._names = Names()
        self._inputs = [self._value(type_, self._names.unique(name)) for name, type_ in inputs.items()]
        self._constants: dict[bytes, tuple[Value, NDArray[Any]]] = {}
        self._open_regions = [Region(list(self._inputs))]
        self._closed: set[Value] = set()
        self._open = True

    @staticmethod
    def _value(type_: TensorType, name: str) -> Value:
        return Value(-1, type_, name)

    @property
    def arguments(self) -> dict[str, Traced]:
        """Traced inputs by name."""
        return {value.name: Traced(self, value) for value in self._inputs}

    def apply(self, operator: Operator, operands: tuple[object, ...], attributes: Attributes) -> Value:
        """Record one operation and return its result. Raises ShapeError, GraphError."""
        values = tuple(
            self.lift(operand, f"{operator.name}: operand {i}") for i, operand in enumerate(operands)
        )
        settled, result_type = operator.settle(attributes, *(value.type for value in values))
        result = self._value(result_type, self._names.numbered(operator.name))
        self._record(Operation(operator.name, values, (result,), settled, _place()))
        return result

    def repeat(
        self,
        count: int,
        carried: Sequence[Value],
        iterated: Sequence[Value],
        names: Sequence[str],
        body: Callable[[list[Traced]], Sequence[Value]],
    ) -> list[Traced]:
        """Record a loop: `body` is called once, on the region's arguments, which get `names` if they can.

        `carried` and `iterated` are what `lift` gave. Raises ShapeError, GraphError.
        """
        attributes = resolve_attributes({"count": count})
        before = [value.type for value in carried]
        types = argument_types(count, before, [value.type for value in iterated])
        arguments = [
            self._value(type_, self._names.unique(legal(name, "argument")))
            for type_, name in zip(types, names, strict=True)
        ]
        region = Region(arguments)
        where = _place()
        self._open_regions.append(region)
        try:
            region.results = list(body([Traced(self, value) for value in arguments]))
        finally:
            self._open_regions.pop()
            self._closed.update(arguments, *(operation.results for operation in region.operations))
        check_leaving(before, [value.type for value in region.results])
        results = tuple(self._value(type_, self._names.numbered(REPEAT)) for type_ in before)
        self._record(Operation(REPEAT, (*carried, *iterated), results, attributes, where, (region,)))
        return [Traced(self, value) for value in results]

    def _record(self, operation: Operation) -> None:
        self._open_regions[-1].operations.append(operation)

    def lift(self, operand: object, what: str) -> Value:
        """The operand's value; an array becomes a constant, the same one for equal contents.

        `what` begins the message when it is neither. Raises GraphError, ShapeError.
        """
        if not self._open:
            raise GraphError("this traced value is used after its function has returned")
        if isinstance(operand, Traced):
            return unwrap(operand, self)
        # A copy, so that what happens to the array later does not reach the graph.
        array = np.array(as_float32(operand, what), order="C")
        type_ = TensorType(array.shape)
        identity = hashlib.sha256(repr(array.shape).encode())
        identity.update(array.reshape(-1).data)
        digest = identity.digest()
        if digest not in self._constants:
            array.flags.writeable = False
            self._constants[digest] = (self._value(type_, self._constant_name(operand)), array)
        return self._constants[digest][0]

    def _constant_name(self, array: object) -> str:
        wanted = name_of_array(array, user_frame())
        return self._names.unique(legal(wanted, "constant")) if wanted else self._names.numbered("constant")

    def check_visible(self, value: Value) -> None:
        """Raise GraphError when the loop that computes `value` has been left."""
        if value in self._closed:
            raise GraphError(
                f"{value.name!r} is used outside the repeat that computes it",
                hint="let the body return it as a carried value",
            )

    def finish(self, outputs: Sequence[tuple[str, object]]) -> Graph:
        """The graph that computes `outputs`, without what none of them needs, verified."""
        results = [unwrap(value, self) for _, value in outputs]
        self._open = False
        (body,) = self._open_regions
        used = set(results)
        operations = prune(body.operations, used)
        constants = [entry for entry in self._constants.values() if entry[0] in used]
        body = Region(body.arguments, operations, results)
        graph = renumber(Graph(self.name, body, constants, [name for name, _ in outputs]))
        graph.verify()
        return graph


def _place() -> str:
    location = user_location()
    return location.short if location else ""
