"""Random transfer sets for the tests of this folder."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.fabric.transfers import DESTINATION, TRANSFER
from tilewright.ipu21.machine import memory, topology

SIZES = (1, 2, 3, 4, 15, 16, 17, 27, 28, 29, 52, 64, 65, 127, 512, 1024, 4148, 4149)
SOURCE_BASE = 0x80000
TARGET_BASE = 0x60000
"""Sources in region 1, destinations in region 0 of the tiles: different elements."""

Phase = tuple[NDArray[np.void], NDArray[np.void]]


class PhaseBuilder:
    """Collects transfers; places destinations one after another, with a gap where asked."""

    def __init__(self) -> None:
        self.transfers: list[tuple[int, int, int, int, int]] = []
        self.destinations: list[tuple[int, int]] = []
        self.top: dict[int, int] = {}

    def add(self, source: int, address: int, words: int, tiles: list[int], gap: int = 0) -> None:
        first = len(self.destinations)
        for tile in tiles:
            target = self.top.get(tile, TARGET_BASE) + 4 * gap
            self.top[tile] = target + 4 * words
            self.destinations.append((tile, target))
        self.transfers.append((source, address, words, first, len(tiles)))

    def build(self) -> Phase:
        return np.array(self.transfers, TRANSFER), np.array(self.destinations, DESTINATION)


def random_phase(
    seed: int, tiles: int, transfers: int, fan_out: int, sizes: tuple[int, ...], shared: bool = False
) -> Phase:
    """Transfers among `tiles` random tiles. `shared`: sources lie in an element that receives write."""
    random = np.random.default_rng(seed)
    ids = random.choice(topology.to_physical(np.arange(topology.TILES)), tiles, replace=False).tolist()
    builder = PhaseBuilder()
    for _ in range(transfers):
        words = int(random.choice(sizes))
        source = int(random.choice(ids))
        count = int(random.integers(1, min(fan_out, tiles - 1) + 1))
        others = [tile for tile in ids if tile != source]
        chosen = [int(tile) for tile in random.choice(others, count, replace=False)]
        if count >= 2 and not shared and random.integers(4) == 0:
            chosen.append(source)
        address = SOURCE_BASE + 4 * int(random.integers(0, 1000))
        if shared:
            address = TARGET_BASE - 4 * words - 4 * int(random.integers(0, 100)) + 0x1F000
        builder.add(source, address, words, chosen, gap=int(random.integers(0, 2)) * 3)
    return builder.build()


def memories(tiles: list[int], seed: int = 1) -> dict[int, NDArray[np.uint8]]:
    """Random tile memories."""
    random = np.random.default_rng(seed)
    return {tile: random.integers(0, 256, memory.TILE_BYTES, dtype=np.uint8) for tile in tiles}


def delivered(phase: Phase, before: dict[int, NDArray[np.uint8]]) -> dict[int, NDArray[np.uint8]]:
    """What the memories must be after a phase."""
    after = {tile: data.copy() for tile, data in before.items()}
    for source, address, words, first, count in phase[0].tolist():
        at = address - memory.TILE_BASE
        data = before[source][at : at + 4 * words]
        for tile, target in phase[1][first : first + count].tolist():
            after[tile][target - memory.TILE_BASE : target - memory.TILE_BASE + 4 * words] = data
    return after
