"""How a step runs its row, where several rows of a tile take turns in one place."""

from __future__ import annotations

from dataclasses import dataclass

from ..isa import build, csrs
from ..machine import sync_zones
from ..machine.timing import SUPERVISOR_BRANCH
from .call_code import Block
from .lines import Line, constants, last_issue, put

COUNT = 8
"""Register for the word count of a phase; it is set before anything else, so routines leave it alone."""
FIRST_VALUE = 2
"""Register of a routine's first argument."""
FIRST_BASE = 1
"""Register of the first exchange base, set behind a routine."""


@dataclass(frozen=True)
class RowUse:
    """A row, and what has to be put in before it runs. The same on all tiles of a class.

    Attributes:
        address: of the row's first word.
        patch: entry of the tile's routine that rewrites words of the row, or None.
        values: for the routine: how far the words are from those in it, group by group, modulo 2^32.
        outgoing, incoming: bytes by which everything that is sent and received lies higher than the row says.
    """

    address: int
    patch: int | None = None
    values: tuple[int, ...] = ()
    outgoing: int = 0
    incoming: int = 0

    @property
    def bases(self) -> tuple[tuple[int, int], ...]:
        """Exchange registers and the values they need, where not 0."""
        wanted = ((csrs.OUTGOING_BASE, self.outgoing), (csrs.INCOMING_BASE, self.incoming))
        return tuple((csr, value) for csr, value in wanted if value)

    @property
    def preparation(self) -> list[Line]:
        """The call of the routine, if there is one."""
        if self.patch is None:
            return []
        values = constants(dict(enumerate(self.values, FIRST_VALUE)))
        return [*values, Line(build.call(10, self.patch), 10)]

    @property
    def more_words(self) -> int:
        """Instructions beside those of a step whose row is its own."""
        return len(self.preparation) + 3 * len(self.bases)


def exchange_block(use: RowUse | None) -> Block:
    """One internal phase: meet the other tiles, run the row; without a row, stay away.

    Kernels leave no worker running, so there is nobody to wait for on the tile itself. The instructions from
    `sync 3` to the row's first word are the same on every tile that has a row. Bases are 0 again behind it:
    nothing else expects them. What a row needs is put in behind the step's mark, where it can be followed.
    """
    if use is None:
        return Block([], [Line(build.sans(0)), Line(build.sync(sync_zones.ABSENT))])
    bases = list(enumerate(use.bases, FIRST_BASE))
    return Block(
        constants({COUNT: 1}),
        [
            *use.preparation,
            *constants({register: value for register, (_, value) in bases}),
            put(csrs.INCOMING_DCOUNT, COUNT),
            *(put(csr, register) for register, (csr, _) in bases),
            Line(build.sync(sync_zones.INTERNAL)),
            Line(build.call(10, use.address)),
            *(put(csr, build.ZERO) for _, (csr, _) in bases),
        ],
    )


def exchange_cycles(use: RowUse | None, block: Block, hidden: int) -> int:
    """Cycles from a step's mark until it has met the others, without those of its tile's routine.

    Args:
        hidden: how many instructions of the block's setup are done before.
    """
    behind = 1 + len(use.bases) if use else 1
    lines = [*block.setup[hidden:], *block.body[:-behind]]
    if use is None or use.patch is None:
        return last_issue(lines) + 1
    called = len(block.setup) - hidden + len(use.preparation)
    return last_issue(lines[:called]) + SUPERVISOR_BRANCH + last_issue(lines[called:]) + 1
