"""Permutations of 8-, 16- and 32-bit lanes, the same on both register files. Lowest lane first.

Source: public shuffle tests and validated kernels (known or derived); `sort8` and `swap8` follow by the
analogy of their names only (assumed).
"""

from __future__ import annotations

from .bits import WORD
from .registry import whole, words


@words("sort4x16lo")
def sort4x16lo(a: int, b: int) -> int:
    return (a & 0xFFFF) | ((b & 0xFFFF) << 16)


@words("sort4x16hi")
def sort4x16hi(a: int, b: int) -> int:
    return (a >> 16) | (b & 0xFFFF0000)


@words("roll16")
def roll16(a: int, b: int) -> int:
    return (a >> 16) | ((b & 0xFFFF) << 16)


@words("roll8r")
def roll8r(a: int, b: int) -> int:
    return (a >> 8) | ((b & 0xFF) << 24)


@words("roll8l")
def roll8l(a: int, b: int) -> int:
    return ((b << 8) & WORD) | (a >> 24)


@words("shuf8x8lo")
def shuf8x8lo(a: int, b: int) -> int:
    return (a & 0xFF) | ((b & 0xFF) << 8) | ((a & 0xFF00) << 8) | ((b & 0xFF00) << 16)


@words("shuf8x8hi")
def shuf8x8hi(a: int, b: int) -> int:
    return shuf8x8lo(a >> 16, b >> 16)


@words("sort8x8lo")
def sort8x8lo(a: int, b: int) -> int:
    return (a & 0xFF) | ((a >> 8) & 0xFF00) | ((b & 0xFF) << 16) | ((b & 0xFF0000) << 8)


@words("sort8x8hi")
def sort8x8hi(a: int, b: int) -> int:
    return sort8x8lo(a >> 8, b >> 8)


@words("sort8")
def sort8(a: int) -> int:
    return (a & 0xFF0000FF) | ((a >> 8) & 0xFF00) | ((a << 8) & 0xFF0000)


@words("swap8")
def swap8(a: int) -> int:
    return ((a >> 8) & 0x00FF00FF) | ((a & 0x00FF00FF) << 8)


@whole("sort4x32lo")
def sort4x32lo(a0: int, a1: int, b0: int, b1: int) -> tuple[int, int]:
    return a0, b0


@whole("sort4x32hi")
def sort4x32hi(a0: int, a1: int, b0: int, b1: int) -> tuple[int, int]:
    return a1, b1


@whole("roll32")
def roll32(a0: int, a1: int, b0: int, b1: int) -> tuple[int, int]:
    return a1, b0
