"""Native functions around translated workers. Plain Python here; compiled with `lowering`.

A launch is executed worker by worker. That equals lock-step if no worker touches a word that another one
stores, so all loads and stores are recorded, with the memory they change, and the launch is undone if two
workers meet, or if anything happens that ends a launch early. The other engine then repeats it.
"""

from __future__ import annotations

import ctypes

from ...isa.meaning.address import ADDRESS
from ...isa.meaning.arrays import Integers, word_at
from ...isa.meaning.bits import ROUNDING, WORD, single_value
from ...isa.meaning.float16 import ESR, round_half
from ...machine.memory import REGION1_BASE, TILE_BASE, TILE_END
from ...machine.timing import SUPERVISOR_LATENCY, WORKER_SLOTS
from .. import state as at
from ..codes import BR, BRI, BRNZDEC, GROUP_CONTROL, GROUP_WORDS, SYNC
from ..engine_checks import FETCHED, WRITTEN_OVER, is_fetched
from ..engine_decode import find_form, immediate_of
from ..engine_registers import CCCSLOAD, FP_CTL, FP_STS, csr_index, decode_weight
from ..instruction_tables import IMMEDIATE, INFO_GROUP, ROW
from ..pointers import (
    bytes_at,
    integers_at,
    marks_at,
    memory_words,
    tables,
    words_at,
)
from ..stops import STOP_ASSISTANCE
from . import reasons as why
from . import scratch as sc
from .accesses import ELEMENT_BITS, INTERLEAVED_BITS
from .recording import forget_records, meets_worker, races
from .written import loads_unwritten, note_written, unwritten

GENERAL_BITS = ROUNDING | ESR
"""Bits of $FP_CTL that are zero in all but general code."""
LOOK_AHEAD = 24
"""Most instructions that are looked at between a launch and the wait for it."""
MANY_ENTRIES = 24
"""Weight entries from which on all are decoded at once."""
GIVE_UP = 8
"""Failures without a success after which a translation is not tried again."""


