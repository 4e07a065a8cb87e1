"""Conversions between half, single and integer, classification, and sums across lanes."""

from __future__ import annotations

import math

from .bits import (
    INVALID,
    SINGLE_NAN,
    WORD,
    is_half_nan,
    is_single_nan,
    nearest_single,
    rounding_mode,
    signed,
    single_value,
)
from .float16 import f16_max, half_value, round_half
from .float32 import f32_sum, round_single
from .registry import whole


def widen(half: int) -> int:
    """The half as float32 bits (exact); a NaN becomes the canonical one."""
    if is_half_nan(half):
        return SINGLE_NAN
    return nearest_single(half_value(half))


@whole("f16tof32")
def f16tof32(x: int) -> int:
    """The low half (known)."""
    return widen(x & 0xFFFF)


@whole("f16v2tof32")
def f16v2tof32(x: int) -> tuple[int, int]:
    return widen(x & 0xFFFF), widen(x >> 16)


@whole("f32tof16")
def f32tof16(x: int, control: int, draw: int) -> int:
    """Rounded to half, in both halves of the result (known)."""
    half = round_half(single_value(x), control, draw)
    return half | ((half & 0xFFFF) << 16)


@whole("f32v2tof16")
def f32v2tof16(x0: int, x1: int, control: int, draw: int, draw1: int) -> int:
    low = round_half(single_value(x0), control, draw)
    high = round_half(single_value(x1), control, draw1)
    return (low & 0xFFFF) | ((high & 0xFFFF) << 16) | ((low | high) & ~WORD)


@whole("f32v4tof16")
def f32v4tof16(
    x0: int, x1: int, x2: int, x3: int, control: int, draw: int, draw1: int, draw2: int, draw3: int
) -> tuple[int, int]:
    return f32v2tof16(x0, x1, control, draw, draw1), f32v2tof16(x2, x3, control, draw2, draw3)


def round_to_integer(value: float, mode: int) -> float:
    """A finite value rounded to an integer: 0 nearest even, 1 up, 2 down, 3 toward zero (known)."""
    if abs(value) >= 4503599627370496.0:
        return value
    below = math.floor(value)
    if mode == 1:
        return math.ceil(value) * 1.0
    if mode == 2:
        return below * 1.0
    if mode == 3:
        return below * 1.0 if value >= 0.0 else math.ceil(value) * 1.0
    rest = value - below
    if rest > 0.5 or (rest == 0.5 and below % 2 != 0):
        return below + 1.0
    return below * 1.0


@whole("f32int")
def f32int(x: int, mode: int) -> int:
    """Rounded to an integer, still as float32; the sign of zero is kept. Infinity and NaN pass."""
    if is_single_nan(x):
        return SINGLE_NAN
    if (x & 0x7FFFFFFF) >= 0x4B000000:
        return x
    return (nearest_single(round_to_integer(single_value(x), mode)) & 0x7FFFFFFF) | (x & 0x80000000)


@whole("f32toi32")
def f32toi32(x: int, control: int) -> int:
    """To a signed integer as $FP_CTL.RND says; out of range saturates with INV, NaN gives 0 (assumed)."""
    if is_single_nan(x):
        return INVALID
    if (x & 0x7FFFFFFF) >= 0x4F000000:
        if x == 0xCF000000:
            return 0x80000000
        return (0x80000000 if x & 0x80000000 else 0x7FFFFFFF) | INVALID
    return int(round_to_integer(single_value(x), rounding_mode(control))) & WORD


@whole("f32toui32")
def f32toui32(x: int, control: int) -> int:
    """To an unsigned integer as $FP_CTL.RND says; out of range saturates with INV, NaN gives 0 (assumed)."""
    if is_single_nan(x):
        return INVALID
    if (x & 0x80000000) == 0 and x >= 0x4F800000:
        return WORD | INVALID
    if (x & 0x80000000) and x >= 0xCF800000:
        return INVALID
    value = int(round_to_integer(single_value(x), rounding_mode(control)))
    if value < 0:
        return INVALID
    return value & WORD


@whole("f32fromi32")
def f32fromi32(x: int, control: int) -> int:
    return round_single(signed(x) * 1.0, 0.0, control)


@whole("f32fromui32")
def f32fromui32(x: int, control: int) -> int:
    return round_single(x * 1.0, 0.0, control)


@whole("f16v2sum")
def f16v2sum(x: int, control: int) -> int:
    """The sum of both halves as float32."""
    return f32_sum(half_value(x & 0xFFFF), half_value(x >> 16), control)


@whole("f16v4sum")
def f16v4sum(x0: int, x1: int, control: int) -> tuple[int, int]:
    """The sums of each pair of halves as float32 (assumed: neighbours)."""
    return f16v2sum(x0, control), f16v2sum(x1, control)


@whole("f16v2maxc")
def f16v2maxc(x: int) -> int:
    """The larger half, in both halves of the result (assumed)."""
    largest = f16_max(x & 0xFFFF, x >> 16)
    return largest | (largest << 16)


@whole("f16v4maxc")
def f16v4maxc(x0: int, x1: int) -> int:
    """The largest half, in both halves of the result (assumed)."""
    largest = f16_max(f16_max(x0 & 0xFFFF, x0 >> 16), f16_max(x1 & 0xFFFF, x1 >> 16))
    return largest | (largest << 16)


UNCLASSIFIED, SIGNALLING, QUIET, NEGATIVE_ZERO = 0, 1, 2, 5
POSITIVE_ZERO, NEGATIVE_INFINITE, POSITIVE_INFINITE, NEGATIVE, POSITIVE = 6, 3, 4, 7, 8
"""Class numbers. The first four are known or derived from kernels; the second line is assumed (only that they
are above 2 and differ from 5 is established)."""


def class_of(sign: int, exponent_ones: int, exponent_zero: int, fraction: int, quiet: int) -> int:
    """The class number of a number given in pieces."""
    if exponent_ones:
        if fraction:
            return QUIET if quiet else SIGNALLING
        return NEGATIVE_INFINITE if sign else POSITIVE_INFINITE
    if exponent_zero and fraction == 0:
        return NEGATIVE_ZERO if sign else POSITIVE_ZERO
    return NEGATIVE if sign else POSITIVE


def half_class(half: int) -> int:
    exponent = half & 0x7C00
    return class_of(
        half & 0x8000, 1 if exponent == 0x7C00 else 0, 1 if exponent == 0 else 0, half & 0x3FF, half & 0x200
    )


@whole("f32class")
def f32class(x: int) -> int:
    exponent = x & 0x7F800000
    ones, zero = 1 if exponent == 0x7F800000 else 0, 1 if exponent == 0 else 0
    return class_of(x & 0x80000000, ones, zero, x & 0x7FFFFF, x & 0x400000)


@whole("f32v2class")
def f32v2class(x0: int, x1: int) -> int:
    """One byte per element, packed from lane 0 (known)."""
    return f32class(x0) | (f32class(x1) << 8)


@whole("f16v2class")
def f16v2class(x: int) -> int:
    """One byte per element, packed from lane 0 (known)."""
    return half_class(x & 0xFFFF) | (half_class(x >> 16) << 8)


@whole("f16v4class")
def f16v4class(x0: int, x1: int) -> int:
    """One byte per element, packed from lane 0 (known)."""
    return f16v2class(x0) | (f16v2class(x1) << 16)
