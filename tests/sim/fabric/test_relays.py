"""Phases that forward, on simulated tiles: moved in pieces and word by word."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from phase_on_tiles import memories_of, run_on_tiles
from random_graphs import ALL_TILES, SOURCE, Builder

from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.machine.memory import TILE_BASE

pytestmark = pytest.mark.sim


@pytest.mark.parametrize("by_word", [False, True])
@pytest.mark.parametrize(("hops", "words"), [(12, 65), (3, 4149), (200, 1)])
def test_relay_chain(hops: int, words: int, by_word: bool) -> None:
    """Down a chain and, from its middle, to a pair."""
    tiles = [int(tile) for tile in np.random.default_rng(hops).choice(ALL_TILES[46:], hops, replace=False)]
    builder = Builder(8)
    address = SOURCE
    for k, (one, two) in enumerate(itertools.pairwise(tiles)):
        others = [int(ALL_TILES[0]), int(ALL_TILES[1])] if k == hops // 2 else []
        builder.add(one, address, words, [two, *others])
        address = builder.destinations[-1 - len(others)][1]
    phase = builder.build()
    plan = schedule(*phase, forwarding=True)
    memories = memories_of(phase)
    first = SOURCE - TILE_BASE
    data = memories[tiles[0]][first : first + 4 * words].copy()
    run_on_tiles(plan.rows, memories, by_word=by_word)
    for tile, target in phase[1].tolist():
        assert np.array_equal(memories[tile][target - TILE_BASE :][: 4 * words], data), f"tile {tile}"