def call_worker(function: int, state: Integers, context: int, scratch: Integers) -> int:
    """Call a translated worker by address; 1 if it could not be carried through, 2 for an infinity or NaN,
    3 for a branch to code that was not translated."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return int(prototype(function)(state.ctypes.data, context, scratch.ctypes.data))


def decode_all_weights(state: Integers) -> int:
    """`decode_weight` of every entry; in vectors where the CPU converts halves."""
    for entry in range(64):
        decode_weight(state, entry)
    return 0


# ---- before accesses


def copy_integers(target: int, source: int, count: int) -> int:
    """Copy integers between addresses."""
    ctypes.memmove(target, source, 8 * count)
    return 0


def address_of(array: Integers) -> int:
    """Where an array begins."""
    return int(array.ctypes.data)


def save_blocks(scratch: Integers, offset: int, size: int) -> int:
    """Keep the present contents of all blocks a store may change."""
    block, end = offset >> sc.BLOCK_LOG, (offset + size - 1) >> sc.BLOCK_LOG
    saved = bytes_at(scratch[sc.SAVED])
    while block <= end:
        if saved[block] == 0:
            saved[block] = 1
            integers_at(scratch[sc.SAVED_LIST])[scratch[sc.SAVED_COUNT]] = block
            copy_integers(
                scratch[sc.COPIES] + (scratch[sc.SAVED_COUNT] << sc.BLOCK_LOG),
                scratch[sc.MEMORY] + (block << sc.BLOCK_LOG),
                1 << (sc.BLOCK_LOG - 3),
            )
            scratch[sc.SAVED_COUNT] += 1
        block += 1
    return 0


def store_in_code_region(scratch: Integers, address: int, size: int) -> int:
    """Forget decoded words that a store replaces; 1 if the running code is among them, or if stores into code
    are watched and this is one.
    """
    if address < scratch[sc.CODE_HIGH] and address + size > scratch[sc.CODE_LOW]:
        return 1
    marks = marks_at(scratch[sc.DECODED])
    first, end = (address - TILE_BASE) >> 2, (min(address + size, REGION1_BASE) - TILE_BASE + 3) >> 2
    if scratch[sc.REWRITABLE] == 0:
        for index in range(first, end):
            marks[index] = 0
        return 0
    allowed = bytes_at(scratch[sc.REWRITABLE])
    for index in range(first, end):
        if allowed[index]:
            marks[index] = 0
        elif is_fetched(marks[index]):
            return 1
        else:
            marks[index] = WRITTEN_OVER
    return 0


def prepare_store(scratch: Integers, address: int, size: int) -> int:
    """A worker is about to store to these bytes of memory; 1 if that needs the other engine."""
    if address < REGION1_BASE and store_in_code_region(scratch, address, size):
        return 1
    return save_blocks(scratch, address - TILE_BASE, size)


def meet(first: int, step: int, second: int, step_too: int, count: int) -> int:
    """1 if two accesses of one instruction, repeated `count` times, are in one memory element some time."""
    for index in range(count):
        one = (first + index * step) & ADDRESS
        other = (second + index * step_too) & ADDRESS
        if (one ^ other) & (ELEMENT_BITS if one < REGION1_BASE else INTERLEAVED_BITS) == 0:
            return 1
    return 0


# ---- control registers and flags


def note_flags(state: Integers, context: int, flags: int) -> int:
    """Sticky flags; 1 if the instruction is an exception or has no known meaning."""
    if flags & 8:
        return 1
    state[csr_index(context, FP_STS)] |= flags & 7
    return 1 if flags & state[csr_index(context, FP_CTL)] & 7 else 0


def narrow(state: Integers, context: int, w0: int, w1: int, w2: int, w3: int) -> tuple[int, int]:
    """Four singles rounded to halves, to nearest; the halves in one integer, and 1 after an exception."""
    a = round_half(single_value(w0), control_of(state, context), 0)
    b = round_half(single_value(w1), control_of(state, context), 0)
    c = round_half(single_value(w2), control_of(state, context), 0)
    d = round_half(single_value(w3), control_of(state, context), 0)
    fault = note_flags(state, context, (a | b | c | d) >> 32)
    low = (a & 0xFFFF) | ((b & 0xFFFF) << 16)
    return low | ((c & 0xFFFF) << 32) | ((d & 0xFFFF) << 48), fault


def control_of(state: Integers, context: int) -> int:
    return int(state[csr_index(context, FP_CTL)])


# ---- launches


def move_integers(here: int, kept: int, count: int, back: int) -> int:
    """Copy from `here`, or `back` to it."""
    if back:
        return copy_integers(here, kept, count)
    return copy_integers(kept, here, count)


def move_registers(state: Integers, scratch: Integers, back: int) -> int:
    """What workers may change beside memory: to the backup, or `back` from there."""
    here, kept = address_of(state), scratch[sc.BACKUP]
    registers = at.REGISTER_STRIDE * (at.CONTEXTS - 1)
    move_integers(here + 8 * at.REGISTER_STRIDE, kept, registers, back)
    kept += 8 * registers
    move_integers(state[at.ACCUMULATORS], kept, 96, back)
    kept += 8 * 96
    for context in range(1, at.CONTEXTS):
        move_integers(here + 8 * csr_index(context, 0), kept, 8, back)
        move_integers(here + 8 * csr_index(context, 256), kept + 64, 16, back)
        kept += 192
    return 0


def undo(state: Integers, scratch: Integers) -> int:
    """Everything as before the launch."""
    move_registers(state, scratch, 1)
    blocks = integers_at(scratch[sc.SAVED_LIST])
    for item in range(scratch[sc.SAVED_COUNT]):
        copy_integers(
            state[at.MEMORY] + (blocks[item] << sc.BLOCK_LOG),
            scratch[sc.COPIES] + (item << sc.BLOCK_LOG),
            1 << (sc.BLOCK_LOG - 3),
        )
    return 0


def forget_saved(scratch: Integers) -> int:
    """The launch is settled: no block is saved any more."""
    saved = bytes_at(scratch[sc.SAVED])
    blocks = integers_at(scratch[sc.SAVED_LIST])
    for item in range(scratch[sc.SAVED_COUNT]):
        saved[blocks[item]] = 0
    scratch[sc.SAVED_COUNT] = 0
    return 0


def same_code(state: Integers, record: Integers) -> int:
    """1 if the tile's code is the code this translation was made from."""
    segments = integers_at(record[sc.SEGMENTS])
    for item in range(record[sc.SEGMENT_COUNT]):
        have = words_at(state[at.MEMORY] + 4 * segments[sc.SEGMENT * item])
        want = words_at(segments[sc.SEGMENT * item + 2])
        difference = 0
        for index in range(segments[sc.SEGMENT * item + 1]):
            difference |= have[index] ^ want[index]
        if difference:
            return 0
    return 1


