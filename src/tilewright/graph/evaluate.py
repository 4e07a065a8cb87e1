"""A graph computed by its operators' references: slow, obvious, the definition of what it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import BindingError
from tilewright.operators import operator
from tilewright.operators.operator import as_float32

from .graph import Graph, Region, Value
from .loop import REPEAT, Loop

Held = dict[Value, NDArray[np.float32]]


def evaluate(graph: Graph, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """Outputs by name. Raises BindingError for a missing, unknown or wrongly shaped input."""
    known = [value.name for value in graph.inputs]
    for name in inputs:
        if name not in known:
            raise BindingError(f"there is no input {name!r}", hint=f"inputs are {', '.join(known)}")
    held: Held = dict(graph.constants)
    for value in graph.inputs:
        if value.name not in inputs:
            raise BindingError(f"input {value.name!r} is missing", hint=f"it is {value.type}")
        array = as_float32(inputs[value.name], f"input {value.name!r}")
        if array.shape != value.type.shape:
            raise BindingError(f"input {value.name!r} has shape {array.shape}, it is {value.type}")
        held[value] = array
    _run(graph.body, held)
    return {name: held[value] for name, value in graph.outputs}


def _run(region: Region, held: Held) -> None:
    for operation in region.operations:
        if operation.name == REPEAT:
            _repeat(Loop(operation), held)
        else:
            operands = (held[value] for value in operation.operands)
            held[operation.result] = operator(operation.name).reference(operation.attributes, *operands)


def _repeat(loop: Loop, held: Held) -> None:
    carried = [held[value] for value in loop.initial]
    for iteration in range(loop.count):
        held.update(zip(loop.entering, carried, strict=True))
        # A view that keeps its axes: indexing one axis away would make a scalar of the last.
        held.update(
            (inside, held[value][iteration, ...])
            for inside, value in zip(loop.slices, loop.iterated, strict=True)
        )
        _run(loop.region, held)
        carried = [held[value] for value in loop.leaving]
    held.update(zip(loop.results, carried, strict=True))
