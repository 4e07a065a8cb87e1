"""Rows of a tile that take turns in one place: they do the same with other buffers, so that only addresses
differ, and those are put in before each runs.

What all words of a row that send, or all that receive, have in common costs two registers; what is left is
rewritten word by word, by a routine of the tile whose arguments are distances that its whole class shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import align_up
from ..fabric.addresses import POINTER, SEND, WIDE_SEND, address_kinds, addresses, skeleton, with_addresses
from ..isa import build
from ..machine.timing import SUPERVISOR_BRANCH
from .lines import Line, constant, store
from .row_use import COUNT, FIRST_VALUE, RowUse

Words = NDArray[np.uint32]
PhaseRows = Mapping[int, Mapping[int, Words]]
"""Step -> physical tile -> row words, for every step that is an exchange with traffic."""

ROW_ALIGNMENT = 8
VALUES = 5
"""Most distances that a routine takes: the registers left hold the words it works on."""
ROW, LAST_SCRATCH = 1, 9
"""Registers of a routine: the row's address, and the last that it may use."""
REACH = 1 << 12
"""Words that a store reaches from its base register."""


@dataclass(frozen=True, eq=False)
class RowSet:
    """Rows that the tiles of a class run in some steps.

    Attributes:
        steps: those with exactly these rows. rows: one per tile; empty if the class sits the steps out.
    """

    steps: tuple[int, ...]
    rows: tuple[Words, ...]

    @property
    def bytes(self) -> int:
        """Of the place that the longest needs."""
        return align_up(max(row.nbytes for row in self.rows), ROW_ALIGNMENT)


@dataclass(frozen=True, eq=False)
class Rewrite:
    """Words of a tile's row that a routine puts in: each is `word` and one of the arguments, added."""

    position: NDArray[np.int64]
    word: Words
    argument: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SharedRow:
    """Row sets of a class in one place.

    Attributes:
        sets: the row sets.
        rows: per tile, the words that stand in the place at first.
        rewrites: per tile.
        uses: of every step, still without addresses.
        cycles: about what each step of `uses` loses, in that order.
    """

    sets: tuple[RowSet, ...]
    rows: tuple[Words, ...]
    rewrites: tuple[Rewrite, ...]
    uses: dict[int, RowUse]
    cycles: NDArray[np.int64]

    @property
    def row_bytes(self) -> int:
        return align_up(max(row.nbytes for row in self.rows), ROW_ALIGNMENT)

    @property
    def routine_bytes(self) -> int:
        if not self.patched:
            return 0
        longest = max(len(routine(rewrite, 0, self.arguments)) for rewrite in self.rewrites)
        return align_up(4 * longest, ROW_ALIGNMENT)

    @property
    def freed(self) -> int:
        """Bytes that rows of the class's tiles need no more."""
        return sum(each.bytes for each in self.sets) - self.row_bytes - self.routine_bytes

    @property
    def patched(self) -> bool:
        return self.arguments > 0

    @property
    def arguments(self) -> int:
        """How many each call of the routine has."""
        return len(next(iter(self.uses.values())).values)

    @property
    def code_bytes(self) -> int:
        """What the steps need beside those with a row of their own."""
        return 4 * sum(use.more_words for use in self.uses.values())

    @property
    def saved(self) -> int:
        """Bytes of the class's tiles, with what the steps need more."""
        return self.freed - self.code_bytes

    def placed(self, address: int) -> dict[int, RowUse]:
        """The uses with the row at an address and the routine behind it."""
        patch = address + self.row_bytes if self.patched else None
        return {step: replace(use, address=address, patch=patch) for step, use in self.uses.items()}


def row_sets(tiles: Sequence[int], phase_rows: PhaseRows) -> list[RowSet]:
    """The different row sets of a class."""
    found: dict[tuple[bytes, ...], list[int]] = {}
    for step, rows in phase_rows.items():
        key = tuple(rows[tile].tobytes() if tile in rows else b"" for tile in tiles)
        found.setdefault(key, []).append(step)
    none = np.zeros(0, np.uint32)
    return [
        RowSet(tuple(steps), tuple(phase_rows[steps[0]].get(tile, none) for tile in tiles))
        for steps in found.values()
    ]


def sharable(sets: Sequence[RowSet]) -> list[SharedRow]:
    """Every way in which row sets of a class can share a place with a gain."""
    alike: dict[tuple[bytes, ...], list[RowSet]] = {}
    for each in sets:
        if all(len(row) for row in each.rows):
            alike.setdefault(tuple(_skeleton(row) for row in each.rows), []).append(each)
    joined = [_joined(group) for group in alike.values() if len(group) > 1]
    return [shared for shared in joined if shared is not None and shared.saved > 0]


