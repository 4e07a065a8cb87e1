"""The structured loop: an operation `repeat` that owns the region it repeats.

    operands     initial value of each carried value, then the iterated values
    attributes   count: how often the region runs, at least once
    region       arguments: the carried values as they enter an iteration, then the iteration's slice of each
                 iterated value (its leading axis, of extent `count`, taken away); results: the carried
                 values as they leave the iteration, of the same types
    results      the carried values as they leave the last iteration

Layers of a model are a `repeat` whose weights are iterated. What is the same in every iteration is not
passed in: the region captures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import GraphError, ShapeError
from tilewright.operators.parameter import Attributes, Parameter, resolve_parameters
from tilewright.tensor_type import TensorType

from .graph import Operation, Region, Value

REPEAT = "repeat"
"""Name of the operation."""

PARAMETERS = (Parameter("count", 1, minimum=1, required=True),)


@dataclass(frozen=True)
class Loop:
    """A `repeat` with its parts by name. Sequences over carried values have one length, over iterated one.

    Attributes:
        operation: the operation itself.
    """

    operation: Operation

    @property
    def count(self) -> int:
        """How often the region runs."""
        count = self.operation.attributes["count"]
        assert isinstance(count, int)
        return count

    @property
    def region(self) -> Region:
        """What runs."""
        (region,) = self.operation.regions
        return region

    @property
    def initial(self) -> tuple[Value, ...]:
        """Carried values before the first iteration."""
        return self.operation.operands[: len(self.operation.results)]

    @property
    def iterated(self) -> tuple[Value, ...]:
        """Values with one slice per iteration along their leading axis."""
        return self.operation.operands[len(self.operation.results) :]

    @property
    def entering(self) -> list[Value]:
        """Region arguments: carried values as an iteration finds them."""
        return self.region.arguments[: len(self.operation.results)]

    @property
    def slices(self) -> list[Value]:
        """Region arguments: the iteration's slice of each iterated value."""
        return self.region.arguments[len(self.operation.results) :]

    @property
    def leaving(self) -> list[Value]:
        """Region results: carried values as an iteration leaves them."""
        return self.region.results

    @property
    def results(self) -> tuple[Value, ...]:
        """Carried values after the last iteration."""
        return self.operation.results


def resolve_attributes(attributes: Attributes) -> dict[str, int]:
    """`count` alone, checked. Raises GraphError."""
    count = resolve_parameters(REPEAT, PARAMETERS, attributes)["count"]
    assert isinstance(count, int)
    return {"count": count}


def argument_types(
    count: int, carried: Sequence[TensorType], iterated: Sequence[TensorType]
) -> list[TensorType]:
    """Types of the region's arguments. Raises GraphError, ShapeError naming the position and the types."""
    if not carried:
        raise GraphError("repeat: nothing is carried", hint="a loop that carries nothing computes nothing")
    for position, type_ in enumerate(iterated):
        if type_.rank == 0 or type_.shape[0] != count:
            raise ShapeError(
                f"repeat: iterated value {position} is {type_}; its leading extent should be {count}"
            )
    return [*carried, *(TensorType(type_.shape[1:], type_.dtype) for type_ in iterated)]


def check_leaving(carried: Sequence[TensorType], leaving: Sequence[TensorType]) -> None:
    """Raise GraphError, ShapeError unless an iteration leaves what the next one expects."""
    if len(leaving) != len(carried):
        raise GraphError(f"repeat: {len(carried)} values are carried, the body gives {len(leaving)}")
    for position, (before, after) in enumerate(zip(carried, leaving, strict=True)):
        if before != after:
            raise ShapeError(
                f"repeat: carried value {position} enters an iteration as {before} and leaves it as {after}"
            )
