"""Attributes of operations, as the types they have."""

from __future__ import annotations

from ...graph import Operation


def integer(operation: Operation, name: str) -> int:
    """An attribute that is a whole number."""
    value = operation.attributes[name]
    assert isinstance(value, int)
    return value


def number(operation: Operation, name: str) -> float:
    """An attribute that is a number."""
    value = operation.attributes[name]
    assert isinstance(value, int | float)
    return float(value)
