"""Named attributes of operators: their types, defaults and legal values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.errors import GraphError, UnsupportedError

Attribute = bool | int | float | str | tuple[int, ...]
Attributes = Mapping[str, Attribute]

MAX_MAGNITUDE = 2**62
"""Bound on whole numbers, so that sums of them never overflow 64 bits."""


@dataclass(frozen=True)
class Parameter:
    """A named attribute of an operator.

    Attributes:
        default: value when the caller gives none; its type is the parameter's type. A tuple holds whole
            numbers.
        supported: values that work; empty means every value of the type.
        known: values that mean something, but that this version cannot do.
        minimum: smallest legal number.
        required: the caller must give a value; `default` only states the type.
    """

    name: str
    default: Attribute
    supported: tuple[Attribute, ...] = ()
    known: tuple[Attribute, ...] = ()
    minimum: float | None = None
    required: bool = False


def resolve_parameters(
    operator: str, parameters: Sequence[Parameter], attributes: Mapping[str, object]
) -> dict[str, Attribute]:
    """All attributes, in declaration order, defaults filled in, as plain Python values.

    Raises GraphError for a name that is unknown or missing and for a value of the wrong type or meaning,
    UnsupportedError for a value this version cannot do. Both name the operator and the parameter.
    """
    names = [parameter.name for parameter in parameters]
    for name in attributes:
        if name not in names:
            known = f"it takes {', '.join(names)}" if names else "it takes none"
            raise GraphError(f"{operator} has no parameter {name!r}", hint=known)
    resolved: dict[str, Attribute] = {}
    for parameter in parameters:
        if parameter.name in attributes:
            resolved[parameter.name] = _resolve(operator, parameter, attributes[parameter.name])
        elif parameter.required:
            raise GraphError(f"{operator} needs a value for {parameter.name}")
        else:
            resolved[parameter.name] = parameter.default
    return resolved


def _resolve(operator: str, parameter: Parameter, given: object) -> Attribute:
    label = f"{operator}: {parameter.name}={given!r}"
    if given in parameter.known and given not in parameter.supported:
        choices = ", ".join(map(repr, parameter.supported))
        raise UnsupportedError(f"{label} is not supported", hint=f"use {choices}")
    value = _plain(given, type(parameter.default))
    if value is None:
        raise GraphError(f"{label} should be {_TYPE_NAMES[type(parameter.default)]}")
    if isinstance(value, float) and not math.isfinite(value):
        raise GraphError(f"{label} is not a finite number")
    if any(abs(number) > MAX_MAGNITUDE for number in _whole_numbers(value)):
        raise GraphError(f"{label} is beyond 2^62")
    if parameter.minimum is not None and isinstance(value, int | float) and value < parameter.minimum:
        raise GraphError(f"{label} should be at least {parameter.minimum}")
    if parameter.supported and value not in parameter.supported:
        choices = ", ".join(map(repr, parameter.supported))
        raise GraphError(f"{label} means nothing", hint=f"use {choices}")
    return value


_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    tuple: "a tuple of whole numbers",
}


def _plain(given: object, kind: type) -> Attribute | None:
    """`given` as a plain Python value of one type, taking NumPy's scalars too; None when it is none."""
    value = given.item() if isinstance(given, np.generic) else given
    if kind is tuple:
        if not isinstance(value, tuple | list):
            return None
        members = [_plain(member, int) for member in value]
        return tuple(member for member in members if isinstance(member, int)) if None not in members else None
    if kind is float and type(value) is int:
        value = float(value) if abs(value) <= MAX_MAGNITUDE else math.inf
    if type(value) is not kind:
        return None
    assert isinstance(value, bool | int | float | str)
    return value


def _whole_numbers(value: Attribute) -> tuple[int, ...]:
    if isinstance(value, tuple):
        return value
    return (value,) if isinstance(value, int) else ()
