"""Rows of the project's scheduler on the simulated chip with every check on: bytes arrive, no rule breaks.

The two share only route times, memory map and instruction encodings, so each judges the other.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from phase_program import SOURCE_DATA, assemble

from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.fabric.transfers import DESTINATION, TRANSFER
from tilewright.ipu21.machine.memory import TILE_BASE
from tilewright.ipu21.simulator.device import SimulatedDevice

pytestmark = pytest.mark.sim

LANDING = 0x80000
RELEASE_MARGIN = 64


def random_transfers(
    generator: np.random.Generator, tiles: NDArray[np.int64], count: int, fan: int, words: int
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Transfers from SOURCE_DATA.. of any tile to places of their own above LANDING of others."""
    landing = dict.fromkeys(tiles.tolist(), LANDING)
    transfers, destinations = [], []
    for _ in range(count):
        source = int(generator.choice(tiles))
        size = int(generator.integers(1, words))
        others = [t for t in generator.choice(tiles, fan + 1, replace=False).tolist() if t != source][:fan]
        chosen = others[: int(generator.integers(1, fan + 1))]
        address = SOURCE_DATA + 4 * int(generator.integers(0, 4096 - size))
        transfers.append((source, address, size, len(destinations), len(chosen)))
        for tile in chosen:
            destinations.append((tile, landing[tile]))
            landing[tile] += 4 * size
    return np.array(transfers, TRANSFER), np.array(destinations, DESTINATION)


@settings(max_examples=15)
@given(seed=st.integers(0, 1 << 30), fan=st.sampled_from([1, 4]), words=st.sampled_from([4, 60, 400]))
def test_scheduled_rows_run_on_the_chip(seed: int, fan: int, words: int) -> None:
    generator = np.random.default_rng(seed)
    tiles = np.sort(generator.permutation(1472)[:40])
    transfers, destinations = random_transfers(generator, tiles, 80, fan, words)
    plan = schedule(transfers, destinations)
    data = {int(t): generator.integers(0, 1 << 32, 4096, dtype=np.uint32) for t in tiles}
    rows = {(tile,): row.tobytes() for tile, row in plan.rows.items()}
    package = assemble(rows, {tile: data[tile].tobytes() for tile in plan.rows})
    with SimulatedDevice() as device:
        device.load(package)
        device.read_mark("gs2")
        memory = {group.first: group.tile.memory.view("<u4") for group in device.chip.classes}
        for transfer in transfers:
            begin = (int(transfer["address"]) - SOURCE_DATA) // 4
            sent = data[int(transfer["source"])][begin : begin + int(transfer["words"])]
            first = int(transfer["first"])
            for tile, address in destinations[first : first + int(transfer["count"])].tolist():
                got = memory[tile][(address - TILE_BASE) // 4 :][: len(sent)]
                np.testing.assert_array_equal(got, sent)
        phase = device.chip.barriers[1]
        ends = [group.since for group in device.chip.classes if group.first in plan.rows]
        # After its row a tile leaves by `br`, writes its completion word and ends.
        assert max(ends) <= phase.release + plan.horizon + RELEASE_MARGIN
        assert min(ends) >= phase.release
