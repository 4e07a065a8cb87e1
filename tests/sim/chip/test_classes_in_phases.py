"""Tiles with equal programs in exchange phases: they stay together until words tell them apart."""

from __future__ import annotations

import numpy as np
import pytest
from chip_rows import route
from fake_tile import FakeTile, FakeTiles
from phase_program import (
    ACTIVE,
    BYSTANDER,
    ROW,
    TARGET_DATA,
    assemble,
    receiver_row,
    row,
    sender_row,
    wait_until,
)

from tilewright.errors import SimulationError
from tilewright.ipu21.machine.memory import TILE_BASE
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.ipu21.simulator.doubts import warn_of_rounding_down
from tilewright.package.records import Package

pytestmark = pytest.mark.sim


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


def test_a_pointer_outlives_a_phase_without_traffic() -> None:
    """Tile 53 sets its pointer in one phase and receives in the next without setting it again."""
    again = {0x4C04C: 0x41800003, 0x4C050: 0x18A00000 | (ROW + 0x100) >> 2}
    twice = {**ACTIVE, **again}
    sitting = {**BYSTANDER, 0x4C034: 0x40C00000, 0x4C038: 0x41800001}
    data = bytes(range(32))
    x = 150 + route(0, 53)[0] + 1
    pointer = row(0x60000000 | 9 << 19 | TARGET_DATA // 4, wait_until(5))
    listen = row(0x64000000 | x - 1 << 14, 0x64000000 | 7 << 14 | 0x640, wait_until(80))
    quiet = row(wait_until(5))
    rows = {
        (0,): quiet + bytes(0x100 - len(quiet)) + sender_row(150, 8, 1),
        (53,): pointer + bytes(0x100 - len(pointer)) + listen,
    }
    package = assemble(rows, {0: data}, others=sitting, programs={0: twice, 53: twice})
    device = run(package)
    assert received(device, 53, 9) == data + bytes(4)
    assert [b.arrived for b in device.chip.barriers] == [1472, 2, 2]


def test_a_doubtful_rounding_mode_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_rounding_down.cache_clear()
    source = 0
    one, two, way = twins(source)
    package = assemble(
        {(source,): sender_row(150, 8, way), (one, two): receiver_row(source, one, 150, 8)},
        {source: bytes(32)},
    )
    run(package)
    assert not caplog.records
    monkeypatch.setattr(FakeTile, "doubts", True)
    run(package)
    assert ["minus infinity" in record.getMessage() for record in caplog.records] == [True]
