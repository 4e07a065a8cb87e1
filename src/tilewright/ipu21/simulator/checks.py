"""Which optional checks a simulated tile makes."""

from __future__ import annotations

from dataclasses import dataclass

from . import state as at

WORKER_STACK_BYTES = 0x100
SUPERVISOR_STACK = (0x585E0, 0x586E0)
"""Stacks of the published runtime (known): each worker's below its base register, the supervisor's."""


@dataclass(frozen=True)
class Checks:
    """Optional checks, each of which can be switched alone.

    Range, alignment and region of every access are always checked: nothing can be simulated behind them.

    Attributes:
        conflict: two accesses of one instruction to the same memory element are an exception, as on the chip.
        fetch: a send that reads the memory element of the running code is an exception, as on the chip.
        poison: reading bytes nobody has written is an exception, also where a `send` reads them. Loads into a
            zero register are exempt.
        races: two contexts that touch one word while workers run, one of them writing it, are an exception.
            Some published kernels depend on lock-step and do this on purpose.
        code: storing over an instruction that has been fetched, or fetching one that the program has stored,
            is an exception. Code that arrives from the fabric or the host is exempt, and so are executable
            segments that the package marks as written.
        stack: storing into another context's stack, or going below the own one through $sp or a worker's base
            register, is an exception.
        discards: a load into a zero register is an exception where any other would be. Whether the machine
            faults there is open; kernels use such loads to move pointers.
        budget: instructions a single `Tile.run` may issue before it is judged endless.
        worker_stack: bytes of a worker's stack below its base register, for `stack`.
        supervisor_stack: begin and end address of the supervisor's stack, for `stack`.
    """

    conflict: bool = True
    fetch: bool = True
    poison: bool = False
    races: bool = False
    code: bool = False
    stack: bool = False
    discards: bool = False
    budget: int = 200_000_000
    worker_stack: int = WORKER_STACK_BYTES
    supervisor_stack: tuple[int, int] = SUPERVISOR_STACK

    @classmethod
    def thorough(cls) -> Checks:
        """What a compiled program must satisfy. Not `stack`: its kernels lend workers frames below $sp."""
        return cls(poison=True, races=True, code=True)

    @property
    def singly(self) -> bool:
        """Whether a check depends on the instruction that makes an access, which native code does not say."""
        return bool(self.bits() & at.WATCHED_SINGLY)

    def bits(self) -> int:
        """The checks as the engine's bit mask."""
        return (
            at.CHECK_CONFLICT * self.conflict
            + at.CHECK_POISON * self.poison
            + at.CHECK_FETCH * self.fetch
            + at.CHECK_RACES * self.races
            + at.CHECK_CODE * self.code
            + at.CHECK_STACK * self.stack
            + at.CHECK_DISCARDS * self.discards
        )
