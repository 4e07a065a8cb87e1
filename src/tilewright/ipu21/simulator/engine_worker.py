"""One issue turn of a worker: fetch, bundle, repeat, exit. Compiled; see `compile`."""

from __future__ import annotations

from ..isa.meaning.arrays import Integers, word_at
from ..isa.meaning.bits import WORD
from ..machine.memory import TILE_BASE
from ..machine.timing import WORKER_SLOTS
from . import state as at
from .codes import (
    CALL,
    EXITNEG,
    EXITNZ,
    EXITPOS,
    EXITZ,
    GET,
    GROUP_AUX_WORDS,
    GROUP_CONTROL,
    GROUP_MEMORY,
    GROUP_NONE,
    GROUP_WORDS,
    PUT,
    RPT,
)
from .dispatch import dispatch_main
from .engine_aux import execute_aux, land, place_value, unsupported
from .engine_decode import form_at
from .engine_memory import execute_memory, fault, field, set_main
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
    FIELDS,
    IMMEDIATE,
    INFO_COISSUE,
    INFO_GROUP,
    INFO_NO_REPEAT,
    INFO_WORKER,
    ROW,
)
from .pointers import integers_at, memory_words, tables
from .stops import (
    BREAKPOINT0,
    IN_REPEAT,
    INVALID_INSTRUCTION,
    MISALIGNED_BUNDLE,
    UNKNOWN_CSR,
)

NEXT = -1
FAULTED = -2
EXITED = -3
"""What a main-pipeline instruction returns instead of a branch target."""


def execute_words(state: Integers, context: int, word: int, info: int, places: int, packed: int) -> int:
    """Integer and lane instructions on M registers."""
    m = at.REGISTER_STRIDE * context
    x = place_value(state, m, word, packed, places & 63)
    y = place_value(state, m, word, packed, (places >> 6) & 63)
    z = place_value(state, m, word, packed, (places >> 12) & 63)
    number = (word >> (((places >> 18) & 63) - 1)) & 15
    return set_main(state, context, number, dispatch_main(info & 1023, x, y, z))


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


def start_repeat(state: Integers, context: int, word: int, places: int, packed: int, first: int) -> int:
    """`rpt`: `first` is the address of the body."""
    if places & 63:
        count = state[at.REGISTER_STRIDE * context + field(word, places, 0)] & 0xFFFF
    else:
        count = (word >> 8) & 0xFFF
    end = first + 8 * ((word & 0xFF) + 1)
    if count == 0:
        return end
    if first & 7:
        return FAULTED * fault(state, MISALIGNED_BUNDLE, context, first)
    state[csr_index(context, REPEAT_COUNT)] = count
    state[csr_index(context, REPEAT_FIRST)] = first
    state[csr_index(context, REPEAT_END)] = end
    return NEXT


def worker_control(
    state: Integers,
    context: int,
    word: int,
    info: int,
    places: int,
    packed: int,
    cycle: int,
    following: int,
) -> int:
    """Branches, exits, repeats and control registers; NEXT, FAULTED, EXITED or the branch target."""
    function = info & 1023
    if function <= CALL:
        return branch_target(state, context, word, places, packed, function, following)
    if function in (GET, PUT):
        number = word & 0xFF
        if not csr_exists(state, context, number):
            return FAULTED * fault(state, UNKNOWN_CSR, context, number)
        register = field(word, places, 0)
        if function == GET:
            set_main(state, context, register, read_csr(state, context, number, cycle))
        else:
            state[csr_index(context, number)] = state[at.REGISTER_STRIDE * context + register]
        return NEXT
    if function == RPT:
        return start_repeat(state, context, word, places, packed, following)
    if function > EXITPOS:
        return FAULTED * fault(state, BREAKPOINT0 + (word & 1), context, -1)
    value = state[at.REGISTER_STRIDE * context + field(word, places, 0)]
    negative = (value & 0x80000000) != 0
    if function == EXITZ:
        return leave(state, context, cycle, value == 0)
    if function == EXITNZ:
        return leave(state, context, cycle, value != 0)
    return leave(state, context, cycle, negative == (function == EXITNEG))


def worker_main(
    state: Integers,
    context: int,
    word: int,
    row: int,
    cycle: int,
    following: int,
) -> int:
    """A main-pipeline instruction; NEXT, FAULTED, EXITED or the branch target."""
    table = tables(state)
    info, places, packed = table[row], table[row + FIELDS], table[row + IMMEDIATE]
    group = (info >> INFO_GROUP) & 15
    if group == GROUP_WORDS:
        execute_words(state, context, word, info, places, packed)
        return NEXT
    if group == GROUP_MEMORY:
        return FAULTED if execute_memory(state, context, word, info, places, packed) else NEXT
    if group == GROUP_CONTROL:
        return worker_control(state, context, word, info, places, packed, cycle, following)
    return FAULTED * unsupported(state, context)


