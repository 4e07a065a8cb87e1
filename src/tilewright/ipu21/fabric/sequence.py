"""From timed items to the sequence of exchange operations of a row (compiled inner loop).

An operation is one instruction: it spans `events` events, may send one word at each of them, and may write
the mux, the pointer or both. Which instruction that is follows from the columns (see `encoding`):

* IDLE, nothing sent: the writes take effect at its last event's end;
* START, the first words of a message: no writes;
* RUN, further words of a message, or nothing if its direction is 0: the writes take effect one event after
  its start.

An operation that writes both takes two words and must begin at an even word of its row. When it would not,
an earlier operation is cut in two; if all of them are one event long, an earlier single write also rewrites
the other register with the value that it already holds (assumed harmless: no published row does it; it
only happens between messages of one to four words). That always succeeds in a row of a phase, where a write
of the mux comes at least 52 events before any combined write; only rows made up otherwise can be refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...native.loops import compiled
from ..machine.topology import MUX_NEUTRAL
from .items import CONTINUE, FORMAT, MUX, MUXPAIR, POINTER

IDLE, START, RUN = 0, 1, 2
KIND, EVENTS, ADDRESS, CONTROL, MUX_WRITE, POINTER_WRITE, EFFECT = range(7)
"""Columns of an operation. MUX_WRITE is the mux number | select << 13, POINTER_WRITE the word address |
select << 18 (select 1: the pair's mux, the format); -1 writes nothing. EFFECT is the event at
which a write of this operation takes effect."""
OPERATION_COLUMNS = 7

MUX_BITS, POINTER_BITS = 13, 18
START_REACH, RUN_REACH, WRITE_RUN_REACH = 64, 4096, 64
IDLE_REACH, IDLE_MUX_REACH, IDLE_POINTER_REACH = 1 << 19, 1 << 12, 1 << 7

SEND_EVENT, SEND_WORDS, SEND_ADDRESS, SEND_CONTROL = range(4)
CONTROL_EVENT, CONTROL_KIND, CONTROL_VALUE, CONTROL_WORDS = range(4)
_NEVER = 1 << 60

SEND_OVERLAP, CONTROL_NEAR_START, CONTROL_TWICE, CONTROL_EARLY, PARITY, ENDS_EARLY, PAIR_SELECT = range(1, 8)
FAULTS = {
    SEND_OVERLAP: "a send begins before the previous one has ended",
    CONTROL_NEAR_START: "a mux or pointer write falls on the first two events of a send",
    CONTROL_TWICE: "one register is written twice at the same event",
    CONTROL_EARLY: "a mux or pointer write comes before event 1",
    PARITY: "a combined mux and pointer write cannot be put on an even word",
    ENDS_EARLY: "the row ends before its last item",
    PAIR_SELECT: "a 64-bit mux or format write cannot be combined with another write",
}


def _emit_python(
    ops: NDArray[np.int64],
    at: int,
    kind: int,
    events: int,
    address: int,
    control: int,
    mux: int,
    pointer: int,
    effect: int,
) -> int:
    ops[at, 0] = kind
    ops[at, 1] = events
    ops[at, 2] = address
    ops[at, 3] = control
    ops[at, 4] = mux
    ops[at, 5] = pointer
    ops[at, 6] = effect
    return at + 1


_emit = compiled(_emit_python, "i", "miiiiiiii")


def _held_python(
    controls: NDArray[np.int64], first: int, stop: int, event: int, pointer: int
) -> tuple[int, int]:
    """What the mux and the pointer hold at `event` by the items `controls[first:stop]` (-1 not known).
    Before any pointer write it may be anything: `pointer`."""
    mux, held = -1, -1
    for j in range(stop - 1, first - 1, -1):
        kind, since = controls[j, 1], controls[j, 0]
        if since <= event and mux < 0 and kind == MUX:
            mux = controls[j, 2]
        if since <= event and held < 0 and kind in (POINTER, CONTINUE):
            if since < event and controls[j, 3] == 0:
                return -1, -1
            moved = controls[j, 3]
            moved = min(event - since, moved) if moved >= 0 else 2 * min(event - since, -moved)
            held = (controls[j, 2] >> 2) + moved
        if mux >= 0 and held >= 0:
            break
    return mux if mux >= 0 else MUX_NEUTRAL, held if held >= 0 else pointer


_held = compiled(_held_python, "2", "miiii")


def _upgrade_python(
    ops: NDArray[np.int64],
    begin: int,
    end: int,
    controls: NDArray[np.int64],
    first: int,
    stop: int,
    pointer: int,
) -> bool:
    """Make one operation of `ops[begin:end]`, at an even word, write both registers. False if none can."""
    for at in range(begin, end, 2):
        if ops[at, 0] == START or ops[at, 4] >= 1 << MUX_BITS or ops[at, 5] >= 1 << POINTER_BITS:
            continue
        mux, held = _held(controls, first, stop, ops[at, 6], pointer)
        if mux >= 0:
            ops[at, 4] = mux
            ops[at, 5] = held
            return True
    return False


_upgrade = compiled(_upgrade_python, "b", "miimiii")


def _split_python(ops: NDArray[np.int64], at: int, count: int) -> None:
    """Cut operation `at` of `ops[:count]` (two events or more) in two, moving the later ones up by one."""
    for j in range(count, at, -1):
        for column in range(7):
            ops[j, column] = ops[j - 1, column]
    ops[at, 1] -= 1
    ops[at + 1, 1] = 1
    if ops[at, 0] == IDLE:
        plain = at
        ops[at, 6] -= 1
    else:
        plain = at + 1
        ops[plain, 0] = RUN if ops[at, 3] & 3 else IDLE
        ops[plain, 2] = ops[at, 2] + (8 if ops[at, 3] & 4 else 4) * ops[at, 1]
        ops[plain, 6] = ops[at, 6] + ops[at, 1]
    ops[plain, 4] = -1
    ops[plain, 5] = -1


_split = compiled(_split_python, "-", "mii")


def _align_python(
    ops: NDArray[np.int64],
    run: int,
    count: int,
    controls: NDArray[np.int64],
    first: int,
    stop: int,
    pointer: int,
) -> int:
    """Make `ops[:count]` end at an even word; `run` follows the last combined write. New count, or -1."""
    if (count - run) % 2 == 0:
        return count
    for at in range(count - 1, max(run - 2, -1), -1):
        if ops[at, 1] >= 2 and (at >= run or ops[at, 0] == RUN):
            _split(ops, at, count)
            return count + 1
        if at < run:
            break
    # An upgraded write becomes the last combined one: nothing else between it and the end is combined, and
    # an even number of words is left there.
    if _upgrade(ops, run, count, controls, first, stop, pointer):
        return count
    return -1


_align = compiled(_align_python, "i", "miimiii")


def _gather_python(controls: NDArray[np.int64], j: int, stop: int) -> tuple[int, int, int]:
    """Index after the writes at event controls[j, 0], the mux write and the pointer write there (-1 none,
    -2 twice)."""
    event = controls[j, 0]
    mux, pointer = -1, -1
    while j < stop and controls[j, 0] == event:
        kind, value = controls[j, 1], controls[j, 2]
        if kind in (MUX, MUXPAIR):
            select = 1 << MUX_BITS if kind == MUXPAIR else 0
            mux = value | select if mux == -1 else -2
        elif kind == POINTER:
            pointer = value >> 2 if pointer == -1 else -2
        elif kind == FORMAT:
            pointer = value | 1 << POINTER_BITS if pointer == -1 else -2
        j += 1
    return j, mux, pointer


_gather = compiled(_gather_python, "3", "mii")


def _next_write_python(controls: NDArray[np.int64], j: int, stop: int) -> int:
    """Index of the first item at or after `j` whose event has a write (`stop` if none)."""
    while j < stop and controls[j, 1] > MUXPAIR:
        k = j + 1
        while k < stop and controls[k, 0] == controls[j, 0]:
            if controls[k, 1] <= MUXPAIR:
                return j
            k += 1
        j = k
    return j


_next_write = compiled(_next_write_python, "i", "mii")


def _is_pair_python(controls: NDArray[np.int64], j: int, stop: int) -> bool:
    """True if the writes at event controls[j, 0] are two."""
    _, mux, pointer = _gather(controls, j, stop)
    return bool(mux >= 0 and pointer >= 0)


_is_pair = compiled(_is_pair_python, "b", "mii")


def _sequence_row_python(
    sends: NDArray[np.int64],
    s: int,
    s_stop: int,
    controls: NDArray[np.int64],
    c: int,
    c_stop: int,
    end: int,
    ops: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Operations of one row into `ops` from 0. Returns (count, fault, event of the fault)."""
    first = c
    now, last, count, run = 0, -1, 0, 0
    c = _next_write(controls, c, c_stop)
    while s < s_stop or c < c_stop:
        event = controls[c, 0] if c < c_stop else _NEVER
        start = sends[s, 0] if s < s_stop else _NEVER
        if start < event:
            if start < now or start < 0:
                return count, SEND_OVERLAP, start
            if event == start + 1 or last == start:
                return count, CONTROL_NEAR_START, last if last == start else event
            while now < start:
                step = min(start - now, IDLE_REACH)
                count = _emit(ops, count, IDLE, step, 0, 0, -1, -1, now + step)
                now += step
            stop = start + sends[s, 1]
            address, control = sends[s, 2], sends[s, 3]
            size = 8 if control & 4 else 4
            kind, mux, pointer, reach = START, -1, -1, START_REACH
            while now < stop:
                halt = min(stop, event - 1)
                while now < halt:
                    step = min(halt - now, reach)
                    place = address + size * (now - start)
                    count = _emit(ops, count, kind, step, place, control, mux, pointer, now + 1)
                    if mux >= 0 and pointer >= 0:
                        run = count
                    now += step
                    kind, mux, pointer, reach = RUN, -1, -1, RUN_REACH
                if now < stop:
                    last = event
                    c, mux, pointer = _gather(controls, c, c_stop)
                    if mux == -2 or pointer == -2:
                        return count, CONTROL_TWICE, event
                    reach = WRITE_RUN_REACH
                    if mux >= 0 and pointer >= 0:
                        if mux >= 1 << MUX_BITS or pointer >= 1 << POINTER_BITS:
                            return count, PAIR_SELECT, event
                        count = _align(ops, run, count, controls, first, c, pointer)
                        if count < 0:
                            return 0, PARITY, event
                    c = _next_write(controls, c, c_stop)
                    event = controls[c, 0] if c < c_stop else _NEVER
            s += 1
        else:
            if start == event:
                return count, CONTROL_NEAR_START, event
            if event <= now:
                return count, CONTROL_EARLY, event
            last = event
            c, mux, pointer = _gather(controls, c, c_stop)
            if mux == -2 or pointer == -2:
                return count, CONTROL_TWICE, event
            both = mux >= 0 and pointer >= 0
            reach = 1 if both else (IDLE_MUX_REACH if mux >= 0 else IDLE_POINTER_REACH)
            while event - now > reach:
                step = min(event - now - reach, IDLE_REACH)
                count = _emit(ops, count, IDLE, step, 0, 0, -1, -1, now + step)
                now += step
            if both:
                if mux >= 1 << MUX_BITS or pointer >= 1 << POINTER_BITS:
                    return count, PAIR_SELECT, event
                count = _align(ops, run, count, controls, first, c, pointer)
                if count < 0:
                    return 0, PARITY, event
            c = _next_write(controls, c, c_stop)
            if not both:
                count = _emit(ops, count, IDLE, event - now, 0, 0, mux, pointer, event)
                now = event
                continue
            # A combined write sends nothing here, and may last until the next thing happens.
            following = controls[c, 0] if c < c_stop else _NEVER
            halt = min(min(start, end), following - 1)
            if halt - now > WRITE_RUN_REACH or (halt == following - 1 and not _is_pair(controls, c, c_stop)):
                halt = event
            count = _emit(ops, count, RUN, halt - now, 0, 0, mux, pointer, event)
            run, now = count, halt
    if end < now:
        return count, ENDS_EARLY, end
    while now < end:
        step = min(end - now, IDLE_REACH)
        count = _emit(ops, count, IDLE, step, 0, 0, -1, -1, now + step)
        now += step
    return count, 0, 0


_sequence_row = compiled(_sequence_row_python, "3", "miimiiim")


def _sequence_rows_python(
    sends: NDArray[np.int64],
    send_offsets: NDArray[np.int64],
    controls: NDArray[np.int64],
    control_offsets: NDArray[np.int64],
    ends: NDArray[np.int64],
    ops: NDArray[np.int64],
    op_offsets: NDArray[np.int64],
) -> tuple[int, int, int]:
    total = 0
    op_offsets[0] = 0
    for row in range(len(ends)):
        count, fault, event = _sequence_row(
            sends,
            send_offsets[row],
            send_offsets[row + 1],
            controls,
            control_offsets[row],
            control_offsets[row + 1],
            ends[row],
            ops[total:],
        )
        if fault:
            return row, fault, event
        total += count
        op_offsets[row + 1] = total
    return -1, 0, 0


sequence_rows = compiled(_sequence_rows_python, "3", "mvmvvmv")
"""Operations of many rows.

Args:
    sends: [n, 4] (event, words, byte address, control), int64, sorted by event within each row's slice.
    controls: [m, 4] (event, kind of ROW_ITEM, value, items), likewise; `items` negative if of 64 bits.
    send_offsets, control_offsets: [rows + 1] bounds of the slices.
    ends: event at which each row ends.
    ops: [*, OPERATION_COLUMNS], to be filled; large enough (see `operation_bound`).
    op_offsets: [rows + 1], to be filled.

Returns:
    (row, fault, event) of the first fault, or (-1, 0, 0).
"""


def operation_bound(sends: NDArray[np.int64], controls: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """An upper bound of the operations that `sequence_rows` emits."""
    words = int(sends[:, SEND_WORDS].sum())
    return 8 * (len(sends) + len(controls) + len(ends)) + (words + int(ends.sum())) // RUN_REACH + 8
