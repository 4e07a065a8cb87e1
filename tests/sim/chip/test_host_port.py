"""The host port against published packet words and every way to get them wrong."""

from __future__ import annotations

import numpy as np
import pytest
from chip_rows import items
from numpy.typing import NDArray

from tilewright.errors import DeviceError, SimulationError
from tilewright.ipu21.machine.host import Packet, encode_header
from tilewright.ipu21.machine.memory import TILE_BASE, TILE_BYTES
from tilewright.ipu21.simulator.hostport import SCRATCH_PATTERN, WORD, Guest, HostPort, host_words

pytestmark = pytest.mark.sim


def guest(physical: int, mux: int | None = None, waiting_at: int = 0x4C0C4) -> Guest:
    memory = np.zeros(TILE_BYTES, np.uint8)
    return Guest(physical, memory, 0x600 + (physical & 0x3D) if mux is None else mux, waiting_at)


def words(
    *values: int, clock: int = 0, address: int = 0x50008, gaps: tuple[int, ...] = ()
) -> NDArray[np.void]:
    """Words sent one per cycle; `gaps` are positions before which 15 idle cycles pass."""
    result = np.zeros(len(values), WORD)
    result["value"] = values
    result["clock"] = (
        clock + np.arange(len(values)) + [15 * sum(i >= g for g in gaps) for i in range(len(values))]
    )
    result["address"] = address + 4 * np.arange(len(values))
    result["pc"] = 0x4C0C0
    return result


def port(owners: list[int]) -> tuple[HostPort, NDArray[np.uint8], NDArray[np.uint8]]:
    result = HostPort()
    command, data = np.zeros(4096, np.uint8), np.arange(8192, dtype=np.uint32).astype(np.uint8)
    result.attach(0, command)
    result.attach(1, data)
    result.enter(np.array(owners, np.int64))
    return result, command, data


READ_12 = (0xCC00020C, 0x00004003)
WRITE_12 = (0x801A8000, 0x80008003)
CLOSE_53 = (0xCC1A820B, 0x80000000)
REQUEST = (1, 0)


def test_read_of_twelve_bytes() -> None:
    door, _, data = port([0])
    tile = guest(0)
    rest = door.take_request(tile, words(*REQUEST, *READ_12, address=0x50000))
    assert rest["value"].tolist() == list(READ_12)
    assert door.serve(tile, rest) == 3
    assert bytes(tile.memory[0x180 + 0x4000 :][:12]) == bytes(data[:12])
    door.leave()
    assert not door.open
    assert (door.bytes_read, door.bytes_written) == (12, 0)


def test_write_then_closing_read() -> None:
    door, _, data = port([53])
    tile = guest(53)
    sent = words(
        *REQUEST, *WRITE_12, 0x03020100, 0x07060504, 0x0B0A0908, *CLOSE_53, address=0x50000, gaps=(7,)
    )
    sent["address"][7:] = [0x50010, 0x50014]
    assert door.serve(tile, door.take_request(tile, sent)) == 1
    assert bytes(data[4096:4108]) == bytes(range(12))
    assert set(tile.memory[0x50160 - TILE_BASE :][:4]) == {SCRATCH_PATTERN}
    door.leave()


def test_packets_may_come_in_pieces() -> None:
    door, _, data = port([53])
    tile = guest(53)
    sent = words(*REQUEST, *WRITE_12, 0x03020100, 0x07060504, 0x0B0A0908, address=0x50000)
    counted = 0
    for index in range(len(sent)):
        rest = door.take_request(tile, sent[index : index + 1])
        counted += door.serve(tile, rest) if len(rest) else 0
    assert bytes(data[4096:4108]) == bytes(range(12))
    assert counted == 0
    with pytest.raises(SimulationError, match="before the tile's last read packet"):
        door.leave()


def test_target_separated_from_its_owner() -> None:
    """Section 3.4: owner 4, target 260, bit 8."""
    door, _, data = port([4])
    owner, target = guest(4), guest(260)
    header = words(0xCC82020C, 0x00004003)
    assert len(door.take_request(target, header)) == 2
    assert len(door.take_request(owner, words(0x100, 0))) == 0
    assert door.serve(target, header) == 3
    assert bytes(target.memory[0x180 + 0x4000 :][:12]) == bytes(data[:12])
    door.leave()


def test_long_read() -> None:
    door, _, data = port([0])
    tile = guest(0)
    header = encode_header(Packet(False, True, True, 0, 0x50200, 4096 + 1024, 1024))
    assert door.serve(tile, door.take_request(tile, words(*REQUEST, *header, address=0x50000))) == 256
    assert bytes(tile.memory[0x50200 - TILE_BASE :][:1024]) == bytes(data[1024:2048])


def fails(
    match: str, *sent: int, category: str = "program", owners: tuple[int, ...] = (0,), **place: int
) -> None:
    door, _, _ = port(list(owners))
    tile = guest(place.pop("tile", 0), place.pop("mux", None), place.pop("waiting_at", 0x4C0C4))
    with pytest.raises(SimulationError, match=match) as error:
        door.serve(tile, door.take_request(tile, words(*sent, address=place.pop("address", 0x50000))))
    assert error.value.category == category
    assert error.value.tile == tile.physical
    assert error.value.address == 0x4C0C0


def test_header_without_permission() -> None:
    fails("without permission: its owner, tile 0, did not name it", 0, 0, *READ_12)


def test_owner_that_sent_no_request() -> None:
    fails("its owner, tile 0, sent no request", *READ_12, owners=())


