"""One issue turn of a worker: fetch, bundle, repeat, exit. Compiled; see `compile`."""

from __future__ import annotations

from ..isa.meaning.arrays import Integers
from ..isa.meaning.bits import WORD
from ..machine.timing import WORKER_SLOTS
from . import state as at
from .codes import (
    CALL,
    EXITNEG,
    EXITNZ,
    EXITPOS,
    EXITZ,
    GET,
    GROUP_CONTROL,
    GROUP_MEMORY,
    GROUP_WORDS,
    PUT,
    RPT,
)
from .dispatch import dispatch_main
from .engine_aux import execute_aux, land, operand
from .engine_checks import unsupported
from .engine_decode import AUX, FIRST, FOURTH, INFO_OF, NO_REGISTER, SECOND, THIRD, WORD_OF, turn_at
from .engine_memory import execute_memory, fault, set_main
from .engine_registers import (
    REPEAT_COUNT,
    REPEAT_END,
    REPEAT_FIRST,
    SSR,
    branch_target,
    csr_exists,
    csr_index,
    read_csr,
)
from .instruction_tables import (
    INFO_GROUP,
    INFO_NO_REPEAT,
)
from .pointers import integers_at
from .stops import (
    BREAKPOINT0,
    IN_REPEAT,
    MISALIGNED_BUNDLE,
    UNKNOWN_CSR,
)

NEXT = -1
FAULTED = -2
EXITED = -3
"""What a main-pipeline instruction returns instead of a branch target."""


def execute_words(state: Integers, context: int, entry: Integers) -> int:
    """Integer and lane instructions on M registers."""
    x = operand(state, context, entry, FIRST)
    y = operand(state, context, entry, SECOND)
    z = operand(state, context, entry, THIRD)
    return set_main(state, context, entry[FOURTH], dispatch_main(entry[INFO_OF] & 1023, x, y, z))


def note_span(state: Integers, context: int, cycle: int) -> int:
    """Note from when to when a worker ran; `held_back` has made sure that there is room."""
    spans = integers_at(state[at.SPANS])
    place = state[at.SPAN_COUNT] * at.SPAN_FIELDS
    spans[place] = context
    spans[place + 1] = state[at.FIRSTS + context]
    spans[place + 2] = cycle + 1
    state[at.SPAN_COUNT] += 1
    return 0


def leave(state: Integers, context: int, cycle: int, agrees: bool) -> int:
    """End a worker: give its slot back and AND its verdict into the local consensus."""
    if not agrees:
        state[csr_index(0, SSR)] &= ~1
    state[at.OWNERS + cycle % WORKER_SLOTS] = 0
    state[at.ACTIVE] -= 1
    end = cycle - state[at.OFFSETS + context] + WORKER_SLOTS
    state[at.ROTATION_END] = max(state[at.ROTATION_END], end)
    if state[at.NOTING_SPANS]:
        note_span(state, context, cycle)
    return EXITED


def start_repeat(state: Integers, context: int, entry: Integers, first: int) -> int:
    """`rpt`: `first` is the address of the body."""
    word = int(entry[WORD_OF])
    if entry[FIRST] == NO_REGISTER:
        count = (word >> 8) & 0xFFF
    else:
        count = state[at.REGISTER_STRIDE * context + entry[FIRST]] & 0xFFFF
    end = first + 8 * ((word & 0xFF) + 1)
    if count == 0:
        return end
    if first & 7:
        return FAULTED * fault(state, MISALIGNED_BUNDLE, context, first)
    state[csr_index(context, REPEAT_COUNT)] = count
    state[csr_index(context, REPEAT_FIRST)] = first
    state[csr_index(context, REPEAT_END)] = end
    return NEXT


def worker_control(state: Integers, context: int, entry: Integers, cycle: int, following: int) -> int:
    """Branches, exits, repeats and control registers; NEXT, FAULTED, EXITED or the branch target."""
    function = entry[INFO_OF] & 1023
    if function <= CALL:
        return branch_target(state, context, entry, function, following)
    if function in (GET, PUT):
        number = entry[WORD_OF] & 0xFF
        if not csr_exists(state, context, number):
            return FAULTED * fault(state, UNKNOWN_CSR, context, number)
        register = entry[FIRST]
        if function == GET:
            set_main(state, context, register, read_csr(state, context, number, cycle))
        else:
            state[csr_index(context, number)] = state[at.REGISTER_STRIDE * context + register]
        return NEXT
    if function == RPT:
        return start_repeat(state, context, entry, following)
    if function > EXITPOS:
        return FAULTED * fault(state, BREAKPOINT0 + (entry[WORD_OF] & 1), context, -1)
    value = state[at.REGISTER_STRIDE * context + entry[FIRST]]
    negative = (value & 0x80000000) != 0
    if function == EXITZ:
        return leave(state, context, cycle, value == 0)
    if function == EXITNZ:
        return leave(state, context, cycle, value != 0)
    return leave(state, context, cycle, negative == (function == EXITNEG))


