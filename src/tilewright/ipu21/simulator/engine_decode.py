"""Fetching instruction words, and taking each apart only once. Compiled; see `compile`.

What an instruction is and names is kept in an entry of `ENTRY_INTS` integers. Entries are found by the low
bits of the address and hold the word they were made from, so they may be shared by all tiles that a thread
runs and are never wrong: another word in memory is another key.
"""

from __future__ import annotations

from ..isa.meaning.arrays import Integers, word_at
from ..isa.meaning.bits import WORD
from ..machine.memory import REGION1_BASE, TILE_BASE
from . import state as at
from .codes import GROUP_AUX_WORDS, GROUP_CONTROL, GROUP_MEMORY, GROUP_NONE
from .engine_checks import FETCHED, WRITTEN_OVER, fault, unsupported
from .instruction_tables import (
    A_PLACES,
    CANDIDATES_AT,
    FIELDS,
    FLAG_MAPS_AT,
    HAZARDS,
    IMMEDIATE,
    IMMEDIATE_PLACE,
    INFO_COISSUE,
    INFO_GROUP,
    INFO_NO_REPEAT,
    INFO_WORKER,
    NEVER_15,
    OPCODES_AT,
    RESULTS,
    ROW,
)
from .pointers import decoded, integers_at, memory_words, tables
from .stops import CODE_WRITTEN, INVALID_INSTRUCTION, INVALID_PC

PART_INTS = 8
WORD_OF, INFO_OF, FIRST, SECOND, THIRD, FOURTH, IMMEDIATE_OF = range(7)
"""A decoded instruction: its word, with `FOR_WORKER` or `FOR_SUPERVISOR` set; INFO of its form; the registers
in its four places, counted from the context's first M register; the immediate, flags by the numbers that
value functions know."""
AUX = PART_INTS
"""A worker's entry is an instruction of the main pipeline and, from here, one of the aux pipeline. The INFO
of a missing one is 0."""
HAZARDS_OF, RESULTS_OF = PART_INTS, PART_INTS + 1
"""In a supervisor's entry: HAZARDS and RESULTS of the form."""
ENTRY_INTS, ENTRY_COUNT = 2 * PART_INTS, 2048
ENTRY_BYTES = 8 * ENTRY_INTS
FOR_WORKER, FOR_SUPERVISOR = 1 << 32, 1 << 33
NO_REGISTER = -1
"""In a place of a memory or control instruction that is empty. Of other instructions it reads as zero."""


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


def immediate_of(word: int, packed: int) -> int:
    """The immediate of a word; signed ones as 32-bit two's complement."""
    value = ((word >> (packed & 31)) & ((1 << ((packed >> 5) & 31)) - 1)) << ((packed >> 10) & 31)
    second = (packed >> 15) & 0x3FFFFFFF
    if second:
        value |= ((word >> (second & 31)) & ((1 << ((second >> 5) & 31)) - 1)) << ((second >> 10) & 31)
        third = second >> 15
        if third:
            value |= ((word >> (third & 31)) & ((1 << ((third >> 5) & 31)) - 1)) << ((third >> 10) & 31)
    sign = (packed >> 50) & 63
    if sign and (value >> (sign - 1)) & 1:
        value = (value - (1 << sign)) & WORD
    return value << ((packed >> 45) & 31)


def meant_immediate(table: Integers, word: int, packed: int) -> int:
    """The immediate; of an instruction that takes flags, as the value functions understand it."""
    value = immediate_of(word, packed)
    family = (packed >> 56) & 63
    if family:
        return int(table[FLAG_MAPS_AT + 256 * (family - 1) + (value & 0xFF)])
    return value


def take_apart(table: Integers, part: Integers, word: int, form: int, whose: int) -> int:
    """Fill a part of an entry with the instruction a word is, of a known form; 0."""
    row = ROW * form
    info, fields = table[row], table[row + FIELDS]
    group = (info >> INFO_GROUP) & 15
    empty = at.A_REGISTERS + 14 if group >= GROUP_AUX_WORDS else 15
    if group in (GROUP_MEMORY, GROUP_CONTROL):
        empty = NO_REGISTER
    part[WORD_OF] = word | whose
    part[INFO_OF] = info
    for place in range(4):
        field = (fields >> (6 * place)) & 63
        register = empty
        if field == IMMEDIATE_PLACE:
            register = IMMEDIATE_PLACE
        elif field:
            file = at.A_REGISTERS if (fields >> (A_PLACES + place)) & 1 else 0
            register = file + ((word >> (field - 1)) & 15)
        part[FIRST + place] = register
    part[IMMEDIATE_OF] = meant_immediate(table, word, table[row + IMMEDIATE])
    return 0


