"""Ids that count up in order of definition."""

from __future__ import annotations

from dataclasses import replace

from .graph import Graph, Operation, Region, Value


def renumber(graph: Graph) -> Graph:
    """The same graph with new values whose ids are their positions in order of definition."""
    numbering = _Numbering()
    arguments = [numbering.define(value) for value in graph.inputs]
    constants = [(numbering.define(value), array) for value, array in graph.constants]
    operations = [numbering.operation(operation) for operation in graph.operations]
    body = Region(arguments, operations, [numbering.use(value) for value in graph.body.results])
    return Graph(graph.name, body, constants, list(graph.output_names))


class _Numbering:
    def __init__(self) -> None:
        self._final: dict[Value, Value] = {}

    def define(self, value: Value) -> Value:
        self._final[value] = replace(value, id=len(self._final))
        return self._final[value]

    def use(self, value: Value) -> Value:
        """The new value; one that nothing defines stays as it is, for `verify` to find."""
        return self._final.get(value, value)

    def operation(self, operation: Operation) -> Operation:
        operands = tuple(self.use(value) for value in operation.operands)
        regions = tuple(self.region(region) for region in operation.regions)
        results = tuple(self.define(value) for value in operation.results)
        return replace(operation, operands=operands, results=results, regions=regions)

    def region(self, region: Region) -> Region:
        arguments = [self.define(value) for value in region.arguments]
        operations = [self.operation(operation) for operation in region.operations]
        return Region(arguments, operations, [self.use(value) for value in region.results])
