"""Operations that need nothing but constants are computed before anything is planned: once, or once per
iteration for what a loop does with the slices of its constants.

What a region gives back must be the result of an operation (`graph/verify.py`), so that stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import Graph, Operation, Value
from ..graph.graph import Region
from ..graph.loop import REPEAT, Loop
from ..graph.renumber import renumber
from ..graph.uses import values
from ..operators import operator
from ..tensor_type import TensorType

Array = NDArray[Any]


def fold_constants(graph: Graph) -> Graph:
    """The same function with as few operations on constants alone as possible; constants that nothing uses
    any more are dropped."""
    folder = _Folder(graph)
    operations = folder.body(graph.body.operations, set(graph.body.results))
    body = Region(graph.inputs, operations, graph.body.results)
    used = _used(body)
    constants = [(value, data) for value, data in folder.constants.items() if value in used]
    return renumber(Graph(graph.name, body, constants, list(graph.output_names)))


class _Folder:
    """What is known so far.

    Attributes:
        constants: values that are the same in every iteration, with their data.
    """

    def __init__(self, graph: Graph) -> None:
        self.constants: dict[Value, Array] = dict(graph.constants)
        self._names = {value.name for value in values(graph)}

    def body(self, operations: Sequence[Operation], kept: set[Value]) -> list[Operation]:
        """What remains of operations outside loops. `kept`: results of their region."""
        remaining = []
        for operation in operations:
            if operation.name == REPEAT:
                remaining.append(self._loop(Loop(operation)))
            elif self._is_known(operation, {}) and operation.result not in kept:
                self.constants[operation.result] = self._computed(operation, {}, 0)
            else:
                remaining.append(operation)
        return remaining

    def _loop(self, loop: Loop) -> Operation:
        sliced = {
            inside: self.constants[value]
            for inside, value in zip(loop.slices, loop.iterated, strict=True)
            if value in self.constants
        }
        known = set(sliced)
        remaining = []
        for operation in loop.region.operations:
            if operation.name == REPEAT:
                remaining.append(self._loop(Loop(operation)))
            elif not self._is_known(operation, sliced) or operation.result in loop.leaving:
                remaining.append(self._evened(operation, sliced, loop.count))
            elif any(value in sliced for value in operation.operands):
                parts = [self._computed(operation, sliced, i) for i in range(loop.count)]
                sliced[operation.result] = np.stack(parts)
            else:
                self.constants[operation.result] = self._computed(operation, {}, 0)
        region = Region(list(loop.region.arguments), remaining, loop.region.results)
        used = _used(region)
        operands = list(loop.operation.operands)
        for inside, data in sliced.items():
            if inside not in known and inside in used:
                stack = Value(-1, TensorType(data.shape, str(data.dtype)), self._name(f"{inside.name}.all"))
                self.constants[stack] = data
                operands.append(stack)
                region.arguments.append(inside)
        # What only folded operations walked through is not walked through any more.
        carried = len(loop.results)
        walked = [
            (inside, value)
            for inside, value in zip(region.arguments[carried:], operands[carried:], strict=True)
            if inside in used
        ]
        region.arguments[carried:] = [inside for inside, _ in walked]
        operands[carried:] = [value for _, value in walked]
        return replace(loop.operation, operands=tuple(operands), regions=(region,))

    def _is_known(self, operation: Operation, sliced: dict[Value, Array]) -> bool:
        return all(value in self.constants or value in sliced for value in operation.operands)

    def _computed(self, operation: Operation, sliced: dict[Value, Array], iteration: int) -> Array:
        operands = [
            sliced[value][iteration, ...] if value in sliced else self.constants[value]
            for value in operation.operands
        ]
        return np.asarray(operator(operation.name).reference(operation.attributes, *operands))

    def _evened(self, operation: Operation, sliced: dict[Value, Array], count: int) -> Operation:
        """A norm's parameters are stored together: both walk through the iterations, or neither."""
        if operation.name != "layer_norm" or not any(value in sliced for value in operation.operands[1:]):
            return operation
        operands = list(operation.operands)
        for position, value in enumerate(operands[1:], 1):
            if value in self.constants:
                inside = Value(-1, value.type, self._name(f"{value.name}.each"))
                sliced[inside] = np.stack([self.constants[value]] * count)
                operands[position] = inside
        return replace(operation, operands=tuple(operands))

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}{number}"
        self._names.add(name)
        return name


def _used(region: Region) -> set[Value]:
    found = set(region.results)
    for operation in region.operations:
        found.update(operation.operands)
        for inner in operation.regions:
            found |= _used(inner)
    return found
