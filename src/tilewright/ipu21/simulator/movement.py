"""Moves the words of a resolved phase between tile memories, in the order of the clock.

A tile may send on what it received earlier in the same phase. `move` cuts the pieces so that what is read
and what is written on one tile either coincide or do not touch; then every piece can move as a whole, in the
order of its first word. `move_by_word` is the definition: one word after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.machine.memory import TILE_BASE

from .translate.copies import COPY_FIELDS, make_copies

Words = Sequence[NDArray[np.uint32]]
"""Memory of each physical tile as 32-bit words; index 0 is the first word of tile memory."""

_SPAN = 22
"""Bits of an address in a (tile, address) key."""


@dataclass(frozen=True)
class Moves:
    """A phase's words as copies between the tiles' memories in the order of execution (see `copies`).

    `room` is where words wait that are read before another copy stores over them.
    """

    plan: NDArray[np.int64]
    room: NDArray[np.uint32]

    def make(self) -> None:
        make_copies(self.plan)


NO_MOVES = Moves(np.zeros((0, COPY_FIELDS), np.int64), np.zeros(0, np.uint32))


def move(pieces: NDArray[np.void], words: Words) -> Moves | None:
    """Moves all pieces. Addresses must lie in tile memory and be aligned to words.

    Returns the moves, which can be made again as long as the memories stay where they are; None if this phase
    had to go word by word.
    """
    if (pieces["item_bytes"] != 4).any() and _relays(pieces).any():
        move_by_word(pieces, words)
        return None
    moves = plan_of(pieces, words)
    moves.make()
    return moves


def plan_of(pieces: NDArray[np.void], words: Words) -> Moves:
    """The copies that move all pieces."""
    if not len(pieces) or not _relays(pieces).any():
        # Nothing that is read gets written: only stores to one tile keep their order (`pieces` are sorted).
        return Moves(_copies(pieces, words), np.zeros(0, np.uint32))
    pieces = _aligned(pieces)
    copies = _copies(pieces, words)
    # Reads and writes by the event of the first word; a read sees earlier writes.
    count = copies[:, 2]
    room = np.zeros(int(count.sum()), np.uint32)
    waiting = room.ctypes.data + 4 * (np.cumsum(count) - count)
    reads = np.stack([waiting, copies[:, 1], count], axis=1)
    writes = np.stack([copies[:, 0], waiting, count], axis=1)
    kind = np.repeat([0, 1], len(pieces))
    order = np.lexsort((kind, np.concatenate([pieces["read_event"], pieces["write_event"]])))
    return Moves(np.concatenate([reads, writes])[order], room)


def _copies(pieces: NDArray[np.void], words: Words) -> NDArray[np.int64]:
    """One copy per piece, in order."""
    begin = np.array([array.__array_interface__["data"][0] for array in words], np.int64)
    copies = np.empty((len(pieces), COPY_FIELDS), np.int64)
    copies[:, 0] = begin[pieces["destination"]] + pieces["write_address"] - TILE_BASE
    copies[:, 1] = begin[pieces["source"]] + pieces["read_address"] - TILE_BASE
    copies[:, 2] = pieces["items"] * pieces["item_bytes"] // 4
    return copies


def move_by_word(pieces: NDArray[np.void], words: Words) -> None:
    """The definition: each word is read at its event and stored at its event; a read sees earlier stores."""
    per_item = pieces["item_bytes"] // 4
    count = pieces["items"] * per_item
    piece = np.repeat(np.arange(len(pieces)), count)
    word = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count)
    item = word // per_item[piece]
    read_at, write_at = pieces["read_event"][piece] + item, pieces["write_event"][piece] + item
    source, target = pieces["source"][piece], pieces["destination"][piece]
    read_index = (pieces["read_address"][piece] - TILE_BASE) // 4 + word
    write_index = (pieces["write_address"][piece] - TILE_BASE) // 4 + word
    flying = np.zeros(len(piece), np.uint32)
    kind = np.repeat([0, 1], len(piece))
    order = np.lexsort((kind, np.concatenate([read_at, write_at])))
    for event in order.tolist():
        if event < len(piece):
            flying[event] = words[source[event]][read_index[event]]
        else:
            event -= len(piece)
            words[target[event]][write_index[event]] = flying[event]


def stored_ranges(pieces: NDArray[np.void]) -> NDArray[np.int64]:
    """What the pieces write, as few rows of tile, address and bytes as there are gaps between."""
    if not len(pieces):
        return np.zeros((0, 3), np.int64)
    begin, end = _ranges(pieces, "destination", "write_address")
    order = np.argsort(begin)
    begin, end = begin[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.append(True, begin[1:] > end[:-1]))
    last = np.append(first[1:], len(begin)) - 1
    size = end[last] - begin[first]
    address = begin[first] & ((1 << _SPAN) - 1)
    return np.stack([begin[first] >> _SPAN, address, size], axis=1)


def _ranges(pieces: NDArray[np.void], tile: str, address: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    begin = (pieces[tile] << _SPAN) + pieces[address]
    return begin, begin + pieces["items"] * pieces["item_bytes"]


def _relays(pieces: NDArray[np.void]) -> NDArray[np.bool_]:
    """Pieces that read memory which the phase also writes."""
    begin, end = _ranges(pieces, "destination", "write_address")
    order = np.argsort(begin)
    begin, end = begin[order], np.maximum.accumulate(end[order])
    read_begin, read_end = _ranges(pieces, "source", "read_address")
    last = np.searchsorted(begin, read_end, "left") - 1
    return (last >= 0) & (end[np.maximum(last, 0)] > read_begin)


def _aligned(pieces: NDArray[np.void]) -> NDArray[np.void]:
    """Cuts pieces until a read and a write of the same tile never overlap partly."""
    while True:
        read_begin, read_end = _ranges(pieces, "source", "read_address")
        write_begin, write_end = _ranges(pieces, "destination", "write_address")
        piece_a, cut_a = _cuts(read_begin, read_end, np.unique(np.concatenate([write_begin, write_end])))
        piece_b, cut_b = _cuts(write_begin, write_end, np.unique(np.concatenate([read_begin, read_end])))
        if not len(piece_a) and not len(piece_b):
            return pieces
        everyone = np.arange(len(pieces))
        starts = np.concatenate([(everyone << _SPAN), (piece_a << _SPAN) + cut_a, (piece_b << _SPAN) + cut_b])
        starts = np.unique(starts)
        piece, offset = starts >> _SPAN, starts & ((1 << _SPAN) - 1)
        items = offset // 4
        until = np.append(items[1:], 0)
        is_last = np.append(piece[1:] != piece[:-1], True)
        until = np.where(is_last, pieces["items"][piece], until)
        cut = pieces[piece]
        cut["items"] = until - items
        for event in ("read_event", "write_event"):
            cut[event] += items
        for address in ("read_address", "write_address"):
            cut[address] += offset
        pieces = cut


def _cuts(
    begin: NDArray[np.int64], end: NDArray[np.int64], bounds: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bounds strictly inside the ranges: (index of the range, offset in it)."""
    low = np.searchsorted(bounds, begin, "right")
    count = np.searchsorted(bounds, end, "left") - low
    count = np.maximum(count, 0)
    piece = np.repeat(np.arange(len(begin)), count)
    step = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count)
    return piece, bounds[low[piece] + step] - begin[piece]
