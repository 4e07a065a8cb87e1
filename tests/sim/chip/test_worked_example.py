"""The worked example of the reference shelf, end to end: barriers, words, pages and its table of cycles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import worked_example as example
from fake_tile import FakeTiles
from numpy.typing import NDArray

from tilewright.errors import DeviceError, SimulationError
from tilewright.ipu21.machine.memory import TILE_BASE
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.package.records import Package

pytestmark = pytest.mark.sim

MakeDevice = Callable[[], SimulatedDevice]


@pytest.fixture(params=["naive tile", "engine"])
def make_device(request: pytest.FixtureRequest) -> MakeDevice:
    if request.param == "naive tile":
        return lambda: SimulatedDevice(engines=FakeTiles())
    return SimulatedDevice


def start(device: SimulatedDevice, package: Package) -> NDArray[np.uint8]:
    """The host up to and including the session start; returns the data page."""
    device.load(package)
    device.write_mark("gs1", 1)
    assert device.read_mark("gs1") == 0
    assert device.read_mark("gs2") == 0
    command, data = example.pages()
    device.attach(0, command)
    device.attach(1, data)
    mark(device)
    return data


def mark(device: SimulatedDevice) -> None:
    device.write_mark("gs2", 1)
    assert device.read_mark("gs2") == 0


def memory(device: SimulatedDevice, tile: int, address: int, size: int) -> bytes:
    (group,) = [g for g in device.chip.classes if tile in g.members]
    return group.tile.memory[address - TILE_BASE :][:size].tobytes()


def test_every_barrier_word_and_byte(make_device: MakeDevice) -> None:
    with make_device() as device:
        data = start(device, example.worked_package())
        for _ in range(4):
            mark(device)
        barriers = device.chip.barriers
        assert [b.group for b in barriers] == [3, 7, 7, 7, 3, 7, 7]
        assert [b.arrived + b.excused for b in barriers] == [1472] * 7
        assert [b.arrived for b in barriers] == [1472, 1472, 1, 1, 2, 1, 1]
        assert device.supervisor_states().tolist() == [0] * 1472
        assert device.waits_for() is None
        assert bytes(data[:12]) == example.INPUT
        assert bytes(data[4096:4108]) == example.INPUT
        assert not data[12:4096].any()
        assert not data[4108:].any()
        assert memory(device, 0, example.LANDING, 12) == example.INPUT
        assert memory(device, 53, example.TARGET, 12) == example.INPUT
        for tile in (0, 53, 1, 1471):
            assert memory(device, tile, example.COMPLETION, 4) == b"\1\0\0\0"
        assert memory(device, 1, example.TARGET, 12) == bytes(12)
        assert len(device.chip.classes) == 3


def test_marks_may_come_early_or_in_one(make_device: MakeDevice) -> None:
    """GS2 keeps credits: all five at once do the same work."""
    with make_device() as device:
        device.load(example.worked_package())
        command, data = example.pages()
        device.attach(0, command)
        device.attach(1, data)
        device.write_mark("gs2", 5)
        assert device.read_mark("gs2") == 0
        assert bytes(data[4096:4108]) == example.INPUT
        assert device.waits_for() is None


def test_table_of_cycles(make_device: MakeDevice) -> None:
    """Section 5: tile 0 and 1286 in the internal phase, the D2H phase and completion."""
    with make_device() as device:
        start(device, example.worked_package())
        mark(device)
        b3 = device.chip.barriers
        mark(device)
        assert len(b3) == 5, "B3 and then, without the host, B4"
        zero, internal = b3[3].release, b3[4]
        assert internal.last - zero == 80
        assert internal.release - zero == 330
        mark(device)
        entry = device.chip.barriers[5]
        assert entry.last - zero == 522
        mark(device)
        final = device.chip.barriers[6]
        answered = 31 + 1  # `sync 0` at 31, answered at once
        assert final.last - entry.release == answered
        by_tile = {g.first: g for g in device.chip.classes}
        assert by_tile[0].since - final.release == 20
        assert by_tile[1].since - final.release == 20
        assert by_tile[53].since - final.release == 27


def test_excuses_arrive_when_the_table_says(make_device: MakeDevice) -> None:
    with make_device() as device:
        start(device, example.worked_package())
        mark(device)
        mark(device)
        zero = device.chip.barriers[3].release
        by_tile = {g.first: g for g in device.chip.classes}
        assert by_tile[1].tile.sans_clock - zero == 336
        assert by_tile[0].tile.sans_clock - zero == 480
        assert by_tile[53].since - zero == 522


def test_owner_separated_from_target(make_device: MakeDevice) -> None:
    """Section 3.4: tile 260 receives, tile 4 requests."""
    with make_device() as device:
        data = start(device, example.separated_package())
        mark(device)
        mark(device)
        assert memory(device, 260, example.LANDING, 12) == example.INPUT
        assert memory(device, 4, example.LANDING, 12) == bytes(12)
        assert [b.arrived for b in device.chip.barriers] == [1472, 1472, 2, 2]
        assert bytes(data[:12]) == example.INPUT
        assert device.waits_for() is None


def run_all(device: SimulatedDevice, package: Package) -> NDArray[np.uint8]:
    data = start(device, package)
    for _ in range(4):
        mark(device)
    return data


def changed(program: example.Program, changes: example.Program, *removed: int) -> example.Program:
    result = {**program, **changes}
    for address in removed:
        result[address] = 0x19E00000
    return result


def test_sent_one_event_early(make_device: MakeDevice) -> None:
    """Word 0 is lost; words 1 and 2 land four bytes low. No fault."""
    with make_device() as device:
        run_all(device, example.worked_package(sender=changed(example.CLASS_A, {0x4C0E8: 0x40A00085})))
        assert memory(device, 53, example.TARGET, 12) == bytes(range(4, 12)) + bytes(4)


def test_sent_one_event_late(make_device: MakeDevice) -> None:
    """Word 2 is lost; the pointer stands at the first word's event still."""
    with make_device() as device:
        run_all(device, example.worked_package(sender=changed(example.CLASS_A, {0x4C0E8: 0x40A00087})))
        assert memory(device, 53, example.TARGET, 12) == bytes(range(8)) + bytes(4)


