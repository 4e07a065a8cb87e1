"""FP8: F143 (4 exponent bits, bias 8) and F152 (5 exponent bits, bias 16).

No infinities, no negative zero, one NaN, 0x80 (known). A format number is 1 for F143 and 0 for F152
(derived).
"""

from __future__ import annotations

import math

from .arrays import Singles, Words, put_sum, single_at, word_at
from .bits import OVERFLOW, bits_of_double, double_of_bits, rounding_mode
from .convert import class_of
from .float16 import ESR, NANOO, half_value, round_half
from .products import add_product
from .registry import whole

FLOAT8_NAN = 0x80


def float8_value(byte: int, number_format: int) -> float:
    """The number a byte stands for (exact)."""
    if byte == FLOAT8_NAN:
        return math.nan
    fraction_bits, bias = (3, 8) if number_format else (2, 16)
    exponent = (byte & 0x7F) >> fraction_bits
    fraction = byte & ((1 << fraction_bits) - 1)
    if exponent == 0:
        value = fraction * double_of_bits((1024 - bias - fraction_bits) << 52)
    else:
        bits = ((exponent + 1023 - bias) << 52) | (fraction << (52 - fraction_bits))
        value = double_of_bits(bits)
    return -value if byte & 0x80 else value


def round_float8(value: float, number_format: int, control: int, draw: int) -> int:
    """A double rounded to FP8: nearest even (known), stochastic under ESR (derived); overflow saturates or,
    with NANOO, gives NaN (derived). Zero of either sign and underflow give 0x00."""
    bits = bits_of_double(value)
    sign = (bits >> 56) & 0x80
    magnitude = bits & 0x7FFFFFFFFFFFFFFF
    if magnitude > 0x7FF0000000000000:
        return FLOAT8_NAN
    fraction_bits, bias = (3, 8) if number_format else (2, 16)
    exponent = magnitude >> 52
    lowest = 1024 - bias
    shift = 52 - fraction_bits
    if exponent >= lowest:
        scaled = magnitude - ((lowest - 1) << 52)
    else:
        scaled = (magnitude & 0xFFFFFFFFFFFFF) | (1 << 52)
        shift += lowest - exponent
        if shift > 60:
            shift, scaled = 62, 1 if magnitude else 0
    result = scaled >> shift
    rest = scaled & ((1 << shift) - 1)
    if rest:
        mode = rounding_mode(control)
        if control & ESR:
            up = (rest >> (shift - 16)) + draw >= 65536
        elif mode == 0:
            tie = 1 << (shift - 1)
            up = rest > tie or (rest == tie and (result & 1) == 1)
        elif mode == 3:
            up = False
        else:
            up = (sign != 0) == (mode == 2)
        if up:
            result += 1
    if result > 0x7F:
        return (FLOAT8_NAN if control & NANOO else sign | 0x7F) | OVERFLOW
    return sign | result if result else 0


def scaled(value: float, scale: int) -> float:
    """value * 2**scale for a scale of -64..63."""
    return value * double_of_bits((1023 + scale) << 52)


def _widen(byte: int, number_format: int, scale: int, control: int, draw: int) -> int:
    return round_half(scaled(float8_value(byte, number_format), scale), control, draw)


@whole("f8v2tof16")
def f8v2tof16(x: int, number_format: int, scale: int, control: int, draw: int, draw1: int) -> int:
    """Two bytes as halves: q * 2**$FP_SCL (known)."""
    low = _widen(x & 0xFF, number_format, scale, control, draw)
    high = _widen((x >> 8) & 0xFF, number_format, scale, control, draw1)
    return (low & 0xFFFF) | ((high & 0xFFFF) << 16) | ((low | high) & ~0xFFFFFFFF)


@whole("f8v4tof16")
def f8v4tof16(
    x: int, number_format: int, scale: int, control: int, draw: int, draw1: int, draw2: int, draw3: int
) -> tuple[int, int]:
    """Four bytes as halves: q * 2**$FP_SCL (known)."""
    return (
        f8v2tof16(x & 0xFFFF, number_format, scale, control, draw, draw1),
        f8v2tof16(x >> 16, number_format, scale, control, draw2, draw3),
    )


@whole("f16v2tof8")
def f16v2tof8(x: int, number_format: int, scale: int, control: int, draw: int, draw1: int) -> int:
    """Two halves as bytes: x * 2**$FP_SCL (known); the upper bytes of the result are zero (assumed)."""
    low = round_float8(scaled(half_value(x & 0xFFFF), scale), number_format, control, draw)
    high = round_float8(scaled(half_value(x >> 16), scale), number_format, control, draw1)
    return (low & 0xFF) | ((high & 0xFF) << 8) | ((low | high) & ~0xFFFFFFFF)


@whole("f16v8tof8")
def f16v8tof8(
    x0: int,
    x1: int,
    x2: int,
    x3: int,
    number_format: int,
    scale: int,
    control: int,
    draw: int,
    draw1: int,
    draw2: int,
    draw3: int,
    random2: int,
    random3: int,
) -> tuple[int, int]:
    """Eight halves as bytes, lane order kept (known). Elements 4..7 round with a second draw (assumed)."""
    b0 = f16v2tof8(x0, number_format, scale, control, draw, draw1)
    b1 = f16v2tof8(x1, number_format, scale, control, draw2, draw3)
    b2 = f16v2tof8(x2, number_format, scale, control, random2 & 0xFFFF, random2 >> 16)
    b3 = f16v2tof8(x3, number_format, scale, control, random3 & 0xFFFF, random3 >> 16)
    low = (b0 & 0xFFFF) | ((b1 & 0xFFFF) << 16) | ((b0 | b1) & ~0xFFFFFFFF)
    return low, (b2 & 0xFFFF) | ((b3 & 0xFFFF) << 16) | ((b2 | b3) & ~0xFFFFFFFF)


def float8_dot(x0: int, x1: int, entry: int, weight_words: Words, formats: int, scale: int) -> float:
    """Eight inputs times a weight entry, scaled by 2**scale. `formats` is $FP_INFMT: bit 0 weights, bit 1
    input."""
    total = 0.0
    for half in range(2):
        weights = word_at(weight_words, 2 * entry + half)
        inputs = x1 if half else x0
        for lane in range(4):
            weight = float8_value((weights >> (8 * lane)) & 0xFF, formats & 1)
            x = float8_value((inputs >> (8 * lane)) & 0xFF, formats >> 1)
            total = add_product(total, x, weight)
    return scaled(total, scale)


def multiply_float8(
    x0: int,
    x1: int,
    phase: int,
    units: int,
    accumulators: Singles,
    weight_words: Words,
    formats: int,
    scale: int,
) -> int:
    """`amp.multiply_halves` on both sets with FP8 elements."""
    for first in range(0, 16, 8):
        for unit in range(first, first + units):
            dot = float8_dot(x0, x1, 4 * unit + phase, weight_words, formats, scale)
            work = single_at(accumulators, 2 * unit)
            if phase == 0:
                put_sum(accumulators, 2 * unit, single_at(accumulators, 2 * unit + 1) + dot)
                accumulators[2 * unit + 1] = work
            else:
                put_sum(accumulators, 2 * unit, work + dot)
    return 0


@whole("f8v4class")
def f8v4class(x: int) -> int:
    """One byte per element, packed from lane 0; numbers as for the other formats (assumed)."""
    result = 0
    for lane in range(4):
        byte = (x >> (8 * lane)) & 0xFF
        nan = 1 if byte == FLOAT8_NAN else 0
        result |= class_of(byte & 0x80, nan, 1 if byte == 0 else 0, nan, nan) << (8 * lane)
    return result
