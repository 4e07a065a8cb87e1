"""LEB128: numbers of seven bits a byte, least significant first, as ELF and DWARF tables hold them."""

from __future__ import annotations


def leb128(value: int, *, signed: bool = False, least: int = 1) -> bytes:
    """Bytes of a number, at least so many."""
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        if value == (-1 if signed and low & 0x40 else 0) and len(out) + 1 >= least:
            out.append(low)
            return bytes(out)
        out.append(low | 0x80)


def read_leb128(
    data: bytes, position: int, *, end: int | None = None, signed: bool = False
) -> tuple[int, int]:
    """A number of at most 64 bits, before `end` if given, and the position behind it.

    Raises ValueError for anything else.
    """
    end = len(data) if end is None else end
    value = shift = 0
    while True:
        if position >= end or shift > 63:
            raise ValueError("the number has no end")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value - (1 << shift) if signed and byte & 0x40 else value), position