def routine(rewrite: Rewrite, row: int, arguments: int) -> list[Line]:
    """Code that rewrites a row at an address; called with the distances in $m2, $m3, ..., returns by $m10."""
    free = {0, *range(FIRST_VALUE + arguments, LAST_SCRATCH + 1)} - {COUNT}
    scratch = sorted(free)
    lines = constant(ROW, row)
    entries = list(zip(*(column.tolist() for column in vars(rewrite).values()), strict=True))
    for first in range(0, len(entries), len(scratch)):
        # Side by side, as each instruction waits for the one before it on the same register.
        part = [(register, *entry) for register, entry in zip(scratch, entries[first:], strict=False)]
        for register, _, word, _ in part:
            lines.append(Line(build.setzi(register, word & 0xFFFFF), register))
        for register, _, word, _ in part:
            high = build.or_high(register, register, word & 0xFFF00000)
            lines.append(Line(high, register, (register,)))
        for register, _, _, which in part:
            argument = FIRST_VALUE + which
            lines.append(Line(build.add(register, register, argument), register, (register, argument)))
        lines += [store(register, ROW, 4 * position) for register, position, _, _ in part]
    return [*lines, Line(build.br(10), -1, (10,))]


def _skeleton(row: Words) -> bytes:
    return skeleton(row, address_kinds(row, np.arange(len(row)))).tobytes()


def _joined(sets: Sequence[RowSet]) -> SharedRow | None:
    """Row sets of equal skeletons in one place; None if there are too many distances among their words."""
    stacks = [np.stack(rows) for rows in zip(*(each.rows for each in sets), strict=True)]
    kinds = [
        np.broadcast_to(address_kinds(stack[0], np.arange(stack.shape[1])), stack.shape) for stack in stacks
    ]
    outgoing, stacks = _based(stacks, kinds, (SEND, WIDE_SEND))
    incoming, stacks = _based(stacks, kinds, (POINTER,))
    if max(stack.shape[1] for stack in stacks) > REACH:
        return None
    numbers: dict[bytes, int] = {}
    distances: list[Words] = []
    rewrites = []
    for stack in stacks:
        moves = stack - stack[0]
        where = np.flatnonzero(moves.any(axis=0))
        which = []
        for position in where:
            column = np.ascontiguousarray(moves[:, position])
            if column.tobytes() not in numbers:
                numbers[column.tobytes()] = len(distances)
                distances.append(column)
            which.append(numbers[column.tobytes()])
        rewrites.append(Rewrite(where, stack[0, where], np.array(which, np.int64)))
    if len(distances) > VALUES:
        return None
    uses = {
        step: RowUse(
            0,
            0 if distances else None,
            tuple(int(column[number]) for column in distances),
            int(outgoing[number]),
            int(incoming[number]),
        )
        for number, each in enumerate(sets)
        for step in each.steps
    }
    longest = max(len(rewrite.position) for rewrite in rewrites)
    patching = 4 * longest + 2 + 2 * SUPERVISOR_BRANCH if distances else 0
    cycles = [patching + len(use.preparation) + 4 * len(use.bases) for use in uses.values()]
    rows = tuple(stack[0] for stack in stacks)
    return SharedRow(tuple(sets), rows, tuple(rewrites), uses, np.array(cycles, np.int64))


def _based(
    stacks: list[Words], kinds: Sequence[NDArray[np.int8]], of: tuple[int, ...]
) -> tuple[NDArray[np.int64], list[Words]]:
    """Bases that leave as few words as possible to rewrite, one per row set, and the words without them.

    Args:
        stacks: per tile, words [row sets, words of a row].
        kinds: of those words. of: the kinds that the base applies to.
    """
    nowhere = np.zeros(len(stacks[0]), np.int64)
    wanted = [addresses(stack, kind) for stack, kind in zip(stacks, kinds, strict=True)]
    concerned = [np.isin(kind[0], of) for kind in kinds]
    moves: Counter[bytes] = Counter()
    for address, chosen in zip(wanted, concerned, strict=True):
        moves.update(column.tobytes() for column in (address - address[0])[:, chosen].T)
    for move, _ in sorted(moves.items(), key=lambda item: (-item[1], item[0])):
        base = np.frombuffer(move, np.int64)
        base = base - base.min()
        if not base.any():
            break
        moved = [
            with_addresses(stack, kind, address - base[:, None] * chosen)
            for stack, kind, address, chosen in zip(stacks, kinds, wanted, concerned, strict=True)
        ]
        if all(words is not None for words in moved):
            return base, [words for words in moved if words is not None]
    return nowhere, stacks
