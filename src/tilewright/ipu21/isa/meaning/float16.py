"""IEEE half precision: widening, rounding, arithmetic and comparison of one lane.

Sums and products of halves are exact in a double, so every result is rounded once. Subnormals are full
citizens (known). Overflow saturates, or gives NaN when $FP_CTL.NANOO is set (known); infinite operands
propagate (assumed). Stochastic rounding (ESR) adds 16 random bits to the discarded fraction and truncates
(assumed: the hardware's choice of bits is not public).
"""

from __future__ import annotations

from .bits import (
    HALF_NAN,
    INVALID,
    OVERFLOW,
    ROUNDING,
    bits_of_double,
    double_of_bits,
    is_half_nan,
    rounding_mode,
)
from .registry import halves

ESR = 1 << 19
NANOO = 1 << 20
"""Bits of $FP_CTL: stochastic rounding to half; NaN instead of saturation on overflow (known)."""


def half_value(half: int) -> float:
    """The half as a double (exact)."""
    bits = (half & 0x7FFF) << 42
    if (half & 0x7C00) == 0x7C00:
        value = double_of_bits(bits | 0x7FF0000000000000)
    else:
        value = double_of_bits(bits) * 2.0**1008
    return -value if half & 0x8000 else value


def in_units(magnitude: int) -> tuple[int, int]:
    """(shift, scaled) from the bits of a double: scaled >> shift is the half's number, cut off."""
    exponent = magnitude >> 52
    if exponent >= 1009:
        return 42, magnitude - (1008 << 52)
    if exponent >= 989:
        return 1051 - exponent, (magnitude & 0xFFFFFFFFFFFFF) | (1 << 52)
    # So far below the smallest that only "not zero" matters.
    return 62, 1 if magnitude else 0


def nearest_half(value: float) -> int:
    """Bits of the half nearest to a double, ties to even; too large becomes infinity, NaN some NaN."""
    bits = bits_of_double(value)
    sign = (bits >> 48) & 0x8000
    magnitude = bits & 0x7FFFFFFFFFFFFFFF
    if magnitude > 0x7FF0000000000000:
        return HALF_NAN
    shift, scaled = in_units(magnitude)
    result = (scaled + (1 << (shift - 1)) - 1 + ((scaled >> shift) & 1)) >> shift
    return sign | (result if result < 0x7C00 else 0x7C00)


def directed_half(value: float, control: int, draw: int) -> int:
    """`nearest_half` in the stochastic and the directed modes."""
    bits = bits_of_double(value)
    sign = (bits >> 48) & 0x8000
    magnitude = bits & 0x7FFFFFFFFFFFFFFF
    if magnitude >= 0x7FF0000000000000:
        return HALF_NAN if magnitude > 0x7FF0000000000000 else sign | 0x7C00
    shift, scaled = in_units(magnitude)
    result = scaled >> shift
    rest = scaled & ((1 << shift) - 1)
    mode = rounding_mode(control)
    if control & ESR:
        result += 1 if (rest >> (shift - 16)) + draw >= 65536 else 0
    elif rest and mode != 3 and (sign != 0) == (mode == 2):
        result += 1
    return sign | (result if result < 0x7C00 else 0x7C00)


def round_half(value: float, control: int, draw: int) -> int:
    """A double rounded to half as $FP_CTL says, with OFLO in the flags if it does not fit."""
    half = directed_half(value, control, draw) if control & (ESR | ROUNDING) else nearest_half(value)
    if (half & 0x7C00) == 0x7C00:
        if value - value == 0.0:
            return (HALF_NAN if control & NANOO else half - 1) | OVERFLOW
        return HALF_NAN if half & 0x3FF else half
    return half


def _checked(result: int, x: int, y: int) -> int:
    """The result, with INV if it is a NaN that no operand was."""
    if (result & 0x7C00) != 0x7C00:
        return result
    if result == HALF_NAN and not is_half_nan(x) and not is_half_nan(y):
        return result | INVALID
    return result


@halves("f16v2add", "f16v4add")
def f16_add(x: int, y: int, control: int, draw: int) -> int:
    return _checked(round_half(half_value(x) + half_value(y), control, draw), x, y)


@halves("f16v2sub", "f16v4sub")
def f16_sub(x: int, y: int, control: int, draw: int) -> int:
    return _checked(round_half(half_value(x) - half_value(y), control, draw), x, y)


@halves("f16v2mul", "f16v4mul")
def f16_mul(x: int, y: int, control: int, draw: int) -> int:
    return _checked(round_half(half_value(x) * half_value(y), control, draw), x, y)


@halves("f16v2absadd", "f16v4absadd")
def f16_absadd(x: int, y: int, control: int, draw: int) -> int:
    """abs(x) + abs(y)."""
    return round_half(half_value(x & 0x7FFF) + half_value(y & 0x7FFF), control, draw)


@halves("f16v2max", "f16v4max")
def f16_max(x: int, y: int) -> int:
    """The larger; the other operand if one is NaN (assumed)."""
    if is_half_nan(x):
        return y
    return y if half_value(y) > half_value(x) else x


@halves("f16v2min", "f16v4min")
def f16_min(x: int, y: int) -> int:
    """The smaller; the other operand if one is NaN (assumed)."""
    if is_half_nan(x):
        return y
    return y if half_value(y) < half_value(x) else x


@halves("f16v2absmax", "f16v4absmax")
def f16_absmax(x: int, y: int) -> int:
    return f16_max(x & 0x7FFF, y & 0x7FFF)


@halves("f16v2clamp", "f16v4clamp")
def f16_clamp(x: int, lower: int, upper: int) -> int:
    """x limited to lower..upper; a NaN passes (known)."""
    if is_half_nan(x):
        return x
    return f16_min(f16_max(x, lower), upper)


@halves("f16v2cmpeq", "f16v4cmpeq")
def f16_cmpeq(x: int, y: int) -> int:
    return 0xFFFF if half_value(x) == half_value(y) else 0


@halves("f16v2cmpne", "f16v4cmpne")
def f16_cmpne(x: int, y: int) -> int:
    return 0xFFFF if half_value(x) != half_value(y) else 0


@halves("f16v2cmplt", "f16v4cmplt")
def f16_cmplt(x: int, y: int) -> int:
    return 0xFFFF if half_value(x) < half_value(y) else 0


@halves("f16v2cmple", "f16v4cmple")
def f16_cmple(x: int, y: int) -> int:
    return 0xFFFF if half_value(x) <= half_value(y) else 0


@halves("f16v2cmpgt", "f16v4cmpgt")
def f16_cmpgt(x: int, y: int) -> int:
    return 0xFFFF if half_value(x) > half_value(y) else 0


@halves("f16v2cmpge", "f16v4cmpge")
def f16_cmpge(x: int, y: int) -> int:
    return 0xFFFF if half_value(x) >= half_value(y) else 0


@halves("f16v4sufromui", "f16v2sufromui")
def f16_sufromui(x: int, control: int, draw: int) -> int:
    """A 16-bit integer as a number in -0.5..0.5: (x + 0.5) / 65536 - 0.5 (derived)."""
    return round_half((x + 0.5) / 65536.0 - 0.5, control, draw)