def form_at(state: Integers, context: int, pc: int) -> int:
    """Form index + 1 of the instruction at an address; 0 after recording an exception."""
    if pc < TILE_BASE or pc >= REGION1_BASE or pc & 3:
        return 0 * fault(state, INVALID_PC, context, pc)
    index = (pc - TILE_BASE) >> 2
    form = int(decoded(state)[index])
    if form == 0 or form == FETCHED:
        form = find_form(tables(state), word_at(memory_words(state), index))
        decoded(state)[index] = form
    if form == WRITTEN_OVER:
        return 0 * fault(state, CODE_WRITTEN, context, pc)
    if form < 0:
        return 0 * fault(state, INVALID_INSTRUCTION, context, -1)
    return form


def entry_place(state: Integers, index: int) -> int:
    """Address of the entry for a word of memory."""
    return int(state[at.ENTRIES]) + ENTRY_BYTES * (index & (ENTRY_COUNT - 1))


def decode_instruction(state: Integers, pc: int, entry: Integers) -> int:
    """Fill an entry with an instruction of the supervisor; 1 after recording an exception."""
    form = form_at(state, 0, pc)
    if form == 0:
        return 1
    table = tables(state)
    take_apart(table, entry, word_at(memory_words(state), (pc - TILE_BASE) >> 2), form, FOR_SUPERVISOR)
    entry[HAZARDS_OF] = table[ROW * form + HAZARDS]
    entry[RESULTS_OF] = table[ROW * form + RESULTS]
    return 0


def instruction_at(state: Integers, pc: int) -> int:
    """Address of the supervisor's decoded instruction; 0 after recording an exception."""
    index = (pc - TILE_BASE) >> 2
    place = entry_place(state, index)
    entry = integers_at(place)
    known = False
    if TILE_BASE <= pc < REGION1_BASE and pc & 3 == 0:
        word = word_at(memory_words(state), index)
        known = entry[WORD_OF] == word | FOR_SUPERVISOR and decoded(state)[index] > 0
    if not known and decode_instruction(state, pc, entry):
        return 0
    return place


def decode_turn(state: Integers, context: int, pc: int, main: Integers, aux: Integers) -> int:
    """Fill an entry with a worker's instruction or bundle; 1 after recording an exception.

    A turn that is refused counts as one if at least its first word is an instruction.
    """
    main[WORD_OF] = 0
    form = form_at(state, context, pc)
    if form == 0:
        return 1
    state[at.COUNTS + context] += 1
    table, words, index = tables(state), memory_words(state), (pc - TILE_BASE) >> 2
    word, info = word_at(words, index), table[ROW * form]
    group = (info >> INFO_GROUP) & 15
    if (info >> INFO_WORKER) & 1 == 0:
        return fault(state, INVALID_INSTRUCTION, context, -1)
    if word & 0x80000000 == 0:
        part, other = (aux, main) if group >= GROUP_AUX_WORDS else (main, aux)
        take_apart(table, part, word, form, FOR_WORKER)
        part[INFO_OF] |= 1 << INFO_NO_REPEAT
        other[INFO_OF] = 0
    else:
        second_form = form_at(state, context, pc + 4)
        if second_form == 0:
            return 1
        second, second_info = word_at(words, index + 1), table[ROW * second_form]
        second_group = (second_info >> INFO_GROUP) & 15
        if group == GROUP_NONE or second_group == GROUP_NONE:
            return unsupported(state, context)
        legal = (info >> INFO_COISSUE) & (second_info >> INFO_COISSUE) & (second >> 31) & 1
        if legal == 0 or group >= GROUP_AUX_WORDS or second_group < GROUP_AUX_WORDS:
            return fault(state, INVALID_INSTRUCTION, context, -1)
        take_apart(table, main, word, form, FOR_WORKER)
        take_apart(table, aux, second, second_form, FOR_WORKER)
    state[at.COUNTS + context] -= 1
    main[WORD_OF] = word | FOR_WORKER
    return 0


def turn_at(state: Integers, context: int, pc: int) -> int:
    """Address of a worker's decoded instruction or bundle; 0 after recording an exception."""
    index = (pc - TILE_BASE) >> 2
    place = entry_place(state, index)
    main, aux = integers_at(place), integers_at(place + 8 * AUX)
    known = False
    if TILE_BASE <= pc < REGION1_BASE - 4 and pc & 3 == 0:
        words, marks = memory_words(state), decoded(state)
        word = word_at(words, index)
        known = main[WORD_OF] == word | FOR_WORKER and marks[index] > 0
        if word & 0x80000000:
            second = word_at(words, index + 1)
            known = known and aux[WORD_OF] == second | FOR_WORKER and marks[index + 1] > 0
    if not known and decode_turn(state, context, pc, main, aux):
        return 0
    return place
