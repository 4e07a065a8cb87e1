"""Named attributes of operators: their types, defaults and legal values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.errors import GraphError

Attribute = bool | int | float | str | tuple[int, ...]
Attributes = Mapping[str, Attribute]

MAX_MAGNITUDE = 2**62
"""Bound on whole numbers, so that sums of them never overflow 64 bits."""

SMALLEST_EPSILON = 1e-18
"""Smallest constant that may stand between a row of equal numbers and a division by zero: its square is
still a float32."""


@dataclass(frozen=True)
class Parameter:
    """A named attribute of an operator.

    Attributes:
        default: value when the caller gives none; its type is the parameter's type. A tuple holds whole
            numbers.
        choices: legal values; empty means every value of the type.
        minimum: smallest legal number.
        required: the caller must give a value; `default` only states the type.
    """

    name: str
    default: Attribute
    choices: tuple[Attribute, ...] = ()
    minimum: float | None = None
    required: bool = False


def resolve_parameters(
    operator: str, parameters: Sequence[Parameter], attributes: Mapping[str, object]
) -> dict[str, Attribute]:
    """All attributes, in declaration order, defaults filled in, as plain Python values.

    Raises GraphError, naming the operator and the parameter, for a name that is unknown or missing and for a
    value of the wrong type or without a meaning.
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
    value = _plain(given, type(parameter.default))
    if value is None:
        raise GraphError(f"{label} should be {_TYPE_NAMES[type(parameter.default)]}")
    if isinstance(value, float) and not math.isfinite(value):
        raise GraphError(f"{label} is not a finite number")
    if any(abs(number) > MAX_MAGNITUDE for number in _whole_numbers(value)):
        raise GraphError(f"{label} is beyond 2^62")
    if parameter.minimum is not None and isinstance(value, int | float) and value < parameter.minimum:
        raise GraphError(f"{label} should be at least {parameter.minimum}")
    if parameter.choices and value not in parameter.choices:
        choices = ", ".join(map(repr, parameter.choices))
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


def flag(attributes: Attributes, name: str) -> bool:
    """A resolved attribute that is true or false."""
    value = attributes[name]
    assert isinstance(value, bool)
    return value


def integer(attributes: Attributes, name: str) -> int:
    """A resolved attribute that is a whole number."""
    value = attributes[name]
    assert isinstance(value, int)
    return value


def integers(attributes: Attributes, name: str) -> tuple[int, ...]:
    """A resolved attribute that is a tuple of whole numbers."""
    value = attributes[name]
    assert isinstance(value, tuple)
    return value


def number(attributes: Attributes, name: str) -> float:
    """A resolved attribute that is a number."""
    value = attributes[name]
    assert isinstance(value, float)
    return value
