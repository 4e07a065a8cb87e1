"""Many tiles of the compiled engine at once: one native call where a loop would ask a thousand objects.

A chip does little with each tile between two runs, but it does it with all of them, twice per superstep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..isa.csrs import INCOMING_DCOUNT
from ..machine.memory import REGION1_BASE, TILE_BASE
from . import state as at
from .checks import Checks
from .classes import BEGUN
from .engine_checks import MARKS
from .exchange_log import EXCHANGE_ITEM
from .noted import Noted
from .stop_table import Stops
from .tile import CALL, MARK, Tile, outside_mark
from .together import COUNT_MASK
from .traffic import IDS
from .translate.copies import clear_marks, copy_words, first_clear, set_bits, set_marks

Integers = NDArray[np.int64]

_BEGUN = [at.CSRS + number for number in BEGUN]
_COUNT = at.CSRS + INCOMING_DCOUNT


class Crowd:
    """Some tiles, in an order that stays; see `Together`."""

    def __init__(self, tiles: Sequence[Tile], run: Callable[[Integers, Sequence[Tile], int], Stops]) -> None:
        """`run`: runs tiles whose states lie at these addresses."""
        self._tiles = tiles
        self._run = run
        self._place: Integers = np.zeros(IDS, np.int64)
        self._place[[tile.physical for tile in tiles]] = np.arange(len(tiles))
        self._states: Integers = np.array([tile.state_address for tile in tiles], np.int64)
        self._all: Integers = np.arange(len(tiles))
        self._memory, self._decoded = self._read((at.MEMORY, at.DECODED), self._all)
        self._shadow, self._touched = self._read((at.SHADOW, at.TOUCHED), self._all)
        self._checks = tiles[0].checks if tiles else Checks()

    def run(self, chosen: Integers, budget: int) -> Stops:
        return self._run(self._states[chosen], [self._tiles[place] for place in chosen.tolist()], budget)

    def begun(self) -> Integers:
        return self._read(_BEGUN, self._all).T

    def excused(self) -> Integers:
        return self._read((at.SANS, at.SANS_CLOCK), self._all)

    def doubtful(self, chosen: Integers) -> bool:
        return bool(self._read((at.DOUBTS,), chosen).any())

    def pcs_and_workers(self) -> Integers:
        return self._read((at.PCS, at.ACTIVE), self._all)

    def resume(self, chosen: Integers, clock: int) -> None:
        detail, pc = self._read((at.STOP_DETAIL, at.PCS), chosen)
        internal = detail & 7 == 3
        inside = (pc >= TILE_BASE) & (pc < REGION1_BASE) & (pc & 3 == 0)
        words = np.zeros(len(chosen), np.uint32)
        place = _addresses(words)[inside]
        copy_words(place, self._memory[chosen][inside] + pc[inside] - TILE_BASE, 1)
        with_call = internal & inside & ((words & CALL.mask) == CALL.fixed)
        self._write(at.WINDOW, internal, chosen)
        self._write(at.CLOCK, np.where(with_call, clock - 6, clock), chosen)

    def take_marks(self, chosen: Integers) -> Noted:
        return self._take(at.MARK_COUNT, at.MARKS, MARK, chosen)

    def take_logs(self, chosen: Integers) -> Noted:
        return self._take(at.LOG_COUNT, at.LOG, EXCHANGE_ITEM, chosen)

    def count_down(self, tiles: Integers, words: Integers) -> None:
        chosen = self._place[tiles]
        (count,) = self._read((_COUNT,), chosen)
        self._write(_COUNT, (count - words) & COUNT_MASK, chosen)

    def invalidate(self, tiles: Integers, address: Integers, size: Integers) -> None:
        chosen = self._place[tiles]
        if self._checks.poison:
            set_bits(self._shadow[chosen], address - TILE_BASE, size)
        if self._checks.races:
            (epoch,) = self._read((at.EPOCH,), chosen)
            first, end = (address - TILE_BASE) >> 2, (address + size - TILE_BASE + 3) >> 2
            places = self._touched[chosen] + 8 * MARKS * first
            set_marks(places, np.where(size > 0, end - first, 0), MARKS, outside_mark(epoch))
        code = (address < REGION1_BASE) & (size > 0)
        begin = (address[code] - TILE_BASE) >> 2
        end = np.minimum((address[code] + size[code] - TILE_BASE + 3) >> 2, (REGION1_BASE - TILE_BASE) >> 2)
        clear_marks(self._decoded[chosen[code]] + 2 * begin, end - begin)

    def unwritten(self, places: Integers, address: Integers, size: Integers) -> tuple[int, int] | None:
        if not self._checks.poison:
            return None
        found = first_clear(self._shadow[places], address - TILE_BASE, size)
        return (found[0], found[1] + TILE_BASE) if found else None

    def _read(self, places: Sequence[int], chosen: Integers) -> Integers:
        """Integers of the states of chosen tiles, [places, tiles]."""
        found = np.empty((len(places), len(chosen)), np.int64)
        source = self._states[chosen] + 8 * np.array(places)[:, None]
        copy_words(_addresses(found), source.reshape(-1), 2)
        return found

    def _write(self, place: int, values: NDArray[np.generic], chosen: Integers) -> None:
        """Set an integer of the states of chosen tiles."""
        source = np.ascontiguousarray(values, np.int64)
        copy_words(self._states[chosen] + 8 * place, _addresses(source), 2)

    def _take(self, count_at: int, rows_at: int, kind: np.dtype[np.void], chosen: Integers) -> Noted:
        """Rows that chosen tiles have noted."""
        counts, source = self._read((count_at, rows_at), chosen)
        some = np.flatnonzero(counts)
        chosen, counts, source = chosen[some], counts[some], source[some]
        rows = np.empty(int(counts.sum()), kind)
        first = rows.ctypes.data + kind.itemsize * (np.cumsum(counts) - counts)
        copy_words(first, source, kind.itemsize // 4 * counts)
        self._write(count_at, np.zeros(len(chosen), np.int64), chosen)
        return Noted(chosen, counts, rows)


def _addresses(array: NDArray[np.generic]) -> Integers:
    """Of each element."""
    first = array.ctypes.data
    return np.arange(first, first + array.nbytes, array.itemsize, dtype=np.int64)
