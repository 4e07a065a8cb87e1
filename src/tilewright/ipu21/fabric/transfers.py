"""Logical transfers between placed buffers.

A transfer moves `words` 32-bit words from one tile's memory to one or more others. All addresses are absolute
byte addresses (the exchange base registers hold 0) and all tile numbers physical.

All sources of a phase must hold their data when the phase starts: what a phase reads must not be overwritten
in it. `check_transfers` refuses such sets instead of giving an order-dependent result. Only a phase that is
asked to forward may read what it writes: every read then means what the phase has written there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..machine import memory, topology

TRANSFER = np.dtype(
    [("source", "<u2"), ("address", "<u4"), ("words", "<u4"), ("first", "<u4"), ("count", "<u4")]
)
"""One logical transfer: source tile, its byte address, 32-bit words, and its slice
`destinations[first:first+count]`."""

DESTINATION = np.dtype([("tile", "<u2"), ("address", "<u4")])
"""One receiver of a transfer: tile and byte address of the first word."""

_BASE = np.int64(1) << 20
"""Above any byte address: tile * _BASE + address orders all memory of the chip."""

TILE_IDS = 1536
"""Physical ids fit 0..1535; only those of rows 0..22 (0..1471) name tiles."""


_ELEMENT_SHIFT = memory.ELEMENT_BYTES.bit_length() - 1
_INTERLEAVED_SHIFT = memory.INTERLEAVED_ELEMENT_BYTES.bit_length() - 1


def element_masks(address: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bit masks of the effective elements that `words` words from each byte address touch."""
    first = _elements(address)
    last = _elements(address + 4 * words - 1)
    return (np.int64(2) << last) - (np.int64(1) << first)


def _elements(address: NDArray[np.int64]) -> NDArray[np.int64]:
    """`machine.memory.effective_element` of every address of an array."""
    low = address >> _ELEMENT_SHIFT
    high = 32 + (address - memory.REGION1_BASE >> _INTERLEAVED_SHIFT)
    return np.where(address < memory.REGION1_BASE, low, high)


def check_transfers(
    transfers: NDArray[np.void], destinations: NDArray[np.void], *, forwarding: bool = False
) -> None:
    """Refuse transfers that no schedule can carry out.

    Checked: record types, tile numbers, lengths, destination slices, alignment to 4 bytes, ranges inside tile
    memory, distinct receivers, no transfer to its own tile alone, a sender that receives its own message is
    one of at least three receivers and reads and writes different elements, no byte written twice, none both
    read and written (unless `forwarding`). Raises ScheduleError naming the transfer and the tile.
    """
    if transfers.dtype != TRANSFER or destinations.dtype != DESTINATION:
        raise ScheduleError("transfers and destinations must be arrays of TRANSFER and DESTINATION records")
    if transfers.ndim != 1 or destinations.ndim != 1:
        raise ScheduleError("transfers and destinations must be one-dimensional")
    source = transfers["source"].astype(np.int64)
    address = transfers["address"].astype(np.int64)
    words = transfers["words"].astype(np.int64)
    first = transfers["first"].astype(np.int64)
    count = transfers["count"].astype(np.int64)
    _refuse(source >= topology.TILES, "its source {0} is not a tile", source)
    _refuse(words == 0, "it moves no words", source)
    _refuse(count == 0, "it has no destination", source)
    _refuse(first + count > len(destinations), "its destinations end at {0}, past the array", first + count)
    _refuse_ranges(address, words, "its source on tile {0}", source)
    owner = np.repeat(np.arange(len(transfers)), count)
    offsets = np.concatenate([[0], np.cumsum(count)])
    chosen = destinations[np.arange(offsets[-1]) - np.repeat(offsets[:-1] - first, count)]
    tile = chosen["tile"].astype(np.int64)
    target = chosen["address"].astype(np.int64)
    _refuse(tile >= topology.TILES, "its destination {0} is not a tile", tile, owner)
    _refuse_ranges(target, words[owner], "its destination on tile {0}", tile, owner)
    key = np.sort(owner * TILE_IDS + tile)
    twice = key[1:] == key[:-1]
    if twice.any():
        at = int(key[int(np.argmax(twice))])
        raise ScheduleError(
            f"tile {at % TILE_IDS} is named twice among its destinations", where=_name(at // TILE_IDS)
        )
    own = tile == source[owner]
    alone = own & (count[owner] == 1)
    _refuse(alone, "it goes from tile {0} to itself", tile, owner, hint="use a local copy")
    _refuse(
        own & (count[owner] < 3),
        "sender {0} may receive its own message only beside at least two other tiles",
        tile,
        owner,
        hint="copy locally",
    )
    clash = own & (element_masks(address, words)[owner] & element_masks(target, words[owner]) != 0)
    _refuse(
        clash,
        "sender {0} would read and write one memory element at the same time",
        tile,
        owner,
        hint="place the destination in another element, or copy locally",
    )
    begin, end, by = _written_once(tile, target, words[owner], owner)
    if not forwarding:
        _refuse_forwarding(source, address, words, begin, end, by)


def _name(index: int) -> str:
    return f"transfer {index}"


def _refuse(
    bad: NDArray[np.bool_],
    what: str,
    value: NDArray[np.int64],
    owner: NDArray[np.int64] | None = None,
    hint: str | None = None,
) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        transfer = at if owner is None else int(owner[at])
        raise ScheduleError(what.format(int(value[at])), where=_name(transfer), hint=hint)


def _refuse_ranges(
    address: NDArray[np.int64],
    words: NDArray[np.int64],
    what: str,
    tile: NDArray[np.int64],
    owner: NDArray[np.int64] | None = None,
) -> None:
    _refuse(address % 4 != 0, what + " is not aligned to 4 bytes", tile, owner)
    outside = (address < memory.TILE_BASE) | (address + 4 * words > memory.TILE_END)
    _refuse(outside, what + " lies outside tile memory", tile, owner)


def _written_once(
    tile: NDArray[np.int64], target: NDArray[np.int64], words: NDArray[np.int64], owner: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Begins, ends and transfers of all that is written, sorted; refuses bytes that are written twice."""
    begin = tile * _BASE + target
    order = np.argsort(begin, kind="stable")
    begin, end, by = begin[order], (begin + 4 * words)[order], owner[order]
    twice = end[:-1] > begin[1:]
    if twice.any():
        at = int(np.argmax(twice))
        where = f"tile {begin[at + 1] // _BASE} address {begin[at + 1] % _BASE:#x}"
        raise ScheduleError(
            f"{where} is also written by transfer {by[at]}",
            where=_name(int(by[at + 1])),
        )
    return begin, end, by


def _refuse_forwarding(
    source: NDArray[np.int64],
    address: NDArray[np.int64],
    words: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    by: NDArray[np.int64],
) -> None:
    """Refuse bytes that are both read and written."""
    if not len(begin):
        return
    read = source * _BASE + address
    after = np.empty(len(read), dtype=np.int64)
    # In order, since looking up values in order is much faster.
    order = np.argsort(read + 4 * words)
    after[order] = np.searchsorted(begin, (read + 4 * words)[order], side="left")
    hit = (after > 0) & (end[np.maximum(after - 1, 0)] > read)
    if hit.any():
        at = int(np.argmax(hit))
        raise ScheduleError(
            f"transfer {by[after[at] - 1]} overwrites its source on tile {source[at]} in the same phase",
            where=_name(at),
            hint="sources must stay valid for the whole phase; use two phases, or let the phase forward",
        )