def worker_main(state: Integers, context: int, entry: Integers, cycle: int, following: int) -> int:
    """A main-pipeline instruction; NEXT, FAULTED, EXITED or the branch target."""
    group = (entry[INFO_OF] >> INFO_GROUP) & 15
    if group == GROUP_WORDS:
        execute_words(state, context, entry)
        return NEXT
    if group == GROUP_MEMORY:
        return FAULTED if execute_memory(state, context, entry) else NEXT
    if group == GROUP_CONTROL:
        return worker_control(state, context, entry, cycle, following)
    return FAULTED * unsupported(state, context)


def worker_turn(state: Integers, context: int, cycle: int) -> int:
    """Issue a worker's next instruction or bundle; returns 1 after recording a stop."""
    pc = int(state[at.PCS + context])
    place = turn_at(state, context, pc)
    if place == 0:
        return 1
    main, aux = integers_at(place), integers_at(place + 8 * AUX)
    repeating = state[csr_index(context, REPEAT_COUNT)]
    state[at.COUNTS + context] += 1
    state[at.SLOTS] = 1
    if repeating and ((main[INFO_OF] | aux[INFO_OF]) >> INFO_NO_REPEAT) & 1:
        return fault(state, IN_REPEAT, context, -1)
    following = pc + (8 if main[WORD_OF] & 0x80000000 else 4)
    if aux[INFO_OF] and execute_aux(state, context, aux):
        return 1
    target = worker_main(state, context, main, cycle, following) if main[INFO_OF] else NEXT
    if target == FAULTED:
        return 1
    if aux[INFO_OF]:
        land(state, context, aux)
    if target >= 0:
        following = target & WORD
    elif repeating and following == state[csr_index(context, REPEAT_END)]:
        state[csr_index(context, REPEAT_COUNT)] = repeating - 1
        if repeating > 1:
            following = state[csr_index(context, REPEAT_FIRST)]
    state[at.PCS + context] = following
    return 0


def leave_before(state: Integers, limit: int) -> int:
    """The exits, before cycle `limit`, of workers that a native function has run."""
    last = 0
    for context in range(1, at.CONTEXTS):
        place = at.EXITS + at.EXIT_FIELDS * context
        cycle = state[place] - 1
        if 0 <= cycle < limit:
            last = max(last, cycle)
            leave(state, context, cycle, state[place + 2] != 0)
            state[at.STARTS + context] = cycle + WORKER_SLOTS
            state[at.COUNTS + context] += state[place + 1]
            state[at.BUDGET] -= state[place + 1]
            state[at.PCS + context] = state[place + 3]
            for field in range(at.EXIT_FIELDS):
                state[place + field] = 0
            state[at.PENDING] -= 1
    state[at.WORKER_CLOCK] = limit if state[at.ACTIVE] else last + 1
    return 0


def run_workers(state: Integers, limit: int) -> int:
    """Serve the worker slots of all cycles before `limit`, or until the last worker leaves.

    Returns 1 after recording a stop.
    """
    if state[at.PENDING]:
        return leave_before(state, limit)
    cycle = state[at.WORKER_CLOCK]
    slot = cycle % WORKER_SLOTS
    while cycle < limit:
        context = state[at.OWNERS + slot]
        if context and cycle >= state[at.STARTS + context]:
            if state[at.BUDGET] <= 0:
                break
            state[at.BUDGET] -= 1
            if worker_turn(state, context, cycle):
                state[at.STOP_CLOCK] = cycle
                state[at.WORKER_CLOCK] = cycle
                return 1
            state[at.STARTS + context] = cycle + WORKER_SLOTS * state[at.SLOTS]
            if state[at.ACTIVE] == 0:
                cycle += 1
                break
        cycle += 1
        slot += 1
        if slot == WORKER_SLOTS:
            slot = 0
    state[at.WORKER_CLOCK] = cycle
    return 0
