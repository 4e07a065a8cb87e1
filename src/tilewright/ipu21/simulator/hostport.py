"""The chip's door to host memory: requests, packets, pages.

In a host phase (between an entry barrier with owners and the next host barrier) every owner first sends the
two words of its request bitmap; the tiles named there then send packets: writes to host pages, reads from
them, the last read of a stream marked. Each stored word, and a closing read of no words, counts one off the
tile's INCOMING_DCOUNT. Evidence: hardware-tested formats and sequences; no order between an owner's request
and another tile's packets is demanded (assumed).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Never

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import DeviceError, SimulationError
from tilewright.ipu21.machine.host import (
    PAGE_BYTES,
    WRITE_SPAN_EVENTS,
    Packet,
    decode_header,
    host_mux,
    owner_of,
    request_bit,
)
from tilewright.ipu21.machine.memory import (
    ELEMENT_BYTES,
    FETCH_LOOKAHEAD_BYTES,
    HOST_WINDOW,
    HOST_WINDOW_END,
    REGION1_BASE,
    TILE_BASE,
    TILE_END,
    effective_elements,
)

from .exchange_log import joined
from .host_packets import Pages, serve_plain, station_of
from .translate.copies import make_copies

HOST_CONTROL = 3
"""Control of every send to the host."""
SCRATCH_PATTERN = 0xD5
"""What a closing read leaves in its destination word, whose content is undefined (assumed)."""

_SCRATCH = np.full(1, SCRATCH_PATTERN * 0x01010101, np.uint32)

WORD = np.dtype([("value", "<u4"), ("clock", "<i8"), ("address", "<i8"), ("pc", "<i8")])
"""A word on its way to the host: when it left, from where, and the address of its send instruction."""


@dataclass
class Guest:
    """One tile as the port sees it. `waiting_at` is the address of the instruction it is stopped at; `stored`
    collects (address, size) of what the port writes into its memory."""

    physical: int
    memory: NDArray[np.uint8]
    mux: int
    waiting_at: int
    stored: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class _Stream:
    """Packets of one target: words not yet consumed, whether its last read is done, and what it did."""

    words: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, WORD))
    packets: int = 0
    finished: bool = False
    payload_from: int | None = None


MOST_LATE_CYCLES = 100_000
MOST_LATE_POLLS = 3


class LateHost:
    """A host that takes its time: seeded delays before whatever the device waits for.

    Without a seed nothing is ever late.
    """

    def __init__(self, seed: int | None) -> None:
        self._random = None if seed is None else np.random.default_rng(seed)

    def cycles(self) -> int:
        """Cycles by which the next acknowledgement, or the next words for a tile, are late."""
        return 0 if self._random is None else int(self._random.integers(1, MOST_LATE_CYCLES))

    def polls(self) -> int:
        """How often the host reads the next mark before the device has seen it."""
        return 0 if self._random is None else int(self._random.integers(0, MOST_LATE_POLLS + 1))


class HostPort:
    """Attached pages, and the streams of the current host phase."""

    def __init__(self) -> None:
        self._pages: list[tuple[int, int, NDArray[np.uint8]]] = []
        self._owners: dict[int, NDArray[np.void]] = {}
        self._requests: dict[int, int] = {}
        self._streams: dict[int, _Stream] = {}
        self.open = False
        self.bytes_read = 0
        self.bytes_written = 0

    # Pages ------------------------------------------------------------------------------------------------

    def attach(self, index: int, buffer: NDArray[np.uint8]) -> None:
        """Adds a page behind those already attached. `buffer` is used in place, bytes, contiguous."""
        if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
            raise DeviceError(f"page {index}: the buffer must be a contiguous array of bytes")
        if not buffer.flags.writeable:
            raise DeviceError(f"page {index}: the buffer must be writable")
        if not len(buffer) or len(buffer) % 4:
            raise DeviceError(f"page {index}: {len(buffer)} bytes is not a positive multiple of 4")
        if any(index == known for known, _, _ in self._pages):
            raise DeviceError(f"page {index} is attached already")
        start = self._pages[-1][1] + len(self._pages[-1][2]) if self._pages else 0
        self._pages.append((index, start, buffer))

    def detach_all(self) -> None:
        self._pages.clear()

    def _range(self, offset: int, length: int) -> NDArray[np.uint8] | None:
        for _, start, buffer in self._pages:
            if start <= offset and offset + length <= start + len(buffer):
                return buffer[offset - start : offset - start + length]
        return None

    # Phases -----------------------------------------------------------------------------------------------

    def enter(self, owners: NDArray[np.int64]) -> None:
        """The entry barrier of a host phase happened; `owners` arrived in its master form."""
        self._owners = {int(owner): np.zeros(0, WORD) for owner in owners}
        self._requests, self._streams = {}, {}
        self.open = True

    def leave(self) -> None:
        """The completion barrier happened: everything that was requested must have been done."""
        for owner in self._owners:
            if owner not in self._requests:
                raise SimulationError(
                    "the tile entered the host phase with `sync 15` and sent no request",
                    tile=owner,
                    hint="its first two words after the barrier are the bitmap of its targets",
                )
            for target in _targets(owner, self._requests[owner]):
                stream = self._streams.get(target)
                if stream is None or not stream.packets:
                    raise SimulationError(
                        f"tile {owner} requested host traffic for it, but it sent no packet", tile=target
                    )
        for target, stream in self._streams.items():
            if len(stream.words):
                raise SimulationError(
                    f"the host phase ends within a packet: {len(stream.words)} words of it were sent",
                    tile=target,
                )
            if not stream.finished:
                raise SimulationError(
                    "the host phase ends before the tile's last read packet",
                    tile=target,
                    hint="mark the last read of a stream; writes are followed by a marked read of length 0",
                )
        self.open = False

    def take_request(self, guest: Guest, words: NDArray[np.void]) -> NDArray[np.void]:
        """Takes an owner's request words off the front of what it sent; returns the rest.

        Must be called for all tiles before their packets are served.
        """
        if not self.open:
            self._fault("words are sent to the host outside a host phase", guest, words)
        if guest.physical not in self._owners or guest.physical in self._requests:
            return words
        known = self._owners[guest.physical]
        sent = np.concatenate([known, words]) if len(known) else words
        if len(sent) < 2:
            self._owners[guest.physical] = sent
            return sent[:0]
        self._heard(guest, sent)
        low, high = int(sent["value"][0]), int(sent["value"][1])
        if low >> 24 or high >> 22:
            self._fault(f"request {low:08x} {high:08x} names more than 46 targets", guest, sent)
        self._requests[guest.physical] = low | high << 24
        return sent[2:]

    def serve_all(self, guests: Sequence[Guest], words: Sequence[NDArray[np.void]]) -> list[int]:
        """`serve` for every tile that has sent words, in order; the words to count of each."""
        station = station_of(
            [guest.physical for guest in guests],
            [guest.memory.__array_interface__["data"][0] for guest in guests],
            [guest.waiting_at for guest in guests],
            [len(sent) for sent in words],
        )
        streams = []
        for index, (guest, sent) in enumerate(zip(guests, words, strict=True)):
            stream = self._streams.setdefault(guest.physical, _Stream()) if len(sent) else _Stream()
            streams.append(stream)
            heard = guest.mux == host_mux(guest.physical) and self._permitted(guest)
            station.usable[index] = heard and not len(stream.words)
            station.finished[index] = stream.finished
            station.payload_from[index] = -1 if stream.payload_from is None else stream.payload_from
        everything = np.frombuffer(bytearray().join(sent.data for sent in words), WORD)
        serve_plain(station, everything, self._all_pages(), _SCRATCH)
        self.bytes_read += int(station.read.sum())
        self.bytes_written += int(station.written.sum())
        if station.stored:
            for index, address, size in np.concatenate(station.stored).tolist():
                guests[index].stored.append((address, size))
        counted = station.counted.tolist()
        rests = zip(
            station.begin.tolist(),
            station.end.tolist(),
            station.packets.tolist(),
            station.finished.tolist(),
            station.payload_from.tolist(),
            strict=True,
        )
        for index, (begin, end, packets, finished, payload_from) in enumerate(rests):
            if packets:
                stream = streams[index]
                stream.packets += packets
                stream.finished = finished
                stream.payload_from = None if payload_from < 0 else payload_from
            if begin < end:
                counted[index] += self.serve(guests[index], everything[begin:end])
        return counted

    def _all_pages(self) -> Pages:
        return Pages(
            np.array([start for _, start, _ in self._pages], np.int64),
            np.array([len(buffer) for _, _, buffer in self._pages], np.int64),
            np.array([buffer.__array_interface__["data"][0] for _, _, buffer in self._pages], np.int64),
        )

    def serve(self, guest: Guest, words: NDArray[np.void]) -> int:
        """Does every packet that the tile has sent in full. Returns the number of words to count."""
        stream = self._streams.setdefault(guest.physical, _Stream())
        waiting = np.concatenate([stream.words, words]) if len(stream.words) else words
        value, clock, address = (
            np.ascontiguousarray(waiting[name]) for name in ("value", "clock", "address")
        )
        free = self._permitted(guest) and guest.mux == host_mux(guest.physical)
        counted = begin = 0
        while len(waiting) - begin >= 2:
            packet = _decoded(int(value[begin]), int(value[begin + 1]))
            if (
                packet is None
                or not free
                or packet.tile != guest.physical
                or stream.finished
                or address[begin] % 8
                or (
                    stream.payload_from is not None and clock[begin] - stream.payload_from < WRITE_SPAN_EVENTS
                )
            ):
                self._refuse(guest, stream, waiting[begin : begin + 2])
            end = begin + 2 + (packet.length // 4 if packet.write else 0)
            if end > len(waiting):
                break
            here = waiting[begin:end]
            stream.packets += 1
            if packet.write:
                stream.payload_from = int(clock[begin + 2]) if packet.length else None
                self._page(guest, packet, here)[:] = value[begin + 2 : end].view(np.uint8)
                self.bytes_written += packet.length
            else:
                stream.payload_from = None
                stream.finished = packet.last
                counted += self._read(guest, packet, here)
            begin = end
        stream.words = waiting[begin:]
        return counted

    def _permitted(self, guest: Guest) -> bool:
        bitmap = self._requests.get(owner_of(guest.physical), 0)
        return bool(bitmap >> request_bit(guest.physical) & 1)

    # Packets ----------------------------------------------------------------------------------------------

    def _refuse(self, guest: Guest, stream: _Stream, words: NDArray[np.void]) -> Never:
        """Raises for the first rule that a header breaks."""
        try:
            packet = decode_header(int(words["value"][0]), int(words["value"][1]))
        except ValueError as error:
            self._fault(str(error), guest, words)
        if packet.tile != guest.physical:
            self._fault(f"a host packet for tile {packet.tile} is sent by another tile", guest, words)
        if not self._permitted(guest):
            owner = owner_of(guest.physical)
            reason = "did not name it in its request" if owner in self._requests else "sent no request"
            self._fault(
                f"a host packet header without permission: its owner, tile {owner}, {reason}", guest, words
            )
        if stream.finished:
            self._fault("a host packet after the last read of its stream", guest, words)
        if int(words["address"][0]) % 8:
            self._fault(
                f"a host packet header at {int(words['address'][0]):#x}: not aligned to 8 bytes", guest, words
            )
        if stream.payload_from is not None:
            span = int(words["clock"][0]) - stream.payload_from
            if span < WRITE_SPAN_EVENTS:
                self._fault(
                    f"a write payload spans {span} events with its padding, fewer than {WRITE_SPAN_EVENTS}",
                    guest,
                    words,
                )
        self._heard(guest, words)
        raise AssertionError("the header breaks no rule")

    def _heard(self, guest: Guest, words: NDArray[np.void]) -> None:
        if guest.mux != host_mux(guest.physical):
            self._fault(
                f"the host cannot reach the tile: INCOMING_MUX is {guest.mux:#x}, "
                f"not its host input {host_mux(guest.physical):#x}",
                guest,
                words,
            )

    def _page(self, guest: Guest, packet: Packet, words: NDArray[np.void]) -> NDArray[np.uint8]:
        begin, end = packet.host_offset, packet.host_offset + packet.length
        if packet.length and begin // PAGE_BYTES != (end - 1) // PAGE_BYTES:
            self._fault(
                f"a host packet of {packet.length} bytes at {begin:#x} crosses a 4 KiB page", guest, words
            )
        bytes_ = self._range(begin, packet.length)
        if bytes_ is None:
            attached = sum(len(buffer) for _, _, buffer in self._pages)
            self._fault(
                f"a host packet of {packet.length} bytes at {begin:#x}: the pages hold {attached:#x} bytes",
                guest,
                words,
            )
        return bytes_

    def _read(self, guest: Guest, packet: Packet, words: NDArray[np.void]) -> int:
        address, length = packet.tile_address, packet.length
        if not TILE_BASE <= address <= TILE_END - max(length, 4):
            self._fault(f"a host read to {address:#x}: outside tile memory", guest, words)
        if address < HOST_WINDOW or address + length > HOST_WINDOW_END:
            self._fault(
                f"a host read to {address:#x}: only {HOST_WINDOW:#x}..{HOST_WINDOW_END:#x} is known to work",
                guest,
                words,
                category="fact unknown",
            )
        code = effective_elements(guest.waiting_at, guest.waiting_at + 4 + FETCH_LOOKAHEAD_BYTES)
        for element in effective_elements(address, address + max(length, 4)):
            if element in code:
                self._fault(
                    f"host data for {address:#x} arrive in the memory element of the running code",
                    guest,
                    words,
                )
        offset = address - TILE_BASE
        guest.stored.append((address, max(length, 4)))
        if not length:
            guest.memory[offset : offset + 4] = SCRATCH_PATTERN
            return 1
        guest.memory[offset : offset + length] = self._page(guest, packet, words)
        self.bytes_read += length
        return length // 4

    def _fault(self, what: str, guest: Guest, words: NDArray[np.void], *, category: str = "program") -> Never:
        raise SimulationError(
            what,
            category=category,
            tile=guest.physical,
            context="supervisor",
            address=int(words["pc"][0]) if len(words) else guest.waiting_at,
            cycle=int(words["clock"][0]) if len(words) else None,
        )


@lru_cache(maxsize=1 << 16)
def _decoded(word0: int, word1: int) -> Packet | None:
    """The packet of a header; a tile sends the same ones in every batch of full slots."""
    try:
        return decode_header(word0, word1)
    except ValueError:
        return None


def _targets(owner: int, bitmap: int) -> Iterator[int]:
    for bit in range(46):
        if bitmap >> bit & 1:
            yield bit // 2 << 6 | owner & 0x3D | (bit & 1) << 1


def host_words(log: NDArray[np.void], guest: Guest) -> NDArray[np.void]:
    """The words of a tile's sends outside exchange phases, read from its memory.

    Raises SimulationError for sends that no host phase uses: other controls, memory that holds the code.
    """
    return words_of_all([log], [guest])[0]


def words_of_all(logs: Sequence[NDArray[np.void]], guests: Sequence[Guest]) -> list[NDArray[np.void]]:
    """`host_words` of many tiles. Raises for the first tile at fault."""
    lengths = [len(log) for log in logs]
    log = joined(logs)
    address, count, pc, clock = (log[name].astype(np.int64) for name in ("value", "count", "pc", "clock"))
    end = address + 4 * count
    foreign = log["control"] != HOST_CONTROL
    outside = (address % 4 != 0) | (address < TILE_BASE) | (end > TILE_END)
    code = pc + 4 + FETCH_LOOKAHEAD_BYTES
    own = ~outside & _share_elements(address, np.minimum(end, TILE_END), pc, code)
    wrong = foreign | outside | own
    guest = np.repeat(np.arange(len(guests)), lengths)
    if wrong.any():
        index = int(np.argmax(wrong))
        words, begin = int(count[index]), int(address[index])
        if foreign[index]:
            control = int(log["control"][index])
            what = (
                f"a send with control {control} outside an exchange phase (to the host it is {HOST_CONTROL})"
            )
        elif outside[index]:
            what = f"a send of {words} words reads at {begin:#x}: outside tile memory or not aligned"
        else:
            what = f"a send of {words} words from {begin:#x} reads the memory element of the running code"
        raise SimulationError(
            what,
            tile=guests[int(guest[index])].physical,
            context="supervisor",
            address=int(pc[index]),
            cycle=int(clock[index]),
        )
    first = np.cumsum(count) - count
    item = np.repeat(np.arange(len(log)), count)
    step = np.arange(len(item)) - first[item]
    values = np.empty(len(item), np.uint32)
    memory = np.array([one.memory.__array_interface__["data"][0] for one in guests], np.int64)
    make_copies(
        np.stack([values.ctypes.data + 4 * first, memory[guest] + address - TILE_BASE, count], axis=1)
    )
    sent = np.empty(len(item), WORD)
    sent["value"], sent["address"] = values, address[item] + 4 * step
    sent["clock"], sent["pc"] = clock[item] + step, pc[item]
    ends = np.cumsum(np.bincount(guest, weights=count, minlength=len(guests)).astype(np.int64)).tolist()
    return [sent[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _share_elements(
    begin: NDArray[np.int64], end: NDArray[np.int64], code: NDArray[np.int64], code_end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether the bytes begin..end-1 share an effective element with the code; code is in region 0."""
    low, high = begin // ELEMENT_BYTES, (end - 1) // ELEMENT_BYTES
    return (begin < REGION1_BASE) & (low <= (code_end - 1) // ELEMENT_BYTES) & (high >= code // ELEMENT_BYTES)