def test_unknown_header() -> None:
    fails("is not a host packet header", *REQUEST, 0x12345678, 0)


def test_header_of_another_tile() -> None:
    fails("for tile 260 is sent by another tile", 0x101, 0, 0xCC82020C, 0x00004003)


def test_request_beyond_46_targets() -> None:
    fails("more than 46 targets", 1, 1 << 22)
    fails("more than 46 targets", 1 << 24, 0)


def test_wrong_mux() -> None:
    fails("INCOMING_MUX is 0x640, not its host input 0x600", *REQUEST, *READ_12, mux=0x640)


def test_header_alignment() -> None:
    fails("not aligned to 8 bytes", *REQUEST, *READ_12, address=0x50004)


def test_page_crossing() -> None:
    header = encode_header(Packet(False, False, True, 0, 0x50180, 4096 - 8, 8))
    fails("crosses a 4 KiB page", *REQUEST, header[0], header[1] + 1)


def test_beyond_the_pages() -> None:
    fails(
        "the pages hold 0x3000 bytes",
        *REQUEST,
        *encode_header(Packet(False, False, True, 0, 0x50180, 0x3000, 8)),
    )


def test_read_outside_the_proven_window() -> None:
    header = encode_header(Packet(False, False, True, 0, 0x60000, 0x1000, 8))
    fails("only 0x50000..0x54000 is known to work", *REQUEST, *header, category="fact unknown")


def test_read_outside_memory() -> None:
    header = encode_header(Packet(False, False, True, 0, TILE_BASE, 0x1000, 8))
    fails("outside tile memory", *REQUEST, header[0] | 0x7FFF, header[1])


def test_read_into_the_running_code() -> None:
    fails("memory element of the running code", *REQUEST, *READ_12, waiting_at=0x50200)
    fails("memory element of the running code", *REQUEST, *READ_12, waiting_at=0x50000 - 64)


def test_packet_after_the_last() -> None:
    fails("after the last read of its stream", *REQUEST, *READ_12, *READ_12)


def test_payload_too_short_in_time() -> None:
    sent = [*REQUEST, *WRITE_12, 1, 2, 3, *CLOSE_53]
    door, _, _ = port([53])
    tile = guest(53)
    array = words(*sent, address=0x50000)
    array["address"][7] = 0x50010
    with pytest.raises(SimulationError, match="spans 3 events"):
        door.serve(tile, door.take_request(tile, array))


def test_outside_a_host_phase() -> None:
    door, _, _ = port([0])
    tile = guest(0)
    door.serve(tile, door.take_request(tile, words(*REQUEST, *READ_12, address=0x50000)))
    door.leave()
    with pytest.raises(SimulationError, match="outside a host phase"):
        door.take_request(tile, words(*REQUEST))


def test_requests_must_be_used() -> None:
    door, _, _ = port([4])
    door.take_request(guest(4), words(0x100, 0))
    with pytest.raises(SimulationError, match="tile 4 requested host traffic") as error:
        door.leave()
    assert error.value.tile == 260


def test_owner_must_request() -> None:
    door, _, _ = port([4])
    door.take_request(guest(4), words(0x100))
    with pytest.raises(SimulationError, match="sent no request") as error:
        door.leave()
    assert error.value.tile == 4


def test_phase_ends_within_a_packet() -> None:
    door, _, _ = port([53])
    tile = guest(53)
    door.serve(tile, door.take_request(tile, words(*REQUEST, *WRITE_12, 1, address=0x50000)))
    with pytest.raises(SimulationError, match=r"sent no packet|within a packet"):
        door.leave()


@pytest.mark.parametrize(
    ("index", "buffer", "match"),
    [
        (2, np.zeros(16, np.uint32), "array of bytes"),
        (2, np.zeros((4, 4), np.uint8), "array of bytes"),
        (2, np.zeros(32, np.uint8)[::2], "array of bytes"),
        (2, np.frombuffer(bytes(16), np.uint8), "writable"),
        (2, np.zeros(3, np.uint8), "multiple of 4"),
        (1, np.zeros(16, np.uint8), "attached already"),
    ],
)
def test_pages_that_cannot_be_attached(index: int, buffer: NDArray[np.uint8], match: str) -> None:
    door, _, _ = port([0])
    with pytest.raises(DeviceError, match=match):
        door.attach(index, buffer)


def test_host_words_of_a_log() -> None:
    tile = guest(0)
    tile.memory[0x50000 - TILE_BASE :][:8] = np.arange(8)
    sent = host_words(items((0, 7, 2, 0x50000, 3, 0x4C0BC)), tile)
    assert sent["value"].tolist() == [0x03020100, 0x07060504]
    assert sent["clock"].tolist() == [7, 8]


@pytest.mark.parametrize(
    ("item", "match"),
    [
        ((0, 7, 2, 0x50000, 1, 0x4C0BC), "control 1 outside an exchange phase"),
        ((0, 7, 2, 0x50002, 3, 0x4C0BC), "not aligned"),
        ((0, 7, 2, 0xE7FFC, 3, 0x4C0BC), "outside tile memory"),
        ((0, 7, 2, 0x4C800, 3, 0x4C0BC), "memory element of the running code"),
    ],
)
def test_sends_that_no_host_phase_uses(item: tuple[int, int, int, int, int, int], match: str) -> None:
    with pytest.raises(SimulationError, match=match) as error:
        host_words(items(item), guest(0))
    assert (error.value.address, error.value.cycle) == (0x4C0BC, 7)
