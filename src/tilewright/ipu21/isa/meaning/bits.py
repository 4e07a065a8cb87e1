"""Bit patterns of floating-point numbers, as plain integers; exception flags and rounding control.

The four conversions at the top, and `float16.half_value`, are replaced by single machine instructions when
the simulator compiles their callers.
"""

from __future__ import annotations

import struct

INVALID = 1 << 32
DIVIDE = 1 << 33
OVERFLOW = 1 << 34
"""Exception flags as they sit above a result word; shifted down by 32 they are the bits of $FP_STS
(known)."""

HALF_NAN = 0x7E00
SINGLE_NAN = 0x7FC00000
"""The NaN every invalid operation delivers (assumed: payload rules are not public)."""

WORD = 0xFFFFFFFF


def bits_of_double(value: float) -> int:
    """The 64 bits of a double as a signed integer."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def double_of_bits(bits: int) -> float:
    """The double with these 64 bits (given as a signed integer)."""
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def nearest_single(value: float) -> int:
    """Bits of the float32 nearest to a double, ties to even; too large becomes infinity, NaN keeps its
    sign."""
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def single_value(word: int) -> float:
    """The float32 with these bits, widened to a double (exact)."""
    return float(struct.unpack("<f", struct.pack("<I", word))[0])


def signed(word: int) -> int:
    """A 32-bit word read as two's complement."""
    return word - ((word & 0x80000000) << 1)


ROUNDING = 7 << 16
"""Bits of $FP_CTL: the rounding mode, all zero for nearest (known)."""


def rounding_mode(control: int) -> int:
    """$FP_CTL.RND: 0 nearest even, 1 toward +infinity, 2 toward -infinity, 3 toward zero (derived codes)."""
    return (control >> 16) & 7


def is_half_nan(half: int) -> bool:
    return (half & 0x7FFF) > 0x7C00


def is_single_nan(word: int) -> bool:
    return (word & 0x7FFFFFFF) > 0x7F800000


UNKNOWN_OPERAND = 1 << 35
"""Returned above a result by an instruction whose flag operand has no known meaning."""
