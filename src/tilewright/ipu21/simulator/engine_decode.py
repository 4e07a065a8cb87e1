"""Fetching and lazily decoding instruction words. Compiled; see `compile`."""

from __future__ import annotations

from ..isa.meaning.arrays import Integers, word_at
from ..machine.memory import REGION1_BASE, TILE_BASE
from .engine_checks import WRITTEN_OVER, fault
from .instruction_tables import CANDIDATES_AT, NEVER_15, OPCODES_AT, ROW
from .pointers import decoded, memory_words, tables
from .stops import CODE_WRITTEN, INVALID_INSTRUCTION, INVALID_PC


def find_form(table: Integers, word: int) -> int:
    """Form index + 1 of a word, or -1."""
    opcode = (word >> 24) & 127
    for candidate in range(table[OPCODES_AT + opcode], table[OPCODES_AT + opcode + 1]):
        entry = CANDIDATES_AT + 3 * candidate
        if (word & table[entry]) == table[entry + 1]:
            form = int(table[entry + 2])
            fields = table[ROW * form + NEVER_15]
            while fields:
                if ((word >> ((fields & 63) - 1)) & 15) == 15:
                    return -1
                fields >>= 6
            return form
    return -1


def form_at(state: Integers, context: int, pc: int) -> int:
    """Form index + 1 of the instruction at an address; 0 after recording an exception."""
    if pc < TILE_BASE or pc >= REGION1_BASE or pc & 3:
        return 0 * fault(state, INVALID_PC, context, pc)
    index = (pc - TILE_BASE) >> 2
    form = int(decoded(state)[index])
    if form == 0:
        form = find_form(tables(state), word_at(memory_words(state), index))
        decoded(state)[index] = form
    if form == WRITTEN_OVER:
        return 0 * fault(state, CODE_WRITTEN, context, pc)
    if form < 0:
        return 0 * fault(state, INVALID_INSTRUCTION, context, -1)
    return form
