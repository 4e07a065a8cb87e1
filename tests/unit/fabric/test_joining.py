"""Transfers become few messages: shared sources, prefixes, continuing spans."""

from __future__ import annotations

import numpy as np
import pytest
from exchange_phases import SOURCE_BASE, TARGET_BASE, Phase, PhaseBuilder, delivered, memories
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.ipu21.fabric.execute import execute
from tilewright.ipu21.fabric.items import MUX, POINTER, SEND
from tilewright.ipu21.fabric.joining import continued, shared
from tilewright.ipu21.fabric.messages import Spans, spans_of
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.schedule import Schedule, schedule
from tilewright.ipu21.fabric.verify import verify
from tilewright.ipu21.machine import topology

pytestmark = pytest.mark.unit

Word = tuple[int, int, int, int]


def words_of(spans: Spans) -> set[Word]:
    """Every word that moves, as (source, address, tile, target)."""
    result = []
    for i in range(len(spans.source)):
        for k in range(int(spans.offsets[i]), int(spans.offsets[i + 1])):
            ends = int(spans.source[i]), int(spans.address[i]), int(spans.tile[k]), int(spans.target[k])
            result += [
                (ends[0], ends[1] + 4 * w, ends[2], ends[3] + 4 * w) for w in range(int(spans.words[i]))
            ]
    assert len(set(result)) == len(result)
    return set(result)


def check(phase: Phase) -> Schedule:
    result = schedule(*phase)
    assert verify(result.rows, dict.fromkeys(result.rows, 0x50000), *phase) == []
    before = memories(sorted(result.rows))
    expected = delivered(phase, before)
    execute(result.rows, before)
    for tile in result.rows:
        assert np.array_equal(before[tile], expected[tile])
    return result


def test_the_same_bytes_to_many_are_one_multicast() -> None:
    builder = PhaseBuilder()
    for tile in (53, 9, 1409):
        builder.add(0, SOURCE_BASE, 300, [tile])
    result = check(builder.build())
    assert len(result.messages.source) == 1
    assert result.horizon <= result.bound + 10


def test_the_same_bytes_twice_to_one_tile_stay_two_messages() -> None:
    builder = PhaseBuilder()
    builder.add(0, SOURCE_BASE, 30, [53])
    builder.add(0, SOURCE_BASE, 30, [53])
    assert len(check(builder.build()).messages.source) == 2


def test_a_receiver_of_a_prefix_leaves_early() -> None:
    """Tile 9 wants 100 of the 512 words that tile 53 gets: they leave once, and it is done after them."""
    builder = PhaseBuilder()
    builder.add(0, SOURCE_BASE, 512, [53])
    builder.add(0, SOURCE_BASE, 100, [9])
    rows = check(builder.build()).rows
    sends = [item for item in parse_row(rows[0]).items.tolist() if item[1] == SEND]
    assert sum(words for _, _, _, words, _ in sends) == 512
    closed = [
        e for e, kind, _, _, value in parse_row(rows[9]).items.tolist() if (kind, value) == (MUX, 0x640)
    ]
    opened = [e for e, kind, _, _, value in parse_row(rows[9]).items.tolist() if (kind, value) == (MUX, 0)]
    assert [closed[0] - opened[0]] == [100]


def test_spans_that_continue_one_another_are_one_message() -> None:
    builder = PhaseBuilder()
    for k in range(8):
        builder.add(0, SOURCE_BASE + 4 * 50 * k, 50, [53, 9])
    result = check(builder.build())
    assert result.messages.words.tolist() == [400]
    assert np.count_nonzero(parse_row(result.rows[9]).items["kind"] == POINTER) == 1


@pytest.mark.parametrize("what", ["gap", "other tile", "other order"])
def test_spans_that_do_not_continue_everywhere_stay_apart(what: str) -> None:
    builder = PhaseBuilder()
    builder.add(0, SOURCE_BASE, 50, [53, 9])
    if what == "other order":
        builder.top[9] = TARGET_BASE - 800
    other = [53, 66] if what == "other tile" else [9, 53]
    builder.add(0, SOURCE_BASE + 200, 50, other, gap=what == "gap")
    assert len(check(builder.build()).messages.source) >= 2


@given(seed=st.integers(0, 1 << 30), count=st.integers(1, 25))
@settings(max_examples=80)
def test_every_word_still_moves_once(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    tiles = topology.to_physical(random.choice(topology.TILES, 6, replace=False)).tolist()
    builder = PhaseBuilder()
    for _ in range(count):
        source = int(random.choice(tiles[:3]))
        fan = random.choice(tiles, int(random.integers(1, 4)), replace=False).tolist()
        receivers = [int(tile) for tile in fan if tile != source] or [tiles[5]]
        address = SOURCE_BASE + 40 * int(random.integers(0, 3))
        builder.add(source, address, int(random.choice([5, 10, 20])), receivers)
    phase = builder.build()
    spans = spans_of(*phase)
    assert words_of(continued(shared(spans))) == words_of(spans)
    check(phase)
