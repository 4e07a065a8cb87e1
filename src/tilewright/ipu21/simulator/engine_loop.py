"""The tile's cycle loop: who issues when. Compiled; see `compile`."""

from __future__ import annotations

from ..isa.meaning.arrays import Integers, word_at
from ..isa.meaning.bits import WORD
from ..machine.memory import TILE_BASE
from ..machine.timing import RUN_RELEASE, WORKER_SLOTS
from . import state as at
from .codes import DELAY, GET, GROUP_CONTROL, LD64PUTCS, LD128PUTCS, PUT
from .engine_decode import FOR_SUPERVISOR, HAZARDS_OF, INFO_OF, WORD_OF, instruction_at
from .engine_memory import fault
from .engine_registers import (
    CCCSLOAD,
    INCOMING_MUX,
    OUTGOING_DELTA,
    TILE_ID,
    refresh_weights,
    remember_weights,
)
from .engine_supervisor import halt, supervisor_turn
from .engine_worker import run_workers
from .instruction_tables import INFO_GROUP, INFO_SUPERVISOR, INFO_WINDOW
from .pointers import call_native, integers_at, memory_words, words_at
from .stops import (
    INVALID_INSTRUCTION,
    STOP_BUDGET,
    STOP_LOG_FULL,
    STOP_NEEDS_IDENTITY,
    STOP_WINDOW_CLOSED,
)

FOREVER = 1 << 60
LOG_ROOM = 4
"""Most log entries one instruction can make."""


def issue_cycle(state: Integers, word: int, info: int, hazards: int) -> int:
    """Earliest cycle at which the supervisor's operands are ready."""
    cycle = int(state[at.CLOCK])
    if (info >> INFO_GROUP) & 15 == GROUP_CONTROL:
        function = info & 1023
        number = word & 0xFF
        if function == PUT and state[at.WINDOW] and INCOMING_MUX <= number <= OUTGOING_DELTA:
            # The cost of such a put inside a row contains the wait for its operand.
            return cycle
        if function == GET:
            cycle = max(cycle, int(state[at.CSR_READY + number]))
        elif function in (LD64PUTCS, LD128PUTCS):
            cycle = max(cycle, int(state[at.CSR_READY + CCCSLOAD]))
    while hazards:
        number = (word >> ((hazards & 63) - 1)) & 15
        cycle = max(cycle, int(state[at.READY + number]))
        hazards >>= 6
    return cycle


def loads_weights(info: int) -> bool:
    """`ld64putcs` or `ld128putcs`."""
    return (info >> INFO_GROUP) & 15 == GROUP_CONTROL and info & 1023 in (LD64PUTCS, LD128PUTCS)


def held_back(state: Integers, pc: int, word: int, info: int) -> int:
    """Record a stop that comes before the next instruction, if there is one: 1, else 0."""
    if state[at.WINDOW] and (info >> INFO_WINDOW) & 1 == 0:
        state[at.WINDOW] = 0
        return halt(state, STOP_WINDOW_CLOSED, state[at.CLOCK])
    if (info >> INFO_GROUP) & 15 == GROUP_CONTROL:
        function = info & 1023
        if function == GET and word & 0xFF == TILE_ID and state[at.SHARED]:
            return halt(state, STOP_NEEDS_IDENTITY, state[at.CLOCK])
        if (function > DELAY or function == PUT) and state[at.LOG_COUNT] + LOG_ROOM > state[at.LOG_CAPACITY]:
            return halt(state, STOP_LOG_FULL, state[at.CLOCK])
    if state[at.WATCHING] and state[at.MARK_COUNT] == state[at.MARK_CAPACITY]:
        return halt(state, STOP_LOG_FULL, state[at.CLOCK])
    if state[at.NOTING_SPANS] and state[at.SPAN_COUNT] + at.SPAN_ROOM > state[at.SPAN_CAPACITY]:
        return halt(state, STOP_LOG_FULL, state[at.CLOCK])
    return 0


