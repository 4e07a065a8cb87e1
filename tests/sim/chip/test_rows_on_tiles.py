"""Published rows and rows from the closed formulas, executed word by word by the engine on a whole chip."""

from __future__ import annotations

import numpy as np
import pytest
from chip_rows import NEUTRAL, route
from hypothesis import given, settings
from hypothesis import strategies as st
from phase_program import SOURCE_DATA, TARGET_DATA, active, assemble, receiver_row, sender_row
from worked_example import words_to_bytes

from tilewright.errors import SimulationError
from tilewright.ipu21.machine.memory import TILE_BASE
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.package.records import Package

pytestmark = pytest.mark.sim


def words_of(text: str) -> bytes:
    return words_to_bytes([int(word, 16) for word in text.split()])


def random_data(words: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).integers(0, 1 << 32, words, dtype=np.uint32).tobytes()


def run(package: Package) -> SimulatedDevice:
    device = SimulatedDevice()
    device.load(package)
    assert device.read_mark("gs2") == 0
    return device


def memory(device: SimulatedDevice, tile: int, address: int, size: int) -> bytes:
    (group,) = [g for g in device.chip.classes if tile in g.members]
    return group.tile.memory[address - TILE_BASE :][:size].tobytes()


UNICASTS = [
    pytest.param(
        (0, "41800003 40a00086 78400001 43a00000"),
        (53, "41800003 641c0000 64008640 61800000 40a00007 43a00000"),
        3,
        id="a",
    ),
    pytest.param(
        (1024, "41800003 40a0006c 7fe00001 766fc001 43a00000"),
        (0, "41800003 641c0400 61980000 67ffc640 40a00038 43a00000"),
        4148,
        id="b",
    ),
]


@pytest.mark.parametrize(("sender", "receiver", "count"), UNICASTS)
def test_published_unicasts(sender: tuple[int, str], receiver: tuple[int, str], count: int) -> None:
    """5.1 a and b: pointer 0 and address 0 in the rows, the bases carry both."""
    data = random_data(count)
    package = assemble(
        {(sender[0],): words_of(sender[1]), (receiver[0],): words_of(receiver[1])},
        {sender[0]: data},
        programs={
            sender[0]: active(outgoing=SOURCE_DATA, row_has_sync=True),
            receiver[0]: active(incoming=TARGET_DATA, row_has_sync=True),
        },
    )
    device = run(package)
    assert memory(device, receiver[0], TARGET_DATA, 4 * count) == data
    assert memory(device, receiver[0], TARGET_DATA + 4 * count, 4) == bytes(4)


def test_published_sender_with_continuation() -> None:
    """5.1 c: 65 words logical 1286 -> 1471, with a receiver from the formulas at X = 113."""
    data = random_data(65)
    package = assemble(
        {
            (53,): words_of("41800003 40a0007d 7fe00002 70000002 43a00000"),
            (63,): receiver_row(53, 63, 126, 65),
        },
        {53: data},
        programs={53: active(outgoing=SOURCE_DATA, row_has_sync=True)},
    )
    assert memory(run(package), 63, TARGET_DATA, 260) == data


def test_published_multicast() -> None:
    """5.1 d: logical 0 -> 274 (published row) and 1286 (row from the formulas); pointer 0x50000."""
    data = random_data(3)
    x, p = 1, 53
    assert 23 + route(0, 53)[0] + 1 == x
    other = [0x64000000 | x - 1 << 14, 0x64000000 | 2 << 14 | NEUTRAL]
    other += [0x60000000 | p - x - 4 << 19 | 0x14000, 0x40A00007, 0x43A00000]
    package = assemble(
        {
            (0,): words_of("41800003 40a00016 78400003 43a00000"),
            (9,): words_of("41800003 64000000 64008640 61814000 40a00007 43a00000"),
            (53,): words_to_bytes(other),
        },
        {0: data},
        programs={0: active(outgoing=SOURCE_DATA, row_has_sync=True), 9: active(row_has_sync=True)},
    )
    device = run(package)
    assert memory(device, 9, 0x50000, 16) == data + bytes(4)
    assert memory(device, 53, 0x50000, 16) == data + bytes(4)