def test_missing_sans(make_device: MakeDevice) -> None:
    """Tile 7 does not sit out B4, so it is excused from barriers one too early and misses the last."""
    package = example.worked_package(odd_tiles={7: changed(example.CLASS_C, {}, 0x4C040)})
    with (
        make_device() as device,
        pytest.raises(SimulationError, match="deadlock, no barrier can complete") as error,
    ):
        run_all(device, package)
    assert error.value.tile == 7
    assert "tile 7 has ended" in str(error.value)
    assert "tile 53 wait in `sync 7` at 0x4c0d8" in str(error.value)
    assert "1470 tiles" in str(error.value)


def test_missing_sans_on_an_active_tile(make_device: MakeDevice) -> None:
    """A tile that stays in `sync 3` while the others are excused from nothing: zones do not agree."""
    package = example.worked_package(odd_tiles={7: changed(example.CLASS_C, {0x4C040: 0x41800007})})
    with make_device() as device, pytest.raises(SimulationError, match="barriers of different groups meet"):
        run_all(device, package)


def test_request_bit_cleared(make_device: MakeDevice) -> None:
    package = example.worked_package(sender_packets=[0, *example.PACKETS_0[1:]])
    with make_device() as device, pytest.raises(SimulationError, match="without permission") as error:
        run_all(device, package)
    assert error.value.tile == 0
    assert error.value.address == 0x4C0C0
    assert error.value.symbol == "start+0xac"


def test_missing_mark(make_device: MakeDevice) -> None:
    """The host forgets the last mark: the chip says what it waits for."""
    with make_device() as device:
        start(device, example.worked_package())
        for _ in range(3):
            mark(device)
        assert device.read_mark("gs2") == 0
        assert "(1 tiles arrived, 1471 excused) waits for a mark in GS2" in str(device.waits_for())
        assert memory(device, 1, example.COMPLETION, 4) == bytes(4)


def test_one_mark_too_many(make_device: MakeDevice) -> None:
    with make_device() as device:
        run_all(device, example.worked_package())
        device.write_mark("gs2", 1)
        with pytest.raises(SimulationError, match="GS2 still holds 1") as error:
            device.read_mark("gs2")
        assert error.value.category == "host"


def test_row_in_the_element_of_its_message(make_device: MakeDevice) -> None:
    """The sender's row moved to 0x50200, beside the message at 0x50180."""
    moved = {a: w for a, w in example.CLASS_A.items() if a < 0x4C0E8}
    moved |= {0x4C05C: 0x18A00000 | 0x50200 >> 2}
    moved |= {0x50200 + a - 0x4C0E8: w for a, w in example.CLASS_A.items() if a >= 0x4C0E8}
    package = example.worked_package(sender=moved)
    for image in package.images:
        image.segments.sort(key=lambda segment: segment.address)
    code = package.images[0].segments[0]
    blob = package.blobs[code.blob]
    package.blobs[code.blob] = blob[:0xE4] + blob[0x50200 - 0x4C010 :]
    code.memory_size = code.file_size = 0xE4
    package.images[0].segments.append(type(code)(0x50200, 12, code.blob, 0xE4, 12, 5))
    with make_device() as device, pytest.raises(SimulationError, match="memory element") as error:
        run_all(device, package)
    assert error.value.tile == 0


