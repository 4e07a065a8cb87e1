"""64-bit exchange: published rows from the scheduler, agreement of the judges, when pairs are used."""

from __future__ import annotations

import numpy as np
import pytest
from exchange_phases import SOURCE_BASE, TARGET_BASE, PhaseBuilder, delivered, memories
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.ipu21.fabric.earliest import receiver_at
from tilewright.ipu21.fabric.execute import execute
from tilewright.ipu21.fabric.items import FORMAT, MUX, MUXPAIR, POINTER
from tilewright.ipu21.fabric.messages import cut, spans_of
from tilewright.ipu21.fabric.pairing import pairs, widened
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.schedule import _rows, schedule
from tilewright.ipu21.fabric.tables import LENT, WIDE
from tilewright.ipu21.fabric.verify import verify
from tilewright.ipu21.fabric.windows import parted, starts_at
from tilewright.ipu21.machine import topology

pytestmark = pytest.mark.unit

ROW_ADDRESS = 0x50000
LOWER = [int(tile) for tile in topology.to_physical(np.arange(0, topology.TILES, 2))]


def writes(row: np.ndarray, kind: int) -> list[tuple[int, int]]:
    return [(event, value) for event, k, _, _, value in parse_row(row).items.tolist() if k == kind]


def test_published_phase_is_scheduled_to_the_word() -> None:
    """64 items from logical 0 to {2, 3}; the published rows begin with their own `sync 3`."""
    builder = PhaseBuilder()
    builder.add(0, 0x50000, 128, [64, 66])
    rows = schedule(*builder.build()).rows
    words = {tile: " ".join(f"{word:08x}" for word in row) for tile, row in rows.items()}
    assert words == {
        0: "40a0001e 7fe50005 43a00000",
        64: "64002000 61a40001 60098000 64022640 61a40000 40a00006 43a00000",
        66: "61ac0001 60098000 61ec0000 40a00006 43a00000",
    }


def test_published_sequence_of_four_paired_messages() -> None:
    """176 items each into logical 2 (row 1): pair mux 1, 177, 353, 529; pointer 56, 232, 408, 584; format on
    at 54 and off at 758. The published targets are not contiguous."""
    builder = PhaseBuilder()
    for k in range(4):
        builder.add(0, SOURCE_BASE + 0x1000 * k, 352, [64, 66], gap=2)
    row = schedule(*builder.build()).rows[64]
    assert [event for event, _ in writes(row, MUXPAIR)] == [1, 705]
    assert [event for event, _ in writes(row, POINTER)] == [56, 232, 408, 584]
    assert writes(row, FORMAT) == [(54, topology.EAST), (758, 0)]
    assert writes(row, MUX) == []


def test_published_sequence_of_four_multicasts() -> None:
    """52 words each into logical 2: mux 2, 54, 106, 158; pointer 56, 108, 160, 212 (the published rows begin
    at event 2, ours as early as they can)."""
    builder = PhaseBuilder()
    for source in (130, 192, 194, 256):
        builder.add(source, SOURCE_BASE, 52, [64], gap=1)
    row = schedule(*builder.build()).rows[64]
    muxes, pointers = [event for event, _ in writes(row, MUX)], [event for event, _ in writes(row, POINTER)]
    assert np.diff(muxes).tolist() == [52] * 4
    assert [pointer - mux for pointer, mux in zip(pointers, muxes, strict=False)] == [54] * 4


def test_format_stays_between_messages_of_one_direction_only() -> None:
    builder = PhaseBuilder()
    builder.add(0, SOURCE_BASE, 128, [64, 66])
    builder.add(4, SOURCE_BASE, 128, [64, 66])
    builder.add(8, SOURCE_BASE, 100, [64])
    phase = builder.build()
    ways = topology.direction(np.array([0, 4]), np.array([64, 64])).tolist()
    result = schedule(*phase)
    assert verify(result.rows, dict.fromkeys(result.rows, ROW_ADDRESS), *phase) == []
    formats = writes(result.rows[66], FORMAT)
    assert ways == [topology.EAST, topology.WEST]
    assert formats[-1][1] == 0
    assert sorted(value for _, value in formats[:-1]) == [topology.EAST, topology.WEST]
    # Both tiles of the pair hear 64 items from either way, so the switch comes behind the last of the first.
    assert formats[1][0] >= formats[0][0] + 2 + 64


