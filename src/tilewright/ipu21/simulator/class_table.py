"""All classes of a chip's tiles in one table, so that what happens to all happens at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.machine.topology import TILES

from .classes import ROW, TileClass, split
from .exchange_log import EXCHANGE_ITEM
from .noted import Notes
from .tile import MARK


class ClassTable:
    """Classes and their rows, in an order that stays; classes that come when one splits follow.

    Attributes:
        classes: all of them.
        items: what they have logged in the exchange phase that is going on.
        marks: their profile marks so far.
        partition: changes whenever a class splits.
    """

    def __init__(self, classes: Iterable[TileClass]) -> None:
        self.classes: list[TileClass] = []
        self.items, self.marks = Notes(EXCHANGE_ITEM), Notes(MARK)
        self.partition = 0
        self._rows = np.zeros(TILES, ROW)
        self._sizes: NDArray[np.int64] | None = None
        for group in classes:
            self._append(group)

    @property
    def rows(self) -> NDArray[np.void]:
        """One ROW per class; what is written there is how it is."""
        return self._rows[: len(self.classes)]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Members of each class."""
        if self._sizes is None:
            self._sizes = np.array([len(group.members) for group in self.classes], np.int64)
        return self._sizes

    def separate(self, group: TileClass, chosen: Iterable[int]) -> None:
        """Each of these members gets a class of its own."""
        begin = len(self.classes)
        for new in split(group, chosen):
            if new is not group:
                self._append(new)
        others = np.arange(begin, len(self.classes))
        if len(others):
            self.items.copy(group.place, others)
            self.marks.copy(group.place, others)
        self.partition += 1
        self._sizes = None

    def _append(self, group: TileClass) -> None:
        group.place = len(self.classes)
        self._rows[group.place] = group.row
        group.row = self._rows[group.place]
        self.classes.append(group)
