"""One issue of the supervisor: registers, launches, weights, synchronisation. Compiled; see `compile`."""

from __future__ import annotations

from ..isa.meaning.arrays import Integers, Singles, Words, word_at
from ..isa.meaning.bits import WORD, rounding_mode
from ..machine.memory import REGION1_BASE, TILE_BASE
from ..machine.timing import (
    PUT_IN_ROW,
    RUN_LAUNCH,
    SUPERVISOR_BRANCH,
    SUPERVISOR_LATENCY,
    WORKER_SLOTS,
)
from . import state as at
from .codes import (
    CALL,
    DELAY,
    GET,
    GROUP_CONTROL,
    GROUP_MEMORY,
    GROUP_WORDS,
    LD64PUTCS,
    LD128PUTCS,
    PUT,
    RUN,
    RUNALL,
    SANS,
    SENDPICP,
    SYNC,
)
from .engine_checks import unsupported
from .engine_decode import FIRST, IMMEDIATE_OF, INFO_OF, RESULTS_OF, SECOND, WORD_OF
from .engine_exchange import execute_exchange, note
from .engine_memory import check_address, check_written, execute_memory, fault, set_main
from .engine_registers import (
    CCCSLOAD,
    CR,
    DOWNWARD,
    FP_CTL,
    FP_ICTL,
    FP_STS,
    INCOMING_FORMAT,
    INCOMING_MUX,
    INCOMING_MUXPAIR,
    OUTGOING_DELTA,
    REPEAT_COUNT,
    SSR,
    WORKER_BASE,
    ZCWEI,
    branch_target,
    csr_exists,
    csr_index,
    decode_weight,
    read_csr,
)
from .engine_worker import execute_words
from .exchange_log import FORMAT, MUX, MUXPAIR
from .instruction_tables import INFO_GROUP
from .pointers import half_weights, memory_words, weight_words
from .stops import (
    BREAKPOINT0,
    INVALID_OPERAND,
    INVALID_PC,
    STOP_ENDED,
    STOP_SYNC,
    SYNC_ZONE,
    UNKNOWN_CSR,
    WORKER_ACTIVE,
)

LOCAL_ZONE = 2
VERTEX_BASE_CSR, WORKER_BASE_CSR = 2, 3


def halt(state: Integers, kind: int, clock: int) -> int:
    """Record a stop of the supervisor at its program counter; returns 1."""
    fault(state, 0, 0, -1)
    state[at.STOP] = kind
    state[at.STOP_CLOCK] = clock
    return 1


def start_worker(state: Integers, worker: int, entry: int, base: int, first: int, offset: int) -> int:
    """Give a worker its slot from cycle `first` on. Registers, accumulators and generator state stay."""
    context = worker + 1
    m = at.REGISTER_STRIDE * context
    worker_base = state[csr_index(0, WORKER_BASE + worker)]
    state[m + 12] = worker_base
    state[m + 13] = base
    state[csr_index(context, WORKER_BASE_CSR)] = worker_base
    state[csr_index(context, VERTEX_BASE_CSR)] = base
    control = state[csr_index(0, FP_ICTL)]
    state[csr_index(context, FP_CTL)] = control
    if rounding_mode(control) == DOWNWARD:
        state[at.DOUBTS] = 1
    state[csr_index(context, FP_STS)] = 0
    state[csr_index(context, REPEAT_COUNT)] = 0
    state[at.PCS + context] = entry
    state[at.STARTS + context] = first
    state[at.FIRSTS + context] = first
    state[at.OFFSETS + context] = offset
    state[at.OWNERS + first % WORKER_SLOTS] = context
    state[at.ACTIVE] += 1
    return 0


def lowest_free_worker(state: Integers) -> int:
    """The lowest worker that is not running, or -1."""
    for worker in range(WORKER_SLOTS):
        free = True
        for slot in range(WORKER_SLOTS):
            if state[at.OWNERS + slot] == worker + 1:
                free = False
        if free:
            return worker
    return -1


def launch(state: Integers, cycle: int, entry: Integers, function: int) -> int:
    """`run` (one worker, in the lowest free slot: assumed) and `runall`; returns 1 after an exception."""
    begin = int(state[entry[FIRST]])
    stride = entry[IMMEDIATE_OF] * 4
    base = int(state[entry[SECOND]])
    if begin < TILE_BASE or begin >= REGION1_BASE or begin & 3:
        return fault(state, INVALID_PC, 0, begin)
    if base & 3:
        return fault(state, INVALID_OPERAND, 0, base)
    if state[at.ACTIVE] == 0:
        state[at.WORKER_CLOCK] = cycle + 1
        state[at.EPOCH] += 1
    first = cycle + RUN_LAUNCH
    if function == RUNALL:
        if state[at.ACTIVE]:
            return fault(state, WORKER_ACTIVE, 0, begin)
        for worker in range(WORKER_SLOTS):
            start_worker(state, worker, begin, (base + worker * stride) & WORD, first + worker, worker)
        return 0
    worker = lowest_free_worker(state)
    if worker < 0:
        return fault(state, WORKER_ACTIVE, 0, begin)
    offset = worker
    while state[at.OWNERS + (first + offset) % WORKER_SLOTS]:
        offset += 1
    return start_worker(state, worker, begin, (base + stride) & WORD, first + offset, offset)


def clear_weights(raw: Words, halves: Singles) -> int:
    """All weight entries to zero."""
    for index in range(128):
        raw[index] = 0
    for index in range(256):
        halves[index] = 0.0
    return 0


