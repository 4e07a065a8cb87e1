"""Who defines and who uses each value, inside loops too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .graph import Graph, Operation, Region, Value


@dataclass(frozen=True)
class Use:
    """One place where a value is used.

    Attributes:
        user: the operation that has it as an operand; None when a region gives it back.
        position: index among the operands of `user`, or among the results of `region`.
        region: where the use is; a value of another region is captured there.
    """

    user: Operation | None
    position: int
    region: Region


def walk(region: Region) -> Iterator[Operation]:
    """Every operation of a region, in order; one with a region before those inside it."""
    for operation in region.operations:
        yield operation
        for inside in operation.regions:
            yield from walk(inside)


def regions(region: Region) -> Iterator[Region]:
    """The region itself and every region inside it, in order."""
    yield region
    for operation in walk(region):
        yield from operation.regions


def uses(graph: Graph) -> dict[Value, list[Use]]:
    """Every value of the graph, in order of id, with its uses in order; values without uses have none."""
    found: dict[Value, list[Use]] = {}
    for region in regions(graph.body):
        for operation in region.operations:
            for position, value in enumerate(operation.operands):
                found.setdefault(value, []).append(Use(operation, position, region))
        for position, value in enumerate(region.results):
            found.setdefault(value, []).append(Use(None, position, region))
    return {value: found.get(value, []) for value in values(graph)}


def values(graph: Graph) -> list[Value]:
    """Every value of the graph, in order of id."""
    defined = [value for value, _ in graph.constants]
    for region in regions(graph.body):
        defined += region.arguments
        defined += [value for operation in region.operations for value in operation.results]
    return sorted(defined, key=lambda value: value.id)


def producers(graph: Graph) -> dict[Value, Operation]:
    """The operation that computes each value; inputs, constants and arguments of loops have none."""
    return {value: operation for operation in walk(graph.body) for value in operation.results}


def captured(operation: Operation) -> list[Value]:
    """Values defined outside an operation that its regions use, each once.

    In order of use, an outer region's uses before those of the loops inside it.

    Empty for operators. What is both captured and an operand is listed.
    """
    defined: set[Value] = set()
    found: dict[Value, None] = {}
    for outer in operation.regions:
        for region in regions(outer):
            defined.update(region.arguments)
            defined.update(value for inside in region.operations for value in inside.results)
        for region in regions(outer):
            used = [value for inside in region.operations for value in inside.operands] + region.results
            found.update((value, None) for value in used if value not in defined)
    return list(found)


def dependencies(operation: Operation) -> list[Value]:
    """Values that must be there before an operation can run, each once: operands, then captured ones."""
    return list(dict.fromkeys([*operation.operands, *captured(operation)]))
