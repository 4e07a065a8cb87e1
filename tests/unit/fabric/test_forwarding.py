"""Relays within one phase: what arrives is sent on, after it has arrived."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from exchange_phases import SOURCE_BASE, Phase, PhaseBuilder, memories
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import ScheduleError
from tilewright.ipu21.fabric.execute import execute
from tilewright.ipu21.fabric.items import SEND, row_items
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.rows import compose_row
from tilewright.ipu21.fabric.schedule import Schedule, schedule
from tilewright.ipu21.fabric.verify import verify
from tilewright.ipu21.machine import memory, topology

pytestmark = pytest.mark.unit


def check(phase: Phase, hops: int) -> Schedule:
    """Scheduled, judged, walked: equal to the transfers carried out over and over until nothing changes."""
    result = schedule(*phase, forwarding=True)
    assert verify(result.rows, dict.fromkeys(result.rows, 0x50000), *phase) == []
    before = memories(sorted(result.rows))
    expected = {tile: data.copy() for tile, data in before.items()}
    for _ in range(hops):
        for source, address, words, first, count in phase[0].tolist():
            at = address - memory.TILE_BASE
            for tile, target in phase[1][first : first + count].tolist():
                to = target - memory.TILE_BASE
                expected[tile][to : to + 4 * words] = expected[source][at : at + 4 * words]
    execute(result.rows, before)
    for tile in result.rows:
        assert np.array_equal(before[tile], expected[tile]), f"tile {tile}"
    return result


def chain(tiles: list[int], words: int) -> Phase:
    builder = PhaseBuilder()
    address = SOURCE_BASE
    for one, two in itertools.pairwise(tiles):
        builder.add(one, address, words, [two])
        address = builder.destinations[-1][1]
    return builder.build()


@pytest.mark.parametrize("words", [1, 17, 512, 4149])
def test_relay_chain(words: int) -> None:
    tiles = [int(tile) for tile in topology.to_physical(np.arange(0, 1472, 245))]
    result = check(chain(tiles, words), len(tiles))
    # Store and forward: pieces of long transfers share memory elements here, so they do not overlap.
    assert result.horizon <= (len(tiles) - 1) * (words + 250)


def test_a_relay_multicasts_what_it_received() -> None:
    builder = PhaseBuilder()
    builder.add(0, SOURCE_BASE, 200, [53])
    builder.add(53, builder.destinations[0][1], 200, [9, 64, 66, 1409])
    check(builder.build(), 2)


def test_forwarding_must_be_asked_for() -> None:
    phase = chain([0, 53, 9], 20)
    with pytest.raises(ScheduleError, match="transfer 1: transfer 0 overwrites its source on tile 53"):
        schedule(*phase)


def test_circles_are_refused() -> None:
    builder = PhaseBuilder()
    builder.add(0, 0x60000, 20, [53])
    builder.add(53, 0x60000, 20, [0])
    with pytest.raises(ScheduleError, match="waits for itself"):
        schedule(*builder.build(), forwarding=True)


def test_sending_on_too_early_is_found() -> None:
    phase = chain([0, 53, 9], 40)
    rows = dict(schedule(*phase, forwarding=True).rows)
    row = parse_row(rows[53])
    early = [(e - 60 if k == SEND else e, k, c, w, v) for e, k, c, w, v in row.items.tolist()]
    rows[53] = compose_row(row_items(early), row.end)
    found = [conflict for conflict in verify(rows, {}, *phase) if conflict.kind == "order"]
    assert [conflict.tile for conflict in found] == [53]
    assert "which it forwards" in str(found[0])


@given(seed=st.integers(0, 1 << 30), count=st.integers(1, 12))
@settings(max_examples=60)
def test_random_relays(seed: int, count: int) -> None:
    """Each transfer reads the source area or a part of what an earlier one brought to its tile."""
    random = np.random.default_rng(seed)
    tiles = topology.to_physical(random.choice(topology.TILES, 5, replace=False)).tolist()
    builder = PhaseBuilder()
    brought: list[tuple[int, int, int]] = []
    for _ in range(count):
        words = int(random.choice([8, 40, 128]))
        source, address = int(random.choice(tiles)), SOURCE_BASE + 400 * int(random.integers(0, 9))
        if brought and random.random() < 0.6:
            source, address, most = brought[int(random.integers(len(brought)))]
            words = min(words, most)
            address += 4 * int(random.integers(0, most - words + 1))
        others = [int(tile) for tile in tiles if tile != source]
        chosen = [int(tile) for tile in random.choice(others, int(random.integers(1, 4)), replace=False)]
        builder.add(source, address, words, chosen)
        brought += [(tile, target, words) for tile, target in builder.destinations[-len(chosen) :]]
    check(builder.build(), 1)