@pytest.mark.parametrize(("early", "moves"), [(0, 2), (1, 1), (2, 0), (-1, 0)])
def test_the_format_is_switched_back_beside_the_beginnings_of_sends(early: int, moves: int) -> None:
    """After a tile's last window there is time for it: it need not be at one event."""
    builder = PhaseBuilder()
    builder.add(0, SOURCE_BASE, 128, [64, 66])
    builder.add(64, SOURCE_BASE, 20, [128])
    phase = builder.build()
    spans = spans_of(*phase)
    messages = cut(widened(spans, pairs(spans)))
    alone = _rows(messages, np.array([31, 1000]), 0)
    back = writes(alone.rows[64], FORMAT)[-1][0]
    result = _rows(messages, np.array([31, back - early]), 0)
    assert verify(result.rows, {}, *phase) == []
    assert writes(result.rows[64], FORMAT)[-1] == (back + moves, 0)
    assert result.length(64) == max(back + moves + 7, back - early + 20)


def test_a_lent_lane_leaves_its_tile_free_to_write_registers() -> None:
    sends = np.array([[9, 10, 0], [10, 40, LENT], [60, 61, 0], [62, 70, 0]], dtype=np.int32)
    moved = [starts_at(sends, 0, 4, event) for event in (8, 9, 10, 11, 12, 60, 62)]
    assert moved == [0, 2, 1, 0, 0, 2, 2]


EASTWARDS, WESTWARDS = WIDE | topology.EAST, WIDE | topology.WEST


@pytest.mark.parametrize(
    ("kind", "next_kind", "sends", "later", "at"),
    [
        (0, EASTWARDS, [200, 210, 0], [], 25),
        (0, EASTWARDS, [90, 99, 0], [], 50),
        (0, EASTWARDS, [89, 99, 0], [], 50),
        (0, EASTWARDS, [88, 99, 0], [], 25),
        (0, EASTWARDS, [90, 99, LENT], [], 25),
        (0, EASTWARDS, [200, 210, 0], [90, 95, 0], 50),
        (EASTWARDS, EASTWARDS, [90, 99, 0], [], 25),
        (0, WESTWARDS, [90, 99, 0], [], 25),
    ],
)
def test_a_window_between_two_alike_needs_room_to_switch_the_format_again(
    kind: int, next_kind: int, sends: list[int], later: list[int], at: int
) -> None:
    """The second of them, at 40, would switch it at 40 + 52 - 2 on a tile of row 0."""
    rows = [[10, 20, EASTWARDS], [40, 50, next_kind]] + ([later] if later else [])
    windows, lane = np.array(rows, dtype=np.int32), np.array([sends], dtype=np.int32)
    assert parted(windows, 0, len(rows), lane, 0, 1, 52, 25, kind) == at


