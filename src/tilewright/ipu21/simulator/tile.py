"""One simulated tile: supervisor, six workers, memory, and the log of what it tells the fabric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UsageError
from ..isa.decode import InvalidInstruction, decode
from ..isa.forms import forms_named
from ..isa.meaning.address import ADDRESS
from ..isa.text import format_instruction
from ..machine.memory import IMAGE_BASE, REGION1_BASE, TILE_BASE, TILE_BYTES, TILE_END
from . import state as at
from .checks import Checks
from .engine_checks import MARKS
from .engine_registers import CTXT_STS, EXCHANGE_CTL, SSR, TILE_ID, WSR, context_status
from .exchange_log import EXCHANGE_ITEM, items_of
from .stops import (
    CAUSES,
    DEBUG_CAUSES,
    STOP_LOG_FULL,
    ExceptionKind,
    Stop,
    StopKind,
    context_name,
    describe,
)

MARK = np.dtype([("step", "i8"), ("clock", "i8")])
"""One taken mark: the step given to `set_watch` and the issue cycle of the watched instruction."""
SPAN = np.dtype([("context", "i8"), ("begin", "i8"), ("end", "i8")])
"""A worker (context 1..6) ran: from the cycle of its first issue turn to the one after its last."""

OUTSIDE = 7
"""Instead of a context: whoever writes a tile's memory without being one of its contexts."""


def outside_mark(epoch: Any) -> Any:
    """What the race check notes of a word that came from outside in a compute phase, or of each phase."""
    return epoch << 24 | OUTSIDE << 21


_NO_ITEMS, _NO_MARKS = np.zeros(0, EXCHANGE_ITEM), np.zeros(0, MARK)
CALL = forms_named("call")[0]
_REGION0_WORDS = (REGION1_BASE - TILE_BASE) // 4
_PAGE = 4096
_FIRST_CAPACITY = 256
EXCHANGE_CTL_RESET = 7
"""EXCHANGE_CTL as the loader leaves it (known)."""


