"""Which sentences run together: a static program has one length and one batch size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LENGTHS = (16, 32, 64, 128, 256)
"""Lengths that programs are made for, in tokens; a longer one is the model's own limit."""

MAX_BATCH = 8
"""Largest batch that is chosen without being asked for."""


@dataclass(frozen=True)
class Group:
    """Sentences that one program embeds.

    Attributes:
        tokens: the program's length; every sentence has at most that many.
        batch: sentences of one run.
        runs: indices of the sentences of each run in turn; the last may be shorter than `batch`.
    """

    tokens: int
    batch: int
    runs: tuple[tuple[int, ...], ...]

    @property
    def sentences(self) -> int:
        """How many there are in all runs."""
        return sum(map(len, self.runs))


def length_for(tokens: int, limit: int) -> int:
    """The program length for a sentence of `tokens`, given the model's `limit` of tokens."""
    return min(next((length for length in LENGTHS if length >= tokens), limit), limit)


def group(lengths: Sequence[int], limit: int, batch: int | None = None) -> list[Group]:
    """Groups that hold each of the sentences (of 1 to `limit` tokens) once, one group per program length.

    `batch` is the batch size of every group; without it, the smallest power of two, up to `MAX_BATCH`, that
    holds all sentences of a length.
    """
    members: dict[int, list[int]] = {}
    for index, tokens in enumerate(lengths):
        members.setdefault(length_for(tokens, limit), []).append(index)
    groups = []
    for tokens, indices in sorted(members.items()):
        size = batch or min(1 << (len(indices) - 1).bit_length(), MAX_BATCH)
        runs = tuple(tuple(indices[at : at + size]) for at in range(0, len(indices), size))
        groups.append(Group(tokens, size, runs))
    return groups
