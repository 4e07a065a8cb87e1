"""Exchange phases that have happened before: what to copy is known, and no rule needs to be looked at again.

A phase is given by what the tiles logged relative to its event 0, the registers they began with, and where
the pointers stood. The same phase moves the same words and breaks no rule that it did not break before.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .class_table import ClassTable
from .exchange_log import EXCHANGE_ITEM
from .movement import Moves
from .noted import Noted

_FIELDS, _CLOCK = 6, 1
"""Of an EXCHANGE_ITEM: how many, and which one is the clock."""
CAPACITY_BYTES = 512 << 20


@dataclass(frozen=True)
class Phase:
    """Outcome of a phase.

    Attributes:
        moves: its words. receivers, words: tiles that got words, rising, and how many.
        ranges: memory that was written, rows of tile, address, bytes.
        pointer_tile, pointer_value: the pointers it leaves.
    """

    moves: Moves
    receivers: NDArray[np.int64]
    words: NDArray[np.int64]
    ranges: NDArray[np.int64]
    pointer_tile: NDArray[np.int64]
    pointer_value: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        arrays = (self.moves.plan, self.moves.room, self.receivers, self.words, self.ranges)
        return sum(array.nbytes for array in arrays)


class PhaseCache:
    """The latest phases, as many as CAPACITY_BYTES hold."""

    def __init__(self) -> None:
        self._phases: OrderedDict[bytes, Phase] = OrderedDict()
        self._bytes = 0
        self.hits = 0

    def key(
        self,
        table: ClassTable,
        log: Noted,
        release: int,
        pointers: NDArray[np.int64],
        standing: NDArray[np.int64],
    ) -> bytes | None:
        """What identifies the phase that is going on; None if the tiles do not log as the engine does.

        Args:
            log: items of the phase, of every class.
            standing: program counter and active workers of each class, [2, classes].
        """
        if log.rows.dtype != EXCHANGE_ITEM:
            return None
        items = log.rows.view(np.int64).reshape(-1, _FIELDS).copy()
        items[:, _CLOCK] -= release
        # No field has more than 32 bits, relative to the phase.
        items = items.astype(np.uint32)
        rows = table.rows
        heads = np.stack([log.counts, rows["active"], rows["since"] - release])
        begun = np.ascontiguousarray(rows["begun"])
        digest = hashlib.sha256()
        for array in (np.array([table.partition]), heads, begun, standing, pointers, items):
            digest.update(array.data)
        return digest.digest()

    def get(self, key: bytes | None) -> Phase | None:
        phase = self._phases.get(key) if key else None
        if key and phase is not None:
            self._phases.move_to_end(key)
            self.hits += 1
        return phase

    def put(self, key: bytes, phase: Phase) -> None:
        if phase.nbytes > CAPACITY_BYTES:
            return
        self._phases[key] = phase
        self._bytes += phase.nbytes
        while self._bytes > CAPACITY_BYTES:
            _, dropped = self._phases.popitem(last=False)
            self._bytes -= dropped.nbytes
