"""What tiles note while they run, of all tiles together: marks, and items of their exchange logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .exchange_log import joined


@dataclass(frozen=True)
class Noted:
    """Records of several tiles, those of the first, then those of the next, and so on.

    Attributes:
        places: of the tiles in an order that everyone knows, rising. counts: records of each.
        rows: the records.
    """

    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    rows: NDArray[np.void]

    def each(self) -> Iterator[tuple[int, NDArray[np.void]]]:
        """The place and the records of each tile, one tile after the other."""
        ends = np.cumsum(self.counts).tolist()
        for place, count, end in zip(self.places.tolist(), self.counts.tolist(), ends, strict=True):
            yield place, self.rows[end - count : end]

    def of(self, wanted: NDArray[np.bool_]) -> Noted:
        """Those of some of the tiles, given by a truth per place."""
        chosen = wanted[self.places]
        if chosen.all():
            return self
        rows = self.rows[np.repeat(chosen, self.counts)]
        return Noted(self.places[chosen], self.counts[chosen], rows)


def noted(places: NDArray[np.int64], records: Sequence[NDArray[np.void]]) -> Noted:
    """Records that are given tile by tile; tiles without any are left out."""
    some = [index for index, rows in enumerate(records) if len(rows)]
    rows = joined([records[index] for index in some]) if some else np.concatenate(records)
    counts = np.array([len(records[index]) for index in some], np.int64)
    return Noted(places[some], counts, rows)


class Notes:
    """Records of run after run."""

    def __init__(self, kind: np.dtype[np.void]) -> None:
        """`kind`: the type of the records, which only matters where there are none."""
        self._kind = kind
        self._parts: list[Noted] = []

    def add(self, part: Noted) -> None:
        """What has come since the last time."""
        if len(part.rows):
            self._parts.append(part)

    def clear(self) -> None:
        self._parts.clear()

    def copy(self, place: int, others: NDArray[np.int64]) -> None:
        """Other tiles, in rising order, have noted what the one at `place` has."""
        for part in list(self._parts):
            (at,) = np.nonzero(part.places == place)
            if len(at):
                count, end = int(part.counts[at[0]]), int(part.counts[: at[0] + 1].sum())
                rows = np.tile(part.rows[end - count : end], len(others))
                self._parts.append(Noted(others, np.full(len(others), count), rows))

    def of_all(self, count: int) -> Noted:
        """The records of so many tiles, each one's in the order in which they came."""
        places = np.arange(count)
        if not self._parts:
            return Noted(places, np.zeros(count, np.int64), np.zeros(0, self._kind))
        if len(self._parts) == 1:
            (part,) = self._parts
            counts = np.zeros(count, np.int64)
            counts[part.places] = part.counts
            return Noted(places, counts, part.rows)
        owner = np.concatenate([np.repeat(part.places, part.counts) for part in self._parts])
        rows = joined([part.rows for part in self._parts])
        return Noted(places, np.bincount(owner, minlength=count), rows[np.argsort(owner, kind="stable")])
