"""Composing and parsing rows: identity, limits, refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilewright.errors import ScheduleError
from tilewright.ipu21.fabric.items import CONTINUE, FORMAT, MUX, MUXPAIR, POINTER, ROW_ITEM, SEND, row_items
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.rows import compose_row, compose_rows
from tilewright.ipu21.isa.encode import encode

pytestmark = pytest.mark.unit

LEAVE, SENDOFF = "send count, srcWord, sctl", "sendoff count, srcDelta, sctl"
SENDPICP = "sendpicp count, srcWord, sctl, picSel"
SYNC, DELAY = "sync zimm4", "delay zimm19"


@st.composite
def timetables(draw: st.DrawFn) -> tuple[NDArray[np.void], int]:
    """Items that keep the rules: gaps, message lengths and write density vary from dense to sparse."""
    gaps = draw(st.sampled_from([(0, 3), (0, 70), (0, 9000)]))
    lengths = draw(st.sampled_from([(1, 3), (1, 200), (1, 5000)]))
    spacing = draw(st.sampled_from([(1, 2), (1, 6), (1, 500), (1, 9000)]))
    items: list[tuple[int, int, int, int, int]] = []
    now, forbidden = 1, set()
    for _ in range(draw(st.integers(0, 8))):
        now += draw(st.integers(*gaps))
        words = draw(st.integers(*lengths))
        items.append((now, SEND, draw(st.integers(1, 3)), words, 4 * draw(st.integers(0, (1 << 18) - 5001))))
        forbidden |= {now, now + 1}
        now += words
    event, last = 0, now
    for _ in range(draw(st.integers(0, 20))):
        event += draw(st.integers(*spacing))
        if event in forbidden:
            continue
        which = draw(st.integers(0, 2))
        if which != 1:
            items.append((event, MUX, 0, 0, draw(st.integers(0, 0x640))))
        if which != 0:
            items.append((event, POINTER, 0, 1 << 20, 4 * draw(st.integers(0, (1 << 16) - 1))))
        last = max(last, event)
    return row_items(items), last + draw(st.sampled_from([0, 1, 5, 600_000]))


def essential(items: NDArray[np.void]) -> list[tuple[Any, ...]]:
    """Items without writes that change nothing: the composer may add those to reach an even word."""
    mux, pointer, since = 0x640, -1, 0
    result = []
    for event, kind, control, words, value in items.tolist():
        if kind == MUX:
            if value == mux:
                continue
            mux = value
        elif kind == POINTER:
            if pointer >= 0 and value == pointer + 4 * (event - since):
                continue
            pointer, since = value, event
        result.append((event, kind, control, words if kind == SEND else 0, value))
    return result


@given(timetables())
@settings(max_examples=400)
def test_parse_inverts_compose(case: tuple[NDArray[np.void], int]) -> None:
    items, end = case
    words = compose_row(items, end)
    row = parse_row(words)
    assert row.end == end
    assert words[-1] == 0x43A00000
    got, expected = essential(row.items), essential(items)
    first_pointer = next((item[0] for item in expected if item[1] == POINTER), 1 << 60)
    got = [item for item in got if item[1] != POINTER or item[0] >= first_pointer]
    # A message that continues the one before it, in time and in memory, is still a message of its own.
    assert got == expected


@given(timetables())
@settings(max_examples=100)
def test_sparse_rows_have_no_added_writes(case: tuple[NDArray[np.void], int]) -> None:
    items, end = case
    spread = items.copy()
    spread["event"] *= 7
    ends = (spread["event"] + spread["words"] * (spread["kind"] == SEND)).tolist()
    sends = [i for i, kind in enumerate(spread["kind"]) if kind == SEND]
    if any(ends[a] > spread["event"][b] for a, b in itertools.pairwise(sends)):
        return
    parsed = parse_row(compose_row(spread, 7 * end + 5000)).items
    spread["words"] *= spread["kind"] == SEND
    assert parsed.tolist() == spread.tolist()


def test_dense_single_writes_get_a_harmless_second_one() -> None:
    items = row_items(
        [
            (1, MUX, 0, 0, 7),
            (2, MUX, 0, 0, 9),
            (2, POINTER, 0, 1, 0x60000),
            (3, POINTER, 0, 1, 0x70000),
            (4, MUX, 0, 0, 0x640),
            (4, POINTER, 0, 1, 0x61000),
        ]
    )
    parsed = parse_row(compose_row(items, 20)).items.tolist()
    assert [item for item in parsed if item[0] == 3] == [(3, MUX, 0, 0, 9), (3, POINTER, 0, 0, 0x70000)]
    assert essential(np.array(parsed, dtype=ROW_ITEM))[-2:] == [
        (4, MUX, 0, 0, 0x640),
        (4, POINTER, 0, 0, 0x61000),
    ]


def test_a_tile_with_long_delays_and_messages() -> None:
    items = row_items([(2_000_000, SEND, 1, 20_000, 0x50000), (2_000_700, MUX, 0, 0, 5)])
    row = parse_row(compose_row(items, 3_000_000))
    assert row.items.tolist() == items.tolist()
    assert row.end == 3_000_000


def test_continue_items_take_no_word() -> None:
    plain = [(10, MUX, 0, 0, 5), (62, POINTER, 0, 4, 0x60000), (14, MUX, 0, 0, 6), (18, MUX, 0, 0, 0x640)]
    with_hint = [*plain, (66, CONTINUE, 0, 4, 0x60010)]
    assert compose_row(row_items(plain), 90).tolist() == compose_row(row_items(with_hint), 90).tolist()


@pytest.mark.parametrize(
    ("items", "end", "message"),
    [
        ([(5, SEND, 1, 9, 0x50000), (5, MUX, 0, 0, 1)], 30, "tile 7, event 5: .*first two events"),
        ([(5, SEND, 1, 9, 0x50000), (6, MUX, 0, 0, 1)], 30, "tile 7, event 6: .*first two events"),
        ([(5, SEND, 1, 9, 0x50000), (14, SEND, 1, 4, 0x50000), (14, MUX, 0, 0, 1)], 30, "event 14"),
        ([(5, SEND, 1, 9, 0x50000), (13, SEND, 1, 4, 0x50000)], 30, "event 13: .*before the previous"),
        ([(5, MUX, 0, 0, 1), (5, MUX, 0, 0, 2)], 30, "event 5: .*twice"),
        ([(0, MUX, 0, 0, 1)], 30, "event 0: .*before event 1"),
        ([(5, MUX, 0, 0, 1)], 4, "event 4: .*ends before"),
        ([(5, MUX, 0, 0, 0x641)], 30, "event 5: mux number"),
        ([(5, POINTER, 0, 0, 0x50002)], 30, "event 5: .*aligned"),
        ([(5, SEND, 5, 2, 0x50004)], 30, "event 5: .*8 bytes"),
        ([(5, SEND, 1, 0, 0x50004)], 30, "event 5: .*no words"),
        ([(5, FORMAT, 0, 0, 3)], 30, "event 5: .*format"),
        ([(5, MUXPAIR, 0, 0, 3), (5, POINTER, 0, 0, 0x50000)], 30, "event 5: .*64-bit"),
        ([(5, 9, 0, 0, 3)], 30, "event 5: unknown kind"),
    ],
)
def test_refuses(items: list[tuple[int, int, int, int, int]], end: int, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        compose_row(row_items(items), end, tile=7)


def test_refuses_other_arrays() -> None:
    with pytest.raises(ScheduleError, match="ROW_ITEM"):
        compose_row(np.zeros(3, dtype=np.int64), 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([0x40A00004], "does not end"),
        (
            [0x40A00004, 0xF0000000, 0, 0x43A00000],
            "tile 3, word 1, event 5: sendpicp must begin at an even word",
        ),
        ([0x19E00000, 0x43A00000], "setzi does not belong|nop does not belong"),
        ([0x41800003, 0x41800003, 0x43A00000], "sync does not belong"),
        ([0x43A00000, 0x43A00000], "br does not belong"),
        ([0x43B00000], "br does not belong"),
        ([0xF0000000], "even word"),
    ],
)
def test_parse_refuses(words: list[int], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        parse_row(np.array(words, dtype=np.uint32), tile=3)


def parsed(*instructions: tuple[int, ...]) -> list[tuple[Any, ...]]:
    words = [word for instruction in instructions for word in instruction]
    return parse_row(np.array([*words, 0x43A00000], dtype=np.uint32)).items.tolist()


@pytest.mark.parametrize(
    ("following", "items"),
    [
        # Three words from 0x50000 on, then two more.
        (encode(SENDOFF, 1, 0, 1), [(0, SEND, 1, 5, 0x50000)]),
        (encode(SENDOFF, 1, 2, 1), [(0, SEND, 1, 3, 0x50000), (3, SEND, 1, 2, 0x50014)]),
        (encode(SENDOFF, 1, 0, 2), [(0, SEND, 1, 3, 0x50000), (3, SEND, 2, 2, 0x5000C)]),
    ],
)
def test_words_that_follow_at_once_in_the_same_direction_are_one_message(
    following: tuple[int, ...], items: list[tuple[int, ...]]
) -> None:
    assert parsed(encode(LEAVE, 2, 0x50000 >> 2, 1), following) == items


@pytest.mark.parametrize(
    ("address", "control", "sends"),
    [
        (0x5000C, 1, [(0, SEND, 1, 5, 0x50000)]),
        (0x50010, 1, [(0, SEND, 1, 3, 0x50000), (3, SEND, 1, 2, 0x50010)]),
        (0x5000C, 2, [(0, SEND, 1, 3, 0x50000), (3, SEND, 2, 2, 0x5000C)]),
    ],
)
def test_so_are_words_of_an_instruction_that_also_writes_two_registers(
    address: int, control: int, sends: list[tuple[int, ...]]
) -> None:
    pair = encode(SENDPICP, 1, address >> 2, control, 0, 0, 9, 0x60000 >> 2)
    first = encode(LEAVE, 0, 0x50000 >> 2, 1), encode(SENDOFF, 1, 0, 1)
    writes = [(4, MUX, 0, 0, 9), (4, POINTER, 0, 0, 0x60000)]
    assert sorted(parsed(*first, pair)) == sorted([*sends, *writes])


def test_only_a_barrier_at_the_first_word_is_none_of_the_events() -> None:
    end = 0x43A00000
    barrier, delay = *encode(SYNC, 3), *encode(DELAY, 3)
    row = parse_row(np.array([barrier, delay, end], dtype=np.uint32))
    assert (row.synchronised, row.end) == (True, 4)
    row = parse_row(np.array([delay, end], dtype=np.uint32))
    assert (row.synchronised, row.end) == (False, 4)
    with pytest.raises(ScheduleError, match="sync does not belong"):
        parse_row(np.array([*encode(SYNC, 1), delay, end], dtype=np.uint32))


def test_many_rows_at_once_equal_rows_alone() -> None:
    one = row_items([(5, SEND, 1, 9, 0x50000), (90, MUX, 0, 0, 3)])
    two = row_items([(1, MUX, 0, 0, 3), (53, POINTER, 0, 0, 0x60000)])
    rows = compose_rows([one, two], [100, 99], tiles=[0, 1])
    assert rows[0].tolist() == compose_row(one, 100).tolist()
    assert rows[1].tolist() == compose_row(two, 99).tolist()