def test_stale_incoming_base(make_device: MakeDevice) -> None:
    """Without the base the words go elsewhere; here that is outside memory, and an old base is silent."""
    with make_device() as device, pytest.raises(SimulationError, match="pointer at 0x0") as error:
        run_all(device, example.worked_package(receiver=changed(example.CLASS_B, {}, 0x4C044)))
    assert error.value.tile == 53
    other = changed(example.CLASS_B, {0x4C040: 0x19800000 | 0x55000})
    with make_device() as device:
        data = run_all(device, example.worked_package(receiver=other))
        assert bytes(data[4096:4108]) == bytes(12)
        assert memory(device, 53, 0x55000, 12) == example.INPUT


def test_too_few_words_counted(make_device: MakeDevice) -> None:
    """INCOMING_DCOUNT 4 with 3 words: `sync 0` never ends."""
    package = example.worked_package(sender=changed(example.CLASS_A, {0x4C0B4: 0x19800004}))
    with make_device() as device:
        start(device, package)
        device.write_mark("gs2", 1)
        with pytest.raises(
            SimulationError, match="tile 0 wait in `sync 0` at 0x4c0c8 for 1 more words"
        ) as error:
            device.read_mark("gs2")
        assert error.value.tile == 0
        with pytest.raises(SimulationError) as again:
            device.read_mark("gs2")
        assert again.value is error.value
        assert device.supervisor_states()[0] == 3


def test_too_many_words_counted(make_device: MakeDevice) -> None:
    package = example.worked_package(sender=changed(example.CLASS_A, {0x4C0B4: 0x19800002}))
    with (
        make_device() as device,
        pytest.raises(SimulationError, match="3 words arrive from the host, INCOMING_DCOUNT expects 2"),
    ):
        run_all(device, package)


def test_row_ends_too_early(make_device: MakeDevice) -> None:
    package = example.worked_package(receiver=changed(example.CLASS_B, {0x4C0F4: 0x40A00006}))
    with make_device() as device, pytest.raises(SimulationError, match="row ends at event 172") as error:
        run_all(device, package)
    assert (error.value.tile, error.value.event) == (53, 172)


def test_data_count_of_the_phase(make_device: MakeDevice) -> None:
    package = example.worked_package(receiver=changed(example.CLASS_B, {0x4C050: 0x19800002}))
    with make_device() as device, pytest.raises(SimulationError, match="INCOMING_DCOUNT 2"):
        run_all(device, package)


def test_sync_while_excused(make_device: MakeDevice) -> None:
    """Tile 7 enters B4's `sync 3` right after `sans 0`: reported when the excused barrier happens."""
    package = example.worked_package(odd_tiles={7: changed(example.CLASS_C, {0x4C044: 0x41800003})})
    with make_device() as device, pytest.raises(SimulationError, match="excused from a barrier") as error:
        run_all(device, package)
    assert error.value.tile == 7


def test_end_without_completion_word(make_device: MakeDevice) -> None:
    package = example.worked_package(odd_tiles={7: changed(example.CLASS_C, {}, 0x4C054)})
    with make_device() as device, pytest.raises(SimulationError, match="completion word") as error:
        run_all(device, package)
    assert error.value.tile == 7


def test_zone_of_another_chip(make_device: MakeDevice) -> None:
    package = example.worked_package(odd_tiles={7: changed(example.CLASS_C, {0x4C040: 0x41800004})})
    with make_device() as device, pytest.raises(SimulationError, match="`sync 4`") as error:
        run_all(device, package)
    assert (error.value.category, error.value.tile, error.value.address) == ("unsupported", 7, 0x4C040)


def test_tiles_without_a_program_count_as_arrived(make_device: MakeDevice) -> None:
    package = example.worked_package()
    package.tiles = [tile for tile in package.tiles if tile.physical_tile in (0, 53, 60)]
    with make_device() as device:
        data = run_all(device, package)
        assert bytes(data[4096:4108]) == example.INPUT
        assert {b.arrived + b.excused for b in device.chip.barriers} == {1472}


