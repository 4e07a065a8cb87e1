"""IEEE single precision: rounding, arithmetic and comparison of one lane.

Subnormals are kept (assumed: whether the hardware flushes them is not public). A double holds sums and
products well enough that rounding through it to nearest is the correct rounding; the directed modes look at
what was lost.
"""

from __future__ import annotations

from .bits import (
    DIVIDE,
    INVALID,
    OVERFLOW,
    SINGLE_NAN,
    is_single_nan,
    nearest_single,
    rounding_mode,
    single_value,
)
from .registry import singles

BEYOND = 2.0**128
"""No float32 is as large, whatever the rounding mode."""


def round_single(value: float, lost: float, control: int) -> int:
    """`value + lost` rounded to float32, where `lost` is the exact error of `value` (or any number of its
    sign).

    Raises OFLO in the flags when a finite value does not fit; the result is then infinite, or the largest
    number where the rounding mode says so, as in IEEE (assumed).
    """
    result = nearest_single(value)
    if is_single_nan(result):
        return SINGLE_NAN
    mode = rounding_mode(control)
    if mode and value - value == 0.0:
        error = value - single_value(result)
        if error == 0.0:
            error = lost
        negative = (result & 0x80000000) != 0
        if error > 0.0 and mode != 2 and (mode == 1 or negative):
            result = 0x00000001 if result == 0x80000000 else (result - 1 if negative else result + 1)
        elif error < 0.0 and mode != 1 and (mode == 2 or not negative):
            result = 0x80000001 if result == 0 else (result + 1 if negative else result - 1)
    if value - value == 0.0 and ((result & 0x7FFFFFFF) == 0x7F800000 or abs(value) >= BEYOND):
        return result | OVERFLOW
    return result


def _checked(result: int, x: int, y: int) -> int:
    """The result, with INV if it is a NaN that no operand was."""
    if result == SINGLE_NAN and not is_single_nan(x) and not is_single_nan(y):
        return result | INVALID
    return result


def f32_sum(x: float, y: float, control: int) -> int:
    """x + y of two singles, correctly rounded."""
    total = x + y
    if rounding_mode(control) == 0:
        return round_single(total, 0.0, control)
    part = total - x
    return round_single(total, (x - (total - part)) + (y - part), control)


@singles("f32add", "f32v2add")
def f32_add(x: int, y: int, control: int) -> int:
    return _checked(f32_sum(single_value(x), single_value(y), control), x, y)


@singles("f32sub", "f32v2sub")
def f32_sub(x: int, y: int, control: int) -> int:
    return _checked(f32_sum(single_value(x), -single_value(y), control), x, y)


@singles("f32mul", "f32v2mul")
def f32_mul(x: int, y: int, control: int) -> int:
    return _checked(round_single(single_value(x) * single_value(y), 0.0, control), x, y)


@singles("f32absadd", "f32v2absadd")
def f32_absadd(x: int, y: int, control: int) -> int:
    """abs(x) + abs(y)."""
    return f32_sum(single_value(x & 0x7FFFFFFF), single_value(y & 0x7FFFFFFF), control)


@singles("f32div")
def f32_div(x: int, y: int, control: int) -> int:
    """x / y; DIV0 for a finite x over zero."""
    if is_single_nan(x) or is_single_nan(y):
        return SINGLE_NAN
    sign = (x ^ y) & 0x80000000
    a, b = single_value(x & 0x7FFFFFFF), single_value(y & 0x7FFFFFFF)
    if b == 0.0:
        if a == 0.0:
            return SINGLE_NAN | INVALID
        return sign | 0x7F800000 | (DIVIDE if a - a == 0.0 else 0)
    if a - a != 0.0:
        return sign | 0x7F800000 if b - b == 0.0 else SINGLE_NAN | INVALID
    if b - b != 0.0:
        return sign
    quotient = a / b
    rounded = nearest_single(quotient)
    # The rest of the nearest quotient is exact in a double and tells on which side the true one lies.
    rest = a - single_value(rounded) * b if rounded < 0x7F800000 else 0.0
    if sign:
        return round_single(-quotient, -rest, control)
    return round_single(quotient, rest, control)


@singles("f32max", "f32v2max")
def f32_max(x: int, y: int) -> int:
    """The larger; the other operand if one is NaN (assumed)."""
    if is_single_nan(x):
        return y
    return y if single_value(y) > single_value(x) else x


@singles("f32min", "f32v2min")
def f32_min(x: int, y: int) -> int:
    """The smaller; the other operand if one is NaN (assumed)."""
    if is_single_nan(x):
        return y
    return y if single_value(y) < single_value(x) else x


@singles("f32absmax", "f32v2absmax")
def f32_absmax(x: int, y: int) -> int:
    return f32_max(x & 0x7FFFFFFF, y & 0x7FFFFFFF)


@singles("f32clamp", "f32v2clamp")
def f32_clamp(x: int, lower: int, upper: int) -> int:
    """x limited to lower..upper; a NaN passes (known)."""
    if is_single_nan(x):
        return x
    return f32_min(f32_max(x, lower), upper)


@singles("f32cmpeq", "f32v2cmpeq")
def f32_cmpeq(x: int, y: int) -> int:
    return 0xFFFFFFFF if single_value(x) == single_value(y) else 0


@singles("f32cmpne", "f32v2cmpne")
def f32_cmpne(x: int, y: int) -> int:
    return 0xFFFFFFFF if single_value(x) != single_value(y) else 0


@singles("f32cmplt", "f32v2cmplt")
def f32_cmplt(x: int, y: int) -> int:
    return 0xFFFFFFFF if single_value(x) < single_value(y) else 0


@singles("f32cmple", "f32v2cmple")
def f32_cmple(x: int, y: int) -> int:
    return 0xFFFFFFFF if single_value(x) <= single_value(y) else 0


@singles("f32cmpgt", "f32v2cmpgt")
def f32_cmpgt(x: int, y: int) -> int:
    return 0xFFFFFFFF if single_value(x) > single_value(y) else 0


@singles("f32cmpge", "f32v2cmpge")
def f32_cmpge(x: int, y: int) -> int:
    return 0xFFFFFFFF if single_value(x) >= single_value(y) else 0


@singles("f32sufromui", "f32v2sufromui")
def f32_sufromui(x: int, control: int) -> int:
    """A 32-bit integer as a number in -0.5..0.5: (x + 0.5) / 2**32 - 0.5 (derived)."""
    return round_single((x + 0.5) / 4294967296.0 - 0.5, 0.0, control)