class Tile:
    """One tile, or one class of identical tiles, at one point of its life.

    Starts as the loader leaves a tile: all registers zero but TILE_ID, the worker numbers and EXCHANGE_CTL;
    the program counter is at the image's first word.

    Attributes:
        memory: uint8 [TILE_BYTES], index = address - TILE_BASE. Write through `write` or `load`, or call
            `invalidate` afterwards.
        m: uint32 [7, 16], row 0 the supervisor, rows 1..6 worker 0..5. A view: writing it sets registers.
        a: uint32 [6, 16], the workers' A registers. A view.
        accumulators: float32 [6, 32].
        weights: uint64 [64], entry 4 * unit + n.
        checks: the optional checks in force.
        symbols: names of code addresses, for error texts.
    """

    def __init__(self, physical: int, *, shared: bool = False, checks: Checks | None = None) -> None:
        self.checks = Checks() if checks is None else checks
        self.memory: NDArray[np.uint8] = np.zeros(TILE_BYTES, dtype=np.uint8)
        self.accumulators: NDArray[np.float32] = np.zeros((6, 32), dtype=np.float32)
        self.weights: NDArray[np.uint64] = np.zeros(64, dtype=np.uint64)
        self._words: NDArray[np.uint32] = self.memory.view(np.uint32)
        self._state: NDArray[np.int64] = np.zeros(at.STATE_WORDS, dtype=np.int64)
        self._cells = self._state.data
        """The same, for single reads and writes: several times as fast as through NumPy."""
        self._address = int(self._state.ctypes.data)
        # 256 float32, whose vectors should not straddle cache lines, and 64 words.
        room = np.zeros(128 + 64 + 8, dtype=np.int64)
        self._half_weights: NDArray[np.int64] = room[-(room.ctypes.data >> 3) % 8 :][:192]
        self._decoded: NDArray[np.int16] = np.zeros(_REGION0_WORDS, dtype=np.int16)
        shadow_bytes = TILE_BYTES // 8 if self.checks.poison else 1
        self._rewritable: NDArray[np.uint8] = np.zeros(
            _REGION0_WORDS if self.checks.code else 1, dtype=np.uint8
        )
        self._shadow: NDArray[np.uint8] = np.zeros(shadow_bytes, dtype=np.uint8)
        marks = MARKS * TILE_BYTES // 4 if self.checks.races else 1
        self._touched: NDArray[np.int64] = np.zeros(marks, dtype=np.int64)
        self.symbols: Mapping[str, int] = {}
        self._loaded: list[tuple[int, int]] = []
        self._log: NDArray[np.int64] = np.zeros((_FIRST_CAPACITY, at.LOG_FIELDS), dtype=np.int64)
        self._marks: NDArray[np.int64] = np.zeros((_FIRST_CAPACITY, at.MARK_FIELDS), dtype=np.int64)
        self._spans: NDArray[np.int64] = np.zeros((_FIRST_CAPACITY, at.SPAN_FIELDS), dtype=np.int64)
        self._watched: NDArray[np.uint32] = np.zeros(1, dtype=np.uint32)
        self._reset(physical)
        self.shared = shared
        self._bind()

    def _reset(self, physical: int) -> None:
        state = self._state
        state[at.CHECKS] = self.checks.bits()
        state[at.WORKER_STACK] = self.checks.worker_stack
        state[at.STACK_LOW], state[at.STACK_HIGH] = self.checks.supervisor_stack
        state[at.PCS] = IMAGE_BASE
        state[at.ROTATION_END] = at.NEVER
        state[at.READY : at.READY + 16] = at.NEVER
        state[at.CSR_READY : at.CSR_READY + 256] = at.NEVER
        state[at.STOP_ADDRESS] = -1
        state[at.CSRS + TILE_ID] = physical
        state[at.CSRS + EXCHANGE_CTL] = EXCHANGE_CTL_RESET
        for worker in range(6):
            state[at.CSRS + at.CSR_STRIDE * (worker + 1) + WSR] = worker

    def _bind(self) -> None:
        """Point the state at the arrays, and the views at the state."""
        from .instruction_tables import instruction_tables

        state = self._state
        for place, array in (
            (at.MEMORY, self.memory),
            (at.ACCUMULATORS, self.accumulators),
            (at.WEIGHTS, self.weights),
            (at.HALF_WEIGHTS, self._half_weights),
            (at.DECODED, self._decoded),
            (at.SHADOW, self._shadow),
            (at.REWRITABLE, self._rewritable),
            (at.TOUCHED, self._touched),
            (at.LOG, self._log),
            (at.MARKS, self._marks),
            (at.SPANS, self._spans),
            (at.WATCHED, self._watched),
            (at.TABLES, instruction_tables().array),
        ):
            state[place] = array.ctypes.data
        state[at.LOG_CAPACITY] = len(self._log)
        state[at.MARK_CAPACITY] = len(self._marks)
        state[at.SPAN_CAPACITY] = len(self._spans)
        words = state[: at.REGISTER_STRIDE * at.CONTEXTS].view(np.uint32)[::2].reshape(at.CONTEXTS, -1)
        self.m: NDArray[np.uint32] = words[:, :16]
        self.a: NDArray[np.uint32] = words[1:, 16:]

    # ---- identity, registers, clocks

    @property
    def physical(self) -> int:
        """Physical tile id (TILE_ID)."""
        return int(self._state[at.CSRS + TILE_ID])

    @physical.setter
    def physical(self, value: int) -> None:
        self._cells[at.CSRS + TILE_ID] = value

    @property
    def shared(self) -> bool:
        """True while this object stands for several tiles; reading TILE_ID then stops with NEEDS_IDENTITY."""
        return bool(self._state[at.SHARED])

    @shared.setter
    def shared(self, value: bool) -> None:
        self._cells[at.SHARED] = value

    @property
    def clock(self) -> int:
        """Global cycle at which the supervisor can issue its next instruction."""
        return self._cells[at.CLOCK]

    @clock.setter
    def clock(self, value: int) -> None:
        self._cells[at.CLOCK] = value

    @property
    def pc(self) -> int:
        """Address of the supervisor's next instruction."""
        return self._cells[at.PCS]

    @pc.setter
    def pc(self, value: int) -> None:
        self._cells[at.PCS] = value

    def identify(self, physical: int) -> None:
        """From now on this object stands for that tile alone."""
        self.physical = physical
        self.shared = False

    @property
    def active_workers(self) -> int:
        """Number of workers that have not exited."""
        return self._cells[at.ACTIVE]

    @property
    def sans(self) -> int:
        """Outstanding barriers announced by `sans`."""
        return self._cells[at.SANS]

    @sans.setter
    def sans(self, value: int) -> None:
        self._cells[at.SANS] = value

    @property
    def sans_clock(self) -> int:
        """Issue cycle of the latest `sans`."""
        return self._cells[at.SANS_CLOCK]

    @property
    def doubts(self) -> bool:
        """Whether a worker has asked for a rounding mode that the machine may not have (see `doubts`)."""
        return bool(self._cells[at.DOUBTS])

    @property
    def consensus(self) -> bool:
        """The workers' local consensus, $SSR.LC."""
        return bool(self.csr(SSR) & 1)

    @property
    def counters(self) -> NDArray[np.int64]:
        """Instructions issued so far per context, int64 [7]; a bundle counts once."""
        return self._state[at.COUNTS : at.COUNTS + at.CONTEXTS].copy()

    def csr(self, number: int, context: int = 0) -> int:
        """A control register; upper-space registers by number 0x100 and above.

        $CTXT_STS shows the contexts as a debugger would find them after the latest stop.
        """
        if number == CTXT_STS and context == 0:
            return self._context_status()
        if context == 0 and 0 <= number < at.CSR_STRIDE:
            return self._cells[at.CSRS + number]
        return self._cells[self._csr_place(number, context)]

    def set_csr(self, number: int, value: int, context: int = 0) -> None:
        """Set a control register without the side effects of `put`."""
        self._cells[self._csr_place(number, context)] = value & 0xFFFFFFFF

    def _context_status(self) -> int:
        """Two bits per context: 0 idle or waiting, 1 active, 2 and 3 excepted, by a debug cause or not
        (known)."""
        state = self._state
        status = context_status(state)
        number = int(state[at.STOP])
        if state[at.WAITING] or number in (StopKind.SYNC, StopKind.ENDED):
            status &= ~3
        if number == StopKind.EXCEPTION:
            cause = CAUSES[int(state[at.STOP_DETAIL])]
            status |= (2 if cause in DEBUG_CAUSES else 3) << (2 * int(state[at.STOP_CONTEXT]))
            if cause in DEBUG_CAUSES:
                status &= ~(1 << (2 * int(state[at.STOP_CONTEXT])))
        return status

    @property
    def csrs(self) -> NDArray[np.int64]:
        """The stored control registers, int64 [7, 288]: a copy. $PC, the counters and $CTXT_STS are not."""
        end = at.CSRS + at.CSR_STRIDE * at.CONTEXTS
        return self._state[at.CSRS : end].reshape(at.CONTEXTS, at.CSR_STRIDE).copy()

    @staticmethod
    def _csr_place(number: int, context: int) -> int:
        if not 0 <= number < at.CSR_STRIDE or not 0 <= context < at.CONTEXTS:
            raise UsageError(f"no control register {number:#x} in context {context}")
        return at.CSRS + at.CSR_STRIDE * context + number

    def worker_pc(self, worker: int) -> int:
        """Address of a worker's next instruction."""
        return int(self._state[at.PCS + 1 + worker])

    # ---- memory

    def load(self, address: int, data: bytes, memory_size: int) -> None:
        """Place a segment: `data`, then zeros up to `memory_size` bytes. UsageError if it leaves the tile."""
        if len(data) > memory_size:
            raise UsageError(f"segment at {address:#x}: {len(data)} bytes of data in {memory_size} of memory")
        self._span(address, memory_size)
        offset = address - TILE_BASE
        self.memory[offset : offset + len(data)] = np.frombuffer(data, dtype=np.uint8)
        if memory_size > len(data):
            self.memory[offset + len(data) : offset + memory_size] = 0
        self._forget_code(address, memory_size)
        self._note_written(address, memory_size)
        self._loaded.append((address, address + memory_size))

    def allow_rewriting(self, address: int, size: int) -> None:
        """The program may store over the code in `size` bytes of region 0."""
        self._span(address, size)
        if self.checks.code:
            self._rewritable[(address - TILE_BASE) >> 2 : (address + size - TILE_BASE + 3) >> 2] = 1

    def write(self, address: int, data: bytes | NDArray[np.uint8]) -> None:
        """Bytes that arrive from outside (fabric, host): stored, decoded code there forgotten."""
        array = np.frombuffer(data, dtype=np.uint8) if isinstance(data, bytes) else data
        self._span(address, len(array))
        self.memory[address - TILE_BASE : address - TILE_BASE + len(array)] = array
        self.invalidate(address, len(array))

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes of memory. UsageError if they are not all in the tile."""
        self._span(address, size)
        return self.memory[address - TILE_BASE : address - TILE_BASE + size].tobytes()

    def invalidate(self, address: int, size: int) -> None:
        """Bytes changed behind the engine's back: forget decoded code there and count them as written."""
        if size <= 0:
            return
        self._forget_code(address, size)
        self._note_written(address, size)
        if self.checks.races:
            begin, end = address - TILE_BASE, address - TILE_BASE + size
            mark = outside_mark(self._cells[at.EPOCH])
            self._touched[MARKS * (begin >> 2) : MARKS * ((end + 3) >> 2) : MARKS] = mark

    def _forget_code(self, address: int, size: int) -> None:
        if address < REGION1_BASE:
            begin, end = address - TILE_BASE, address - TILE_BASE + size
            self._decoded[begin >> 2 : min((end + 3) >> 2, _REGION0_WORDS)] = 0

    def _note_written(self, address: int, size: int) -> None:
        if self.checks.poison and size:
            begin, end = address - TILE_BASE, address - TILE_BASE + size
            first, last = begin >> 3, (end - 1) >> 3
            head, tail = 0xFF << (begin & 7) & 0xFF, 0xFF >> (7 - (end - 1 & 7))
            if first == last:
                self._shadow[first] |= head & tail
                return
            self._shadow[first] |= head
            self._shadow[first + 1 : last] = 0xFF
            self._shadow[last] |= tail

    def last_store(self, address: int) -> tuple[int, int] | None:
        """Who wrote the word at an address last: context (OUTSIDE: fabric, host or loader) and instruction.

        Known of tiles that watch for races, of stores while workers ran without native code, and of what came
        from outside; None for any other word.
        """
        self._span(address, 1)
        if not self.checks.races:
            return None
        mark = int(self._touched[MARKS * ((address - TILE_BASE) >> 2)])
        if not mark and any(begin <= address < end for begin, end in self._loaded):
            mark = outside_mark(0)
        return (mark >> 21 & 7, mark & (1 << 21) - 1) if mark else None

    def first_unwritten(self, address: int, size: int) -> int | None:
        """The first of these bytes that nobody has written; None if all were, or if nobody watches."""
        self._span(address, size)
        if not self.checks.poison or size == 0:
            return None
        begin = address - TILE_BASE
        bits = np.unpackbits(self._shadow[begin // 8 : (begin + size + 7) // 8], bitorder="little")
        missing = np.flatnonzero(bits[begin % 8 : begin % 8 + size] == 0)
        return address + int(missing[0]) if len(missing) else None

    def symbol_at(self, address: int) -> str | None:
        """The nearest symbol at or before an address, with the distance; None without symbols."""
        below = [(value, name) for name, value in self.symbols.items() if value <= address]
        if not below:
            return None
        value, name = max(below)
        return f"{name}+{address - value:#x}" if value != address else name

    @staticmethod
    def _span(address: int, size: int) -> None:
        if size < 0 or address < TILE_BASE or address + size > TILE_END:
            raise UsageError(f"bytes {address:#x}..{address + size:#x} are outside tile memory")

    # ---- running

    def run(self, *, budget: int | None = None) -> Stop:
        """Run to the next stop. `budget` overrides the checks' instruction budget for this call."""
        from .batch import run_tiles

        return run_tiles([self], budget=budget)[0]

    def resume(self, clock: int) -> None:
        """Go on after a SYNC stop: the next instruction issues at `clock`.

        After an internal barrier (zone 3) `clock` is event 0 of the row and an exchange window opens; a
        `call` that follows the `sync` issues six cycles before it, so that the row's first word issues at
        `clock`.
        """
        internal = self._cells[at.STOP_DETAIL] & 7 == 3
        self._cells[at.WINDOW] = internal
        self._cells[at.CLOCK] = clock
        if internal:
            with_call = self._word_is_call(self.pc)
            self._cells[at.CLOCK] = clock - 6 if with_call else clock

    def _word_is_call(self, address: int) -> bool:
        if not TILE_BASE <= address < REGION1_BASE or address & 3:
            return False
        return (int(self._words[(address - TILE_BASE) >> 2]) & CALL.mask) == CALL.fixed

    def instruction_text(self, address: int) -> str:
        """The instruction at an address in vendor syntax, or empty if there is none."""
        if address & 3 or not TILE_BASE <= address <= REGION1_BASE - 4:
            return ""
        offset = address - TILE_BASE
        words = self.memory[offset : offset + 8].view(np.uint32)
        try:
            return format_instruction(decode(int(words[0]), int(words[-1])))
        except InvalidInstruction:
            return f".word {int(words[0]):#010x}"

    def _grow(self) -> None:
        """Double whichever log has no room for another instruction."""
        state = self._state
        if state[at.LOG_COUNT] + 4 > len(self._log):
            self._log = np.concatenate([self._log, np.zeros_like(self._log)])
        if state[at.MARK_COUNT] == len(self._marks):
            self._marks = np.concatenate([self._marks, np.zeros_like(self._marks)])
        if state[at.SPAN_COUNT] + at.SPAN_ROOM > len(self._spans):
            self._spans = np.concatenate([self._spans, np.zeros_like(self._spans)])
        self._bind()

    def take_stop(self) -> Stop | None:
        """The stop the engine recorded; None if it only needed room in a log, which it now has."""
        state = self._state
        number = int(state[at.STOP])
        if number == STOP_LOG_FULL:
            self._grow()
            return None
        kind = StopKind(number)
        context, pc = int(state[at.STOP_CONTEXT]), int(state[at.STOP_PC])
        address = int(state[at.STOP_ADDRESS])
        exception = ExceptionKind(int(state[at.STOP_DETAIL])) if kind is StopKind.EXCEPTION else None
        text = ""
        if exception is not None:
            text = describe(exception, context, pc, address, self.instruction_text(pc))
        other = int(state[at.STOP_OTHER]) if exception is ExceptionKind.RACE else -1
        other_context, other_pc = (other >> 21 & 7, other & ADDRESS) if other >= 0 else (-1, -1)
        if other >= 0:
            text += f"; {context_name(other_context)} at {other_pc:#x} ({self.instruction_text(other_pc)})"
        elif kind is StopKind.UNSUPPORTED:
            text = (
                f"{context_name(context)} at {pc:#x}: no public source gives the flags of "
                f"{self._unsupported_text(pc)} a meaning"
            )
        elif kind is StopKind.BUDGET:
            text = f"still running after the instruction budget; the supervisor is at {self.pc:#x}"
        return Stop(
            kind=kind,
            clock=int(state[at.STOP_CLOCK]),
            pc=pc,
            context=context,
            zone=int(state[at.STOP_DETAIL]) if kind is StopKind.SYNC else -1,
            exception=exception,
            address=address,
            text=text,
            other_context=other_context,
            other_pc=other_pc,
        )

    def _unsupported_text(self, pc: int) -> str:
        text = self.instruction_text(pc)
        following = self.instruction_text(pc + 4)
        bundled = bool(self.memory[pc - TILE_BASE + 3] & 0x80)
        return f"{{ {text} ; {following} }}" if bundled else text

    # ---- logs

    def take_log(self) -> NDArray[np.void]:
        """Exchange items since the last call, as EXCHANGE_ITEM records in program order."""
        count = self._cells[at.LOG_COUNT]
        if not count:
            return _NO_ITEMS
        self._cells[at.LOG_COUNT] = 0
        return items_of(self._log[:count])

    def set_watch(self, addresses: NDArray[np.int64], steps: NDArray[np.int64]) -> None:
        """Note a mark (step, clock) whenever the supervisor issues the instruction at one of these
        addresses."""
        places = np.asarray(addresses, dtype=np.int64)
        if places.shape != np.shape(steps):
            raise UsageError(f"{len(places)} watched addresses for {len(steps)} steps")
        if not bool(np.all((places >= TILE_BASE) & (places < REGION1_BASE) & (places % 4 == 0))):
            raise UsageError("a watched address is not an instruction of region 0")
        self._watched = np.zeros(_REGION0_WORDS, dtype=np.uint32)
        self._watched[(places - TILE_BASE) >> 2] = np.asarray(steps).astype(np.uint32) + np.uint32(1)
        self._state[at.WATCHING] = len(places) > 0
        self._bind()

    def take_marks(self) -> NDArray[np.void]:
        """Marks since the last call, as MARK records in time order."""
        count = self._cells[at.MARK_COUNT]
        if not count:
            return _NO_MARKS
        self._cells[at.MARK_COUNT] = 0
        return np.frombuffer(self._marks[:count].tobytes(), MARK)

    def peek_marks(self) -> list[int]:
        """Steps of the marks that the next `take_marks` will return."""
        steps: list[int] = self._marks[: self._cells[at.MARK_COUNT], 0].tolist()
        return steps

    def take_back_mark(self) -> None:
        """Forget the latest mark if it is of the instruction the supervisor stopped at.

        A debugger's `trap` in the place of a marked instruction notes the mark; the instruction will again.
        """
        state = self._state
        count = int(state[at.MARK_COUNT])
        watched = bool(state[at.WATCHING]) and self._watched[(self.pc - TILE_BASE) >> 2]
        if count and watched and self._marks[count - 1, 1] == state[at.STOP_CLOCK]:
            state[at.MARK_COUNT] = count - 1

    def note_spans(self, wanted: bool) -> None:
        """Note from now on, or no longer, from when to when workers run."""
        self._cells[at.NOTING_SPANS] = wanted

    def take_spans(self) -> NDArray[np.void]:
        """Noted worker runs that ended since the last call, as SPAN records."""
        count = self._cells[at.SPAN_COUNT]
        spans = np.zeros(count, dtype=SPAN)
        for column, name in enumerate(("context", "begin", "end")):
            spans[name] = self._spans[:count, column]
        self._cells[at.SPAN_COUNT] = 0
        return spans

    # ---- copies

    def copy(self, physical: int) -> Tile:
        """An independent tile in the same state, with another identity. Untouched memory stays untouched."""
        twin = Tile(physical, checks=self.checks)
        source = self.memory.reshape(-1, _PAGE)
        used = np.flatnonzero(source.any(axis=1))
        twin.memory.reshape(-1, _PAGE)[used] = source[used]
        twin.accumulators[...] = self.accumulators
        twin.weights[...] = self.weights
        twin._shadow[...] = self._shadow
        # Most of it is zeros, whose pages need not exist.
        used = np.flatnonzero(self._touched)
        twin._touched[used] = self._touched[used]
        if self.checks.code:
            twin._decoded[...] = self._decoded
            twin._rewritable[...] = self._rewritable
        twin.symbols = self.symbols
        twin._loaded = list(self._loaded)
        twin._log = self._log.copy()
        twin._marks = self._marks.copy()
        twin._spans = self._spans.copy()
        twin._watched = self._watched
        twin._state[...] = self._state
        twin.physical = physical
        twin._bind()
        return twin

    @property
    def state_address(self) -> int:
        """Address of the state array, for the compiled engine."""
        return self._address

    def set_budget(self, budget: int) -> None:
        """Instructions the engine may still issue."""
        self._cells[at.BUDGET] = budget