def fetch(state: Integers, record: Integers) -> int:
    """Note that the code of a translation runs; 1 if the program has stored over it."""
    segments = integers_at(record[sc.SEGMENTS])
    for item in range(record[sc.SEGMENT_COUNT]):
        marks = marks_at(state[at.DECODED] + 2 * segments[sc.SEGMENT * item])
        for index in range(segments[sc.SEGMENT * item + 1]):
            if marks[index] == WRITTEN_OVER:
                return 1
            if marks[index] == 0:
                marks[index] = FETCHED
    return 0


def find_translation(state: Integers, scratch: Integers, context: int) -> int:
    """Number of the translation for a worker at its entry, 0 if there is none."""
    entry = state[at.PCS + context]
    flavour = sc.GENERAL if state[csr_index(context, FP_CTL)] & GENERAL_BITS else sc.FAST
    number = integers_at(scratch[sc.HEADS])[(entry - TILE_BASE) >> 2]
    while number:
        record = integers_at(scratch[sc.RECORDS] + 8 * sc.RECORD * number)
        # General code serves every setting, and is made where other code would not do.
        if (flavour != sc.GENERAL or record[sc.FLAVOUR] == sc.GENERAL) and same_code(state, record):
            if record[sc.SPECIAL] == 0:
                return int(number)
            if flavour == sc.FAST:
                flavour = sc.PLAIN
        number = record[sc.NEXT]
    scratch[sc.MISSING] = entry
    scratch[sc.TARGET] = 0
    scratch[sc.MISSING_FLAVOUR] = flavour
    return 0


def find_each(state: Integers, scratch: Integers) -> int:
    """Find the code of every waiting worker; 0, 1 if one cannot run natively, 2 if code is missing."""
    previous_entry = -1
    number = 0
    scratch[sc.CODE_LOW] = TILE_END
    scratch[sc.CODE_HIGH] = 0
    for index in range(WORKER_SLOTS):
        scratch[sc.OUTCOMES + 4 * index] = 0
        scratch[sc.NUMBERS + index] = 0
    for slot in range(WORKER_SLOTS):
        # A slot is the worker's own from its launch to its exit.
        context = state[at.OWNERS + slot]
        if context:
            if state[at.STARTS + context] != state[at.FIRSTS + context]:
                scratch[sc.REASON] = why.RESTARTED
                return 1
            if state[at.CHECKS] & at.CHECK_RACES and state[at.LAST_TOUCH] == state[at.EPOCH]:
                scratch[sc.REASON] = why.TOUCHED
                return 1
            if state[at.PCS + context] != previous_entry:
                number = find_translation(state, scratch, context)
                previous_entry = state[at.PCS + context]
            if number == 0:
                return 2
            record = integers_at(scratch[sc.RECORDS] + 8 * sc.RECORD * number)
            if state[at.CHECKS] & at.CHECK_CODE and fetch(state, record):
                scratch[sc.REASON] = why.REWRITTEN
                return 1
            if record[sc.FUNCTION] == 0:
                scratch[sc.REASON] = why.TOO_LARGE
                return 1
            if record[sc.FAILURES] >= GIVE_UP and record[sc.FAILURES] > record[sc.SUCCESSES]:
                scratch[sc.REASON] = why.GIVEN_UP
                return 1
            scratch[sc.NUMBERS + context - 1] = number
            # No worker may store into the code of any.
            scratch[sc.CODE_LOW] = min(scratch[sc.CODE_LOW], record[sc.LOW])
            scratch[sc.CODE_HIGH] = max(scratch[sc.CODE_HIGH], record[sc.HIGH])
    return 0


