"""What an operator is: parameters, a shape rule, a float32 reference and a tolerance.

An operator knows nothing of graphs or machines. Called on arrays it computes its reference; called on a
traced value it hands itself over to whoever traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError, ShapeError, TilewrightError, UnsupportedError
from tilewright.source_location import user_location
from tilewright.tensor_type import TensorType

from .tolerance import Tolerance

Attribute = bool | int | float | str
Attributes = Mapping[str, Attribute]
Array = NDArray[np.float32]


class ShapeRule(Protocol):
    """Result type from attributes and operand types; raises ShapeError."""

    def __call__(self, attributes: Attributes, /, *operands: TensorType) -> TensorType: ...


class Reference(Protocol):
    """Result from attributes and float32 operands, rounded once, of the shape the shape rule gives."""

    def __call__(self, attributes: Attributes, /, *operands: Array) -> Array: ...


class ToleranceRule(Protocol):
    """How far a device's result may be from the reference's.

    `splits` is the number of partial results a plan adds up afterwards (1: none).
    """

    def __call__(self, attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance: ...


class Traceable(Protocol):
    """A stand-in for an array while a function is being traced."""

    def __tilewright_apply__(
        self, operator: Operator, operands: tuple[object, ...], attributes: Attributes
    ) -> Any: ...


@dataclass(frozen=True)
class Parameter:
    """A named attribute of an operator.

    Attributes:
        default: value when the caller gives none; its type is the parameter's type.
        supported: values that work; empty means every value of the type.
        known: values that mean something, but that this version cannot do.
    """

    name: str
    default: Attribute
    supported: tuple[Attribute, ...] = ()
    known: tuple[Attribute, ...] = ()


@dataclass(frozen=True)
class Operator:
    """One operator. `operands` names the operands in order."""

    name: str
    operands: tuple[str, ...]
    shape_rule: ShapeRule
    reference: Reference
    tolerance: ToleranceRule
    parameters: tuple[Parameter, ...] = ()

    def resolve(self, attributes: Attributes) -> dict[str, Attribute]:
        """All attributes, in declaration order, defaults filled in.

        Raises GraphError for an unknown name or a value of the wrong type or meaning, UnsupportedError
        for a value this version cannot do. Both name the operator and the parameter.
        """
        names = [parameter.name for parameter in self.parameters]
        for name in attributes:
            if name not in names:
                known = f"it takes {', '.join(names)}" if names else "it takes none"
                raise GraphError(f"{self.name} has no parameter {name!r}", hint=known)
        return {p.name: self._resolve_one(p, attributes.get(p.name, p.default)) for p in self.parameters}

    def _resolve_one(self, parameter: Parameter, value: Attribute) -> Attribute:
        label = f"{self.name}: {parameter.name}={value!r}"
        if value in parameter.known and value not in parameter.supported:
            choices = ", ".join(map(repr, parameter.supported))
            raise UnsupportedError(f"{label} is not supported", hint=f"use {choices}")
        if type(value) is not type(parameter.default):
            raise GraphError(f"{label} should be of type {type(parameter.default).__name__}")
        if parameter.supported and value not in parameter.supported:
            choices = ", ".join(map(repr, parameter.supported))
            raise GraphError(f"{label} means nothing", hint=f"use {choices}")
        return value

    def infer(self, attributes: Attributes, *operands: TensorType) -> TensorType:
        """Type of the result. Checks the number of operands and their dtype before the shape rule.

        Raises ShapeError naming the operator and every operand's type.
        """
        if len(operands) != len(self.operands):
            expected = f"{len(self.operands)} operands ({', '.join(self.operands)})"
            raise GraphError(f"{self.name} takes {expected}, got {len(operands)}")
        for name, operand in zip(self.operands, operands, strict=True):
            if operand.dtype != "float32":
                raise ShapeError(
                    f"{self.name}: operand {name} is {operand}; operators are stated on float32 values",
                    hint="declare it float32; the plan chooses what the chip computes in",
                )
        return self.shape_rule(attributes, *operands)

    def mismatch(self, reason: str, *operands: TensorType) -> ShapeError:
        """The error a shape rule raises: names the operator, the reason and all operand types."""
        listed = ", ".join(f"{n} = {t}" for n, t in zip(self.operands, operands, strict=True))
        return ShapeError(f"{self.name}: {reason}: {listed}")

    def __call__(self, *operands: object, **attributes: Attribute) -> Any:
        """Compute the reference on arrays, or record an operation on traced values.

        Arrays are anything NumPy turns into real numbers; they are computed in float32. Errors carry the
        user's source line.
        """
        try:
            resolved = self.resolve(attributes)
            for operand in operands:
                apply = getattr(type(operand), "__tilewright_apply__", None)
                if apply is not None:
                    return apply(operand, self, operands, resolved)
            arrays = [as_float32(operand, f"{self.name}: operand {i}") for i, operand in enumerate(operands)]
            self.infer(resolved, *(TensorType(array.shape) for array in arrays))
            return self.reference(resolved, *arrays)
        except TilewrightError as error:
            location = user_location()
            if error.where is None and location is not None:
                error.where = location.with_source()
            raise


def as_float32(value: object, what: str) -> Array:
    """`value` as a float32 array, converting real numbers of any width.

    Raises ShapeError, beginning with `what`, for anything that does not hold real numbers.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ShapeError(f"{what} is no array: {error}") from error
    if array.dtype.kind not in "fiub":
        raise ShapeError(f"{what} is {type(value).__name__} of {array.dtype}, not an array of real numbers")
    with np.errstate(over="ignore"):
        return array.astype(np.float32, copy=False)
