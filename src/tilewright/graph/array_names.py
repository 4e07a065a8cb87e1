"""What the user calls an array: its variable, or its place in a container that a variable holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType, ModuleType

import numpy as np

MAX_MEMBERS = 1000
"""Containers larger than this are data, not a place where someone names weights."""


def name_of_array(array: object, frame: FrameType | None) -> str | None:
    """Name under which the code running in `frame` can reach `array`; None when it has none.

    Looks at local variables (which include those of enclosing functions that are used), then at global
    ones, each as `name`, `name.key` or `name.attribute`, containers nested at most twice.
    """
    if frame is None or not isinstance(array, np.ndarray):
        return None
    for scope in (frame.f_locals, frame.f_globals):
        for name, value in list(scope.items()):
            if name.startswith("__"):
                continue
            found = _path_to(array, value, name, depth=2)
            if found is not None:
                return found
    return None


def _path_to(array: object, value: object, path: str, depth: int) -> str | None:
    if value is array:
        return path
    if depth > 0:
        for key, member in _members(value):
            found = _path_to(array, member, f"{path}.{key}", depth - 1)
            if found is not None:
                return found
    return None


def _members(value: object) -> Iterator[tuple[object, object]]:
    if isinstance(value, (Mapping, list, tuple)):
        if len(value) <= MAX_MEMBERS:
            yield from list(value.items()) if isinstance(value, Mapping) else enumerate(value)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, ModuleType)) and not callable(value):
        yield from list(vars(value).items())
