"""Recording exceptions, and the checks that look at single accesses: unwritten bytes, races, code, stacks.

Compiled; see `compile`. The race check keeps three marks per word of memory: who wrote it last, and up to two
contexts that read it. A mark is the compute phase in bits 63:24, the context in bits 23:21 and the address of
its instruction below; marks of earlier phases count as empty.
"""

from __future__ import annotations

from ..isa.meaning.arrays import Integers, byte_at
from ..machine.memory import TILE_BASE
from . import state as at
from .instruction_tables import CAUSES_AT
from .pointers import decoded, rewritable, shadow, tables, touched
from .stops import CODE_WRITTEN, POISON, RACE, STACK_OVERFLOW, STOP_EXCEPTION, STOP_UNSUPPORTED

STATUS, REPEAT_LEFT, WORKER_BASES = 1, 4, 0x21
"""Control registers: $SSR or $WSR, a worker's $REPEAT_COUNT, the supervisor's $WORKER0_BASE."""
IN_REPEAT_BIT = 0x200
"""$WSR.ERPT: the exception came inside a repeat (known)."""
STACK_POINTER = 11
"""$sp among the M registers; the supervisor's come first in the state."""
STACK_GUARD = 0x400
"""Bytes below a stack in which an access through its stack pointer counts as an overflow (assumed)."""
WRITTEN_OVER, FETCHED = -2, -3
"""In `decoded`, while stores into code are watched: a word the program itself has stored; an instruction of
code that has run natively, and that this engine has not decoded."""
MARKS = 3


def fault(state: Integers, kind: int, context: int, address: int) -> int:
    """Record an exception of the instruction at the context's program counter; returns 1.

    Its cause goes to bits 7:4 of the context's status register (known).
    """
    state[at.STOP] = STOP_EXCEPTION
    state[at.STOP_DETAIL] = kind
    state[at.STOP_CONTEXT] = context
    state[at.STOP_PC] = state[at.PCS + context]
    state[at.STOP_ADDRESS] = address
    status = at.CSRS + at.CSR_STRIDE * context + STATUS
    state[status] = (state[status] & ~0xF0) | (tables(state)[CAUSES_AT + kind] << 4)
    if context and state[at.CSRS + at.CSR_STRIDE * context + REPEAT_LEFT]:
        state[status] |= IN_REPEAT_BIT
    return 1


def unsupported(state: Integers, context: int) -> int:
    """Record an operand that no public source gives a meaning; returns 1."""
    fault(state, 0, context, -1)
    state[at.STOP] = STOP_UNSUPPORTED
    return 1


def same_phase_other(state: Integers, mark: int, context: int) -> bool:
    """True if a mark is of this compute phase and of another context."""
    return mark >> 24 == state[at.EPOCH] and (mark >> 21) & 7 != context


def race(state: Integers, context: int, address: int, mark: int) -> int:
    """Record a race with the access a mark describes."""
    state[at.STOP_OTHER] = mark
    return fault(state, RACE, context, address)


def keep_touch(state: Integers, address: int, size: int, write: bool) -> int:
    """Keep an access of the supervisor for native code, which compares it with those of workers."""
    epoch = state[at.EPOCH]
    if state[at.TOUCHES] != epoch:
        state[at.TOUCHES] = epoch
        state[at.TOUCHES + 1] = 0
    count = state[at.TOUCHES + 1]
    if count == at.MOST_TOUCHES:
        state[at.LAST_TOUCH] = epoch
        return 0
    place = at.TOUCHES + 2 + at.TOUCH_FIELDS * count
    state[place] = address
    state[place + 1] = address + size
    state[place + 2] = write
    state[at.TOUCHES + 1] = count + 1
    return 0


def touch(state: Integers, context: int, address: int, size: int, write: bool) -> int:
    """Note an access of every word from `address` on, or record the race it makes."""
    marks = touched(state)
    if context:
        state[at.LAST_TOUCH] = state[at.EPOCH]
    else:
        keep_touch(state, address, size, write)
    mine = (state[at.EPOCH] << 24) | (context << 21) | state[at.PCS + context]
    offset = address - TILE_BASE
    for word in range(offset >> 2, (offset + size + 3) >> 2):
        place = MARKS * word
        where = max(address, TILE_BASE + 4 * word)
        if same_phase_other(state, marks[place], context):
            return race(state, context, where, marks[place])
        if write:
            for reader in range(place + 1, place + MARKS):
                if same_phase_other(state, marks[reader], context):
                    return race(state, context, where, marks[reader])
            marks[place] = mine
        elif marks[place + 1] >> 24 != state[at.EPOCH]:
            marks[place + 1] = mine
        elif (marks[place + 1] >> 21) & 7 != context:
            marks[place + 2] = mine
    return 0


def watched_load(state: Integers, context: int, address: int, size: int) -> int:
    """The checks of a load whose address is good; returns 1 after recording an exception."""
    if state[at.CHECKS] & at.CHECK_POISON:
        offset = address - TILE_BASE
        bits = byte_at(shadow(state), offset >> 3)
        if size == 16:
            bits &= byte_at(shadow(state), (offset >> 3) + 1)
        mask = ((1 << min(size, 8)) - 1) << (offset & 7)
        if (bits & mask) != mask:
            return fault(state, POISON, context, address)
    if state[at.CHECKS] & at.CHECK_RACES and state[at.ACTIVE]:
        return touch(state, context, address, size, False)
    return 0


def check_owner(state: Integers, context: int, address: int) -> int:
    """A store must not hit another context's stack, but may hit the frames the supervisor has made."""
    if context and state[at.STACK_LOW] <= address < min(state[at.STACK_HIGH], state[STACK_POINTER]):
        return fault(state, STACK_OVERFLOW, context, address)
    for worker in range(6):
        base = state[at.CSRS + WORKER_BASES + worker]
        inside = base - state[at.WORKER_STACK] <= address < base
        if inside and worker + 1 != context:
            return fault(state, STACK_OVERFLOW, context, address)
    return 0


def is_fetched(mark: int) -> bool:
    """Whether the mark of a word says that it has been fetched."""
    return mark > 0 or mark == FETCHED


def check_code(state: Integers, context: int, address: int, words: int) -> int:
    """A store must not hit an instruction that has been fetched; what it hits must not be fetched later.
    Both may happen where the package says that code is written.
    """
    marks, allowed = decoded(state), rewritable(state)
    first = (address - TILE_BASE) >> 2
    for index in range(first, first + words):
        if is_fetched(marks[index]) and byte_at(allowed, index) == 0:
            return fault(state, CODE_WRITTEN, context, address)
    return 0


def check_stack_pointer(state: Integers, context: int, number: int, address: int) -> int:
    """An access through $sp, or a worker's base register, must not lie just below its context's stack."""
    if number == STACK_POINTER or (context and number == 12):
        low = state[at.STACK_LOW]
        if context:
            low = state[at.CSRS + WORKER_BASES + context - 1] - state[at.WORKER_STACK]
        if low - STACK_GUARD <= address < low:
            return fault(state, STACK_OVERFLOW, context, address)
    return 0
