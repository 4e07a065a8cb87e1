"""Gangs: phases in which groups of tiles want what each of them holds."""

from __future__ import annotations

import numpy as np
import pytest
from exchange_phases import Phase, PhaseBuilder, delivered, memories
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.ipu21.fabric import routes
from tilewright.ipu21.fabric.choosing import _next
from tilewright.ipu21.fabric.execute import execute
from tilewright.ipu21.fabric.gangs import ganged
from tilewright.ipu21.fabric.greedy import _Tables
from tilewright.ipu21.fabric.joining import shared
from tilewright.ipu21.fabric.messages import cut, route_times, spans_of
from tilewright.ipu21.fabric.pairing import pairs, widened
from tilewright.ipu21.fabric.routes import place_parity
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.fabric.tables import NEVER
from tilewright.ipu21.fabric.verify import verify
from tilewright.ipu21.machine import topology

pytestmark = pytest.mark.unit

OPERAND, WEIGHTS = 0x80000, 0x90000


def two_operands(rows: int, columns: int, words: int, weight_words: int, pieces: int = 1) -> Phase:
    """On a grid of tiles, all of a row want what each of it holds, and all of a column likewise."""
    tiles = topology.to_physical(np.arange(rows * columns)).reshape(rows, columns)
    builder = PhaseBuilder()
    for groups, address, size in ((tiles, OPERAND, words), (tiles.T, WEIGHTS, weight_words)):
        for group in groups.tolist() if size else []:
            for source in group if len(group) > 1 else []:
                for piece in range(pieces):
                    others = [tile for tile in group if tile != source]
                    # A gap at the receivers keeps the pieces apart.
                    builder.add(source, address + 4 * size * piece, size, others, gap=2)
    return builder.build()


def test_every_message_leaves_at_most_twice_in_a_staircase() -> None:
    phase = two_operands(1, 7, 300, 0)
    result = schedule(*phase)
    assert verify(result.rows, {}, *phase) == []
    assert len(result.messages.source) == 2 * 7 - 2
    # Six turns, not seven: no tile waits while it sends.
    assert result.horizon < 6 * 300 + 150
    assert result.horizon <= 1.03 * result.bound


def test_two_operands_in_one_phase_come_near_the_bound() -> None:
    phase = two_operands(4, 12, 640, 320, pieces=3)
    result = schedule(*phase)
    assert verify(result.rows, {}, *phase) == []
    assert result.messages.wide.any()
    assert result.horizon <= 1.06 * result.bound


def test_partners_that_share_an_operand_receive_it_as_64_bit_items() -> None:
    alone, beside = two_operands(1, 11, 400, 0), two_operands(1, 12, 400, 0)
    assert schedule(*beside).horizon < 0.7 * schedule(*alone).horizon


@given(
    rows=st.integers(1, 5),
    columns=st.integers(2, 9),
    words=st.sampled_from([1, 2, 16, 33, 64, 100]),
    weight_words=st.sampled_from([0, 1, 17, 60, 128]),
    pieces=st.integers(1, 3),
)
@settings(max_examples=40)
def test_every_word_arrives(rows: int, columns: int, words: int, weight_words: int, pieces: int) -> None:
    phase = two_operands(rows, columns, words, weight_words, pieces)
    result = schedule(*phase)
    assert verify(result.rows, {}, *phase) == []
    before = memories(sorted(result.rows))
    expected = delivered(phase, before)
    execute(result.rows, before)
    assert all(np.array_equal(before[tile], expected[tile]) for tile in result.rows)


@pytest.mark.parametrize("stairs", [True, False])
@pytest.mark.parametrize("ways", [True, False])
def test_parts_hold_every_receiver_once(stairs: bool, ways: bool) -> None:
    spans = shared(spans_of(*two_operands(3, 6, 40, 20)))
    messages = cut(widened(spans, pairs(spans)))
    assert messages.wide.any()
    parts = ganged(messages, stairs=stairs, ways=ways)
    assert parts is not None
    assert sorted(parts.receiver.tolist()) == list(range(len(messages.tile)))
    sent_by = np.repeat(parts.message, np.diff(parts.offsets))
    assert np.array_equal(messages.owner[parts.receiver], sent_by)


def test_pairs_that_are_reached_one_way_see_a_message_at_events_of_one_parity() -> None:
    tiles = topology.to_physical(np.arange(topology.TILES))
    source, tile = np.meshgrid(tiles, tiles, indexing="ij")
    wide = np.ones(source.shape, dtype=np.bool_)
    odd = route_times(source, tile, wide) + place_parity(tile) & 1
    for way in (topology.EAST, topology.WEST):
        here = routes.direction(source, tile) == way
        assert not (((odd == 0) & here).any(axis=1) & ((odd == 1) & here).any(axis=1)).any()


