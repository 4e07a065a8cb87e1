"""Triple-packed addresses and paced strides.

Three 21-bit addresses share a register pair: a0 in bits 20:0 of the low word, a1 in bits 20:0 of the high
word, a2 in what is left (its low 11 bits above a0, its high 10 bits above a1). The split of a2 is derived
from kernels that take it apart by hand.
"""

from __future__ import annotations

ADDRESS = 0x1FFFFF
"""Addresses have 21 bits (known)."""


def packed_low(a0: int, a2: int) -> int:
    """Low word of a packed triple."""
    return (a0 & ADDRESS) | ((a2 & 0x7FF) << 21)


def packed_high(a1: int, a2: int) -> int:
    """High word of a packed triple."""
    return (a1 & ADDRESS) | (((a2 >> 11) & 0x3FF) << 21)


def third_address(low: int, high: int) -> int:
    """a2 of a packed triple."""
    return (low >> 21) | (((high >> 21) & 0x3FF) << 11)


def pace_units(strides: int, selector: int) -> int:
    """Accesses to move by: selector 0 one, 1..3 a signed 10-bit field of the stride register (known)."""
    if selector == 0:
        return 1
    field = (strides >> (10 * (selector - 1))) & 0x3FF
    return field - ((field & 0x200) << 1)


def paced(address: int, strides: int, selector: int, size: int) -> int:
    """The address after a paced access of `size` bytes."""
    return (address + pace_units(strides, selector) * size) & ADDRESS