def run_each(state: Integers, scratch: Integers) -> int:
    """Run every waiting worker, whose code is known, to its exit; 1 if one could not be carried through, 2 if
    code is missing.
    """
    if state[at.WAITING] == 0:
        # Nor into what the supervisor issues meanwhile.
        scratch[sc.CODE_LOW] = min(scratch[sc.CODE_LOW], state[at.PCS])
        scratch[sc.CODE_HIGH] = max(scratch[sc.CODE_HIGH], state[at.PCS] + 4 * LOOK_AHEAD)
    # What the supervisor issues meanwhile counts too.
    budget = state[at.BUDGET] - (0 if state[at.WAITING] else LOOK_AHEAD)
    for context in range(1, at.CONTEXTS):
        number = scratch[sc.NUMBERS + context - 1]
        if number:
            record = integers_at(scratch[sc.RECORDS] + 8 * sc.RECORD * number)
            scratch[sc.WORKER] = context - 1
            scratch[sc.LIMIT] = budget + scratch[sc.OVERRUN]
            outcome = call_worker(record[sc.FUNCTION], state, context, scratch)
            if outcome:
                record[sc.FAILURES] += 1
                if outcome == 3:
                    # Where the branch goes is code that nothing known leads to: translate again with it.
                    record[sc.FAILURES] -= 1
                    scratch[sc.MISSING] = state[at.PCS + context]
                    scratch[sc.MISSING_FLAVOUR] = record[sc.FLAVOUR]
                    return 2
                if outcome == 2:
                    record[sc.SPECIAL] = 1
                    scratch[sc.REASON] = why.SPECIAL
                return 1
            scratch[sc.USED] = number
            budget -= scratch[sc.ISSUES]
            if budget + scratch[sc.OVERRUN] < 0:
                scratch[sc.REASON] = why.BUDGET
                return 1
            for index in range(4):
                scratch[sc.OUTCOMES + 4 * (context - 1) + index] = scratch[sc.SLOTS + index]
    return 0


def settle(state: Integers, scratch: Integers) -> int:
    """Leave the workers' exits to the engine, which makes them happen in their order."""
    for context in range(1, at.CONTEXTS):
        place = sc.OUTCOMES + 4 * (context - 1)
        slots = scratch[place]
        if slots:
            exits = at.EXITS + at.EXIT_FIELDS * context
            state[exits] = state[at.STARTS + context] + WORKER_SLOTS * (slots - 1) + 1
            state[exits + 1] = scratch[place + 1]
            state[exits + 2] = scratch[place + 2]
            state[exits + 3] = scratch[place + 3]
            state[at.PENDING] += 1
            scratch[sc.NATIVE_ISSUES] += scratch[place + 1]
    return 0


def only_waits(state: Integers) -> bool:
    """Whether the supervisor, before its next `sync 2`, only computes in its registers and branches.

    Such instructions and running workers do not notice each other, so the workers may run first. A loop
    without `sync 2` uses up the look-ahead.
    """
    table, words = tables(state), memory_words(state)
    pc = state[at.PCS]
    other = 0
    left = LOOK_AHEAD
    while left:
        if pc < TILE_BASE or pc >= REGION1_BASE or pc & 3:
            return False
        word = word_at(words, (pc - TILE_BASE) >> 2)
        form = find_form(table, word)
        if form <= 0:
            return False
        info = table[ROW * form]
        group = (info >> INFO_GROUP) & 15
        function = info & 1023
        following = pc + 4
        if group == GROUP_CONTROL and function == SYNC and word & 15 == 2:
            if other == 0:
                return True
            following = other
            other = 0
        elif group == GROUP_CONTROL and function <= BRNZDEC and function != BR:
            target = immediate_of(word, table[ROW * form + IMMEDIATE])
            if function == BRI:
                following = target
            elif other == 0:
                other = target
            elif other != target:
                return False
        elif group != GROUP_WORDS:
            return False
        if following == other:
            other = 0
        pc = following
        left -= 1
    return False


