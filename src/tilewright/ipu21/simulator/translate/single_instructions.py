"""Functions that become single instructions when they are lowered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...isa.meaning import arrays, bits
from .. import pointers
from .operands import POINTERS, Value

if TYPE_CHECKING:
    from .lowering import Lowering

Function = Callable[..., Any]


def _bits_of_double(lowering: Lowering, arguments: list[Value]) -> Value:
    text = lowering.as_double(arguments[0])
    return Value("i", lowering.builder.op(f"bitcast double {text} to i64"))


def _double_of_bits(lowering: Lowering, arguments: list[Value]) -> Value:
    text = lowering.as_int(arguments[0])
    return Value("f", lowering.builder.op(f"bitcast i64 {text} to double"))


def _nearest_single(lowering: Lowering, arguments: list[Value]) -> Value:
    single = lowering.builder.op(f"fptrunc double {lowering.as_double(arguments[0])} to float")
    word = lowering.builder.op(f"bitcast float {single} to i32")
    return Value("i", lowering.builder.op(f"zext i32 {word} to i64"))


def _single_value(lowering: Lowering, arguments: list[Value]) -> Value:
    word = lowering.builder.op(f"trunc i64 {lowering.as_int(arguments[0])} to i32")
    single = lowering.builder.op(f"bitcast i32 {word} to float")
    return Value("f", lowering.builder.op(f"fpext float {single} to double"))


def _element(lowering: Lowering, arguments: list[Value]) -> Value:
    kind, reading = arguments[0].element
    place = lowering.builder.at(arguments[0].text, kind, lowering.as_int(arguments[1]))
    text = lowering.builder.load(kind, place)
    if reading == "float":
        return Value("f", lowering.builder.op(f"fpext float {text} to double"))
    return Value("i", lowering.builder.op(f"zext {kind} {text} to i64"))


def _pointer(element: Any) -> Callable[[Lowering, list[Value]], Value]:
    def lower(lowering: Lowering, arguments: list[Value]) -> Value:
        text = lowering.builder.op(f"inttoptr i64 {lowering.as_int(arguments[0])} to ptr")
        return Value("p", text, element=POINTERS[element])

    return lower


SPECIAL: dict[Function, Callable[[Lowering, list[Value]], Value]] = {
    bits.bits_of_double: _bits_of_double,
    bits.double_of_bits: _double_of_bits,
    bits.nearest_single: _nearest_single,
    bits.single_value: _single_value,
    arrays.word_at: _element,
    arrays.byte_at: _element,
    arrays.single_at: _element,
    pointers.bytes_at: _pointer(arrays.Bytes),
    pointers.words_at: _pointer(arrays.Words),
    pointers.marks_at: _pointer(arrays.Marks),
    pointers.integers_at: _pointer(arrays.Integers),
    pointers.singles_at: _pointer(arrays.Singles),
}


def special(function: Function) -> Callable[[Callable[[Lowering, list[Value]], Value]], Function]:
    """Give a function its own lowering; the plain function stays what it is."""

    def register(lower: Callable[[Lowering, list[Value]], Value]) -> Function:
        SPECIAL[function] = lower
        return function

    return register
