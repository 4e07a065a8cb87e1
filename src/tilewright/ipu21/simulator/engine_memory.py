"""Loads and stores: addresses, checks, pacing. Compiled; see `compile`.

A function returns 0 when the instruction is done, or 1 after recording an exception.
"""

from __future__ import annotations

from ..isa.meaning.address import ADDRESS, paced, packed_high, packed_low, third_address
from ..isa.meaning.arrays import Integers, byte_at, word_at
from ..isa.meaning.bits import WORD
from ..machine.memory import (
    ELEMENT_BYTES,
    INTERLEAVED_ELEMENT_BYTES,
    REGION1_BASE,
    TILE_BASE,
    TILE_END,
)
from . import state as at
from .codes import (
    ATOM,
    DELTA_LOAD_PAIR,
    EXTEND_REPEAT,
    EXTEND_SIGN,
    LD2X64PACE,
    LD2XST64PACE,
    LD64A32,
    LD64A32PACE,
    LDB16B16,
    LDST64PACE,
    LOAD,
    LOAD_STEP,
    ST64PACE,
    STM,
    STM_STEP,
    STORE,
    STORE_STEP,
    TAPACK,
)
from .engine_checks import (
    WRITTEN_OVER,
    check_code,
    check_owner,
    check_stack_pointer,
    touch,
    watched_load,
)
from .engine_checks import fault as fault
from .engine_decode import FIRST, FOURTH, IMMEDIATE_OF, INFO_OF, NO_REGISTER, SECOND, THIRD
from .instruction_tables import INFO_BROADCAST, INFO_LANES
from .pointers import decoded, memory_bytes, memory_words, rewritable, shadow
from .stops import (
    ADDRESS_ALIGNMENT,
    ADDRESS_RANGE,
    ADDRESS_REGION,
    CONFLICT,
)

ELEMENT_LOG = ELEMENT_BYTES.bit_length() - 1
INTERLEAVED_LOG = INTERLEAVED_ELEMENT_BYTES.bit_length() - 1
"""Shifts instead of divisions, in the innermost loop."""


def check_address(state: Integers, context: int, address: int, size: int) -> int:
    """Range, alignment and region of an access."""
    if address < TILE_BASE or address > TILE_END - size:
        return fault(state, ADDRESS_RANGE, context, address)
    if address & (size - 1):
        return fault(state, ADDRESS_ALIGNMENT, context, address)
    if size == 16 and address < REGION1_BASE:
        return fault(state, ADDRESS_REGION, context, address)
    return 0


def check_written(state: Integers, context: int, address: int, size: int) -> int:
    """What a load from a good address may not do, if it is watched."""
    if state[at.CHECKS] & at.WATCHED_LOADS:
        return watched_load(state, context, address, size)
    return 0


def check_store(state: Integers, context: int, address: int, words: int) -> int:
    """What a store to a good address may not do, if it is watched."""
    checks = state[at.CHECKS]
    if checks & at.WATCHED_STORES == 0:
        return 0
    if checks & at.CHECK_STACK and check_owner(state, context, address):
        return 1
    if checks & at.CHECK_CODE and address < REGION1_BASE and check_code(state, context, address, words):
        return 1
    if checks & at.CHECK_RACES and state[at.ACTIVE]:
        return touch(state, context, address, 4 * words, True)
    return 0


def note_store(state: Integers, address: int, words: int) -> int:
    """What a store of whole words means for decoded code and for the shadow."""
    offset = address - TILE_BASE
    if address < REGION1_BASE:
        marks = decoded(state)
        watched = state[at.CHECKS] & at.CHECK_CODE != 0
        for index in range(offset >> 2, (offset >> 2) + words):
            marks[index] = WRITTEN_OVER if watched and byte_at(rewritable(state), index) == 0 else 0
    if state[at.CHECKS] & at.CHECK_POISON:
        written = shadow(state)
        for index in range(offset >> 2, (offset >> 2) + words):
            written[index >> 1] = byte_at(written, index >> 1) | (0xF0 if index & 1 else 0x0F)
    return 0


