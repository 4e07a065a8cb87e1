"""Where everything about one tile sits in its state array, one array of 64-bit integers.

The compiled engine sees a tile as the address of this array; the larger arrays (memory, accumulators,
weights, logs) are reached through addresses stored in it. Registers hold non-negative 32-bit values.
"""

from __future__ import annotations

CONTEXTS = 7
"""The supervisor is context 0, worker w is context w + 1."""

REGISTER_STRIDE = 32
"""Words per context: M registers at 0..15, A registers at 16..31. Context c starts at 32 * c."""
A_REGISTERS = 16

CSRS = 256
CSR_STRIDE = 288
"""Control registers of context c start at CSRS + CSR_STRIDE * c; the upper space is number 256 and above."""

MISC = CSRS + CSR_STRIDE * CONTEXTS

CLOCK = MISC + 0
"""Earliest cycle at which the supervisor can issue its next instruction."""
PCS = MISC + 8
"""Next instruction of each context."""
STARTS = MISC + 16
"""Cycle of each context's next issue turn (workers only)."""
OFFSETS = MISC + 24
"""Distance of a worker's slot from the start of its rotation."""
OWNERS = MISC + 32
"""Context that owns the issue slot (cycle mod 6), 0 for the supervisor."""
COUNTS = MISC + 40
"""Instructions issued per context; the halves of a bundle count as one."""
READY = MISC + 48
"""First cycle at which a supervisor register's value can be used, per register."""
CSR_READY = MISC + 64
"""The same per supervisor control register."""

FIRSTS = MISC + 320
"""Cycle of each worker's first issue turn since its launch; from then on its slot is lent."""

_REST = MISC + 328
ACTIVE = _REST + 0
"""Number of running workers."""
WORKER_CLOCK = _REST + 1
"""First cycle whose worker slot has not been served."""
ROTATION_END = _REST + 2
"""End of the last rotation in which a worker ran."""
WAITING = _REST + 3
"""1 while the supervisor waits in `sync 2`."""
WINDOW = _REST + 4
"""1 while an exchange window is open."""
SANS = _REST + 5
SANS_CLOCK = _REST + 6
SHARED = _REST + 7
"""1 while the tile stands for several tiles of the chip."""
BUDGET = _REST + 8
"""Instructions left before the run is judged endless."""
CHECKS = _REST + 9
WATCHING = _REST + 10
LOG_COUNT = _REST + 11
LOG_CAPACITY = _REST + 12
MARK_COUNT = _REST + 13
MARK_CAPACITY = _REST + 14
SEND_CURSOR = _REST + 15
"""Byte address (without OUTGOING_BASE) of the next item of the current send stream."""
SEND_CONTROL = _REST + 16
"""Direction bits of the current send stream."""
SPAN_COUNT = _REST + 17
SPAN_CAPACITY = _REST + 18
NOTING_SPANS = _REST + 19
"""1 while runs of workers are noted."""

EPOCH = _REST + 20
"""Number of the compute phase: launches that found no worker running."""
WORKER_STACK = _REST + 21
"""Bytes of each worker's stack, below its base register."""
STACK_LOW = _REST + 22
STACK_HIGH = _REST + 23
"""The supervisor's stack, for the stack check."""

STOP = _REST + 24
STOP_CONTEXT = _REST + 25
STOP_PC = _REST + 26
STOP_ADDRESS = _REST + 27
STOP_DETAIL = _REST + 28
STOP_CLOCK = _REST + 29
STOP_OTHER = _REST + 30
"""Of a race: the mark of the earlier access, see `engine_checks`."""

RESULT0 = _REST + 32
RESULT1 = _REST + 33
"""Result words of an aux instruction before they land."""
SLOTS = _REST + 34
"""Issue turns the last instruction takes."""
RANDOM = _REST + 36
"""Four words of the latest pseudo-random draws."""

REFUSED = _REST + 42
"""Compute phase that native code has left to this engine."""
LAST_TOUCH = _REST + 41
"""Compute phase of the latest access of a worker that the race check has marked, or of one of the supervisor
that has no room in TOUCHES."""
DOUBTS = _REST + 40
"""1 once a worker's $FP_CTL has asked to round to minus infinity, which the machine may not be able to."""

POINTERS = _REST + 48
MEMORY = POINTERS + 0
ACCUMULATORS = POINTERS + 1
WEIGHTS = POINTERS + 2
HALF_WEIGHTS = POINTERS + 3
"""256 float32, and behind them the 64 raw entries they were decoded from."""
HALF_WEIGHT_BYTES = 1024
DECODED = POINTERS + 4
SHADOW = POINTERS + 5
LOG = POINTERS + 6
MARKS = POINTERS + 7
WATCHED = POINTERS + 8
TABLES = POINTERS + 9
REWRITABLE = POINTERS + 14
ASSISTANCE = POINTERS + 12
"""Address of a native function that is called before each supervisor step, or 0; the next word is its own."""
SPANS = POINTERS + 10
ENTRIES = POINTERS + 11
"""Decoded instructions, see `engine_decode`; set for each run, because threads do not share them."""
TOUCHED = POINTERS + 15

PENDING = POINTERS + 16
"""Workers that a native function has run to their exits, which lie ahead of the present cycle."""
EXITS = POINTERS + 16
"""Of worker context c (from 1) at EXITS + EXIT_FIELDS * c: exit cycle + 1 (0: none), issues, verdict, address
behind the exit."""
EXIT_FIELDS = 4

TOUCHES = EXITS + EXIT_FIELDS * CONTEXTS
"""What the supervisor has touched in a compute phase that is watched for races: number of the phase, how many
accesses, and of each the address, where it ends, and 1 if it is a store."""
MOST_TOUCHES, TOUCH_FIELDS = 8, 3

STATE_WORDS = TOUCHES + 2 + TOUCH_FIELDS * MOST_TOUCHES

REPORT = (STOP, STOP_CLOCK, STOP_CONTEXT, STOP_PC, STOP_DETAIL)
"""What the compiled entry point reports of each tile it has run, in this order."""

NEVER = -(1 << 40)
"""A cycle before every other."""

CHECK_CONFLICT = 1
CHECK_POISON = 2
CHECK_FETCH = 4
CHECK_RACES = 8
CHECK_CODE = 16
CHECK_STACK = 32
CHECK_DISCARDS = 64
"""Bits of CHECKS: element conflicts within one instruction, unwritten bytes, sends from the fetched
element, two contexts on one word, stores into instructions, stacks, addresses of discarded loads."""
WATCHED_LOADS = CHECK_POISON | CHECK_RACES | CHECK_DISCARDS
WATCHED_STORES = CHECK_RACES | CHECK_CODE | CHECK_STACK
"""Checks that look at every load and at every store."""
WATCHED_SINGLY = CHECK_STACK | CHECK_DISCARDS
"""Those that depend on the instruction that makes the access."""

LOG_FIELDS = 6
"""Integers per exchange log entry: kind, clock, count, value, control, program counter."""
MARK_FIELDS = 2
"""Integers per mark: step, clock."""
SPAN_FIELDS = 3
"""Integers per worker span: context, first issue turn, cycle after the last."""
SPAN_ROOM = 6
"""Most spans that end between two looks at the room left: one per worker."""
