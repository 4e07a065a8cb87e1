"""What this machine's plans cannot do yet, found before any work and reported all at once."""

from __future__ import annotations

from ...compiler.numerics import Numerics
from ...errors import UnsupportedError
from ...graph import Graph, Operation
from ...graph.loop import REPEAT, Loop
from ...graph.uses import walk


def check_supported(graph: Graph, operators: set[str], numerics: Numerics) -> None:
    """Raise one UnsupportedError that lists everything in the graph these plans cannot do.

    Loops inside loops and loops that walk through something computed are straight lines by now
    (`compiler.unrolling`).

    Args:
        operators: names of the operators that have a plan.
    """
    constants = {value.id for value, _ in graph.constants} | _slices(graph)
    faults: list[str] = []
    for operation in walk(graph.body):
        if operation.name not in operators:
            faults.append(f"{label(operation)}: no plan for this operator")
        elif numerics.precision == "float32" and (reason := _only_half(operation, constants)):
            faults.append(f"{label(operation)}: {reason}")
    if faults:
        listing = "".join(f"\n  {fault}" for fault in faults)
        raise UnsupportedError(
            f"{len(faults)} thing(s) in this graph cannot be planned for the IPU21 yet:{listing}"
        )


def _only_half(operation: Operation, constants: set[int]) -> str:
    """Why an operation has no plan in float32; empty if it has one."""
    if operation.name not in ("matmul", "add", "gelu", "repeat"):
        return "no plan for this operator in float32"
    if operation.name == "gelu" and operation.attributes["approximate"] != "tanh":
        return "exact GeLU has no plan in float32"
    shapes = {value.type.shape for value in operation.operands}
    if operation.name == "matmul" and len(operation.operands[1].type.shape) != 2:
        return "products of computed operands have no plan in float32"
    if operation.name == "add" and len(shapes) > 1 and not any(v.id in constants for v in operation.operands):
        return "broadcasting of computed values has no plan in float32"
    return ""


def _slices(graph: Graph) -> set[int]:
    """Ids of what loops walk through, an iteration's part each: slices of constants."""
    loops = [Loop(operation) for operation in walk(graph.body) if operation.name == REPEAT]
    return {argument.id for loop in loops for argument in loop.slices}


def label(operation: Operation) -> str:
    """An operation in messages: its operator, its result, and where it came from if that is known."""
    place = f" ({operation.location})" if operation.location else ""
    return f"{operation.name} -> {operation.results[0].name}{place}"
