"""`ops.repeat`: a loop over layers, traced once or computed on arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.errors import GraphError
from tilewright.operators.operator import Array, AtUsersLine, as_float32
from tilewright.tensor_type import TensorType

from .graph import Value
from .loop import argument_types, check_leaving, resolve_attributes
from .traced import Traced, recorder_of, unwrap


def repeat(body: Callable[..., Any], count: int, carried: Any, iterated: Any = ()) -> Any:
    """Apply `body` `count` times: what it returns is what the next call gets.

    Args:
        body: called with the carried values, then with one slice of each iterated value; returns the new
            carried values, of the same shapes. What does not change is simply used inside.
        count: at least 1.
        carried: one value, or a tuple or list of values.
        iterated: values with leading extent `count`: one, a tuple or list of them, or a dict, whose members
            `body` gets as keywords. Iteration i gets slice i, without the leading axis.

    Returns what is carried out of the last iteration: one value, or a tuple when `carried` was several.

        x = ops.repeat(lambda x, w, b: ops.gelu(x @ w + b), 6, x, (weights, biases))

    On arrays it computes in float32. While a function is traced it records one loop, calling `body` once.
    Raises GraphError, ShapeError with the line that is at fault.
    """
    call = _Call(body, carried, iterated)
    values = (*call.carried, *call.iterated)
    traced = next((value for value in values if isinstance(value, Traced)), None)
    with AtUsersLine():
        results = call.compute(count) if traced is None else call.trace(count, traced)
    return results[0] if call.single else tuple(results)


class _Call:
    def __init__(self, body: Callable[..., Any], carried: Any, iterated: Any) -> None:
        self._body = body
        self.single = not isinstance(carried, tuple | list)
        self.carried: tuple[Any, ...] = (carried,) if self.single else tuple(carried)
        self._keys = tuple(map(str, iterated)) if isinstance(iterated, Mapping) else None
        if isinstance(iterated, Mapping):
            self.iterated: tuple[Any, ...] = tuple(iterated.values())
        else:
            self.iterated = tuple(iterated) if isinstance(iterated, tuple | list) else (iterated,)

    def trace(self, count: int, traced: Traced) -> Sequence[Any]:
        recorder = recorder_of(traced)
        carried = [recorder.lift(value, f"repeat: carried value {i}") for i, value in enumerate(self.carried)]
        iterated = [
            recorder.lift(value, f"repeat: iterated value {i}") for i, value in enumerate(self.iterated)
        ]

        def body(arguments: list[Traced]) -> list[Value]:
            returned = self._apply(arguments)
            for position, value in enumerate(returned):
                if not isinstance(value, Traced):
                    raise GraphError(
                        f"repeat: the body gives {type(value).__name__} as carried value {position}, which "
                        "it does not compute"
                    )
            return [unwrap(value, recorder) for value in returned]

        return recorder.repeat(count, carried, iterated, self._names(), body)

    def compute(self, count: int) -> Sequence[Array]:
        count = resolve_attributes({"count": count})["count"]
        carried = [as_float32(value, f"repeat: carried value {i}") for i, value in enumerate(self.carried)]
        iterated = [as_float32(value, f"repeat: iterated value {i}") for i, value in enumerate(self.iterated)]
        before = [TensorType(array.shape) for array in carried]
        argument_types(count, before, [TensorType(array.shape) for array in iterated])
        for iteration in range(count):
            returned = self._apply([*carried, *(array[iteration, ...] for array in iterated)])
            if any(isinstance(value, Traced) for value in returned):
                raise GraphError(
                    "repeat: the body computes on traced values, but none is carried or iterated",
                    hint="carry the traced value",
                )
            carried = [as_float32(value, f"repeat: carried value {i}") for i, value in enumerate(returned)]
            check_leaving(before, [TensorType(array.shape) for array in carried])
        return carried

    def _apply(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Call the body; what it returns, as a sequence."""
        if self._keys is None:
            returned = self._body(*arguments)
        else:
            slices = arguments[len(self.carried) :]
            returned = self._body(
                *arguments[: len(self.carried)], **dict(zip(self._keys, slices, strict=True))
            )
        return returned if isinstance(returned, tuple | list) else (returned,)

    def _names(self) -> list[str]:
        """What the body calls its arguments, as far as it says."""
        total = len(self.carried) + len(self.iterated)
        try:
            parameters = list(inspect.signature(self._body).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [parameter.name for parameter in parameters if parameter.kind in positional]
        if self._keys is not None:
            names = names[: len(self.carried)]
            names += [f"carried_{index}" for index in range(len(names), len(self.carried))]
            return [*names, *self._keys]
        names = names[:total]
        return [*names, *(f"argument_{index}" for index in range(len(names), total))]
