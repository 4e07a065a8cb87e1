"""What a model is to the compiler: a function over `tilewright.ops`, and the types of its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from tilewright.errors import GraphError
from tilewright.graph import Graph, trace_function
from tilewright.graph.names import legal
from tilewright.tensor_type import TensorType

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "__tilewright_inputs__"


@dataclass(frozen=True)
class ModelDefinition:
    """A model before it is a graph.

    Attributes:
        name: an identifier.
        function: takes the inputs by keyword; called on arrays, it computes the float32 reference.
        inputs: type of each input.
        outputs: names of the outputs in the order the function returns them; None takes the names that
            `trace` gives.
    """

    name: str
    function: Callable[..., Any]
    inputs: Mapping[str, TensorType]
    outputs: tuple[str, ...] | None = None

    def graph(self) -> Graph:
        """Trace the function. Raises what `trace` raises."""
        return trace_function(self.function, self.inputs, outputs=self.outputs, name=self.name)


def model(**inputs: TensorType) -> Callable[[Function], Function]:
    """Decorator that states the types of a function's inputs, so that it can be compiled by name.

        @tilewright.model(x=TensorType((32, 64)))
        def classify(x): ...

    The function stays what it is; called on arrays it is the reference.
    """

    def mark(function: Function) -> Function:
        setattr(function, _MARK, dict(inputs))
        return function

    return mark


def define(function: Callable[..., Any]) -> ModelDefinition:
    """Definition of a function that `model` decorates, or whose parameters are annotated with types.

    An annotation is a TensorType, or `Annotated[..., TensorType(...)]`. Raises GraphError that names the
    parameter which has neither.
    """
    name = legal(getattr(function, "__name__", ""), "model")
    marked: Mapping[str, TensorType] | None = getattr(function, _MARK, None)
    return ModelDefinition(name, function, marked if marked is not None else _annotated(function, name))


def _annotated(function: Callable[..., Any], name: str) -> dict[str, TensorType]:
    try:
        annotations = inspect.get_annotations(function, eval_str=True)
        parameters = inspect.signature(function).parameters
    except (NameError, AttributeError, SyntaxError, TypeError, ValueError) as error:
        raise GraphError(f"the annotations of {name} cannot be read: {error}") from error
    found: dict[str, TensorType] = {}
    for parameter in parameters.values():
        annotation = annotations.get(parameter.name)
        types = [item for item in (annotation, *get_args(annotation)) if isinstance(item, TensorType)]
        if types:
            found[parameter.name] = types[0]
        elif parameter.default is inspect.Parameter.empty:
            raise GraphError(
                f"{name} does not say what its input {parameter.name!r} is",
                hint=f"decorate it: @tilewright.model({parameter.name}=TensorType((32, 64)))",
            )
    return found
