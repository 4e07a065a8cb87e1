"""Tracing: a Python function over `tilewright.ops` becomes a graph by being called once."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.errors import GraphError, TilewrightError
from tilewright.source_location import SourceLocation
from tilewright.tensor_type import TensorType

from .graph import Graph
from .names import is_name, legal
from .recorder import Recorder
from .traced import Traced


def trace(function: Callable[..., Any], /, **inputs: TensorType) -> Graph:
    """Graph of `function`, called with one traced value per input, by keyword.

    NumPy arrays that meet traced values become constants, named after the variable that holds them and
    stored once when equal. The function returns one traced value (the output is called `output`), a tuple
    or list (`output_0`, `output_1`...) or a dict with the outputs' names.

        graph = tilewright.trace(lambda x: ops.gelu(x @ w + b), x=TensorType((32, 64)))

    Raises GraphError, ShapeError or UnsupportedError with the line of the function that is at fault.
    """
    return trace_function(function, inputs)


def trace_function(
    function: Callable[..., Any],
    inputs: Mapping[str, TensorType],
    *,
    outputs: Sequence[str] | None = None,
    name: str | None = None,
) -> Graph:
    """As `trace`, with the outputs' names given, and the graph's (otherwise the function's)."""
    called = name or legal(getattr(function, "__name__", ""), "graph")
    if not inputs:
        raise GraphError(f"{called} has no inputs", hint="state each: trace(f, x=TensorType(...))")
    for key, type_ in inputs.items():
        if not isinstance(type_, TensorType):
            raise GraphError(f"type of input {key!r} is {type_!r}, not a TensorType")
        if not is_name(key):
            raise GraphError(f"{key[:60]!r} is no legal name of an input")
    recorder = Recorder(called, inputs)
    try:
        returned = function(**recorder.arguments)
    except TilewrightError:
        raise
    except RecursionError:
        raise GraphError(f"{called} recurses without end", where=_definition(function)) from None
    except Exception as error:
        raise GraphError(_describe(error), where=_raised_at(error, function)) from error
    try:
        return recorder.finish(_named_outputs(returned, outputs))
    except GraphError as error:
        error.where = error.where or _definition(function)
        raise


def _named_outputs(returned: object, names: Sequence[str] | None) -> list[tuple[str, object]]:
    if isinstance(returned, Mapping):
        found = [(str(key), value) for key, value in returned.items()]
    elif isinstance(returned, (tuple, list)):
        found = [(f"output_{index}", value) for index, value in enumerate(returned)]
    else:
        found = [("output", returned)]
    for key, value in found:
        if not isinstance(value, Traced):
            raise GraphError(f"{key} is {_kind(value)}, not a traced value", hint="return what ops computed")
    if names is None:
        return found
    if isinstance(returned, Mapping):
        if sorted(names) != sorted(key for key, _ in found):
            listed = ", ".join(key for key, _ in found)
            raise GraphError(f"the function returns {listed}, its outputs are declared {', '.join(names)}")
        return [(key, returned[key]) for key in names]
    if len(names) != len(found):
        raise GraphError(f"the function returns {len(found)} values, {len(names)} outputs are declared")
    return [(key, value) for key, (_, value) in zip(names, found, strict=True)]


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _describe(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _raised_at(error: Exception, function: Callable[..., Any]) -> str | None:
    """Innermost line, among those below the call of `function`, in the file that defines it."""
    code = getattr(function, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    if own and own[-1].lineno is not None:
        return SourceLocation(own[-1].filename, own[-1].lineno).with_source()
    return _definition(function)


def _definition(function: Callable[..., Any]) -> str | None:
    code = getattr(function, "__code__", None)
    return str(SourceLocation(code.co_filename, code.co_firstlineno)) if code is not None else None
