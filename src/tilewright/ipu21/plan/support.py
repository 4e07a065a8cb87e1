"""What this machine's plans cannot do yet, found before any work and reported all at once."""

from __future__ import annotations

from ...errors import UnsupportedError
from ...graph import Graph, Operation, Value

FLOATS = ("float32", "float16")


def matrix_view(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a tensor seen as a matrix: the last axis is the columns, all others the rows."""
    if not shape:
        return 1, 1
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    return rows, shape[-1]


def is_row(shape: tuple[int, ...], result: tuple[int, ...]) -> bool:
    """True if a tensor broadcasts along every axis but the last, which it has in full."""
    return bool(shape) and shape[-1] == result[-1] and all(extent == 1 for extent in shape[:-1])


def constant_values(graph: Graph) -> set[int]:
    return {value.id for value, _ in graph.constants}


def check_supported(graph: Graph) -> None:
    """Raise one UnsupportedError that lists everything in the graph these plans cannot do."""
    constants = constant_values(graph)
    inputs = {value.id for value in graph.inputs}
    right_operands: dict[int, Operation] = {}
    left_or_other: set[int] = set()
    faults: list[str] = []
    for value in [*graph.inputs, *(value for value, _ in graph.constants)]:
        if value.type.dtype not in FLOATS:
            faults.append(
                f"{value.name}: element type {value.type.dtype} (float32 and float16 are supported)"
            )
        if 0 in value.type.shape:
            faults.append(f"{value.name}: shape {value.type.shape} has no elements")
    for operation in graph.operations:
        if operation.name == "matmul":
            left, right = operation.operands
            if operation.attributes["transpose_b"] or len(right.type.shape) != 2:
                faults.append(f"{_at(operation)}: the right operand is no plain matrix of K rows, N columns")
            if right.id not in constants and right.id not in inputs:
                faults.append(f"{_at(operation)}: the right operand is computed on the device")
            elif right.id in inputs:
                if right.id in right_operands:
                    faults.append(
                        f"{_at(operation)}: input {right.name} is the right operand of two products"
                    )
                right_operands[right.id] = operation
            if left.id in constants:
                faults.append(f"{_at(operation)}: the left operand is a constant")
            left_or_other.add(left.id)
        elif operation.name == "add":
            faults += _check_add(operation, constants)
            left_or_other.update(value.id for value in operation.operands)
        elif operation.name == "gelu":
            if operation.operands[0].id in constants:
                faults.append(f"{_at(operation)}: its operand is a constant")
            if operation.attributes["approximate"] != "tanh":
                faults.append(f"{_at(operation)}: only the tanh form has a plan")
            left_or_other.update(value.id for value in operation.operands)
        else:
            faults.append(f"{_at(operation)}: no plan for this operator")
    for identity, operation in right_operands.items():
        if identity in left_or_other:
            faults.append(
                f"{_at(operation)}: its right operand is also used in another way, which needs another layout"
            )
    for name, value in graph.outputs:
        if value.id in constants:
            faults.append(f"output {name}: is a constant")
        if value.id in right_operands:
            faults.append(f"output {name}: is the right operand of a product")
    if faults:
        listing = "".join(f"\n  {fault}" for fault in faults)
        raise UnsupportedError(
            f"{len(faults)} thing(s) in this graph cannot be planned for the IPU21 yet:{listing}"
        )


def _check_add(operation: Operation, constants: set[int]) -> list[str]:
    a, b = operation.operands
    result = operation.result.type.shape
    if a.id in constants and b.id in constants:
        return [f"{_at(operation)}: both operands are constants"]
    for value in (a, b):
        if value.id not in constants and matrix_view(value.type.shape) != matrix_view(result):
            return [
                f"{_at(operation)}: {value.name} is no constant and is broadcast "
                f"from {value.type.shape} to {result}"
            ]
    return []


def _at(operation: Operation) -> str:
    place = f" ({operation.location})" if operation.location else ""
    return f"{operation.name} -> {', '.join(value.name for value in operation.results)}{place}"


def computed_operand(operation: Operation, constants: set[int]) -> tuple[Value, Value]:
    """The operands of an `add`, the one that is not a constant first."""
    a, b = operation.operands
    return (b, a) if a.id in constants else (a, b)
