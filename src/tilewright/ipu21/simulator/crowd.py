"""Many tiles of the compiled engine at once: one native call where a loop would ask a thousand objects.

A chip does little with each tile between two runs, but it does it with all of them, twice per superstep.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..isa.csrs import INCOMING_DCOUNT
from ..machine.memory import REGION1_BASE, TILE_BASE
from . import state as at
from .classes import BEGUN
from .exchange_log import EXCHANGE_ITEM
from .tile import CALL, MARK, Tile
from .traffic import IDS
from .translate.copies import clear_marks, make_copies

Integers = NDArray[np.int64]

_BEGUN = [at.CSRS + number for number in BEGUN]
_COUNT = at.CSRS + INCOMING_DCOUNT


class Crowd:
    """Some tiles, in an order that stays.

    Arrays have one element or row per tile. What the fabric does names tiles by their ids, one tile each.
    """

    def __init__(self, tiles: Sequence[Tile]) -> None:
        self._place: Integers = np.zeros(IDS, np.int64)
        self._place[[tile.physical for tile in tiles]] = np.arange(len(tiles))
        self._states: Integers = np.array([tile.state_address for tile in tiles], np.int64)
        self._memory, self._decoded = self.read((at.MEMORY, at.DECODED))

    # ---- states

    def read(self, places: Sequence[int]) -> Integers:
        """Integers of the states, [places, tiles]."""
        found = np.empty((len(places), len(self._states)), np.int64)
        plan = np.empty((*found.shape, 3), np.int64)
        plan[:, :, 0] = found.ctypes.data + 8 * np.arange(found.size).reshape(found.shape)
        plan[:, :, 1] = self._states + 8 * np.array(places)[:, None]
        plan[:, :, 2] = 2
        make_copies(plan.reshape(-1, 3))
        return found

    def write(self, place: int, values: Integers, chosen: Integers) -> None:
        """Set an integer of the states of chosen tiles."""
        source = np.ascontiguousarray(values, np.int64)
        plan = np.empty((len(chosen), 3), np.int64)
        plan[:, 0] = self._states[chosen] + 8 * place
        plan[:, 1] = source.ctypes.data + 8 * np.arange(len(chosen))
        plan[:, 2] = 2
        make_copies(plan)

    def begun(self) -> list[list[int]]:
        """`TileClass.begun` of each."""
        rows: list[list[int]] = self.read(_BEGUN).T.tolist()
        return rows

    def standing(self) -> tuple[Integers, Integers]:
        """Barriers each tile is still excused from; cycle of its latest `sans`."""
        sans, clock = self.read((at.SANS, at.SANS_CLOCK))
        return sans, clock

    def doubtful(self) -> bool:
        """Whether a worker of some tile has asked for a rounding mode the machine may not have."""
        return bool(self.read((at.DOUBTS,)).any())

    def pcs_and_workers(self) -> Integers:
        """Addresses of the supervisors' next instructions; how many workers have not exited. [2, tiles]."""
        return self.read((at.PCS, at.ACTIVE))

    def resume(self, chosen: Integers, clock: int) -> None:
        """As `Tile.resume` of chosen tiles."""
        detail, pc = self.read((at.STOP_DETAIL, at.PCS))[:, chosen]
        internal = detail & 7 == 3
        inside = (pc >= TILE_BASE) & (pc < REGION1_BASE) & (pc & 3 == 0)
        words = np.zeros(len(chosen), np.uint32)
        plan = np.empty((len(chosen), 3), np.int64)
        plan[:, 0] = words.ctypes.data + 4 * np.arange(len(chosen))
        plan[:, 1] = self._memory[chosen] + pc - TILE_BASE
        plan[:, 2] = 1
        make_copies(plan[inside])
        with_call = internal & inside & ((words & CALL.mask) == CALL.fixed)
        self.write(at.WINDOW, internal, chosen)
        self.write(at.CLOCK, np.where(with_call, clock - 6, clock), chosen)

    # ---- logs

    def take_logs(self) -> tuple[NDArray[np.void], list[int]]:
        """As `Tile.take_log` of each, one after another, and how many items each has."""
        items, counts = self._take(at.LOG_COUNT, at.LOG, at.LOG_FIELDS)
        return items.view(EXCHANGE_ITEM).reshape(-1), counts

    def take_marks(self) -> tuple[NDArray[np.void], list[int]]:
        """As `Tile.take_marks`, likewise."""
        marks, counts = self._take(at.MARK_COUNT, at.MARKS, at.MARK_FIELDS)
        return marks.view(MARK).reshape(-1), counts

    def _take(self, count_at: int, rows_at: int, fields: int) -> tuple[Integers, list[int]]:
        counts, source = self.read((count_at, rows_at))
        chosen = np.flatnonzero(counts)
        taken = np.empty((int(counts.sum()), fields), np.int64)
        ends = np.cumsum(counts)
        plan = np.empty((len(chosen), 3), np.int64)
        plan[:, 0] = taken.ctypes.data + 8 * fields * (ends - counts)[chosen]
        plan[:, 1] = source[chosen]
        plan[:, 2] = 2 * fields * counts[chosen]
        make_copies(plan)
        self.write(count_at, np.zeros(len(chosen), np.int64), chosen)
        listed: list[int] = counts.tolist()
        return taken, listed

    # ---- what the fabric does

    def count_down(self, tiles: Integers, words: Integers, mask: int) -> None:
        """Tiles, each once, have received so many words."""
        chosen = self._place[tiles]
        left = self.read((_COUNT,))[0][chosen] - words
        self.write(_COUNT, left & mask, chosen)

    def forget_code(self, tiles: Integers, address: Integers, size: Integers) -> None:
        """As `Tile.invalidate` of tiles that watch for nothing: decoded code in these bytes is stale."""
        code = (address < REGION1_BASE) & (size > 0)
        begin = (address[code] - TILE_BASE) >> 2
        end = np.minimum((address[code] + size[code] - TILE_BASE + 3) >> 2, (REGION1_BASE - TILE_BASE) >> 2)
        clear_marks(np.stack([self._decoded[self._place[tiles[code]]] + 2 * begin, end - begin], axis=1))