def wait_for_slot(state: Integers, cycle: int) -> int:
    """Let the workers run up to the supervisor's first free cycle from `cycle` on; -1 after a stop."""
    while state[at.ACTIVE]:
        if run_workers(state, cycle):
            return -1
        if state[at.ACTIVE] == 0:
            return cycle
        if state[at.WORKER_CLOCK] < cycle:
            # The budget ended before a worker's turn that comes first. Earlier cycles have been looked at.
            state[at.CLOCK] = cycle
            return -halt(state, STOP_BUDGET, state[at.WORKER_CLOCK])
        owner = state[at.OWNERS + cycle % WORKER_SLOTS]
        if owner == 0 or cycle < state[at.FIRSTS + owner]:
            return cycle
        cycle += 1
    return cycle


def mark(state: Integers, pc: int, cycle: int) -> int:
    """Note the cycle if this address is watched."""
    step = word_at(words_at(state[at.WATCHED]), (pc - TILE_BASE) >> 2)
    if step:
        marks = integers_at(state[at.MARKS])
        place = state[at.MARK_COUNT] * at.MARK_FIELDS
        marks[place] = step - 1
        marks[place + 1] = cycle
        state[at.MARK_COUNT] += 1
    return 0


def finish_wait(state: Integers) -> int:
    """`sync 2`: let the workers run to their end; 1 after recording a stop."""
    if state[at.ACTIVE]:
        if run_workers(state, FOREVER):
            return 1
        if state[at.ACTIVE]:
            return halt(state, STOP_BUDGET, state[at.WORKER_CLOCK])
    state[at.CLOCK] = max(state[at.CLOCK], state[at.ROTATION_END] + RUN_RELEASE)
    state[at.WAITING] = 0
    return 0


def supervisor_step(state: Integers) -> int:
    """The supervisor's next issue, workers first as far as it must wait; 1 after recording a stop."""
    pc = int(state[at.PCS])
    state[at.STOP_CLOCK] = state[at.CLOCK]
    place = instruction_at(state, pc)
    if place == 0:
        return 1
    entry = integers_at(place)
    info = entry[INFO_OF]
    word = entry[WORD_OF] & WORD
    if (info >> INFO_SUPERVISOR) & 1 == 0 or (word >> 31 and word >> 28 != 15):
        return fault(state, INVALID_INSTRUCTION, 0, -1)
    if held_back(state, pc, word, info):
        return 1
    if state[at.ASSISTANCE] and state[at.ACTIVE] == 0 and loads_weights(info):
        stopped = call_native(state[at.ASSISTANCE], state)
        if stopped or state[at.PCS] != pc:
            return stopped
    cycle = issue_cycle(state, word, info, entry[HAZARDS_OF])
    if state[at.ACTIVE]:
        cycle = wait_for_slot(state, cycle)
        if cycle < 0:
            return 1
        # Meanwhile a worker may have stored over the instruction, or taken its entry's place.
        if (
            word_at(memory_words(state), (pc - TILE_BASE) >> 2) != word
            or entry[WORD_OF] != word | FOR_SUPERVISOR
        ):
            return 0
    if state[at.BUDGET] <= 0:
        state[at.CLOCK] = cycle
        return halt(state, STOP_BUDGET, cycle)
    state[at.BUDGET] -= 1
    if state[at.WATCHING]:
        mark(state, pc, cycle)
    return supervisor_turn(state, pc, cycle, entry)


def run_tile(state: Integers) -> int:
    """Run one tile to its next stop, which is then described in its state. Returns the stop number.

    Issues exactly as many instructions and bundles as the budget allows; the stop's clock is then the cycle
    of the next one, and a later run goes on as if there had been no stop.
    """
    refresh_weights(state)
    stopped = 0
    while stopped == 0:
        # While exits are pending, a native function has run the workers already.
        if state[at.ASSISTANCE] and state[at.PENDING] == 0 and (state[at.ACTIVE] or state[at.WAITING]):
            stopped = call_native(state[at.ASSISTANCE], state)
        if stopped == 0:
            stopped = finish_wait(state) if state[at.WAITING] else supervisor_step(state)
    remember_weights(state)
    return int(state[at.STOP])
