"""Host packets of all tiles at once: the first of each, the second of each, and so on.

Only packets against which there is nothing to say. From the first other one on, a tile's words are left to
`HostPort.serve`, which goes packet by packet and finds the words for a complaint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.machine.host import (
    LAST_READ,
    LONG_UNIT,
    OP_READ_SHORT,
    OP_WRITE_LONG,
    OP_WRITE_SHORT,
    PAGE_BYTES,
    WRITE_SPAN_EVENTS,
)
from tilewright.ipu21.machine.memory import (
    FETCH_LOOKAHEAD_BYTES,
    HOST_WINDOW,
    HOST_WINDOW_END,
    TILE_BASE,
    TILE_END,
)

from .hazards import elements
from .translate.copies import make_copies

Integers = NDArray[np.int64]
_HEADER, _READ, _LONG = OP_WRITE_SHORT, OP_READ_SHORT ^ OP_WRITE_SHORT, OP_WRITE_LONG ^ OP_WRITE_SHORT


@dataclass
class Station:
    """The tiles at the port, one entry each.

    Attributes:
        physical: ids. memory: addresses (of this process) of their memories. waiting_at: their next
            instructions. usable: whether their words can be served here.
        begin, end: their words. At the end `begin` is the first word not served.
        finished, payload_from: of their streams; -1 for no payload.
        packets, counted, read, written: packets served, words to count, bytes moved.
        stored: per served read the tile's index, the address and the bytes stored there.
    """

    physical: Integers
    memory: Integers
    waiting_at: Integers
    usable: NDArray[np.bool_]
    begin: Integers
    end: Integers
    finished: NDArray[np.bool_]
    payload_from: Integers

    def __post_init__(self) -> None:
        count = len(self.physical)
        self.packets, self.counted, self.read, self.written = (np.zeros(count, np.int64) for _ in range(4))
        self.stored: list[NDArray[np.int64]] = []


@dataclass(frozen=True)
class Pages:
    """Host memory: where each page starts for the device, its bytes, its address in this process."""

    start: Integers
    size: Integers
    address: Integers

    def find(self, offset: Integers, length: Integers) -> tuple[NDArray[np.bool_], Integers]:
        """Whether a packet's bytes lie in one page (and within 4 KiB), and their address."""
        if not len(self.start):
            return np.zeros(len(offset), np.bool_), offset
        page = np.maximum(np.searchsorted(self.start, offset, "right") - 1, 0)
        place = offset - self.start[page]
        crosses = (length > 0) & (offset // PAGE_BYTES != (offset + length - 1) // PAGE_BYTES)
        return (place + length <= self.size[page]) & ~crosses, self.address[page] + place


def serve_plain(station: Station, words: NDArray[np.void], pages: Pages, scratch: NDArray[np.uint32]) -> None:
    """Serves what it can of `words` (`hostport.WORD` of all tiles). `scratch`: what closing reads store."""
    values = np.ascontiguousarray(words["value"])
    value, clock, address = (words[name].astype(np.int64) for name in ("value", "clock", "address"))
    code_end = station.waiting_at + 4 + FETCH_LOOKAHEAD_BYTES
    code = elements(station.waiting_at), elements(code_end - 1)
    copies: list[tuple[Integers, Integers, Integers, Integers]] = []
    while True:
        tile = np.flatnonzero(station.usable & (station.end - station.begin >= 2))
        if not len(tile):
            break
        at = station.begin[tile]
        word0, word1 = value[at], value[at + 1]
        reads, long = (word0 & _READ) != 0, (word0 & _LONG) != 0
        unit, length = np.where(long, LONG_UNIT, 4), word1 & 15
        length = np.where(long & (length == 0), 16, length) * unit
        offset = ((word1 >> 4) & 0x7FFFFFF) * unit
        target = ((word0 & 0x7FFF) << 5) + TILE_BASE
        stored = np.maximum(length, 4)
        in_page, host = pages.find(offset, length)
        after_payload = clock[at] - station.payload_from[tile] >= WRITE_SPAN_EVENTS
        named = (word0 >> 15) & 0x7FF
        good = ((word0 & _HEADER) != 0) & (named == station.physical[tile]) & ((word1 >> 31) == (named & 1))
        good &= ~station.finished[tile] & (address[at] % 8 == 0)
        good &= (station.payload_from[tile] < 0) | after_payload
        after = at + 2 + np.where(reads, 0, length // 4)
        good &= after <= station.end[tile]
        clash = (elements(target) <= code[1][tile]) & (elements(target + stored - 1) >= code[0][tile])
        window = (target >= HOST_WINDOW) & (target + length <= HOST_WINDOW_END)
        good_read = (target + stored <= TILE_END) & window & ~clash & (in_page | (length == 0))
        good &= np.where(reads, good_read, in_page)
        station.usable[tile[~good]] = False
        kept = np.flatnonzero(good)
        tile, at, reads, length, host, stored = (x[kept] for x in (tile, at, reads, length, host, stored))
        inside, source = station.memory[tile] + target[kept] - TILE_BASE, values.ctypes.data + 4 * (at + 2)
        closing = reads & (length == 0)
        copies.append(
            (
                tile,
                np.where(reads, inside, host),
                np.where(closing, scratch.ctypes.data, np.where(reads, host, source)),
                np.where(closing, 1, length // 4),
            )
        )
        payload = clock[np.minimum(at + 2, len(clock) - 1)]
        station.payload_from[tile] = np.where(~reads & (length > 0), payload, -1)
        station.finished[tile] = reads & ((word0[kept] & LAST_READ) != 0)
        station.packets[tile] += 1
        station.counted[tile] += np.where(reads, np.where(closing, 1, length // 4), 0)
        station.read[tile] += np.where(reads, length, 0)
        station.written[tile] += np.where(reads, 0, length)
        station.stored.append(np.stack([tile, target[kept], stored], axis=1)[reads])
        station.begin[tile] = after[kept]
    if copies:
        tile, *fields = (np.concatenate(parts) for parts in zip(*copies, strict=True))
        # One tile after the other, as if each had been served alone.
        make_copies(np.stack(fields, axis=1)[np.argsort(tile, kind="stable")])


def station_of(
    physical: Sequence[int], memory: Sequence[int], waiting_at: Sequence[int], lengths: Sequence[int]
) -> Station:
    """A station with unused streams whose words follow one another; nobody is usable yet."""
    end = np.cumsum(np.asarray(lengths, np.int64))
    count = len(end)
    return Station(
        np.asarray(physical, np.int64),
        np.asarray(memory, np.int64),
        np.asarray(waiting_at, np.int64),
        np.zeros(count, np.bool_),
        end - np.asarray(lengths, np.int64),
        end,
        np.zeros(count, np.bool_),
        np.full(count, -1, np.int64),
    )
