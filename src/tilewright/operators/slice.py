"""A range of one axis."""

from __future__ import annotations

from typing import Any

from tilewright.tensor_type import TensorType

from .axes import axis_from_front
from .operator import Array, Operator
from .parameter import Attributes, Parameter, integer
from .rounding import moved_error
from .tolerance import Tolerance


def slice(x: Any, *, axis: int, start: int = 0, stop: int = 0) -> Any:
    """Elements `start` to `stop` (not included) of one axis of `x`; the other axes whole.

    A negative axis, start or stop counts from the end; a stop of 0 is the end. Unlike NumPy's, a range that
    does not lie within the axis, or is empty, raises ShapeError.

    On arrays: the float32 result, a copy. On traced values: a traced value.
    """
    return OPERATOR(x, axis=axis, start=start, stop=stop)


def settle(attributes: Attributes, /, *operands: TensorType) -> dict[str, int]:
    """Axis, start and stop counted from the front."""
    (x,) = operands
    axis = axis_from_front(OPERATOR, integer(attributes, "axis"), x.rank, operands)
    extent = x.shape[axis]
    start, stop = integer(attributes, "start"), integer(attributes, "stop")
    first = start + extent if start < 0 else start
    last = stop + extent if stop <= 0 else stop
    if not 0 <= first < last <= extent:
        raise OPERATOR.mismatch(f"{start}:{stop} is no range of axis {axis} of extent {extent}", x)
    return {"axis": axis, "start": first, "stop": last}


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """The extent of the axis becomes the length of the range."""
    (x,) = operands
    shape = list(x.shape)
    shape[integer(attributes, "axis")] = integer(attributes, "stop") - integer(attributes, "start")
    return TensorType(shape, x.dtype)


def _cut(attributes: Attributes, x: Any) -> Any:
    axis, start, stop = (integer(attributes, name) for name in ("axis", "start", "stop"))
    return x.swapaxes(0, axis)[start:stop].swapaxes(0, axis)


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """A copy of the range."""
    cut: Array = _cut(attributes, operands[0]).copy()
    return cut


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """Nothing but the operand's rounding to float16; exact when it is a float16 number already."""
    return Tolerance(_cut(attributes, moved_error(operands[0])), "moved, rounded to float16 once")


OPERATOR = Operator(
    name="slice",
    operands=("x",),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
    parameters=(Parameter("axis", 0, required=True), Parameter("start", 0), Parameter("stop", 0)),
    settle_rule=settle,
)
