"""How the bytes of bindings travel between host pages and tiles: slots, batches, ranks.

Each tile has one 4 KiB slot per batch in the data page. The slices that a tile holds, one after another, form
its byte stream, and the stream is cut at slot boundaries; batch b moves every tile's b-th slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...package.records import HOST_SLICE, Binding
from ..machine.host import PAGE_BYTES, SLOT_BYTES, owner_of

DATA_PAGE = 1
COMMAND_PAGE = 0
COMMAND_PAGE_BYTES = PAGE_BYTES


@dataclass(frozen=True)
class Piece:
    """A run of bytes of one tile's slot: where it lies on the tile and in the slot."""

    address: int
    slot_offset: int
    size: int


@dataclass
class Slot:
    """What one tile moves in one batch.

    Attributes:
        device_offset: where the slot begins in the host's device-visible address space.
        pieces: in slot order, without gaps.
    """

    device_offset: int
    pieces: list[Piece] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)

    def add(self, piece: Piece) -> None:
        """Append a piece, as one with the last if it goes on behind that on the tile too."""
        last = self.pieces[-1] if self.pieces else None
        if last is not None and last.address + last.size == piece.address:
            self.pieces[-1] = replace(last, size=last.size + piece.size)
        else:
            self.pieces.append(piece)


@dataclass
class Batches:
    """All batches of one group of bindings.

    Attributes:
        slots: per batch, physical tile -> slot.
        host_slices: HOST_SLICE records in batch order.
        ends: exclusive end of each batch's records.
        tiles: number of slots the data page must hold.
    """

    slots: list[dict[int, Slot]]
    host_slices: NDArray[np.void]
    ends: list[int]
    tiles: int

    @cached_property
    def owned(self) -> list[dict[int, list[int]]]:
        """Per batch, owner -> the targets it requests traffic for, rising."""
        batches: list[dict[int, list[int]]] = []
        for slots in self.slots:
            owned: dict[int, list[int]] = {}
            for target in sorted(slots):
                owned.setdefault(owner_of(target), []).append(target)
            batches.append(owned)
        return batches


def plan_batches(bindings: Sequence[Binding]) -> Batches:
    """Cut the slices of a group of bindings into slots and batches."""
    streams: dict[int, list[tuple[int, int, int]]] = {}
    base = 0
    for binding in bindings:
        places = binding.slices[["tile", "address", "file_offset", "size"]].tolist()
        for tile, address, file_offset, size in places:
            streams.setdefault(tile, []).append((address, base + file_offset, size))
        base += binding.nbytes
    slots: list[dict[int, Slot]] = []
    rows: list[list[tuple[int, int, int, int]]] = []
    for rank, tile in enumerate(sorted(streams)):
        page_offset = rank * SLOT_BYTES
        position = 0
        for address, file_offset, size in streams[tile]:
            done = 0
            while done < size:
                batch, offset = divmod(position, SLOT_BYTES)
                if batch == len(slots):
                    slots.append({})
                    rows.append([])
                length = min(size - done, SLOT_BYTES - offset)
                slot = slots[batch].setdefault(tile, Slot(COMMAND_PAGE_BYTES + page_offset))
                slot.add(Piece(address + done, offset, length))
                rows[batch].append((DATA_PAGE, page_offset + offset, file_offset + done, length))
                position += length
                done += length
    flat = [row for batch in rows for row in batch]
    ends = np.cumsum([len(batch) for batch in rows]).tolist() if rows else []
    return Batches(slots, np.array(flat, dtype=HOST_SLICE), ends, len(streams))