def element(address: int) -> int:
    """The memory element that serves a 64-bit access (see machine.memory.access_element)."""
    if address < REGION1_BASE:
        return address >> ELEMENT_LOG
    return 32 + 2 * ((address - REGION1_BASE) >> INTERLEAVED_LOG) + ((address >> 3) & 1)


def check_conflict(state: Integers, context: int, first: int, second: int) -> int:
    """Two accesses of one instruction must hit different elements. Addresses outside memory hit none."""
    if state[at.CHECKS] & at.CHECK_CONFLICT and element(first) == element(second):
        if first < TILE_BASE or second < TILE_BASE or first >= TILE_END or second >= TILE_END:
            return 0
        return fault(state, CONFLICT, context, second)
    return 0


def load_narrow(state: Integers, address: int, size_log: int, extend: int) -> int:
    """A checked load of 1, 2 or 4 bytes as a register word."""
    offset = address - TILE_BASE
    if size_log == 2:
        return word_at(memory_words(state), offset >> 2)
    memory = memory_bytes(state)
    if size_log == 1:
        value = byte_at(memory, offset) | (byte_at(memory, offset + 1) << 8)
        if extend == EXTEND_SIGN:
            return (value - ((value & 0x8000) << 1)) & WORD
        return value | (value << 16) if extend == EXTEND_REPEAT else value
    value = byte_at(memory, offset)
    if extend == EXTEND_SIGN:
        return (value - ((value & 0x80) << 1)) & WORD
    return value * 0x01010101 if extend == EXTEND_REPEAT else value


def load(state: Integers, context: int, address: int, size_log: int, extend: int, register: int) -> int:
    """Load into state words from `register` on. Registers that are no storage discard, without checks unless
    these are wanted."""
    size = 1 << size_log
    number = register & (at.REGISTER_STRIDE - 1)
    if number >= at.A_REGISTERS + 8 or 12 <= number < at.A_REGISTERS:
        return check_address(state, context, address, size) if state[at.CHECKS] & at.CHECK_DISCARDS else 0
    if check_address(state, context, address, size) or check_written(state, context, address, size):
        return 1
    if size_log <= 2:
        state[register] = load_narrow(state, address, size_log, extend)
        return 0
    memory = memory_words(state)
    index = (address - TILE_BASE) >> 2
    state[register] = word_at(memory, index)
    state[register + 1] = word_at(memory, index + 1)
    if size_log == 4:
        state[register + 2] = word_at(memory, index + 2)
        state[register + 3] = word_at(memory, index + 3)
    return 0


def store(state: Integers, context: int, address: int, words: int, register: int) -> int:
    """Store one or two words from state words at `register`."""
    if check_address(state, context, address, 4 * words) or check_store(state, context, address, words):
        return 1
    memory = memory_words(state)
    index = (address - TILE_BASE) >> 2
    memory[index] = state[register]
    if words == 2:
        memory[index + 1] = state[register + 1]
    return note_store(state, address, words)


def set_main(state: Integers, context: int, number: int, value: int) -> int:
    """Write an M register; those that are no storage drop the value."""
    if number < 12:
        state[at.REGISTER_STRIDE * context + number] = value
    return 0


def plain_access(state: Integers, context: int, entry: Integers, function: int) -> int:
    """Loads and stores with base, delta and offset or stride."""
    m = at.REGISTER_STRIDE * context
    info = entry[INFO_OF]
    size_log = (info >> INFO_LANES) & 7
    base_number, delta_number, offset_number = entry[SECOND], entry[THIRD], entry[FOURTH]
    offset = entry[IMMEDIATE_OF] if offset_number == NO_REGISTER else state[m + offset_number]
    address = state[m + base_number] + state[m + delta_number]
    if function in (LOAD, STORE):
        address = (address + (offset << size_log)) & WORD
    else:
        address &= WORD
    delta = (state[m + delta_number] + (offset << size_log)) & WORD
    if state[at.CHECKS] & at.CHECK_STACK and check_stack_pointer(state, context, base_number, address):
        return 1
    if function in (STORE, STORE_STEP):
        if store(state, context, address, 1 << (size_log - 2), m + entry[FIRST]):
            return 1
    elif load(state, context, address, size_log, (info >> INFO_BROADCAST) & 3, m + entry[FIRST]):
        return 1
    if function in (LOAD_STEP, STORE_STEP):
        set_main(state, context, delta_number, delta)
    return 0


