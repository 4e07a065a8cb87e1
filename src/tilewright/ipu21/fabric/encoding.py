"""From exchange operations to instruction words, for all rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...native.loops import compiled
from ..isa.forms import form
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

Ints = NDArray[np.int64]
Words = NDArray[np.uint32]

_DELAY, _DELAYPIC, _DELAYXPIC, _SEND, _SENDOFF, _SENDPIC, _SENDPICP = range(7)
_COUNT, _ITEM, _CONTROL, _SELECT, _VALUE, _MUX_SELECT, _MUX, _DELTA = range(8)
"""Fields of the instructions: SELECT and VALUE are those of the pointer, or of whatever `sendpic` writes."""
_FORMS = (
    ("delay zimm19", (_COUNT,)),
    ("delaypic count, picSel, picValue", (_COUNT, _SELECT, _VALUE)),
    ("delayxpic count, xpicSel, xpicValue", (_COUNT, _MUX_SELECT, _MUX)),
    ("send count, srcWord, sctl", (_COUNT, _ITEM, _CONTROL)),
    ("sendoff count, srcDelta, sctl", (_COUNT, _DELTA, _CONTROL)),
    ("sendpic count, ctlSel, ctlValue", (_COUNT, _SELECT, _VALUE)),
    (
        "sendpicp count, srcWord, sctl, picSel",
        (_COUNT, _ITEM, _CONTROL, _SELECT, _MUX_SELECT, _MUX, _VALUE),
    ),
)
"""Each instruction with the fields of its operands, in the order above."""

_RETURN = form("br $mSrc0").fixed | 10 << 20
"""`br $m10`: back to the supervisor program."""


def _tables() -> tuple[Ints, Ints]:
    """All operand pieces, [form, field, word, lsb, width, value lsb, maximum], and the first of each form."""
    pieces: list[tuple[int, ...]] = []
    first: list[int] = []
    for number, (text, fields) in enumerate(_FORMS):
        first.append(len(pieces))
        for operand, field in zip(form(text).operands, fields, strict=True):
            assert operand.minimum == 0, "no field of an exchange instruction is signed"
            for lsb, width, value_lsb in operand.pieces:
                pieces.append((number, field, operand.word, lsb, width, value_lsb, operand.maximum))
    table = np.array(pieces, dtype=np.int64)
    heads = np.array([*first, len(pieces)], dtype=np.int64)
    return table, heads


_PIECES, _HEADS = _tables()
_FIXED = np.array([form(text).fixed for text, _ in _FORMS], dtype=np.int64)


def _encode_python(
    ops: NDArray[np.int64],
    offsets: Ints,
    pieces: NDArray[np.int64],
    heads: Ints,
    fixed: Ints,
    ending: int,
    words: Words,
    word_offsets: Ints,
    fields: Ints,
) -> int:
    """Fill words and word offsets; the first operation with a field out of range, or -1. `fields` is room
    for those of one operation."""
    at = 0
    for row in range(len(offsets) - 1):
        word_offsets[row] = at
        for i in range(offsets[row], offsets[row + 1]):
            mux, pointer, kind = ops[i, MUX_WRITE], ops[i, POINTER_WRITE], ops[i, KIND]
            fields[0] = ops[i, EVENTS] - 1
            fields[1] = ops[i, ADDRESS] >> (3 if ops[i, CONTROL] & 4 else 2)
            fields[2] = ops[i, CONTROL]
            fields[3], fields[4] = pointer >> POINTER_BITS, pointer & (1 << POINTER_BITS) - 1
            fields[5], fields[6] = mux >> MUX_BITS, mux & (1 << MUX_BITS) - 1
            if mux >= 0 and pointer >= 0:
                number = 6
            elif kind == IDLE:
                number = 1 if pointer >= 0 else 2 if mux >= 0 else 0
            elif kind == START:
                number = 3
            elif mux < 0 and pointer < 0:
                number = 4
            else:
                number = 5
                if mux >= 0:
                    fields[3], fields[4] = fields[5], fields[6]
                else:
                    fields[3] += 2
            first, second = fixed[number], 0
            for k in range(heads[number], heads[number + 1]):
                value = fields[pieces[k, 1]]
                if value < 0 or value > pieces[k, 6]:
                    return i
                bits = (value >> pieces[k, 5] & (1 << pieces[k, 4]) - 1) << pieces[k, 3]
                if pieces[k, 2]:
                    second |= bits
                else:
                    first |= bits
            words[at] = first
            at += 1
            if number == 6:
                words[at] = second
                at += 1
        words[at] = ending
        at += 1
    word_offsets[len(offsets) - 1] = at
    return -1


_encode = compiled(_encode_python, "i", "mvmvviwvv")


def encode_operations(ops: NDArray[np.int64], offsets: Ints) -> tuple[Words, Ints]:
    """Words of the rows whose operations are `ops[offsets[i]:offsets[i+1]]`, each ended by `br $m10`.

    Returns (words, word offsets [rows + 1]).
    """
    double = np.count_nonzero((ops[:, MUX_WRITE] >= 0) & (ops[:, POINTER_WRITE] >= 0))
    rows = len(offsets) - 1
    words = np.empty(len(ops) + int(double) + rows, dtype=np.uint32)
    word_offsets = np.zeros(rows + 1, dtype=np.int64)
    bad = _encode(ops, offsets, _PIECES, _HEADS, _FIXED, _RETURN, words, word_offsets, np.zeros(8, np.int64))
    # Only a defect of the composer, not of its input, gives a field that is out of range.
    assert bad < 0, f"operation {ops[bad].tolist()} cannot be encoded"
    return words, word_offsets
