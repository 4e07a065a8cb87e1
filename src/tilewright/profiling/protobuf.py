"""The few forms of protobuf encoding that a trace needs (known, Protocol Buffers encoding specification)."""

from __future__ import annotations

VARINT, BYTES, FIXED32 = 0, 2, 5


def varint(value: int) -> bytes:
    """An unsigned number, seven bits a byte, lowest first. Negative numbers count as 64-bit."""
    value &= 0xFFFFFFFFFFFFFFFF
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def number(field: int, value: int) -> bytes:
    """A field of any integer type that is not zigzag or fixed."""
    return varint(field << 3 | VARINT) + varint(value)


def data(field: int, value: bytes | str) -> bytes:
    """A field of type bytes, string or message."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | BYTES) + varint(len(raw)) + raw