def stm_access(state: Integers, context: int, entry: Integers, function: int) -> int:
    """`stm32` and `stm32step`: base plus a register offset in words."""
    m = at.REGISTER_STRIDE * context
    base_number = entry[SECOND]
    base = state[m + base_number]
    moved = (base + (state[m + entry[THIRD]] << 2)) & WORD
    address = moved if function == STM else base
    if store(state, context, address, 1, m + entry[FIRST]):
        return 1
    if function == STM_STEP:
        set_main(state, context, base_number, moved)
    return 0


def paced_access(state: Integers, context: int, entry: Integers, function: int) -> int:
    """The paced family: up to three accesses through triple-packed addresses."""
    m = at.REGISTER_STRIDE * context
    selectors = entry[IMMEDIATE_OF]
    first = m + entry[FIRST]
    if function == ST64PACE:
        pair, stride_number = entry[SECOND], entry[THIRD]
        second = first
    else:
        second = m + entry[SECOND]
        pair, stride_number = entry[THIRD], entry[FOURTH]
    low, high = state[m + pair], state[m + pair + 1]
    strides = state[m + stride_number]
    a0, a1, a2 = low & ADDRESS, high & ADDRESS, third_address(low, high)
    if function == LD2X64PACE:
        if check_conflict(state, context, a0, a1):
            return 1
        if load(state, context, a0, 3, 0, first):
            return 1
        if load(state, context, a1, 3, 0, second):
            return 1
        a0, a1 = paced(a0, strides, selectors & 3, 8), paced(a1, strides, (selectors >> 2) & 3, 8)
    elif function == LDST64PACE:
        if check_conflict(state, context, a0, a2) or store(state, context, a2, 2, second):
            return 1
        if load(state, context, a0, 3, 0, first):
            return 1
        a0, a2 = paced(a0, strides, selectors & 3, 8), paced(a2, strides, (selectors >> 2) & 3, 8)
    elif function == LD2XST64PACE:
        if check_conflict(state, context, a0, a1) or check_conflict(state, context, a0, a2):
            return 1
        if check_conflict(state, context, a1, a2) or store(state, context, a2, 2, second):
            return 1
        if load(state, context, a0, 3, 0, first):
            return 1
        if load(state, context, a1, 3, 0, first + 2):
            return 1
        a0 = paced(a0, strides, selectors & 3, 8)
        a1 = paced(a1, strides, (selectors >> 2) & 3, 8)
        a2 = paced(a2, strides, (selectors >> 4) & 3, 8)
    elif function == ST64PACE:
        if store(state, context, a2, 2, first):
            return 1
        a2 = paced(a2, strides, selectors & 3, 8)
    else:
        size_log = 2 if function == LD64A32PACE else 1
        if check_conflict(state, context, a0, a1):
            return 1
        if load(state, context, a0, 3, 0, first):
            return 1
        if load(state, context, a1, size_log, (entry[INFO_OF] >> INFO_BROADCAST) & 3, second):
            return 1
        # The second address steps by its own access size (assumed).
        a0 = paced(a0, strides, selectors & 3, 8)
        a1 = paced(a1, strides, (selectors >> 2) & 3, 1 << size_log)
    set_main(state, context, pair, packed_low(a0, a2))
    set_main(state, context, pair + 1, packed_high(a1, a2))
    return 0


