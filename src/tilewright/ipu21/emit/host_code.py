"""A tile's part in one host phase, as machine words, and the packet tables it sends from.

A phase is two barriers that include the host. In between, the owner of each target requests traffic for it
(XREQ) and each target sends packet headers; data then flows by itself. Everyone else stays away. The sequence
of instructions is the one known to work (evidence: known); the tables may lie anywhere outside the elements
of the running code, because `send` takes any address (known).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import PlacementError
from ..isa import build, csrs
from ..machine import sync_zones
from ..machine.host import (
    LONG_MAX_BYTES,
    LONG_UNIT,
    SHORT_MAX_BYTES,
    WRITE_MAX_BYTES,
    WRITE_SPAN_EVENTS,
    Packet,
    encode_header,
    host_mux,
    request_words,
)
from ..machine.topology import BOTH, MUX_NEUTRAL
from .host_plan import Slot
from .memory_map import SCRATCH, STAGING, TABLES, TABLES_END


@dataclass
class Tables:
    """Request words and packet headers of one tile, at TABLES in its memory."""

    tile: int
    words: list[int] = field(default_factory=list)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def add(self, *words: int) -> int:
        """Byte address of words in a row: those of an earlier phase if it sent the same, as full slots do."""
        if words in self._known:
            return self._known[words]
        address = self._known[words] = TABLES + 4 * len(self.words)
        self.words += words
        if address + 4 * len(words) > TABLES_END:
            raise PlacementError(
                f"host packet tables exceed {TABLES_END - TABLES:,} bytes",
                where=f"tile {self.tile}",
                hint="use more tiles, so that each one exchanges less with the host",
            )
        return address


def phase(tile: int, slot: Slot | None, to_host: bool, owned: list[int], tables: Tables) -> list[int]:
    """Words of one host phase for a tile that takes part in it.

    Args:
        tile: physical id.
        slot: what the tile itself moves, or None.
        to_host: direction of the whole phase.
        owned: physical ids of the targets this tile requests traffic for; not empty without a slot.
    """
    words = [build.setzi(8, host_mux(tile)), build.put(csrs.INCOMING_MUX, 8)]
    words.append(build.sync(sync_zones.HOST_MASTER if owned else sync_zones.HOST))
    if slot is not None:
        words += [build.setzi(8, 1 if to_host else slot.size // 4), build.put(csrs.INCOMING_DCOUNT, 8)]
    if owned:
        words.append(_send(2, tables.add(*request_words(owned))))
    if slot is not None:
        words += _write_packets(tile, slot, tables) if to_host else _read_packets(tile, slot, tables)
        words.append(build.sync(sync_zones.RECEIVED))
    words += [build.sync(sync_zones.HOST), build.setzi(8, MUX_NEUTRAL), build.put(csrs.INCOMING_MUX, 8)]
    return words


def _send(count: int, address: int) -> int:
    return build.send(count - 1, address // 4, BOTH)


def _cuts(start: int, size: int, long_bytes: int) -> list[tuple[int, int, bool]]:
    """(offset, bytes, long) of the packets that carry `size` bytes to or from host offset `start`.

    Both are multiples of 4. Long packets begin and end on 64-byte boundaries of the host's offset.
    """
    cuts = []
    offset = 0
    while offset < size:
        rest = size - offset
        misaligned = (start + offset) % LONG_UNIT
        long = rest >= LONG_UNIT and not misaligned
        if long:
            length = min(rest // LONG_UNIT * LONG_UNIT, long_bytes)
        else:
            length = min(rest, LONG_UNIT - misaligned, SHORT_MAX_BYTES)
        cuts.append((offset, length, long))
        offset += length
    return cuts


def _read_packets(tile: int, slot: Slot, tables: Tables) -> list[int]:
    cuts = _cuts(slot.device_offset, slot.size, LONG_MAX_BYTES)
    headers: list[int] = []
    for index, (offset, length, long) in enumerate(cuts):
        last = index == len(cuts) - 1
        packet = Packet(False, long, last, tile, STAGING + offset, slot.device_offset + offset, length)
        headers += encode_header(packet)
    return [_send(2, tables.add(*headers)), *[build.sendoff(1, 0, BOTH)] * (len(cuts) - 1)]


def _write_packets(tile: int, slot: Slot, tables: Tables) -> list[int]:
    words = []
    for piece in slot.pieces:
        target = slot.device_offset + piece.slot_offset
        for offset, length, long in _cuts(target, piece.size, WRITE_MAX_BYTES):
            header = encode_header(Packet(True, long, False, tile, 0, target + offset, length))
            words.append(_send(2, tables.add(*header)))
            words.append(_send(length // 4, piece.address + offset))
            if length // 4 < WRITE_SPAN_EVENTS:
                words.append(build.delay(WRITE_SPAN_EVENTS - length // 4 - 1))
    closing = encode_header(Packet(False, False, True, tile, SCRATCH, 0, 0))
    words.append(_send(2, tables.add(*closing)))
    return words


def copy_from_staging(slot: Slot, copy_address: int) -> list[int]:
    """Calls that bring what a read phase delivered to its final place."""
    words: list[int] = []
    for piece in slot.pieces:
        words += [
            build.setzi(2, piece.address),
            build.setzi(3, STAGING + piece.slot_offset),
            build.setzi(4, piece.size // 8),
            build.call(10, copy_address),
        ]
    return words
