"""Phases of known shape, some over all 1,472 tiles: rows run on simulated tiles deliver what was asked."""

from __future__ import annotations

import numpy as np
import pytest
from phase_on_tiles import ROW, agree
from random_graphs import ALL_TILES, SOURCE, Builder

from tilewright.ipu21.fabric.schedule import Schedule, schedule
from tilewright.ipu21.fabric.verify import verify
from tilewright.ipu21.machine import topology

pytestmark = pytest.mark.sim


def check(builder: Builder, *, walk: bool = False) -> Schedule:
    phase = builder.build()
    plan = schedule(*phase)
    assert verify(plan.rows, dict.fromkeys(plan.rows, ROW), *phase) == []
    agree(plan.rows, phase, walk=walk)
    return plan


def some(count: int, seed: int = 0) -> list[int]:
    return [int(tile) for tile in np.random.default_rng(seed).choice(ALL_TILES, count, replace=False)]


@pytest.mark.parametrize("words", [1, 17, 65])
def test_all_to_all(words: int) -> None:
    builder, tiles = Builder(), some(12)
    for a in tiles:
        for k, b in enumerate(tiles):
            if a != b:
                builder.add(a, SOURCE + 4 * words * k, words, [b])
    check(builder, walk=True)


@pytest.mark.parametrize("words", [1, 100, 4149])
def test_gather_and_scatter_at_once(words: int) -> None:
    builder, (root, *leaves) = Builder(), some(7, words)
    for k, leaf in enumerate(leaves):
        builder.add(leaf, SOURCE, words, [root])
        builder.add(root, SOURCE + 4 * words * k, words, [leaf])
    check(builder, walk=words < 1000)


def test_one_value_of_every_tile_to_one() -> None:
    builder = Builder()
    for tile in ALL_TILES[1:].tolist():
        builder.add(tile, SOURCE, 1, [int(ALL_TILES[0])])
    plan = check(builder)
    assert plan.horizon <= 1.02 * plan.bound


def test_one_tile_to_all() -> None:
    builder = Builder()
    source = int(ALL_TILES[700])
    builder.add(source, SOURCE, 65, [tile for tile in ALL_TILES.tolist() if tile != source])
    check(builder)


@pytest.mark.parametrize(("factor", "offset", "words"), [(5, 3, 52), (643, 1, 17)])
def test_affine_permutation_of_all_tiles(factor: int, offset: int, words: int) -> None:
    builder = Builder()
    for logical in range(topology.TILES):
        to = (factor * logical + offset) % topology.TILES
        if to != logical:
            ends = topology.to_physical(logical), topology.to_physical(to)
            builder.add(ends[0], SOURCE, words, [ends[1]])
    check(builder)


def test_groups_that_share_everything_use_pairs() -> None:
    builder = Builder(8)
    groups = ALL_TILES.reshape(-1, 32)
    for group in groups[:6].tolist():
        for tile in group:
            builder.add(tile, SOURCE, 128, [other for other in group if other != tile])
    plan = check(builder)
    assert plan.messages.wide.any()
    # Words alone would take 31 * 128 events.
    assert plan.horizon < 0.6 * 31 * 128
