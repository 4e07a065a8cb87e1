"""Host packets, owners and request bitmaps against published values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.machine import host, topology
from tilewright.ipu21.machine.host import Packet

pytestmark = pytest.mark.unit

HEADERS = [
    ("a0000000 00000011", Packet(True, True, False, 0, 0, 0x40, 64)),
    ("ec000209 00000011", Packet(False, True, True, 0, 0x50120, 0x40, 64)),
    ("cc01020c 00000000", Packet(False, False, True, 2, 0x50180, 0, 0)),
    ("cc00020c 00004001", Packet(False, False, True, 0, 0x50180, 0x1000, 4)),
]


@pytest.mark.parametrize(("words", "packet"), HEADERS)
def test_published_headers(words: str, packet: Packet) -> None:
    first, second = (int(word, 16) for word in words.split())
    assert host.encode_header(packet) == (first, second)
    assert host.decode_header(first, second) == packet


@pytest.mark.parametrize(
    ("word", "tile", "address", "write"),
    [
        (0xA2C08000, 1409, 0, True),
        (0xA0820000, 260, 0, True),
        (0xEC820209, 260, 0x50120, False),
        (0xCC82020C, 260, 0x50180, False),
    ],
)
def test_published_first_words(word: int, tile: int, address: int, write: bool) -> None:
    packet = host.decode_header(word, (tile & 1) << 31 | 0x11)
    assert (packet.tile, packet.tile_address, packet.write) == (tile, address, write)
    assert host.encode_header(packet)[0] == word


def test_published_write_of_an_odd_tile() -> None:
    assert host.encode_header(Packet(True, True, False, 1409, 0, 0x40, 64)) == (0xA2C08000, 0x80000011)


@pytest.mark.parametrize(("physical", "mux"), [(116, 0x634), (582, 0x604), (1173, 0x615)])
def test_published_mux_ids(physical: int, mux: int) -> None:
    assert host.host_mux(physical) == mux


@pytest.mark.parametrize(
    ("target", "words"),
    [(31, (2, 0)), (81, (4, 0)), (260, (0x100, 0)), (768, (0, 1)), (1471, (0, 0x200000))],
)
def test_published_request_bitmaps(target: int, words: tuple[int, int]) -> None:
    assert host.request_words([target]) == words


@pytest.mark.parametrize(("target", "owner"), [(260, 4), (31, 29)])
def test_published_owners(target: int, owner: int) -> None:
    assert host.owner_of(target) == owner


def test_32_owners_with_46_targets_each() -> None:
    owners = np.array([host.owner_of(tile) for tile in range(topology.TILES)])
    values, counts = np.unique(owners, return_counts=True)
    assert len(values) == 32
    assert set(counts.tolist()) == {46}
    bits = {host.request_bit(tile) for tile in range(topology.TILES) if owners[tile] == 4}
    assert bits == set(range(46))


@given(
    write=st.booleans(),
    long=st.booleans(),
    last=st.booleans(),
    tile=st.integers(0, 1471),
    block=st.integers(0, 0x7FFF),
    page=st.integers(0, 1 << 10),
    data=st.data(),
)
def test_headers_round_trip(
    write: bool, long: bool, last: bool, tile: int, block: int, page: int, data: st.DataObject
) -> None:
    unit, most = (64, 16) if long else (4, 15)
    length = unit * data.draw(st.integers(1 if long else 0, most))
    start = data.draw(st.integers(0, (4096 - length) // unit)) * unit
    packet = Packet(
        write,
        long,
        last and not write,
        tile,
        0 if write else 0x4C000 + 32 * block,
        4096 * page + start,
        length,
    )
    assert host.decode_header(*host.encode_header(packet)) == packet


@pytest.mark.parametrize(
    "packet",
    [
        Packet(True, False, False, 0, 0, 0, 64),
        Packet(True, True, False, 0, 0, 0, 96),
        Packet(True, True, False, 0, 0, 0, 0),
        Packet(True, True, False, 0, 0, 4096 - 64, 128),
        Packet(True, True, False, 0, 0, 64 << 27, 64),
        Packet(False, True, True, 0, 0x50010, 0, 64),
        Packet(False, True, True, 0, 0x20000, 0, 64),
    ],
)
def test_refuses_packets_that_do_not_fit(packet: Packet) -> None:
    with pytest.raises(ValueError, match="host"):
        host.encode_header(packet)


@pytest.mark.parametrize("words", [(0x12345678, 0), (0xA0008000, 0x11), (0xA0000000, 0x80000011)])
def test_refuses_words_that_are_no_header(words: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="header"):
        host.decode_header(*words)
