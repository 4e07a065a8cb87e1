"""Why a tile stopped, and the numbers the compiled engine uses for it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

RUNNING = 0
STOP_SYNC = 1
STOP_WINDOW_CLOSED = 2
STOP_NEEDS_IDENTITY = 3
STOP_ENDED = 4
STOP_EXCEPTION = 5
STOP_UNSUPPORTED = 6
STOP_BUDGET = 7
STOP_LOG_FULL = 8
STOP_ASSISTANCE = 9
"""The native function at ASSISTANCE asks to be served."""


class StopKind(IntEnum):
    """Why `Tile.run` returned."""

    SYNC = STOP_SYNC
    """`sync zone` was issued; zone 2 is served inside the engine."""
    WINDOW_CLOSED = STOP_WINDOW_CLOSED
    """The supervisor is about to leave an exchange window."""
    NEEDS_IDENTITY = STOP_NEEDS_IDENTITY
    """About to read TILE_ID while the tile stands for several."""
    ENDED = STOP_ENDED
    """The supervisor branched to address 0."""
    EXCEPTION = STOP_EXCEPTION
    UNSUPPORTED = STOP_UNSUPPORTED
    """An instruction with an operand that no public source gives a meaning."""
    BUDGET = STOP_BUDGET
    """The instruction budget is used up: judged endless."""


INVALID_PC = 1
INVALID_INSTRUCTION = 2
INVALID_OPERAND = 3
ADDRESS_RANGE = 4
ADDRESS_ALIGNMENT = 5
ADDRESS_REGION = 6
CONFLICT = 7
FLOATING_POINT = 8
BREAKPOINT0 = 9
BREAKPOINT1 = 10
WORKER_ACTIVE = 11
IN_REPEAT = 12
MISALIGNED_BUNDLE = 13
POISON = 14
UNKNOWN_CSR = 15
FETCH_CONFLICT = 16
SYNC_ZONE = 17
RACE = 18
CODE_WRITTEN = 19
STACK_OVERFLOW = 20


class ExceptionKind(IntEnum):
    """What an EXCEPTION stop is about. `cause` gives the number $SSR.ETYPE would hold."""

    INVALID_PC = INVALID_PC
    INVALID_INSTRUCTION = INVALID_INSTRUCTION
    INVALID_OPERAND = INVALID_OPERAND
    ADDRESS_RANGE = ADDRESS_RANGE
    ADDRESS_ALIGNMENT = ADDRESS_ALIGNMENT
    ADDRESS_REGION = ADDRESS_REGION
    CONFLICT = CONFLICT
    FLOATING_POINT = FLOATING_POINT
    BREAKPOINT0 = BREAKPOINT0
    BREAKPOINT1 = BREAKPOINT1
    WORKER_ACTIVE = WORKER_ACTIVE
    IN_REPEAT = IN_REPEAT
    MISALIGNED_BUNDLE = MISALIGNED_BUNDLE
    POISON = POISON
    UNKNOWN_CSR = UNKNOWN_CSR
    FETCH_CONFLICT = FETCH_CONFLICT
    SYNC_ZONE = SYNC_ZONE
    RACE = RACE
    CODE_WRITTEN = CODE_WRITTEN
    STACK_OVERFLOW = STACK_OVERFLOW


_TEXT = {
    ExceptionKind.INVALID_PC: "program counter outside executable memory or misaligned",
    ExceptionKind.INVALID_INSTRUCTION: "no instruction of this context",
    ExceptionKind.INVALID_OPERAND: "operand the instruction does not accept",
    ExceptionKind.ADDRESS_RANGE: "address outside tile memory",
    ExceptionKind.ADDRESS_ALIGNMENT: "address not aligned to the access",
    ExceptionKind.ADDRESS_REGION: "128-bit access outside the interleaved region",
    ExceptionKind.CONFLICT: "two accesses of one instruction to the same memory element",
    ExceptionKind.FLOATING_POINT: "floating-point exception enabled in $FP_CTL",
    ExceptionKind.BREAKPOINT0: "trap (patched breakpoint 0)",
    ExceptionKind.BREAKPOINT1: "trap (patched breakpoint 1)",
    ExceptionKind.WORKER_ACTIVE: "launch while a worker is running",
    ExceptionKind.IN_REPEAT: "instruction not allowed in a repeat body",
    ExceptionKind.MISALIGNED_BUNDLE: "repeat body not aligned to 8 bytes",
    ExceptionKind.POISON: "read of bytes nobody has written",
    ExceptionKind.UNKNOWN_CSR: "no such control register in this context",
    ExceptionKind.FETCH_CONFLICT: "send from the memory element the supervisor is fetching from",
    ExceptionKind.SYNC_ZONE: "no such synchronisation zone",
    ExceptionKind.RACE: "two contexts touch one word between barriers, and one writes it",
    ExceptionKind.CODE_WRITTEN: "instruction stored over by the program",
    ExceptionKind.STACK_OVERFLOW: "stack of a context left",
}

CAUSE_INVALID_OPERAND = 9
_CAUSE = {
    ExceptionKind.BREAKPOINT0: 2,
    ExceptionKind.BREAKPOINT1: 3,
    ExceptionKind.FLOATING_POINT: 5,
    ExceptionKind.CONFLICT: 6,
    ExceptionKind.FETCH_CONFLICT: 6,
    ExceptionKind.ADDRESS_RANGE: 8,
    ExceptionKind.ADDRESS_ALIGNMENT: 8,
    ExceptionKind.ADDRESS_REGION: 8,
    ExceptionKind.INVALID_PC: 10,
    ExceptionKind.INVALID_INSTRUCTION: 12,
    ExceptionKind.IN_REPEAT: 12,
}
"""$SSR.ETYPE of the kinds that have one of their own (known); every other fault of the machine is an invalid
operand (9)."""

_SIMULATED_ONLY = (POISON, RACE, CODE_WRITTEN, STACK_OVERFLOW)
CAUSES = tuple(
    0
    if kind == RUNNING or kind in _SIMULATED_ONLY
    else _CAUSE.get(ExceptionKind(kind), CAUSE_INVALID_OPERAND)
    for kind in range(STACK_OVERFLOW + 1)
)
"""$SSR.ETYPE by the number of an exception kind."""
DEBUG_CAUSES = frozenset((1, 2, 3, 4, 11, 15))
"""Causes that leave a context excepted for the debugger, not by a fault (known)."""


def context_name(context: int) -> str:
    """`supervisor` or `worker 0`..`worker 5` for context 0..6."""
    return "supervisor" if context == 0 else f"worker {context - 1}"


class Stop(NamedTuple):
    """Why a tile stopped.

    Attributes:
        kind: the reason.
        clock: cycle of the instruction that stopped (for SYNC: its issue cycle).
        pc: address of that instruction, or of the next one for WINDOW_CLOSED and NEEDS_IDENTITY.
        context: 0 supervisor, 1..6 worker 0..5.
        zone: of SYNC.
        exception: of EXCEPTION.
        address: the memory address at fault, or -1.
        text: one line for people.
        other_context: of RACE: who touched the word before; else -1.
        other_pc: of RACE: the instruction that did; else -1.
    """

    kind: StopKind
    clock: int
    pc: int
    context: int = 0
    zone: int = -1
    exception: ExceptionKind | None = None
    address: int = -1
    text: str = ""
    other_context: int = -1
    other_pc: int = -1

    @property
    def cause(self) -> int:
        """The exception cause as $SSR.ETYPE reports it, 0 if this is no exception."""
        return 0 if self.exception is None else CAUSES[self.exception]

    @property
    def category(self) -> str:
        """Who is at fault, as `SimulationError.category` has it."""
        return "fact unknown" if self.kind is StopKind.UNSUPPORTED else "program"


def describe(kind: ExceptionKind, context: int, pc: int, address: int, instruction: str) -> str:
    """One line for an exception: who, where, what, and the address when there is one."""
    where = f"{context_name(context)} at {pc:#x}"
    if instruction:
        where += f" ({instruction})"
    tail = f": address {address:#x}" if address >= 0 else ""
    return f"{where}: {_TEXT[kind]}{tail}"