def test_reading_the_tile_id_splits_a_class(make_device: MakeDevice) -> None:
    """Three idle tiles store their own id; the rest stay together."""
    program = {a: w for a, w in example.CLASS_C.items() if a < 0x4C04C}
    program |= example.FOLLOWER
    program |= example.listing("""
    4c04c 41000003 ; get m0, TILE_ID
    4c050 19157000
    4c054 4f10f000
    4c058 19000001
    4c05c 19158000
    4c060 4f10f000
    4c064 44f0f301
    4c068 43000000
    """)
    package = example.worked_package(odd_tiles={7: program, 9: program, 70: program})
    shared = next(t.image for t in package.tiles if t.physical_tile == 7)
    for tile in package.tiles:
        if tile.physical_tile in (9, 70):
            tile.image = shared
    with make_device() as device:
        run_all(device, package)
        for tile in (7, 9, 70):
            assert int.from_bytes(memory(device, tile, 0x57000, 4), "little") == tile
        assert len(device.chip.classes) == 6


def test_interrupts_leave_a_failed_chip(make_device: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    with make_device() as device:
        device.load(example.worked_package())

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(device.chip, "_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            device.read_mark("gs2")
        monkeypatch.undo()
        with pytest.raises(SimulationError, match="was interrupted"):
            device.read_mark("gs2")
        device.load(example.worked_package())
        assert device.read_mark("gs2") == 0


def test_profile_marks_become_intervals(make_device: MakeDevice) -> None:
    package = example.worked_package()
    table = np.array(
        [(0x4C0A8, 3), (0x4C058, 4), (0x4C0E8, 5), (0x4C064, 6)], [("address", "<u4"), ("step", "<u4")]
    )
    package.profile.mark_tables.append(table)
    for image in package.images[:2]:
        image.mark_table = 0
    with make_device() as device:
        run_all(device, package)
        found = device.intervals()
        assert set(found["tile"].tolist()) == {0, 53}
        assert found[found["tile"] == 0]["step"].tolist() == [3, 4, 5, 6]
        assert found[found["tile"] == 53]["step"].tolist() == [4, 5, 3, 6]
        for tile in (0, 53):
            mine = found[found["tile"] == tile]
            assert (mine["end"][:-1] == mine["begin"][1:]).all()
        phase = device.chip.barriers[4]
        sync = found[(found["step"] == 4) & (found["tile"] == 0)]
        assert sync["begin"].tolist() == [phase.last]
        assert sync["end"].tolist() == [phase.release]
        device.clear_intervals()
        assert len(device.intervals()) == 0


def test_endless_loop() -> None:
    package = example.worked_package(
        odd_tiles={7: changed(example.CLASS_C, {0x4C040: 0x40800000 | 0x4C040 >> 2})}
    )
    with SimulatedDevice(checks=Checks(budget=2_000_000)) as device:
        with pytest.raises(SimulationError, match="still running") as error:
            run_all(device, package)
        assert error.value.tile == 7
        assert "0x4c040" in str(error.value)


def test_exceptions_name_tile_and_instruction() -> None:
    package = example.worked_package(odd_tiles={7: changed(example.CLASS_C, {0x4C040: 0x41801000})})
    with SimulatedDevice() as device, pytest.raises(SimulationError, match="trap") as error:
        run_all(device, package)
    assert (error.value.tile, error.value.context, error.value.address) == (7, "supervisor", 0x4C040)
    assert error.value.symbol == "start+0x2c"
    assert error.value.category == "program"


def test_misuse_of_the_device() -> None:
    device = SimulatedDevice(engines=FakeTiles())
    with pytest.raises(DeviceError, match="no package is loaded"):
        device.read_mark("gs2")
    with pytest.raises(DeviceError, match="no package is loaded"):
        device.attach(0, np.zeros(4096, np.uint8))
    device.load(example.worked_package())
    with pytest.raises(DeviceError, match="no mark register"):
        device.read_mark("gs3")
    with pytest.raises(DeviceError, match="outside"):
        device.write_mark("gs2", 0x10000)
    device.close()
    with pytest.raises(DeviceError, match="no package is loaded"):
        device.write_mark("gs2", 1)


@pytest.mark.parametrize("latency", [0, 7, 5000])
def test_host_time_moves_only_the_host_phases(latency: int) -> None:
    """However long the port takes, the same bytes arrive and the device's own steps take the same cycles."""
    with SimulatedDevice(engines=FakeTiles(), host_latency=latency) as device:
        data = run_all(device, example.worked_package())
        assert bytes(data[4096:4108]) == example.INPUT
        barriers = device.chip.barriers
        assert barriers[3].last - barriers[2].release == 12 + latency
        assert barriers[4].release - barriers[3].release == 330
        assert barriers[6].last - barriers[5].release == 32 + latency
