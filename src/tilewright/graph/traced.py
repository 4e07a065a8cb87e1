"""The stand-in for an array while a function is traced: records what it can, refuses the rest by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from tilewright.errors import GraphError, UnsupportedError
from tilewright.operators.operator import Operator
from tilewright.operators.parameter import Attributes
from tilewright.source_location import user_location

from .graph import Value

if TYPE_CHECKING:
    from .recorder import Recorder

_UFUNCS = {"add": "add", "matmul": "matmul"}
"""NumPy functions that mean the same as an operator."""

_INSTEAD = {"T": "transpose", "swapaxes": "transpose", "concatenate": "concat", "dot": "matmul"}
"""Operators that do what something of NumPy's does under another name."""


class UnknownAttributeError(UnsupportedError, AttributeError):
    """An array has this attribute, a traced value has not; `hasattr` still answers False."""


class Traced:
    """A value of the graph being recorded. Has `shape`, `dtype`, `ndim`, `+` and `@`; nothing else yet."""

    __slots__ = ("_recorder", "_value")

    def __init__(self, recorder: Recorder, value: Value) -> None:
        self._recorder = recorder
        self._value = value

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, as of an array."""
        return self._value.type.shape

    @property
    def dtype(self) -> str:
        """Name of the element type."""
        return self._value.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._value.type.rank

    def __repr__(self) -> str:
        return f"Traced({self._value!r})"

    def __tilewright_apply__(
        self, operator: Operator, operands: tuple[object, ...], attributes: Attributes
    ) -> Traced:
        return Traced(self._recorder, self._recorder.apply(operator, operands, attributes))

    def __add__(self, other: object) -> Any:
        return _apply("add", self, other)

    def __radd__(self, other: object) -> Any:
        return _apply("add", other, self)

    def __matmul__(self, other: object) -> Any:
        return _apply("matmul", self, other)

    def __rmatmul__(self, other: object) -> Any:
        return _apply("matmul", other, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **options: object) -> Any:
        name = _UFUNCS.get(ufunc.__name__)
        if name is None or method != "__call__" or options:
            suffix = "" if method == "__call__" else f".{method}"
            _refuse(f"numpy.{ufunc.__name__}{suffix}", _instead(ufunc.__name__))
        return _apply(name, *inputs)

    def __array_function__(self, function: Any, types: object, args: object, kwargs: object) -> NoReturn:
        _refuse(f"numpy.{function.__name__}", _instead(function.__name__))

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        _refuse("turning it into an array", "its contents exist only when the compiled model runs")

    def __bool__(self) -> NoReturn:
        _refuse("its truth value", "a static program cannot branch on data")

    def __float__(self) -> NoReturn:
        _refuse("float()", "its contents exist only when the compiled model runs")

    def __int__(self) -> NoReturn:
        _refuse("int()", "its contents exist only when the compiled model runs")

    def __iter__(self) -> NoReturn:
        _refuse("iteration", "use ops.slice, or ops.repeat over its leading axis")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no len()")
        return self.shape[0]

    def __getitem__(self, key: object) -> NoReturn:
        _refuse("indexing", "use ops.slice")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        _refuse("assignment to elements", "values are computed once")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        location = user_location()
        raise UnknownAttributeError(
            f".{name} is not supported on a traced value",
            where=location.with_source() if location else None,
            hint=_instead(name, "it has shape, dtype, ndim, + and @; use an operator of tilewright.ops"),
        )


def _instead(name: str, otherwise: str = "use an operator of tilewright.ops") -> str:
    """What to use for a method or function of NumPy's called `name`."""
    from tilewright.operators import operator_names

    known = _INSTEAD.get(name, name)
    return f"use ops.{known}" if known in operator_names() else otherwise


def _apply(name: str, *operands: object) -> Any:
    from tilewright.operators import operator

    return operator(name)(*operands)


def _refuse(what: str, hint: str | None) -> NoReturn:
    location = user_location()
    where = location.with_source() if location else None
    raise UnsupportedError(f"{what} is not supported on a traced value", where=where, hint=hint)


def _refusing(symbol: str) -> Any:
    def method(self: Traced, *others: object) -> NoReturn:
        _refuse(f"`{symbol}`", "use an operator of tilewright.ops")

    return method


for _names, _symbol in {
    ("__sub__", "__rsub__", "__neg__"): "-",
    ("__mul__", "__rmul__"): "*",
    ("__truediv__", "__rtruediv__"): "/",
    ("__floordiv__", "__rfloordiv__"): "//",
    ("__mod__", "__rmod__"): "%",
    ("__pow__", "__rpow__"): "**",
    ("__lt__",): "<",
    ("__le__",): "<=",
    ("__gt__",): ">",
    ("__ge__",): ">=",
    ("__eq__",): "==",
    ("__ne__",): "!=",
}.items():
    for _name in _names:
        setattr(Traced, _name, _refusing(_symbol))


def unwrap(value: object, recorder: Recorder) -> Value:
    """The value inside `value`. Raises GraphError when it belongs to another trace or a loop already left."""
    assert isinstance(value, Traced)
    if value._recorder is not recorder:
        raise GraphError("this traced value belongs to another trace", hint="pass it in as an input")
    recorder.check_visible(value._value)
    return value._value


def recorder_of(value: Traced) -> Recorder:
    """Where `value` is recorded."""
    return value._recorder
