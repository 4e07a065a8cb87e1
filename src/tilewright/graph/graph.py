"""The graph: what to compute, as typed values in single-assignment form. No placement, no machine.

A `Region` is a list of operations with the values it is given and the values it gives back. A graph has
one, its body. A `repeat` (`loop.py`) is an operation that owns another, which may use values of the regions
around it; hence what walks operations walks regions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.operators.parameter import Attribute
from tilewright.tensor_type import TensorType


@dataclass(frozen=True, eq=False)
class Value:
    """Something computed or given exactly once.

    Attributes:
        id: position in order of definition: inputs, then constants, then what operations define, in order.
            A `repeat` defines its region's arguments, what the region's operations define, then its
            results. Same graph, same ids.
        type: shape and element type.
        name: unique within the graph; readable text, used by messages and by the text form.
    """

    id: int
    type: TensorType
    name: str

    def __repr__(self) -> str:
        return f"%{self.name} : {self.type}"


@dataclass(frozen=True, eq=False)
class Operation:
    """One application of an operator, or a structured loop.

    Attributes:
        name: the operator's name in `tilewright.operators`, or `repeat`.
        operands: values used, in the operator's order.
        results: values defined; an operator defines one, a `repeat` one per carried value.
        attributes: the operator's parameters, all of them, in its declaration order.
        location: `file.py:12`, the user's line; empty when unknown.
        regions: what a `repeat` repeats; empty for operators.
    """

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    location: str = ""
    regions: tuple[Region, ...] = ()

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def __repr__(self) -> str:
        results = ", ".join(value.name for value in self.results)
        return f"{results} = {self.name}({', '.join(value.name for value in self.operands)})"


@dataclass
class Region:
    """Operations in an order of execution.

    Each uses arguments, constants, results of earlier ones, and what is defined before this region in the
    regions around it (values it captures). Nothing defined inside is seen outside.
    """

    arguments: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)


@dataclass
class Graph:
    """A function from named inputs to named outputs.

    Attributes:
        name: an identifier, for messages and file names.
        body: the operations; its arguments are the graph's inputs, its results the outputs' values.
        constants: values with their data, float32, read-only, in order of first use.
        output_names: names of `body.results`, in the same order.
    """

    name: str
    body: Region = field(default_factory=Region)
    constants: list[tuple[Value, NDArray[Any]]] = field(default_factory=list)
    output_names: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> list[Value]:
        """Values given at every run, in the order of the function's parameters."""
        return self.body.arguments

    @property
    def operations(self) -> list[Operation]:
        """Operations of the body, in order; those inside a `repeat` are in its region."""
        return self.body.operations

    @property
    def outputs(self) -> list[tuple[str, Value]]:
        """Named results."""
        return list(zip(self.output_names, self.body.results, strict=True))

    def verify(self) -> None:
        """Check every rule a graph obeys. Raises GraphError or ShapeError, naming operation and line."""
        from .verify import verify

        verify(self)

    def evaluate(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
        """Outputs by name, computed by the operators' float32 references. Raises BindingError."""
        from .evaluate import evaluate

        return evaluate(self, inputs)

    def __str__(self) -> str:
        from .text import print_graph

        return print_graph(self)
