"""Loops that the machine's programs cannot have become straight lines: loops inside loops, and loops that
walk through something computed.

A program counts one loop at a time, and finds an iteration's part of a buffer by one number. Inner loops of
real models are short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph import Graph, Operation, Value
from ..graph.graph import Region
from ..graph.loop import REPEAT, Loop
from ..graph.renumber import renumber
from ..graph.uses import values
from ..tensor_type import TensorType

Mapping = dict[Value, Value]


def unroll_loops(graph: Graph) -> Graph:
    """The same function without loops inside loops, and with no loop that walks through a computed value."""
    unroller = _Unroller(graph)
    known: Mapping = {}
    operations = unroller.operations(graph.operations, known, inside=False, copied=False)
    body = Region(graph.inputs, operations, [known.get(value, value) for value in graph.body.results])
    return renumber(Graph(graph.name, body, graph.constants, list(graph.output_names)))


class _Unroller:
    def __init__(self, graph: Graph) -> None:
        self._constants = {value for value, _ in graph.constants}
        self._names = {value.name for value in values(graph)}

    def operations(
        self, operations: Sequence[Operation], known: Mapping, *, inside: bool, copied: bool
    ) -> list[Operation]:
        """Operations in terms of other values, which `known` tells of some; it learns of the results.

        Args:
            inside: they are in a loop.
            copied: they are written out more than once, so that their results need names of their own.
        """
        written: list[Operation] = []
        for operation in operations:
            operands = tuple(known.get(value, value) for value in operation.operands)
            if operation.name == REPEAT:
                loop = Loop(operation)
                if inside or not self._constants.issuperset(loop.iterated):
                    written += self._straight(loop, operands, known, inside=inside)
                    continue
                inner = self.operations(loop.region.operations, known, inside=True, copied=False)
                leaving = [known.get(value, value) for value in loop.leaving]
                region = Region(list(loop.region.arguments), inner, leaving)
                written.append(replace(operation, operands=operands, regions=(region,)))
                continue
            results = operation.results
            if copied:
                results = tuple(self._fresh(value.type, value.name) for value in results)
                known.update(zip(operation.results, results, strict=True))
            written.append(replace(operation, operands=operands, results=results))
        return written

    def _straight(
        self, loop: Loop, operands: tuple[Value, ...], known: Mapping, *, inside: bool
    ) -> list[Operation]:
        """One iteration after the other."""
        carried = list(operands[: len(loop.results)])
        written: list[Operation] = []
        for iteration in range(loop.count):
            known.update(zip(loop.entering, carried, strict=True))
            for argument, value in zip(loop.slices, operands[len(loop.results) :], strict=True):
                part = self._part(value, argument, iteration, loop.operation.location)
                known[argument] = part[-1].result
                written += part
            written += self.operations(loop.region.operations, known, inside=inside, copied=True)
            carried = [known[value] for value in loop.leaving]
        known.update(zip(loop.results, carried, strict=True))
        return written

    def _part(self, value: Value, argument: Value, iteration: int, location: str) -> list[Operation]:
        """An iteration's slice of a value, without its leading axis."""
        row = self._fresh(TensorType((1, *argument.type.shape), argument.type.dtype), argument.name)
        part = self._fresh(argument.type, argument.name)
        cut = {"axis": 0, "start": iteration, "stop": iteration + 1}
        return [
            Operation("slice", (value,), (row,), cut, location),
            Operation("reshape", (row,), (part,), {"shape": argument.type.shape}, location),
        ]

    def _fresh(self, type_: TensorType, wanted: str) -> Value:
        number = 2
        while f"{wanted}.{number}" in self._names:
            number += 1
        name = f"{wanted}.{number}"
        self._names.add(name)
        return Value(-1, type_, name)
