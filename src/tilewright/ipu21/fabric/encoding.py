"""From exchange operations to instruction words, for all rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..isa.forms import Form, Operand, form
from .sequence import (
    ADDRESS,
    CONTROL,
    EVENTS,
    IDLE,
    KIND,
    MUX_BITS,
    MUX_WRITE,
    POINTER_BITS,
    POINTER_WRITE,
    START,
)

_DELAY = form("delay zimm19")
_DELAYPIC = form("delaypic count, picSel, picValue")
_DELAYXPIC = form("delayxpic count, xpicSel, xpicValue")
_SEND = form("send count, srcWord, sctl")
_SENDOFF = form("sendoff count, srcDelta, sctl")
_SENDPIC = form("sendpic count, ctlSel, ctlValue")
_SENDPICP = form("sendpicp count, srcWord, sctl, picSel")
_RETURN = form("br $mSrc0").fixed | 10 << 20
"""`br $m10`: back to the supervisor program."""


def _place(operand: Operand, value: NDArray[np.int64]) -> NDArray[np.int64]:
    """The word's bits for each value; every value must be legal."""
    if value.size and (int(value.min()) < operand.minimum or int(value.max()) > operand.maximum):
        raise AssertionError(f"{operand.name} out of range")  # a defect of the composer, not of its input
    bits = np.zeros(value.shape, dtype=np.int64)
    for lsb, width, value_lsb in operand.pieces:
        bits |= ((value >> value_lsb) & ((1 << width) - 1)) << lsb
    return bits


def _words(instruction: Form, *values: NDArray[np.int64], payload: bool = False) -> NDArray[np.int64]:
    """One word of every instruction: the first, or the payload."""
    word = np.full(values[0].shape, 0 if payload else instruction.fixed, dtype=np.int64)
    for operand, value in zip(instruction.operands, values, strict=True):
        if operand.word == int(payload):
            word |= _place(operand, value)
    return word


def encode_operations(
    ops: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Words of the rows whose operations are `ops[offsets[i]:offsets[i+1]]`, each ended by `br $m10`.

    Returns (words, word offsets [rows + 1]).
    """
    kind, mux, pointer = ops[:, KIND], ops[:, MUX_WRITE], ops[:, POINTER_WRITE]
    count = ops[:, EVENTS] - 1
    item = ops[:, ADDRESS] >> np.where(ops[:, CONTROL] & 4, 3, 2)
    control = ops[:, CONTROL]
    both = (mux >= 0) & (pointer >= 0)
    rows = len(offsets) - 1
    row = np.repeat(np.arange(rows), np.diff(offsets))
    size = 1 + both.astype(np.int64)
    at = np.concatenate([[0], np.cumsum(size)])
    place = at[:-1] + row
    word_offsets = at[offsets] + np.arange(rows + 1)
    words = np.zeros(int(word_offsets[-1]), dtype=np.uint32)
    words[word_offsets[1:] - 1] = _RETURN

    idle = kind == IDLE
    mux_value, mux_select = mux & (1 << MUX_BITS) - 1, mux >> MUX_BITS
    value, select = pointer & (1 << POINTER_BITS) - 1, pointer >> POINTER_BITS

    def fill(chosen: NDArray[np.bool_], instruction: Form, *fields: NDArray[np.int64]) -> None:
        words[place[chosen]] = _words(instruction, *(field[chosen] for field in fields))

    fill(idle & (mux < 0) & (pointer < 0), _DELAY, count)
    fill(idle & (mux < 0) & (pointer >= 0), _DELAYPIC, count, select, value)
    fill(idle & (mux >= 0) & (pointer < 0), _DELAYXPIC, count, mux_select, mux_value)
    fill(kind == START, _SEND, count, item, control)
    run = ~idle & (kind != START)
    fill(run & (mux < 0) & (pointer < 0), _SENDOFF, count, np.zeros_like(count), control)
    fill(run & (mux >= 0) & (pointer < 0), _SENDPIC, count, mux_select, mux_value)
    fill(run & (mux < 0) & (pointer >= 0), _SENDPIC, count, 2 + select, value)
    pair = (count, item, control, np.zeros_like(count), np.zeros_like(count), mux_value, value)
    chosen = tuple(field[both] for field in pair)
    words[place[both]] = _words(_SENDPICP, *chosen)
    words[place[both] + 1] = _words(_SENDPICP, *chosen, payload=True)
    return words, word_offsets
