"""Tiles with equal programs in exchange phases: they stay together until words tell them apart."""

from __future__ import annotations

import numpy as np
import pytest
from chip_rows import route
from fake_tile import FakeTiles
from worked_example import COMPLETION, Program, build, listing, words_to_bytes

from tilewright.errors import SimulationError
from tilewright.ipu21.machine.memory import TILE_BASE
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.package.records import Package

pytestmark = pytest.mark.sim

ROW = 0x5C000
SOURCE_DATA, TARGET_DATA = 0x60000, 0x64000

START = listing("""
4c010 19e00000
4c014 41800003 ; sync 3
4c018 41800002
4c01c 19000640
4c020 430080a0 ; INCOMING_MUX
4c024 43f080a7 ; OUTGOING_BASE
4c028 43f080a4 ; INCOMING_BASE
""")
END = listing("""
4c060 19000001
4c064 19158000
4c068 4f10f000 ; completion word
4c06c 44f0f301
4c070 43000000 ; end
""")
ACTIVE = {
    **START,
    **END,
    **listing("""
    4c02c 19800001
    4c030 438080a6 ; INCOMING_DCOUNT
    4c034 41800003 ; sync 3
    4c038 18a17000 ; call the row
    4c03c 19e00000
    4c040 19e00000
    4c044 19e00000
    4c048 19e00000
    4c04c 19e00000
    4c050 19e00000
    4c054 19e00000
    4c058 19e00000
    4c05c 19e00000
    """),
}
BYSTANDER = {**START, **END, **dict.fromkeys(range(0x4C034, 0x4C060, 4), 0x19E00000), 0x4C02C: 0x40C00000}
BYSTANDER |= {0x4C030: 0x41800001}


def row(*words: int) -> bytes:
    return words_to_bytes([*words, 0x43A00000])


def wait_until(event: int) -> int:
    return 0x40A00000 | event - 1


def sender_row(event: int, count: int, way: int) -> bytes:
    return row(wait_until(event), 0x78000000 | count - 1 << 21 | SOURCE_DATA // 4 << 3 | way)


def receiver_row(source: int, destination: int, event: int, count: int) -> bytes:
    x = event + route(source, destination)[0] + 1
    p = x + 52 + 2 * (destination >> 6)
    return row(
        0x64000000 | x - 1 << 14 | source,
        0x64000000 | count - 1 << 14 | 0x640,
        0x60000000 | p - x - count - 1 << 19 | TARGET_DATA // 4,
        0x40A00000 | count + 4,
    )


def assemble(
    rows: dict[tuple[int, ...], bytes], data: dict[int, bytes], *, others: Program | None = None
) -> Package:
    """Active tiles by groups that share an image; `data` is the source data of a group's first member."""
    programs = {}
    for tiles, words in rows.items():
        content: dict[int, bytes | int] = {ROW: words, TARGET_DATA: 256, COMPLETION: 4}
        if tiles[0] in data:
            content[SOURCE_DATA] = data[tiles[0]]
        programs[tiles[0]] = (ACTIVE, content)
    package = build(programs, (others or BYSTANDER, {COMPLETION: 4}))
    image = {entry.physical_tile: entry.image for entry in package.tiles}
    for entry in package.tiles:
        for tiles in rows:
            if entry.physical_tile in tiles:
                entry.image = image[tiles[0]]
    return package


def run(package: Package) -> SimulatedDevice:
    device = SimulatedDevice(engines=FakeTiles())
    device.load(package)
    assert device.read_mark("gs2") == 0
    return device


def received(device: SimulatedDevice, tile: int, words: int) -> bytes:
    (group,) = [g for g in device.chip.classes if tile in g.members]
    return group.tile.memory[TARGET_DATA - TILE_BASE :][: 4 * words].tobytes()


def twins(source: int) -> tuple[int, int, int]:
    """Two tiles of one row that hear a source at the same event and from the same side, and that side."""
    by_place: dict[tuple[int, int, int], int] = {}
    for tile in range(1472):
        time, way = route(source, tile)
        if tile != source and (tile >> 6, time, way) in by_place:
            return by_place[tile >> 6, time, way], tile, way
        by_place[tile >> 6, time, way] = tile
    raise AssertionError("no twins")


def test_receivers_that_share_an_image_get_their_own_memory() -> None:
    source = 0
    one, two, way = twins(source)
    data = bytes(range(32))
    package = assemble(
        {(source,): sender_row(150, 8, way), (one, two): receiver_row(source, one, 150, 8)}, {source: data}
    )
    device = run(package)
    assert received(device, one, 8) == data
    assert received(device, two, 8) == data
    assert sorted(len(group.members) for group in device.chip.classes) == [1, 1, 1, 1469]


def test_senders_that_share_an_image_stay_together() -> None:
    """Tiles 0 and 64 send alike; each has one listener. Only the listeners are told apart."""
    data = bytes(range(100, 132))
    package = assemble(
        {
            (0, 64): sender_row(150, 8, 3),
            (53,): receiver_row(0, 53, 150, 8),
            (117,): receiver_row(64, 117, 150, 8),
        },
        {0: data},
    )
    device = run(package)
    assert received(device, 53, 8) == received(device, 117, 8) == data
    assert sorted(len(group.members) for group in device.chip.classes) == [1, 1, 2, 1468]


def test_one_word_too_many_for_a_bystander() -> None:
    """A class of bystanders whose mux still selects the sender: the first of them is named."""
    listening = {**BYSTANDER, 0x4C01C: 0x19000000}
    package = assemble({(0,): sender_row(150, 8, 3)}, {0: bytes(32)}, others=listening)
    device = SimulatedDevice(engines=FakeTiles())
    device.load(package)
    with pytest.raises(SimulationError, match="8 items from tile 0 arrive with the pointer at 0x0"):
        device.read_mark("gs2")


def test_data_count_runs_on_below_zero() -> None:
    """Words of an internal phase count INCOMING_DCOUNT down; nobody waits for it, so it wraps at 17 bits."""
    package = assemble(
        {(0,): sender_row(150, 8, 1), (53,): receiver_row(0, 53, 150, 8)}, {0: bytes(range(32))}
    )
    device = run(package)
    (group,) = [g for g in device.chip.classes if g.members.tolist() == [53]]
    assert group.tile.csr(0xA6) == (1 - 8) % (1 << 17)


def test_idle_tiles_are_one_tile() -> None:
    package = assemble(
        {(0,): sender_row(150, 8, 1), (53,): receiver_row(0, 53, 150, 8)}, {0: bytes(range(32))}
    )
    device = run(package)
    assert sorted(len(group.members) for group in device.chip.classes) == [1, 1, 1470]
    assert [b.arrived + b.excused for b in device.chip.barriers] == [1472, 1472]
    assert np.all(device.supervisor_states() == 0)
