"""The supervisor's exchange instructions. Compiled; see `compile`.

Each returns the cycles it takes, or -1 after recording an exception. Effects: a send drives one item per
cycle from its issue on; `delaypic` and `delayxpic` write at their end; the control of `sendpic` and
`sendpicp` is written one cycle after their issue (known).
"""

from __future__ import annotations

from ..isa.meaning.arrays import Integers, word_at
from ..isa.meaning.bits import WORD
from ..machine.memory import (
    ELEMENT_BYTES,
    FETCH_LOOKAHEAD_BYTES,
    REGION1_BASE,
    TILE_BASE,
    TILE_END,
)
from . import state as at
from .codes import DELAY, DELAYPIC, DELAYXPIC, SEND, SENDOFF, SENDPIC
from .engine_checks import fault, watched_load
from .engine_registers import (
    INCOMING_BASE,
    INCOMING_FORMAT,
    INCOMING_MUX,
    INCOMING_MUXPAIR,
    OUTGOING_BASE,
    csr_index,
)
from .exchange_log import FORMAT, MUX, MUXPAIR, POINTER
from .exchange_log import SEND as SEND_ITEM
from .pointers import integers_at, memory_words
from .stops import ADDRESS_RANGE, FETCH_CONFLICT, MISALIGNED_BUNDLE

PAIRED = 4
"""Send control bit: 64-bit items (known)."""


def note(state: Integers, kind: int, cycle: int, count: int, value: int, control: int) -> int:
    """Append to the exchange log; the caller has made sure there is room."""
    log = integers_at(state[at.LOG])
    base = state[at.LOG_COUNT] * at.LOG_FIELDS
    log[base] = kind
    log[base + 1] = cycle
    log[base + 2] = count
    log[base + 3] = value
    log[base + 4] = control
    log[base + 5] = state[at.PCS]
    state[at.LOG_COUNT] += 1
    return 0


def write_mux(state: Integers, cycle: int, select: int, value: int) -> int:
    """INCOMING_MUX (select 0) or INCOMING_MUXPAIR (1) changes at a cycle."""
    state[csr_index(0, INCOMING_MUXPAIR if select else INCOMING_MUX)] = value
    return note(state, MUXPAIR if select else MUX, cycle, 0, value, 0)


def write_pointer(state: Integers, cycle: int, select: int, value: int) -> int:
    """The receive pointer (select 0) or INCOMING_FORMAT (1) changes at a cycle."""
    if select:
        state[csr_index(0, INCOMING_FORMAT)] = value
        return note(state, FORMAT, cycle, 0, value, 0)
    return note(state, POINTER, cycle, 0, ((value << 2) + state[csr_index(0, INCOMING_BASE)]) & WORD, 0)


def drive(state: Integers, cycle: int, address: int, count: int, control: int) -> int:
    """Send `count` items from an address (without OUTGOING_BASE) and leave the stream behind them."""
    size = 8 if control & PAIRED else 4
    state[at.SEND_CURSOR] = address + count * size
    state[at.SEND_CONTROL] = control
    if control & 3 == 0:
        return 0
    begin = (address + state[csr_index(0, OUTGOING_BASE)]) & WORD
    end = begin + count * size
    if begin < TILE_BASE or end > TILE_END:
        return fault(state, ADDRESS_RANGE, 0, begin)
    if state[at.CHECKS] & at.CHECK_FETCH and begin < REGION1_BASE:
        pc = state[at.PCS]
        first = pc // ELEMENT_BYTES
        last = (pc + FETCH_LOOKAHEAD_BYTES) // ELEMENT_BYTES
        if begin // ELEMENT_BYTES <= last and (min(end, REGION1_BASE) - 1) // ELEMENT_BYTES >= first:
            return fault(state, FETCH_CONFLICT, 0, begin)
    # In a window a tile may send on what arrives meanwhile, which only the whole chip can tell.
    if state[at.CHECKS] & at.CHECK_POISON and state[at.WINDOW] == 0:
        for place in range(begin, end, size):
            if watched_load(state, 0, place, size):
                return 1
    return note(state, SEND_ITEM, cycle, count, begin, control)


def stream_control(state: Integers, cycle: int, word: int) -> int:
    """`sendpic`: go on sending, and write one control."""
    count = ((word >> 21) & 63) + 1
    if drive(state, cycle, state[at.SEND_CURSOR], count, state[at.SEND_CONTROL]):
        return -1
    select, value = (word >> 18) & 3, word & 0x3FFFF
    if select < 2:
        write_mux(state, cycle + 1, select, value & 0x1FFF)
    else:
        write_pointer(state, cycle + 1, select - 2, value)
    return count


def stream_pair(state: Integers, cycle: int, word: int) -> int:
    """`sendpicp`: restart the stream (unless its control is 0) and write both controls."""
    pc = state[at.PCS]
    if pc & 7:
        fault(state, MISALIGNED_BUNDLE, 0, -1)
        return -1
    payload = word_at(memory_words(state), (pc + 4 - TILE_BASE) >> 2)
    count, control = ((word >> 21) & 63) + 1, word & 7
    if control:
        address = ((word >> 3) & 0x3FFFF) << (3 if control & PAIRED else 2)
        if drive(state, cycle, address, count, control):
            return -1
    write_mux(state, cycle + 1, payload >> 31, (payload >> 18) & 0x1FFF)
    write_pointer(state, cycle + 1, (word >> 27) & 1, payload & 0x3FFFF)
    return count


def execute_exchange(state: Integers, cycle: int, word: int, function: int) -> int:
    """Any of delay, delaypic, delayxpic, send, sendoff, sendpic, sendpicp."""
    if function == DELAY:
        return (word & 0x7FFFF) + 1
    if function == DELAYPIC:
        count = ((word >> 19) & 0x7F) + 1
        write_pointer(state, cycle + count, (word >> 18) & 1, word & 0x3FFFF)
        return count
    if function == DELAYXPIC:
        count = ((word >> 14) & 0xFFF) + 1
        write_mux(state, cycle + count, (word >> 13) & 1, word & 0x1FFF)
        return count
    control = word & 7
    shift = 3 if control & PAIRED else 2
    if function == SEND:
        count = ((word >> 21) & 63) + 1
        address = ((word >> 3) & 0x3FFFF) << shift
        return -1 if drive(state, cycle, address, count, control) else count
    if function == SENDOFF:
        count = (((word >> 21) & 63) | ((word >> 14) & 63) << 6) + 1
        address = state[at.SEND_CURSOR] + (((word >> 3) & 0x7FF) << shift)
        return -1 if drive(state, cycle, address, count, control) else count
    return stream_control(state, cycle, word) if function == SENDPIC else stream_pair(state, cycle, word)