def about_to_start(state: Integers) -> bool:
    """Whether workers have been launched, none has issued, and the first is about to."""
    soon = False
    for slot in range(WORKER_SLOTS):
        context = state[at.OWNERS + slot]
        if context:
            if state[at.STARTS + context] != state[at.FIRSTS + context]:
                return False
            soon = soon or state[at.CLOCK] + SUPERVISOR_LATENCY >= state[at.STARTS + context]
    return soon


def refuse(state: Integers, scratch: Integers, outcome: int) -> int:
    """Leave a launch to the other engine; 1 to ask for a translation, if that is what is missing."""
    if outcome == 2:
        state[at.STOP] = STOP_ASSISTANCE
        state[at.STOP_DETAIL] = scratch[sc.MISSING]
        state[at.STOP_ADDRESS] = scratch[sc.MISSING_FLAVOUR]
        state[at.STOP_OTHER] = scratch[sc.TARGET]
        return 1
    scratch[sc.RACES if scratch[sc.REASON] == why.RACE else sc.UNDONE] += 1
    scratch[sc.REASON_COUNTS + scratch[sc.REASON]] += 1
    if scratch[sc.REASON] != why.SPECIAL:
        state[at.REFUSED] = state[at.EPOCH]
    return 0


def meets_supervisor(state: Integers, scratch: Integers) -> int:
    """Not zero if workers and what the supervisor has touched since it launched them share a word that one of
    them stored.
    """
    found = 0
    if state[at.TOUCHES] == state[at.EPOCH]:
        for index in range(state[at.TOUCHES + 1]):
            place = at.TOUCHES + 2 + at.TOUCH_FIELDS * index
            low, high = (state[place] - TILE_BASE) & -4, (state[place + 1] - TILE_BASE + 3) & -4
            found |= meets_worker(scratch, low, high, state[place + 2])
    return found


def checked(state: Integers, scratch: Integers) -> int:
    """Look at what workers have touched: 1 if only the other engine can judge it, as where two met."""
    if races(scratch):
        scratch[sc.REASON] = why.RACE
        integers_at(scratch[sc.RECORDS] + 8 * sc.RECORD * scratch[sc.USED])[sc.FAILURES] += 1
        return 1
    if state[at.CHECKS] & at.CHECK_RACES and meets_supervisor(state, scratch):
        scratch[sc.REASON] = why.TOUCHED
        return 1
    if state[at.CHECKS] & at.CHECK_POISON:
        if loads_unwritten(state, scratch):
            scratch[sc.REASON] = why.UNWRITTEN
            return 1
        note_written(state, scratch)
    return 0


def run_launch(state: Integers, scratch: Integers) -> int:
    """Run the workers, which have been launched. 1 to ask for a translation, 0 otherwise."""
    scratch[sc.MEMORY] = state[at.MEMORY]
    scratch[sc.DECODED] = state[at.DECODED]
    scratch[sc.REWRITABLE] = state[at.REWRITABLE] if state[at.CHECKS] & at.CHECK_CODE else 0
    outcome = find_each(state, scratch)
    if outcome:
        return refuse(state, scratch, outcome)
    move_registers(state, scratch, 0)
    outcome = run_each(state, scratch)
    if outcome == 0:
        outcome = checked(state, scratch)
    forget_records(scratch)
    if outcome == 0:
        forget_saved(scratch)
        settle(state, scratch)
        scratch[sc.PHASES] += 1
        integers_at(scratch[sc.RECORDS] + 8 * sc.RECORD * scratch[sc.USED])[sc.SUCCESSES] += 1
        return 0
    undo(state, scratch)
    forget_saved(scratch)
    return refuse(state, scratch, outcome)