@pytest.mark.parametrize(("before", "start"), [(EASTWARDS, 9), (WESTWARDS, 11), (0, 11)])
def test_only_a_window_that_switches_the_format_avoids_sends_where_it_would(before: int, start: int) -> None:
    """The mux at 10 means the format at 60, when the tile begins to send, and the pointer at 62."""
    messages = np.array([[4, 8, WIDE, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
    receivers = np.array([[0, 0, EASTWARDS, 0]])
    tiles = np.array([[0, 1, 0, 1, 0, 0, 1]])
    sends, windows = (np.array([row], dtype=np.int32) for row in ([60, 70, 0], [0, 5, before]))
    masks = np.zeros(1, dtype=np.int64)
    found = 9
    while (
        moved := receiver_at(messages, receivers, tiles, sends, masks, windows, masks, 0, 0, found)
    ) != found:
        found = moved
    assert found == start


@pytest.mark.parametrize("paired", [True, False])
def test_words_that_would_close_the_mux_when_the_format_switches_are_cut(paired: bool) -> None:
    tile = 3 << 6
    builder = PhaseBuilder()
    for source in (4, 8, 12):
        if paired:
            builder.add(source, SOURCE_BASE, 128, [tile, tile | 2], gap=2)
        builder.add(source, SOURCE_BASE + 0x1000, 50 + 2 * 3, [tile], gap=1)
    phase = builder.build()
    spans = spans_of(*phase)
    words = cut(widened(spans, pairs(spans))).words.tolist()
    assert words.count(28) == (6 if paired else 0)
    assert words.count(56) == (0 if paired else 3)
    rows = schedule(*phase).rows
    assert verify(rows, {}, *phase) == []


def test_words_find_room_between_64_bit_items_of_one_way() -> None:
    """Where they go between two messages that left the format alone, it is switched twice more."""
    for words in (1, 2, 3, 20, 33, 56, 64):
        builder = PhaseBuilder()
        for k in range(6):
            builder.add(0, SOURCE_BASE + 0x1000 * k, 64 + 8 * k, [64, 66], gap=2)
        for source in (4, 8, 12, 16, 20):
            builder.add(source, SOURCE_BASE, words, [66], gap=1)
            builder.add(66, SOURCE_BASE + 0x1000 * source, words, [source], gap=1)
        phase = builder.build()
        rows = schedule(*phase).rows
        assert verify(rows, {}, *phase) == []


@given(
    seed=st.integers(0, 1 << 30),
    count=st.integers(2, 5),
    transfers=st.integers(1, 14),
    odd=st.booleans(),
)
@settings(max_examples=80)
def test_random_pairs(seed: int, count: int, transfers: int, odd: bool) -> None:
    random = np.random.default_rng(seed)
    lower = random.choice(LOWER, count, replace=False)
    tiles = [int(tile) for tile in np.concatenate([lower, lower + 2])]
    builder = PhaseBuilder()
    for _ in range(transfers):
        source = int(random.choice(tiles))
        targets = [int(tile) for tile in random.choice(tiles, int(random.integers(1, 4)), replace=False)]
        if random.random() < 0.7:
            targets = sorted({tile for each in targets for tile in (each, each ^ 2)})
        if source in targets and len(targets) < 3:
            targets = [source ^ 2]
        words = int(random.choice([8, 16, 24, 32, 52, 54, 56, 64, 102, 106, 110, 256, 190])) + (
            odd and int(random.integers(0, 2))
        )
        builder.add(source, SOURCE_BASE + 8 * int(random.integers(0, 500)), words, targets, gap=words & 1)
    phase = builder.build()
    result = schedule(*phase)
    rows = result.rows
    assert verify(rows, dict.fromkeys(rows, ROW_ADDRESS), *phase) == []
    assert result.horizon >= result.bound
    before = memories(sorted(rows))
    expected = delivered(phase, before)
    execute(rows, before)
    for tile in rows:
        assert np.array_equal(before[tile], expected[tile]), f"tile {tile}"


def test_pairs_halve_what_groups_share() -> None:
    """Every tile of a group sends the same to all others: received in pairs, it takes little over half."""
    tiles = [int(tile) for tile in topology.to_physical(np.arange(12))]
    builder = PhaseBuilder()
    for tile in tiles:
        builder.add(tile, SOURCE_BASE, 256, [other for other in tiles if other != tile])
    result = schedule(*builder.build())
    assert result.messages.wide.any()
    assert result.horizon < 0.75 * 11 * 256


@pytest.mark.parametrize("case", ["source", "target", "odd", "short", "alone"])
def test_what_cannot_be_paired_is_sent_as_words(case: str) -> None:
    builder = PhaseBuilder()
    if case == "target":
        builder.top[66] = TARGET_BASE + 4
    words = {"odd": 127, "short": 6}.get(case, 128)
    tiles = [64, 68] if case == "alone" else [64, 66]
    builder.add(0, SOURCE_BASE + (4 if case == "source" else 0), words, tiles)
    phase = builder.build()
    result = schedule(*phase)
    assert not result.messages.wide.any()
    assert verify(result.rows, {}, *phase) == []


def test_a_pair_is_not_used_where_it_costs() -> None:
    """The partner needs its own lane all the time: two 64-bit sends would take as long as four of words."""
    builder = PhaseBuilder()
    builder.add(0, SOURCE_BASE, 512, [64, 66])
    builder.add(2, SOURCE_BASE, 512, [68, 70])
    result = schedule(*builder.build())
    assert result.horizon <= 512 + 200