def test_receivers_on_both_sides_of_a_sender_need_no_pauses() -> None:
    builder = PhaseBuilder()
    tiles = topology.to_physical(np.arange(288)).tolist()
    for group in (tiles[:144], tiles[144:]):
        for source in tiles[::12]:
            address = OPERAND if group[0] == tiles[0] else WEIGHTS
            builder.add(source, address, 24, [tile for tile in group if tile != source], gap=2)
    phase = builder.build()
    result = schedule(*phase)
    assert verify(result.rows, {}, *phase) == []
    assert result.messages.wide.any()
    assert result.horizon <= 1.3 * result.bound


def gathered(rows: int, columns: int, words: int, blocks: int, inner: int) -> Phase:
    """Pieces of an operand, two on each tile of a grid, to the tiles of another grid that want them."""
    ids = topology.to_physical(np.arange(rows * columns))
    groups, ids = ids.reshape(blocks, inner, -1), ids.reshape(rows, columns)
    builder = PhaseBuilder()
    for i, j in np.ndindex(rows, columns):
        wanted = groups[i * blocks // rows, j * inner // columns].tolist()
        for piece in range(2):
            builder.add(int(ids[i, j]), OPERAND + 4 * words * piece, words, wanted, gap=2)
    return builder.build()


@pytest.mark.parametrize(("shape", "ratio"), [((12, 24, 24, 3, 6), 1.05), ((20, 24, 28, 2, 6), 1.05)])
def test_a_queue_goes_on_with_what_need_not_wait(shape: tuple[int, ...], ratio: float) -> None:
    phase = gathered(*shape)
    result = schedule(*phase)
    assert verify(result.rows, {}, *phase) == []
    assert result.horizon <= ratio * result.bound


def test_of_the_candidates_that_arrive_first_the_most_pressing_is_tried_first() -> None:
    least, pressing = np.array([5, 3, 3, 3, NEVER]), np.array([9, 1, 2, 2, 9])
    assert _next(least, pressing, 5) == 2
    assert _next(least, pressing, 2) == 1
    assert _next(np.full(3, NEVER), pressing, 3) == -1


def test_queues_keep_all_parts_and_layers_share_no_receiver() -> None:
    spans = shared(spans_of(*two_operands(3, 6, 40, 20)))
    messages = cut(widened(spans, pairs(spans)))
    parts = ganged(messages, stairs=False)
    assert parts is not None
    assert parts.queues[0] == 0 and parts.queues[-1] == len(parts.message)
    size = np.diff(parts.queues)
    layer = np.repeat(np.repeat(parts.layers, size), np.diff(parts.offsets))
    queue = np.repeat(np.repeat(np.arange(len(size)), size), np.diff(parts.offsets))
    known = np.unique(np.stack([layer, messages.tile[parts.receiver], queue]), axis=1)
    assert len(np.unique(known[:2], axis=1).T) == len(known.T)
    # Rows have more tiles than columns, so they come first.
    widest = np.bincount(np.unique(np.stack([queue, messages.tile[parts.receiver]]), axis=1)[0])
    assert widest[parts.layers == 0].min() >= widest[parts.layers == 1].max()
    turns = parts.by_turns()
    assert sorted(turns.receiver.tolist()) == sorted(parts.receiver.tolist())
    assert np.array_equal(messages.owner[turns.receiver], np.repeat(turns.message, np.diff(turns.offsets)))
    first = set(parts.message[parts.queues[:-1][parts.layers == 0]].tolist())
    assert set(turns.message[: int((parts.layers == 0).sum())].tolist()) == first


def test_a_placement_is_given_up_when_it_is_no_shorter_or_takes_too_long() -> None:
    phase = gathered(12, 24, 24, 3, 6)
    spans = shared(spans_of(*phase))
    messages = cut(widened(spans, pairs(spans)))
    parts = ganged(messages, stairs=False, ways=True)
    assert parts is not None
    tables = _Tables(messages, schedule(*phase).bound, None)
    leaves, horizon, effort = tables._chosen(parts, True, NEVER)
    assert horizon < 1000 and (leaves >= 0).all() and effort > 0
    assert tables._chosen(parts, True, horizon)[1] >= NEVER
    assert tables._chosen(parts, True, horizon + 1)[1] == horizon


def test_a_gang_of_which_some_only_listen_has_no_staircase() -> None:
    builder = PhaseBuilder()
    tiles = topology.to_physical(np.arange(6)).tolist()
    for source in tiles[:2]:
        builder.add(source, OPERAND, 50, [tile for tile in tiles if tile != source])
    messages = cut(spans_of(*builder.build()))
    assert ganged(messages, stairs=True) is None
    assert ganged(messages, stairs=False) is not None


def test_route_table_equals_the_formula_for_all_pairs() -> None:
    tiles = topology.to_physical(np.arange(topology.TILES))
    source, tile = (side.reshape(-1) for side in np.meshgrid(tiles, tiles))
    assert np.array_equal(routes.time_to_mux(source, tile), topology.time_to_mux(source, tile))
    assert np.array_equal(routes.direction(source, tile), topology.direction(source, tile))