def test_published_row_with_four_messages() -> None:
    """5.1 e: `sendpicp` without a direction, mux and pointer written together, four 52-word messages."""
    row = "64000082 40a00032 f6600000 03014048 f6600000 03095000 f6600000 04016000 f7200000 19017000 43a00000"
    targets = [0x50120, 0x54000, 0x58400, 0x5D000]
    row = row.replace("04016000", "04016100").replace("19017000", "19017400")
    rows: dict[tuple[int, ...], bytes] = {(0,): words_of(row)}
    data = {}
    for index, source in enumerate((130, 192, 194, 256)):
        time, way = route(source, 0)
        rows[source,] = sender_row(1 + 52 * index - time - 1, 52, way)
        data[source] = random_data(52, index)
    with pytest.raises(SimulationError, match="memory element from which the row"):
        run(assemble(rows, data))
    rows[0,] = words_of(row.replace("19017400", "19018000"))
    targets[3] = 0x60000
    device = run(assemble(rows, data))
    for source, address in zip((130, 192, 194, 256), targets, strict=True):
        assert memory(device, 0, address, 208) == data[source]


def test_published_full_duplex_row() -> None:
    """5.1 f on logical 100: words leave from 0x50120 while 52 others end; controls ride on the sends."""
    tile, listener, talker = 260, 100, 0
    send = 100
    assert route(tile, listener)[1] == 1
    x = send + 29 - 52
    row = [0x64000000 | x - 1 << 14 | talker, 0x40A00000 | send - x - 1, 0x7B6A0241, 0x70F00640, 0x71F95000]
    row += [0x40A00000 | 100, 0x43A00000]
    out, back = random_data(52, 1), random_data(52, 2)
    device = SimulatedDevice()
    talk = x - route(talker, tile)[0] - 1
    package = assemble(
        {
            (tile,): words_to_bytes(row),
            (listener,): receiver_row(tile, listener, send, 52),
            (talker,): sender_row(talk, 52, route(talker, tile)[1]),
        },
        {talker: back},
    )
    device.load(package)
    (group,) = [g for g in device.chip.classes if tile in g.members]
    group.tile.load(0x50120, out, len(out))
    device.read_mark("gs2")
    assert memory(device, listener, TARGET_DATA, 208) == out
    assert memory(device, tile, 0x54000, 208) == back


def test_published_early_exit() -> None:
    """5.1 i: 10 of 64 words; the eleventh is not stored."""
    data = random_data(64)
    row = [0x64000000, 0x64000000 | 9 << 14 | NEUTRAL, 0x60000000 | 53 - 11 - 1 << 19 | TARGET_DATA // 4]
    row += [0x40A00000 | 10 + 5 - 1, 0x43A00000]
    package = assemble({(0,): sender_row(23, 64, 3), (9,): words_to_bytes(row)}, {0: data})
    assert memory(run(package), 9, TARGET_DATA, 48) == data[:40] + bytes(8)


def test_published_paired_rows() -> None:
    """5.1 g: 64 items of 8 bytes from logical 0 to the pair {2, 3}."""
    data = random_data(128)
    package = assemble(
        {
            (0,): words_of("41800003 40a0001e 7fe50005 43a00000"),
            (64,): words_of("41800003 64002000 61a40001 60098000 64022640 61a40000 40a00006 43a00000"),
            (66,): words_of("41800003 61ac0001 60098000 61ec0000 40a00006 43a00000"),
        },
        {},
        programs={tile: active(row_has_sync=True) for tile in (0, 64, 66)},
    )
    device = SimulatedDevice()
    device.load(package)
    (group,) = [g for g in device.chip.classes if 0 in g.members]
    group.tile.load(0x50000, data, len(data))
    device.read_mark("gs2")
    assert memory(device, 64, 0x60000, 512) == data
    assert memory(device, 66, 0x60000, 512) == data


@settings(max_examples=10)
@given(seed=st.integers(0, 1 << 30))
def test_random_phases_from_the_formulas(seed: int) -> None:
    """Disjoint unicasts and one multicast per sender, all over the chip, each row built by itself."""
    generator = np.random.default_rng(seed)
    tiles = [int(t) for t in generator.permutation(1472)[:60]]
    rows: dict[tuple[int, ...], bytes] = {}
    data, expected = {}, {}
    while len(tiles) > 6:
        source = tiles.pop()
        listeners = [tiles.pop() for _ in range(int(generator.integers(1, 6)))]
        count = int(generator.integers(1, 64))
        send = int(generator.integers(80, 200))
        ways = {route(source, listener)[1] for listener in listeners}
        rows[source,] = sender_row(send, count, sum(ways))
        data[source] = random_data(count, seed + source)
        for listener in listeners:
            rows[listener,] = receiver_row(source, listener, send, count)
            expected[listener] = data[source]
    device = run(assemble(rows, data))
    for listener, words in expected.items():
        assert memory(device, listener, TARGET_DATA, len(words) + 4) == words + bytes(4)
    assert len(device.chip.classes) == len(rows) + 1