def worker_turn(state: Integers, context: int, cycle: int) -> int:
    """Issue a worker's next instruction or bundle; returns 1 after recording a stop."""
    pc = state[at.PCS + context]
    form = form_at(state, context, pc)
    if form == 0:
        return 1
    table = tables(state)
    words = memory_words(state)
    index = (pc - TILE_BASE) >> 2
    word = word_at(words, index)
    row = ROW * form
    info = table[row]
    repeating = state[csr_index(context, REPEAT_COUNT)]
    state[at.COUNTS + context] += 1
    state[at.SLOTS] = 1
    following = pc + 4
    if (info >> INFO_WORKER) & 1 == 0:
        return fault(state, INVALID_INSTRUCTION, context, -1)
    group = (info >> INFO_GROUP) & 15
    if word & 0x80000000:
        second_form = form_at(state, context, pc + 4)
        if second_form == 0:
            return 1
        second = word_at(words, index + 1)
        second_row = ROW * second_form
        second_info = table[second_row]
        second_group = (second_info >> INFO_GROUP) & 15
        following = pc + 8
        if group == GROUP_NONE or second_group == GROUP_NONE:
            return unsupported(state, context)
        legal = (info >> INFO_COISSUE) & (second_info >> INFO_COISSUE) & 1
        legal &= second >> 31
        if legal == 0 or group >= GROUP_AUX_WORDS or second_group < GROUP_AUX_WORDS:
            return fault(state, INVALID_INSTRUCTION, context, -1)
        if repeating and ((info | second_info) >> INFO_NO_REPEAT) & 1:
            return fault(state, IN_REPEAT, context, -1)
        second_places = table[second_row + FIELDS]
        if execute_aux(state, context, second, second_info, second_places, table[second_row + IMMEDIATE]):
            return 1
        target = worker_main(state, context, word, row, cycle, following)
        if target == FAULTED:
            return 1
        land(state, context, second, second_info, second_places)
    else:
        if repeating:
            return fault(state, IN_REPEAT, context, -1)
        if group >= GROUP_AUX_WORDS:
            places = table[row + FIELDS]
            if execute_aux(state, context, word, info, places, table[row + IMMEDIATE]):
                return 1
            land(state, context, word, info, places)
            target = NEXT
        else:
            target = worker_main(state, context, word, row, cycle, following)
            if target == FAULTED:
                return 1
    if target >= 0:
        following = target & WORD
    elif repeating and following == state[csr_index(context, REPEAT_END)]:
        state[csr_index(context, REPEAT_COUNT)] = repeating - 1
        if repeating > 1:
            following = state[csr_index(context, REPEAT_FIRST)]
    state[at.PCS + context] = following
    return 0


def earliest_exit(state: Integers) -> int:
    """The context that leaves first of those whose exits are known already, 0 if there is none."""
    found = 0
    earliest = 0
    for context in range(1, at.CONTEXTS):
        exit_cycle = state[at.EXITS + at.EXIT_FIELDS * context]
        if exit_cycle and (found == 0 or exit_cycle < earliest):
            found = context
            earliest = exit_cycle
    return found


def leave_in_order(state: Integers, limit: int) -> int:
    """The exits, before cycle `limit`, of workers that a native function has run."""
    context = earliest_exit(state)
    while context:
        place = at.EXITS + at.EXIT_FIELDS * context
        cycle = state[place] - 1
        if cycle >= limit:
            break
        leave(state, context, cycle, state[place + 2] != 0)
        state[at.STARTS + context] = cycle + WORKER_SLOTS
        state[at.COUNTS + context] += state[place + 1]
        state[at.BUDGET] -= state[place + 1]
        state[at.PCS + context] = state[place + 3]
        for index in range(at.EXIT_FIELDS):
            state[place + index] = 0
        state[at.PENDING] -= 1
        if state[at.ACTIVE] == 0:
            limit = cycle + 1
        context = earliest_exit(state)
    state[at.WORKER_CLOCK] = limit
    return 0


def run_workers(state: Integers, limit: int) -> int:
    """Serve the worker slots of all cycles before `limit`, or until the last worker leaves.

    Returns 1 after recording a stop.
    """
    if state[at.PENDING]:
        return leave_in_order(state, limit)
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
