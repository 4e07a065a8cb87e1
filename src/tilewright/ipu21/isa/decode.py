"""From words to instructions, one at a time and in bulk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TilewrightError
from .enums import flag_is_provisional
from .forms import COISSUE, FORMS, Form, Operand


class InvalidInstruction(TilewrightError):
    """A word that is no instruction."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A decoded instruction: `encode(form, *operands, coissue=coissue)` gives its words back."""

    form: Form
    operands: tuple[int, ...]
    coissue: bool


def _never_15(form: Form) -> tuple[int, ...]:
    """The lsb of each register field that must not hold 15."""
    return tuple(item.pieces[0][0] for item in form.operands if item.kind == "mreg" and item.maximum == 14)


def _by_opcode() -> list[dict[int, dict[int, Form]]]:
    """For each value of bits 30:24: mask -> fixed -> form."""
    groups: list[dict[int, dict[int, Form]]] = [{} for _ in range(128)]
    for form in FORMS:
        for opcode in range(128):
            if (opcode << 24 ^ form.fixed) & form.mask & 0x7F000000 == 0:
                groups[opcode].setdefault(form.mask, {})[form.fixed] = form
    return groups


_BY_OPCODE = _by_opcode()
_NEVER_15 = tuple(_never_15(form) for form in FORMS)


def _find(word: int) -> Form | None:
    for mask, forms in _BY_OPCODE[word >> 24 & 0x7F].items():
        form = forms.get(word & mask)
        if form is not None:
            if any(word >> lsb & 15 == 15 for lsb in _NEVER_15[form.index]):
                return None
            return form
    return None


def decode(word: int, following: int = 0) -> Instruction:
    """The instruction in a word.

    Args:
        word: 32 bits.
        following: the next word; only `sendpicp` looks at it.

    Raises:
        InvalidInstruction: no form matches: unknown opcode, misaligned pair or quad, updated register $m15.
    """
    if not 0 <= word <= 0xFFFFFFFF:
        raise InvalidInstruction(f"{word:#x} is not a 32-bit word")
    form = _find(word)
    if form is None:
        raise InvalidInstruction(f"{word:#010x} is no instruction")
    operands = tuple(item.extract(following if item.word else word) for item in form.operands)
    return Instruction(form, operands, form.coissue and bool(word & COISSUE))


class _Bulk:
    """The forms grouped by mask, as sorted arrays."""

    def __init__(self) -> None:
        masks = sorted({form.mask for form in FORMS})
        self.masks = [np.uint32(mask) for mask in masks]
        self.fixed: list[NDArray[np.uint32]] = []
        self.indices: list[NDArray[np.int16]] = []
        self.opcodes: list[NDArray[np.bool_]] = []
        for mask in masks:
            group = sorted((form for form in FORMS if form.mask == mask), key=lambda form: form.fixed)
            self.fixed.append(np.array([form.fixed for form in group], dtype=np.uint32))
            self.indices.append(np.array([form.index for form in group], dtype=np.int16))
            self.opcodes.append(np.array([mask in _BY_OPCODE[opcode] for opcode in range(128)]))
        columns = max(len(shifts) for shifts in _NEVER_15)
        self.never_15 = np.full((len(FORMS), columns), 255, dtype=np.uint8)
        for index, shifts in enumerate(_NEVER_15):
            self.never_15[index, : len(shifts)] = shifts


_BULK = _Bulk()


def decode_index(words: NDArray[np.uint32]) -> NDArray[np.int16]:
    """The form index of every word, or -1; same shape.

    Each word is judged alone, so the payload of a `sendpicp` must be skipped by the caller.
    """
    flat = np.ascontiguousarray(words, dtype=np.uint32).reshape(-1)
    result = np.full(flat.shape, -1, dtype=np.int16)
    opcode = (flat >> np.uint32(24)) & np.uint32(0x7F)
    for mask, fixed, indices, opcodes in zip(
        _BULK.masks, _BULK.fixed, _BULK.indices, _BULK.opcodes, strict=True
    ):
        candidates = np.flatnonzero(opcodes[opcode])
        if candidates.size == 0:
            continue
        bits = flat[candidates] & mask
        slot = np.minimum(np.searchsorted(fixed, bits), fixed.size - 1)
        hit = fixed[slot] == bits
        result[candidates[hit]] = indices[slot[hit]]
    valid = np.flatnonzero(result >= 0)
    for column in range(_BULK.never_15.shape[1]):
        shift = _BULK.never_15[result[valid], column]
        bad = (shift != 255) & ((flat[valid] >> (shift & 31).astype(np.uint32)) & np.uint32(15) == 15)
        result[valid[bad]] = -1
        valid = valid[~bad]
    return result.reshape(words.shape)


_FLAGGED: dict[Form, Operand] = {
    form: operand
    for form in FORMS
    for operand in form.operands
    if form.flag_family is not None and operand.names == form.flag_family
}


def is_provisional(word: int) -> bool:
    """True if the word takes a flag whose number is not public, so that hardware may read it differently."""
    form = _find(word & 0xFFFFFFFF)
    if form is None or form.flag_family is None:
        return False
    return flag_is_provisional(form.flag_family, _FLAGGED[form].extract(word))


def provisional_mask(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """`is_provisional` of every word."""
    indices = decode_index(words)
    result = np.zeros(words.shape, dtype=np.bool_)
    flagged = np.isin(indices, np.array([form.index for form in _FLAGGED], dtype=np.int16))
    result[flagged] = [is_provisional(int(word)) for word in words[flagged]]
    return result