def write_csr(state: Integers, cycle: int, number: int, value: int) -> int:
    """`put`; returns the cycles it takes, -1 after an exception."""
    if not csr_exists(state, 0, number):
        fault(state, UNKNOWN_CSR, 0, number)
        return -1
    if number == CR:
        if value & 3:
            consensus = state[csr_index(0, SSR)] & ~1
            state[csr_index(0, SSR)] = consensus | ((value >> 1) & 1)
        if value & ZCWEI:
            clear_weights(weight_words(state), half_weights(state))
    state[csr_index(0, number)] = value
    state[at.CSR_READY + number] = cycle + SUPERVISOR_LATENCY
    if state[at.WINDOW] and INCOMING_MUX <= number <= OUTGOING_DELTA:
        if number == INCOMING_MUX:
            note(state, MUX, cycle + PUT_IN_ROW, 0, value, 0)
        elif number == INCOMING_MUXPAIR:
            note(state, MUXPAIR, cycle + PUT_IN_ROW, 0, value, 0)
        elif number == INCOMING_FORMAT:
            note(state, FORMAT, cycle + PUT_IN_ROW, 0, value, 0)
        return PUT_IN_ROW
    return 1


def load_weights(state: Integers, word: int, entries: int) -> int:
    """`ld64putcs` and `ld128putcs`; returns 1 after an exception."""
    first = word & 0xFF
    if first + entries > 64:
        return fault(state, INVALID_OPERAND, 0, first)
    pointer = csr_index(0, CCCSLOAD)
    address = int(state[pointer])
    if check_address(state, 0, address, 8 * entries) or check_written(state, 0, address, 8 * entries):
        return 1
    memory, raw = memory_words(state), weight_words(state)
    index = (address - TILE_BASE) >> 2
    for place in range(2 * entries):
        raw[2 * first + place] = word_at(memory, index + place)
    for entry in range(first, first + entries):
        decode_weight(state, entry)
    state[pointer] = (address + 8 * entries) & WORD
    return 0


def note_results(state: Integers, word: int, results: int, cycle: int) -> int:
    """Registers the instruction writes become usable after the pipeline's latency."""
    while results:
        number = (word >> ((results & 63) - 1)) & 15
        if number < 12:
            state[at.READY + number] = cycle + SUPERVISOR_LATENCY
        results >>= 6
    return 0


def supervisor_control(state: Integers, pc: int, cycle: int, entry: Integers, function: int) -> int:
    """Everything but arithmetic and memory; returns the cycles it takes, or -1 after recording a stop.

    Sets the next program counter.
    """
    word = entry[WORD_OF] & WORD
    state[at.PCS] = pc + (8 if function == SENDPICP else 4)
    if function <= CALL:
        target = branch_target(state, 0, entry, function, pc + 4)
        if target < 0:
            return 1
        state[at.PCS] = target
        if target == 0:
            return -halt(state, STOP_ENDED, cycle)
        return SUPERVISOR_BRANCH
    cycles = 1
    state[at.PCS] = pc
    if function == GET:
        number = word & 0xFF
        if not csr_exists(state, 0, number):
            return -fault(state, UNKNOWN_CSR, 0, number)
        set_main(state, 0, entry[FIRST], read_csr(state, 0, number, cycle))
    elif function == PUT:
        cycles = write_csr(state, cycle, word & 0xFF, int(state[entry[FIRST]]))
    elif function == SYNC:
        zone = word & 15
        if 8 <= zone < 12:
            return -fault(state, SYNC_ZONE, 0, zone)
        if zone != LOCAL_ZONE:
            halt(state, STOP_SYNC, cycle)
            state[at.STOP_DETAIL] = zone
            state[at.PCS] = pc + 4
            return -1
        state[at.WAITING] = 1
    elif function == SANS:
        state[at.SANS] += entry[IMMEDIATE_OF] + 1
        state[at.SANS_CLOCK] = cycle
    elif function in (RUN, RUNALL):
        cycles = -1 if launch(state, cycle, entry, function) else 1
    elif function in (LD64PUTCS, LD128PUTCS):
        cycles = -1 if load_weights(state, word, 2 if function == LD128PUTCS else 1) else 1
    elif function >= DELAY:
        cycles = execute_exchange(state, cycle, word, function)
    else:
        return -fault(state, BREAKPOINT0 + (word & 1), 0, -1)
    if cycles > 0:
        state[at.PCS] = pc + (8 if function == SENDPICP else 4)
    return cycles


def supervisor_turn(state: Integers, pc: int, cycle: int, entry: Integers) -> int:
    """Issue the supervisor's next instruction; returns 1 after recording a stop."""
    info = entry[INFO_OF]
    group = (info >> INFO_GROUP) & 15
    state[at.COUNTS] += 1
    cycles = 1
    if group == GROUP_WORDS:
        execute_words(state, 0, entry)
        state[at.PCS] = pc + 4
    elif group == GROUP_MEMORY:
        if execute_memory(state, 0, entry):
            cycles = -1
        else:
            state[at.PCS] = pc + 4
    elif group == GROUP_CONTROL:
        cycles = supervisor_control(state, pc, cycle, entry, info & 1023)
    else:
        unsupported(state, 0)
        cycles = -1
    if cycles < 0:
        state[at.STOP_CLOCK] = cycle
        state[at.CLOCK] = cycle
        return 1
    note_results(state, entry[WORD_OF], entry[RESULTS_OF], cycle)
    state[at.CLOCK] = cycle + cycles
    return 0
