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

from tilewright.errors import GraphError, ShapeError, TilewrightError
from tilewright.source_location import user_location
from tilewright.tensor_type import TensorType

from .parameter import Attribute, Attributes, Parameter, resolve_parameters
from .tolerance import Tolerance

Array = NDArray[np.float32]


class ShapeRule(Protocol):
    """Result type from settled attributes and operand types; raises ShapeError."""

    def __call__(self, attributes: Attributes, /, *operands: TensorType) -> TensorType: ...


class SettleRule(Protocol):
    """Attributes in the one form that graphs hold, such as axes counted from the front.

    Takes resolved attributes and operand types; raises ShapeError, GraphError. Settling twice changes
    nothing.
    """

    def __call__(self, attributes: Attributes, /, *operands: TensorType) -> Mapping[str, Attribute]: ...


class Reference(Protocol):
    """Result from settled attributes and float32 operands, rounded once, of the shape rule's shape."""

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
class Operator:
    """One operator.

    Attributes:
        operands: names of the operands in order.
        optional: how many of the last operands may be left out.
        variadic: the last operand may be given any number of times, at least once.
        settle_rule: how attributes are brought into one form; None when they have only one.
    """

    name: str
    operands: tuple[str, ...]
    shape_rule: ShapeRule
    reference: Reference
    tolerance: ToleranceRule
    parameters: tuple[Parameter, ...] = ()
    optional: int = 0
    variadic: bool = False
    settle_rule: SettleRule | None = None

    def resolve(self, attributes: Mapping[str, object]) -> dict[str, Attribute]:
        """All attributes, in declaration order, defaults filled in.

        Raises GraphError, naming the operator and the parameter, for an unknown or missing name and for a
        value of the wrong type or without a meaning.
        """
        return resolve_parameters(self.name, self.parameters, attributes)

    def operand_names(self, count: int) -> tuple[str, ...]:
        """Names of `count` operands. Raises GraphError when the operator does not take that many."""
        most = max(count, len(self.operands)) if self.variadic else len(self.operands)
        if not len(self.operands) - self.optional <= count <= most:
            listed = [
                f"{name}=None" if index >= len(self.operands) - self.optional else name
                for index, name in enumerate(self.operands)
            ]
            listed += ["..."] if self.variadic else []
            fixed = not self.optional and not self.variadic
            number = "" if not fixed else f"{len(listed)} "
            plural = "" if fixed and len(listed) == 1 else "s"
            raise GraphError(f"{self.name} takes {number}operand{plural} ({', '.join(listed)}), got {count}")
        if not self.variadic:
            return self.operands[:count]
        *first, last = self.operands
        return (*first, *(f"{last}{index}" for index in range(count - len(first))))

    def settle(
        self, attributes: Attributes, *operands: TensorType
    ) -> tuple[dict[str, Attribute], TensorType]:
        """Resolved attributes in the form that graphs hold, and the type of the result.

        Checks the number of operands and their dtype before the operator's own rules. Raises GraphError,
        and ShapeError naming the operator and every operand's type.
        """
        for name, operand in zip(self.operand_names(len(operands)), operands, strict=True):
            if operand.dtype != "float32":
                raise ShapeError(
                    f"{self.name}: operand {name} is {operand}; operators are stated on float32 values",
                    hint="declare it float32; the plan chooses what the chip computes in",
                )
        settled = dict(attributes if self.settle_rule is None else self.settle_rule(attributes, *operands))
        try:
            return settled, self.shape_rule(settled, *operands)
        except ShapeError as error:
            if not error.what.startswith(f"{self.name}: "):  # the result itself is no legal tensor
                raise self.mismatch(error.what, *operands) from error
            raise

    def infer(self, attributes: Attributes, *operands: TensorType) -> TensorType:
        """Type of the result. Raises what `settle` raises."""
        return self.settle(attributes, *operands)[1]

    def mismatch(self, reason: str, *operands: TensorType) -> ShapeError:
        """The error a shape rule raises: names the operator, the reason and all operand types."""
        names = self.operand_names(len(operands))
        listed = ", ".join(f"{n} = {t}" for n, t in zip(names, operands, strict=True))
        return ShapeError(f"{self.name}: {reason}: {listed}")

    def __call__(self, *operands: object, **attributes: object) -> Any:
        """Compute the reference on arrays, or record an operation on traced values.

        Arrays are anything NumPy turns into real numbers; they are computed in float32. Errors carry the
        user's source line.
        """
        with AtUsersLine():
            resolved = self.resolve(attributes)
            for operand in operands:
                apply = getattr(type(operand), "__tilewright_apply__", None)
                if apply is not None:
                    return apply(operand, self, operands, resolved)
            arrays = [as_float32(operand, f"{self.name}: operand {i}") for i, operand in enumerate(operands)]
            settled, _ = self.settle(resolved, *(TensorType(array.shape) for array in arrays))
            return self.reference(settled, *arrays)


class AtUsersLine:
    """Context that gives errors without a place the line of the user's code that is running.

    A class, because the frames of `contextlib` would look like the user's.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, TilewrightError) and error.where is None:
            location = user_location()
            error.where = location.with_source() if location is not None else None


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
