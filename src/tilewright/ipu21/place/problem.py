"""The requests of one tile class as arrays, for the compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import align_up
from .request import Request

SIZE, ALIGN, MEMORY, FIRST, LAST = range(5)
"""Columns of items; FIRST and LAST count sections (see `Problem`)."""
ANY, MUST, PREFER, SPAN = range(4)
"""Values of MEMORY: in either region, in region 1, there if possible, in both as if they were one."""
NEVER, MEETS, SOFT, HARD = range(4)
"""How two items relate: never alive together; alive together; and should, or must, share no element."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """Requests as arrays; item i is `requests[i]`.

    Attributes:
        items: [n, 5] int64, columns as above. Time is cut into sections: one begins wherever a lifetime
            does, and an item lives in the sections FIRST..LAST. Between two such steps items only die.
        relations: [n, n] uint8, symmetric.
    """

    requests: tuple[Request, ...]
    items: Ints
    relations: NDArray[np.uint8]

    @property
    def unit(self) -> int:
        """What all alignments are multiples of, in bytes."""
        return int(self.items[:, ALIGN].min(initial=1 << 20))

    @cached_property
    def sizes(self) -> Ints:
        """Sizes with the gap that alignment leaves at least before whatever lies above."""
        sizes: Ints = align_up(self.items[:, SIZE], self.unit)
        return sizes

    @property
    def sections(self) -> int:
        return int(self.items[:, LAST].max(initial=-1)) + 1

    @cached_property
    def duration(self) -> Ints:
        duration: Ints = self.items[:, LAST] - self.items[:, FIRST] + 1
        return duration

    def live(self, chosen: NDArray[np.bool_]) -> Ints:
        """Bytes that the chosen items take in each section."""
        change = np.zeros(self.sections + 1, dtype=np.int64)
        np.add.at(change, self.items[chosen, FIRST], self.sizes[chosen])
        np.add.at(change, self.items[chosen, LAST] + 1, -self.sizes[chosen])
        return np.cumsum(change)[:-1]

    def twins(self) -> Ints:
        """For each item an earlier one that it may change places with, or -1."""
        result = np.full(len(self.requests), -1, dtype=np.int64)
        alike: dict[bytes, list[int]] = {}
        for index in range(len(self.requests)):
            latest = alike.setdefault(self.items[index].tobytes(), [])
            for at, other in enumerate(latest):
                different = self.relations[index] != self.relations[other]
                different[[index, other]] = False
                if not different.any():
                    result[index], latest[at] = other, index
                    break
            else:
                latest.append(index)
        return result


def as_problem(requests: Sequence[Request]) -> Problem:
    """Arrays of requests. Names that no request has are ignored in `apart` and `prefer_apart`."""
    count = len(requests)
    items = np.zeros((count, 5), dtype=np.int64)
    items[:, SIZE] = [request.bytes for request in requests]
    items[:, ALIGN] = [request.alignment for request in requests]
    items[:, MEMORY] = [
        MUST if request.interleaved else PREFER if request.prefer_interleaved else ANY for request in requests
    ]
    first = np.array([request.first for request in requests], dtype=np.int64)
    last = np.array([request.last for request in requests], dtype=np.int64)
    begins = np.unique(first)
    items[:, FIRST] = np.searchsorted(begins, first)
    items[:, LAST] = np.searchsorted(begins, last, side="right") - 1
    meets = (first[:, None] <= last[None, :]) & (first[None, :] <= last[:, None])
    np.fill_diagonal(meets, False)
    relations = meets.astype(np.uint8)
    index = {request.name: at for at, request in enumerate(requests)}
    for kind in (SOFT, HARD):
        pairs = [
            (at, index[name])
            for at, request in enumerate(requests)
            for name in (request.prefer_apart if kind == SOFT else request.apart)
            if name in index
        ]
        for one, two in pairs:
            if meets[one, two]:
                relations[one, two] = relations[two, one] = kind
    return Problem(tuple(requests), items, relations)
