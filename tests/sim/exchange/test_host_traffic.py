"""The host's side on the simulated chip: many batches, many runs per command, many tiles per phase."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import SimulationError
from tilewright.ipu21.emit.memory_map import PROGRAM, TABLES
from tilewright.ipu21.isa.decode import decode
from tilewright.ipu21.selftest.run import run_trial
from tilewright.ipu21.selftest.scenarios import SCENARIOS
from tilewright.ipu21.selftest.trial import Area, Trial
from tilewright.ipu21.selftest.trial_memory import Memory
from tilewright.ipu21.selftest.trial_package import TAKEN, trial_package
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.package import read_package, write_package
from tilewright.package.records import Package
from tilewright.runtime import Session

pytestmark = pytest.mark.sim


def echo(tiles: int, words: int) -> Trial:
    """What the host gives comes back, on some tiles of one owner and of others."""
    held = tuple(range(0, 64 * ((tiles + 3) // 4), 64))
    chosen = tuple(sorted([*held, *(tile + 2 for tile in held), *(tile + 5 for tile in held)])[:tiles])
    return Trial("echo", (Area("x", 0x80000, words, chosen, given="host"),), values="word")


@pytest.mark.parametrize("late", [None, 3])
def test_commands_of_several_runs_reuse_the_pages(late: int | None) -> None:
    trial = SCENARIOS["through"](0, 4)
    package = read_package(write_package(trial_package(trial, {}, invocations=3)))
    assert package.host_exchange.calls[0].phases == 3 * 2 * (1 + 1)
    inputs = [trial.initial(seed) for seed in range(6)]
    with SimulatedDevice(acknowledge_delay_seed=late) as device, Session(device, package) as session:
        results = session.run_many(inputs)
        record = session.last_run
    memory = Memory(trial)
    for given, outputs in zip(inputs, results, strict=True):
        memory.write(given)
        np.testing.assert_array_equal(outputs["sum" + TAKEN], memory.run()["sum"])
    assert record is not None and len(set(record.cycles_each)) == 1


@pytest.mark.parametrize("words", [2, 4, 14, 16, 18, 62, 64, 66, 1022, 1024, 1026, 2050])
def test_sizes_around_packets_and_slots(words: int) -> None:
    with SimulatedDevice() as device:
        run_trial(echo(3, words), words, device)


def test_many_targets_of_one_owner_in_one_phase() -> None:
    """All 46 targets that physical tile 0 requests traffic for, itself among them."""
    tiles = tuple(sorted(row * 64 + lane for row in range(23) for lane in (0, 2)))
    trial = Trial("owner", (Area("x", 0x80000, 1200, tiles, given="host"),), values="word")
    with SimulatedDevice() as device:
        run_trial(trial, 0, device)


def test_weights_of_many_batches() -> None:
    """100 KiB on each of 16 tiles: 25 phases that 1,456 tiles sit out in a loop of four words."""
    trial = SCENARIOS["weights"](0, 16)
    weights = trial.initial(0, ["weight"])
    package = trial_package(trial, weights)
    call = package.call("initialize")
    assert call is not None and call.phases == 2 * 25
    with SimulatedDevice() as device, Session(device, package) as session:
        assert session.weight_bytes == 16 * 100 * 1024
        for _ in range(2):
            np.testing.assert_array_equal(session.run({})["held" + TAKEN], weights["held"])
    idle = program_of(package, 1471)
    assert [decode(word).form.mnemonic for word in idle] == [
        *("setzi", "sans", "sync", "brnzdec"),  # weights
        *("setzi", "sans", "sync", "brnzdec", "bri"),  # outputs, again and again
    ]
    assert decode(idle[0]).operands == (9, 24)


def test_full_slots_share_their_headers() -> None:
    """The 25 batches of a tile need the headers of one: 4 reads; writes are 16 and the closing read."""
    trial = SCENARIOS["weights"](0, 2)
    package = trial_package(trial, trial.initial(0, ["weight"]))
    image = package.images[package.tiles[trial.tiles[0]].image]
    tables = next(part for part in image.segments if part.address == TABLES)
    assert tables.file_size <= 8 * (1 + 4 + 16 + 1)


def program_of(package: Package, tile: int) -> list[int]:
    image = package.images[package.tiles[tile].image]
    segment = next(part for part in image.segments if part.address == PROGRAM)
    return np.frombuffer(package.segment_bytes(segment), "<u4").tolist()


def damaged(change: dict[int, int]) -> Package:
    """An echo on tile 0 with other words in its packet tables, by index."""
    package = trial_package(echo(1, 64), {})
    image = package.images[package.tiles[0].image]
    segment = next(part for part in image.segments if part.address == TABLES)
    words = np.frombuffer(package.segment_bytes(segment), "<u4").copy()
    for index, value in change.items():
        words[index] = value
    package.blobs.append(words.tobytes())
    segment.blob, segment.blob_offset = len(package.blobs) - 1, 0
    return package


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: 2}, "requested host traffic for it, but it sent no packet|without permission"),
        ({2: 0xEC00020C | 5 << 15}, "for tile 5 is sent by another tile|contradicts the tile id"),
        ({3: (0x1FC0 >> 6) << 4 | 2}, "crosses a 4 KiB page"),
        ({3: (0x10000 >> 6) << 4 | 4}, "the pages hold"),
        ({2: 0x12345678}, "not a host packet header"),
    ],
)
def test_deviations_from_the_protocol_are_reported(change: dict[int, int], message: str) -> None:
    package = damaged(change)
    with SimulatedDevice() as device, Session(device, package) as session:
        with pytest.raises(SimulationError, match=message) as error:
            session.run(echo(1, 64).initial(0))
        assert error.value.tile is not None
