"""Seeded random exchange phases: unicasts, multicasts, whole pairs, loopback, sizes around every limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.fabric.transfers import DESTINATION, TRANSFER
from tilewright.ipu21.machine import topology

SIZES = (1, 15, 16, 17, 52, 64, 65, 127, 512, 1024, 4148, 4149)
PAIRED_SIZES = (32, 34, 64, 104, 106, 110, 118, 128, 190, 194, 512, 1024, 8296, 8298)
"""Words; as 64-bit items they lie around the lengths at which two register writes would coincide."""
SOURCE, SOURCE_WORDS = 0x80000, 40_000
TARGET, TARGET_END = 0x54000, 0x80000
SHARED = 0x7C000
"""Sources may also lie here, in an element that receives may reach."""

Phase = tuple[NDArray[np.void], NDArray[np.void]]
ALL_TILES = topology.to_physical(np.arange(topology.TILES))


class Builder:
    """Collects transfers; destinations lie one behind the other on each tile."""

    def __init__(self, align: int = 4) -> None:
        self.transfers: list[tuple[int, int, int, int, int]] = []
        self.destinations: list[tuple[int, int]] = []
        self.top: dict[int, int] = {}
        self.align = align

    def fits(self, tiles: list[int], words: int, end: int = TARGET_END) -> bool:
        return all(self.top.get(tile, TARGET) + 4 * words + 32 <= end for tile in tiles)

    def add(self, source: int, address: int, words: int, tiles: list[int], gap: int = 0) -> None:
        first = len(self.destinations)
        for tile in tiles:
            target = -(-self.top.get(tile, TARGET) // self.align) * self.align + 8 * gap
            self.top[tile] = target + 4 * words
            self.destinations.append((tile, target))
        self.transfers.append((source, address, words, first, len(tiles)))

    def build(self) -> Phase:
        return np.array(self.transfers, TRANSFER), np.array(self.destinations, DESTINATION)


def random_graph(seed: int, *, most_tiles: int = 8, most_transfers: int = 14, big: bool = False) -> Phase:
    """A phase among few tiles, some of them partners; every kind of transfer the scheduler takes."""
    random = np.random.default_rng(seed)
    pairs = int(random.integers(1, most_tiles // 2 + 1))
    lower = random.choice(ALL_TILES[ALL_TILES & 2 == 0], pairs, replace=False)
    tiles = [int(tile) for tile in np.concatenate([lower, lower + 2])]
    sizes = SIZES if big else SIZES[: int(random.integers(3, 11))]
    paired = random.random() < 0.6
    builder = Builder(8 if paired or random.random() < 0.5 else 4)
    for _ in range(int(random.integers(1, most_transfers + 1))):
        source = int(random.choice(tiles))
        if paired and random.random() < 0.6:
            words = int(random.choice(PAIRED_SIZES[: 14 if big else 12]))
        else:
            words = int(random.choice(sizes))
        others = [tile for tile in tiles if tile != source]
        count = int(random.integers(1, min(6, len(others)) + 1))
        chosen = [int(tile) for tile in random.choice(others, count, replace=False)]
        if random.random() < (0.7 if paired else 0.2):
            chosen = sorted({tile for each in chosen for tile in (each, each ^ 2) if tile != source})
        if len(chosen) >= 2 and random.random() < 0.25:
            chosen.append(source)
        step = 8 if paired else 4
        address = SOURCE + step * int(random.integers(0, SOURCE_WORDS // 2 - words))
        shared = source not in chosen and 4 * words < 0x3000 and random.random() < 0.2
        if shared:
            address = SHARED + 8 * int(random.integers(0, (0x4000 - 4 * words) // 8))
        if builder.fits(chosen, words, SHARED):
            builder.add(
                source, address, words, chosen, gap=int(random.integers(0, 2)) * int(random.integers(3))
            )
    if not builder.transfers:
        builder.add(tiles[0], SOURCE, 3, [tiles[1]])
    return builder.build()
