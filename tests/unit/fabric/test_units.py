"""What a tile sends to another one in units of about one length, which an edge colouring serves."""

from __future__ import annotations

import numpy as np
import pytest
from exchange_phases import SOURCE_BASE, TARGET_BASE, Phase, PhaseBuilder

from tilewright.ipu21.fabric.messages import spans_of
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.fabric.units import halved, units
from tilewright.ipu21.fabric.verify import verify
from tilewright.ipu21.machine import topology

pytestmark = pytest.mark.unit


ROW_ADDRESS = 0x50000


def phase(moves: list[tuple[int, int, int]]) -> Phase:
    """Transfers of (source, receiver, words), each from and to bytes of its own."""
    builder = PhaseBuilder()
    sent: dict[int, int] = {}
    for source, tile, words in moves:
        builder.add(source, sent.get(source, SOURCE_BASE), words, [tile], gap=2)
        sent[source] = sent.get(source, SOURCE_BASE) + 4 * words + 8
    return builder.build()


def test_halves_are_even_and_move_all() -> None:
    spans = halved(spans_of(*phase([(0, 1, 64), (1, 2, 63), (2, 3, 67), (3, 0, 70)])))
    assert spans.source.tolist() == [0, 0, 1, 2, 2, 3, 3]
    assert spans.words.tolist() == [32, 32, 63, 32, 35, 34, 36]
    assert (spans.address - SOURCE_BASE).tolist() == [0, 128, 0, 0, 128, 0, 136]
    assert (spans.target - TARGET_BASE - 8).tolist() == [0, 128, 0, 0, 128, 0, 136]
    assert spans.tile.tolist() == [1, 1, 2, 3, 3, 0, 0]
    assert spans.transfer.tolist() == [0, 0, 1, 2, 2, 3, 3]


def test_a_bundle_twice_as_long_makes_two_units() -> None:
    # Tile 0 sends 400 words to tile 2, and half of that to tiles 3 and 4; 30 words are too few to count.
    source = np.array([0, 0, 0, 0, 0, 0, 1])
    tile = np.array([2, 2, 2, 2, 3, 4, 4])
    items = np.array([100, 100, 100, 100, 200, 200, 30])
    found = units(source, tile, items, np.array([0, 0, 0, 0, 1, 2, 3]))
    assert found.of.tolist() == [0, 0, 1, 1, 2, 3, 4]
    assert found.small.tolist() == [False, False, False, False, True]
    assert found.length == 4 * 200


def test_equal_bundles_stay_whole() -> None:
    found = units(np.array([0, 0, 1, 1]), np.array([2, 2, 2, 2]), np.full(4, 50), np.array([0, 0, 1, 1]))
    assert found.of.tolist() == [0, 0, 1, 1]
    assert not found.small.any()
    assert found.length == 2 * 100


def test_partial_sums_beside_what_comes_in_halves_stay_near_the_bound() -> None:
    # Groups of four exchange partial sums; half of the tiles hear as much again from one other tile, half of
    # them as much from two.
    tiles = topology.to_physical(np.arange(1024)).tolist()
    moves = []
    for index, tile in enumerate(tiles):
        group = index // 4 * 4
        for other in range(group, group + 4):
            if other != index:
                moves += [(tile, tiles[other], 352)] * 3
        away = (index * 5 + 331) % 1024
        if index % 2:
            moves += [(tile, tiles[away], 352)] * 3
        else:
            moves += [(tile, tiles[away], 528), (tile, tiles[(away + 10) % 1024], 528)]
    transfers, destinations = phase(moves)
    result = schedule(transfers, destinations)
    assert verify(result.rows, dict.fromkeys(result.rows, ROW_ADDRESS), transfers, destinations) == []
    assert result.horizon <= 1.04 * result.bound