def delta_access(state: Integers, context: int, entry: Integers, function: int) -> int:
    """Sparse loads: data at base + delta, while the next delta is read from a list."""
    m = at.REGISTER_STRIDE * context
    list_number, delta_number = entry[SECOND], entry[FOURTH]
    pointer = state[m + list_number]
    delta = state[m + delta_number]
    size_log = (entry[INFO_OF] >> INFO_LANES) & 7
    list_log = 2 if function == DELTA_LOAD_PAIR else 1
    offset = delta >> 16 if function == DELTA_LOAD_PAIR else delta
    address = (state[m + entry[THIRD]] + offset) & WORD
    if check_address(state, context, pointer, 1 << list_log):
        return 1
    if check_written(state, context, pointer, 1 << list_log):
        return 1
    extend = (entry[INFO_OF] >> INFO_BROADCAST) & 3
    if load(state, context, address, size_log, extend, m + entry[FIRST]):
        return 1
    set_main(state, context, delta_number, load_narrow(state, pointer, list_log, 0))
    set_main(state, context, list_number, (pointer + (1 << list_log)) & WORD)
    return 0


def dense_and_sparse(state: Integers, context: int, entry: Integers) -> int:
    """`ld64a32`: 64 bits from a list to the upper pair, 32 bits from base + delta to element 1 (known).

    Element 0 stays as it is (known). Both accesses may hit one memory element, as in the other loads through
    deltas (assumed).
    """
    m = at.REGISTER_STRIDE * context
    register = m + entry[FIRST]
    list_number = entry[SECOND]
    pointer = state[m + list_number]
    address = (state[m + entry[THIRD]] + (state[m + entry[FOURTH]] & 0xFFFF)) & WORD
    if load(state, context, pointer, 3, 0, register + 2) or load(state, context, address, 2, 0, register + 1):
        return 1
    return set_main(state, context, list_number, (pointer + 8) & WORD)


def mini_delta_access(state: Integers, context: int, entry: Integers) -> int:
    """`ldb16b16`: two repeated halves from base + each half of the deltas.

    Element 0 comes from the low delta, which then grows by two bytes; element 1 from the high one, which
    grows by the low nibble of the mini deltas, unsigned and counted in halves; those shift right by four bits
    (assumed: only that one grows by two and the other by the nibble is public). Both accesses may hit one
    memory element (assumed).
    """
    m = at.REGISTER_STRIDE * context
    register = m + entry[FIRST]
    delta_number, mini_number = entry[THIRD], entry[FOURTH]
    base, deltas, minis = state[m + entry[SECOND]], state[m + delta_number], state[m + mini_number]
    first, second = (base + (deltas & 0xFFFF)) & WORD, (base + (deltas >> 16)) & WORD
    if load(state, context, first, 1, EXTEND_REPEAT, register):
        return 1
    if load(state, context, second, 1, EXTEND_REPEAT, register + 1):
        return 1
    low, high = (deltas + 2) & 0xFFFF, ((deltas >> 16) + 2 * (minis & 15)) & 0xFFFF
    set_main(state, context, delta_number, low | (high << 16))
    return set_main(state, context, mini_number, minis >> 4)


def execute_memory(state: Integers, context: int, entry: Integers) -> int:
    """Any instruction of the memory group."""
    function = entry[INFO_OF] & 1023
    if function <= STORE_STEP:
        return plain_access(state, context, entry, function)
    if function <= STM_STEP:
        return stm_access(state, context, entry, function)
    if function < TAPACK:
        return paced_access(state, context, entry, function)
    m = at.REGISTER_STRIDE * context
    if function == TAPACK:
        a0, a1, a2 = state[m + entry[SECOND]], state[m + entry[THIRD]], state[m + entry[FOURTH]]
        pair = entry[FIRST]
        set_main(state, context, pair, packed_low(a0, a2))
        return set_main(state, context, pair + 1, packed_high(a1, a2))
    if function == ATOM:
        return set_main(state, context, entry[FIRST], state[m + entry[SECOND]])
    if function == LD64A32:
        return dense_and_sparse(state, context, entry)
    if function == LDB16B16:
        return mini_delta_access(state, context, entry)
    return delta_access(state, context, entry, function)
