"""Where rows hold addresses: what may differ between rows that do the same with other buffers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..isa.forms import Form, Operand, form

NONE, SEND, WIDE_SEND, POINTER = range(4)
"""What address a word holds: none, of 4-byte items to send, of 8-byte items, of where to store."""

_SEND = form("send count, srcWord, sctl")
_SENDPIC = form("sendpic count, ctlSel, ctlValue")
_SENDPICP = form("sendpicp count, srcWord, sctl, picSel")
_DELAYPIC = form("delaypic count, picSel, picValue")
_PAYLOAD = next(operand for operand in _SENDPICP.operands if operand.word and operand.name == "picValue")


def _field(operand: Operand) -> tuple[int, int]:
    """Lowest bit and mask of an operand that lies in one piece."""
    ((lsb, width, _),) = operand.pieces
    return lsb, (1 << width) - 1 << lsb


_ITEM_LSB, _ITEM = _field(_SEND.operand("srcWord"))
_PIC_LSB, _PIC = _field(_DELAYPIC.operand("picValue"))
assert _field(_SENDPICP.operand("srcWord")) == (_ITEM_LSB, _ITEM)
assert _field(_SENDPIC.operand("ctlValue")) == _field(_PAYLOAD) == (_PIC_LSB, _PIC)
assert _PIC_LSB == 0

_MASKS = np.array([0, _ITEM, _ITEM, _PIC], np.uint32)
_LSB = np.array([0, _ITEM_LSB, _ITEM_LSB, _PIC_LSB], np.int64)
_BYTES_LOG = np.array([0, 2, 3, 2], np.int64)
"""Log2 of the bytes that one step of the field stands for."""


def _is(words: NDArray[np.uint32], of: Form) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (words & np.uint32(of.mask)) == np.uint32(of.fixed)
    return found


def _value(words: NDArray[np.uint32], operand: Operand) -> NDArray[np.uint32]:
    lsb, mask = _field(operand)
    return (words & np.uint32(mask)) >> np.uint32(lsb)


def address_kinds(words: NDArray[np.uint32], places: NDArray[np.int64]) -> NDArray[np.int8]:
    """The kind of every word of composed rows.

    Args:
        places: position of each word in its row.
    """
    # A `sendpicp` lies at an even position, so what lies at an odd one behind it is its payload.
    double = _is(words, _SENDPICP) & (places % 2 == 0)
    payload = np.concatenate([[False], double[:-1]]) & (places > 0)
    single = ~double & ~payload
    kinds = np.zeros(len(words), np.int8)
    for of, where in ((_SEND, single), (_SENDPICP, double)):
        control = _value(words, of.operand("sctl"))
        sends = where & _is(words, of) & (control & 3 != 0)
        kinds[sends] = np.where(control[sends] & 4, WIDE_SEND, SEND)
    select = _value(words, _SENDPICP.operand("picSel"))
    pointed = payload & np.concatenate([[False], select[:-1] == 0])
    pointed |= single & _is(words, _DELAYPIC) & (_value(words, _DELAYPIC.operand("picSel")) == 0)
    pointed |= single & _is(words, _SENDPIC) & (_value(words, _SENDPIC.operand("ctlSel")) == 2)
    kinds[pointed] = POINTER
    return kinds


def skeleton(words: NDArray[np.uint32], kinds: NDArray[np.int8]) -> NDArray[np.uint32]:
    """The words with all addresses 0."""
    return words & ~_MASKS[kinds]


def addresses(words: NDArray[np.uint32], kinds: NDArray[np.int8]) -> NDArray[np.int64]:
    """The byte addresses that words hold; 0 where they hold none."""
    raw = (words & _MASKS[kinds]).astype(np.int64)
    return (raw >> _LSB[kinds]) << _BYTES_LOG[kinds]


def with_addresses(
    words: NDArray[np.uint32], kinds: NDArray[np.int8], wanted: NDArray[np.int64]
) -> NDArray[np.uint32] | None:
    """The words with other byte addresses; None if a field cannot hold one."""
    raw = wanted >> _BYTES_LOG[kinds] << _LSB[kinds]
    held = (raw & _MASKS[kinds].astype(np.int64)) >> _LSB[kinds] << _BYTES_LOG[kinds]
    if not np.array_equal(held[kinds != NONE], wanted[kinds != NONE]):
        return None
    return skeleton(words, kinds) | np.where(kinds != NONE, raw, 0).astype(np.uint32)


def relocated(words: NDArray[np.uint32], outgoing: int, incoming: int) -> NDArray[np.uint32] | None:
    """A row as it runs under exchange bases: it sends from so many bytes on, and stores so many bytes on.

    None if a row without bases cannot say that.
    """
    kinds = address_kinds(words, np.arange(len(words)))
    base = np.array([0, outgoing, outgoing, incoming], np.int64)[kinds]
    return with_addresses(words, kinds, addresses(words, kinds) + base)