# ---- the supervisor's weight loads


def weight_loads(state: Integers, scratch: Integers, pattern: int, most: int) -> int:
    """How many of one weight load follow at the supervisor's program counter, `most` at most.

    `pattern`: place of its pattern in the scratch.
    """
    words = memory_words(state)
    first = (state[at.PCS] - TILE_BASE) >> 2
    count = 0
    while count < most and word_at(words, first + count) & scratch[pattern + 1] == scratch[pattern]:
        count += 1
    return count


def load_weights_run(state: Integers, scratch: Integers, pattern: int, entries: int) -> int:
    """Execute the `ld64putcs` or `ld128putcs`, of 1 or 2 entries, at the supervisor's program counter.

    Up to the first that is an exception; returns how many.
    """
    words = memory_words(state)
    address = state[csr_index(0, CCCSLOAD)]
    size = 8 * entries
    if address < TILE_BASE or address & (size - 1) or (entries == 2 and address < REGION1_BASE):
        return 0
    most = min(state[at.BUDGET], (REGION1_BASE - state[at.PCS]) >> 2)
    most = min(most, (TILE_END - address) >> (2 + entries))
    found = weight_loads(state, scratch, pattern, most)
    if state[at.CHECKS] & at.CHECK_POISON:
        offset = address - TILE_BASE
        if unwritten(bytes_at(state[at.SHADOW]), offset, offset + found * size):
            return 0
    code, data = (state[at.PCS] - TILE_BASE) >> 2, (address - TILE_BASE) >> 2
    raw = integers_at(state[at.WEIGHTS])
    count = 0
    while count < found:
        first = word_at(words, code + count) & 0xFF
        if first + entries > 64:
            break
        raw[first] = word_at(words, data) | (word_at(words, data + 1) << 32)
        if entries == 2:
            raw[first + 1] = word_at(words, data + 2) | (word_at(words, data + 3) << 32)
        data += 2 * entries
        count += 1
    if count * entries >= MANY_ENTRIES:
        decode_all_weights(state)
    else:
        for index in range(code, code + count):
            first = word_at(words, index) & 0xFF
            for entry in range(first, first + entries):
                decode_weight(state, entry)
    if count:
        state[at.CLOCK] = max(state[at.CLOCK], state[at.CSR_READY + CCCSLOAD]) + count
        state[csr_index(0, CCCSLOAD)] = (address + count * size) & WORD
        state[at.COUNTS] += count
        state[at.BUDGET] -= count
        state[at.PCS] += 4 * count
    return count


def load_weights(state: Integers, scratch: Integers) -> int:
    """Execute the weight loads at the supervisor's program counter, if there are any."""
    pc = state[at.PCS]
    if pc < TILE_BASE or pc & 3 or state[at.WINDOW] or state[at.ACTIVE] or state[at.WATCHING]:
        return 0
    again = 1
    while again:
        again = load_weights_run(state, scratch, sc.LD128PUTCS, 2)
        again += load_weights_run(state, scratch, sc.LD64PUTCS, 1)
    return 0


def assist(state: Integers) -> int:
    """Called before each step of the supervisor while workers have been launched, and where it loads weights:
    do what can be done natively; 1 to ask for a translation.

    Checks that depend on the instruction that makes an access need the other engine.
    """
    if state[at.CHECKS] & at.WATCHED_SINGLY:
        return 0
    scratch = integers_at(state[at.ASSISTANCE + 1])
    if state[at.ACTIVE]:
        if state[at.REFUSED] == state[at.EPOCH]:
            return 0
        if state[at.WAITING] or (about_to_start(state) and only_waits(state)):
            return run_launch(state, scratch)
        return 0
    if state[at.WAITING]:
        return 0
    return load_weights(state, scratch)
