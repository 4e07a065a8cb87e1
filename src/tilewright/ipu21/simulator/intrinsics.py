"""Single machine instructions for the conversions that `meaning` and `pointers` write out in Python."""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic

I16, I32, I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
CPU = binding.get_host_cpu_features()


@intrinsic
def bits_of_double(typing_context: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], I64)

    return types.int64(types.float64), build


@intrinsic
def double_of_bits(typing_context: Any, bits: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], F64)

    return types.float64(types.int64), build


@intrinsic
def nearest_single(typing_context: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.bitcast(builder.fptrunc(arguments[0], F32), I32), I64)

    return types.int64(types.float64), build


@intrinsic
def single_value(typing_context: Any, word: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(builder.trunc(arguments[0], I32), F32), F64)

    return types.float64(types.int64), build


@intrinsic
def half_value(typing_context: Any, half: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(builder.trunc(arguments[0], I16), F16), F64)

    return types.float64(types.int64), build


def _odd_single(builder: Any, value: Any) -> Any:
    """A double cut off to a single, whose last bit is set if anything was lost.

    Rounded again, to less than half the bits, it gives what the double would have.
    """
    bits = builder.bitcast(value, I64)
    lost = ir.Constant(I64, (1 << 29) - 1)
    some = builder.icmp_unsigned("!=", builder.and_(bits, lost), ir.Constant(I64, 0))
    last = builder.shl(builder.zext(some, I64), ir.Constant(I64, 29))
    kept = builder.or_(builder.and_(bits, builder.not_(lost)), last)
    return builder.fptrunc(builder.bitcast(kept, F64), F32)


def nearest_half(direct: bool) -> Any:
    """An intrinsic that rounds to half: `direct` if the CPU does that with doubles, else through a single."""

    @intrinsic
    def rounded(typing_context: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = arguments[0] if direct else _odd_single(builder, arguments[0])
            return builder.zext(builder.bitcast(builder.fptrunc(number, F16), I16), I64)

        return types.int64(types.float64), build

    return rounded


def _pointer_to(element: Any) -> Any:
    """An intrinsic that turns an address into a pointer to elements of a numba type."""

    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        pointer_type: Any = types.CPointer
        return pointer_type(element)(types.int64), build

    return pointer


@intrinsic
def call_native(typing_context: Any, function: Any, state: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(I64, [I64])
        address = builder.ptrtoint(arguments[1], I64)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [address])

    pointer_type: Any = types.CPointer
    return types.int64(types.int64, pointer_type(types.int64)), build


REPLACEMENTS: dict[str, Any] = {
    "bits_of_double": bits_of_double,
    "double_of_bits": double_of_bits,
    "nearest_single": nearest_single,
    "single_value": single_value,
    "call_native": call_native,
    "bytes_at": _pointer_to(types.uint8),
    "words_at": _pointer_to(types.uint32),
    "singles_at": _pointer_to(types.float32),
    "integers_at": _pointer_to(types.int64),
    "marks_at": _pointer_to(types.int16),
}
"""Python function name to intrinsic; only functions of `meaning` and `pointers` have these names."""

if CPU.get("f16c", False):
    # Other CPUs would call a library for this.
    REPLACEMENTS |= {"half_value": half_value, "nearest_half": nearest_half(CPU.get("avx512fp16", False))}
