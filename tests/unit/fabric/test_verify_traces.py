"""Every rule by itself, on traces written by hand: what breaks it, at which event, and what just does not."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import ScheduleError
from tilewright.ipu21.fabric import deliveries, verify
from tilewright.ipu21.fabric.conflict import Conflict
from tilewright.ipu21.fabric.items import FORMAT, MUX, MUXPAIR, POINTER
from tilewright.ipu21.fabric.trace import Capture, Selection, Send, Store, TileTrace
from tilewright.ipu21.fabric.transfers import DESTINATION, TRANSFER
from tilewright.ipu21.machine.memory import REGION1_BASE, TILE_BASE
from tilewright.ipu21.machine.topology import RECEIVE_GUARD

pytestmark = pytest.mark.unit

S, D = 0x80000, 0x60000
WORDS, WIDE = 1, 5
"""Directions of sends: words to the east, 64-bit items to the east."""


def stored(event: int, items: int, address: int | None = D, way: int = 0, *, moved: bool = False) -> Store:
    return Store(event, items, address, 8, S, moved, way)


def found(conflicts: object) -> list[tuple[str, int]]:
    return [(conflict.kind, conflict.event) for conflict in conflicts]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kinds", "conflicts"),
    [
        ([MUX, POINTER], []),
        ([FORMAT], []),
        ([POINTER, FORMAT], [("control", 9)]),
        ([MUXPAIR, POINTER], [("control", 9)]),
    ],
)
def test_a_format_or_pair_mux_is_written_alone(kinds: list[int], conflicts: list[tuple[str, int]]) -> None:
    assert found(verify._controls(0, TileTrace(50, writes={9: kinds}))) == conflicts


@pytest.mark.parametrize(
    ("lent", "conflicts"),
    [
        # 64-bit items leave at events 10..29.
        ([Send(15, 2, S, WORDS), Send(50, 2, S, WORDS)], [("lane", 15)]),
        ([Send(2, 3, S, WORDS), Send(5, 10, S, WORDS)], [("lane", 10)]),
        ([Send(5, 5, S, WORDS), Send(30, 5, S, WORDS)], []),
        ([Send(5, 6, S, WORDS), Send(29, 5, S, WORDS)], [("lane", 10), ("lane", 29)]),
    ],
)
def test_a_lane_is_lent_while_64_bit_items_leave(lent: list[Send], conflicts: list[tuple[str, int]]) -> None:
    wide = TileTrace(90, [Send(10, 20, S, WIDE)])
    assert found(verify._lanes(0, wide, TileTrace(90, lent))) == conflicts
    assert found(verify._lanes(0, TileTrace(90, [Send(10, 20, S, WORDS)]), TileTrace(90, lent))) == []


def heard(source: int, send: Send, *, pair: bool, before: int = 0, items: int | None = None) -> Selection:
    """A selection that hears a send's items from `before` on."""
    count = send.items - before if items is None else items
    capture = Capture(send.event + before, count, source, send, before, send.items - before - count)
    return Selection(1, 99, source, (capture,), pair)


@pytest.mark.parametrize(
    ("control", "pair", "text"), [(WIDE, False, "needs the pair mux"), (WORDS, False, "")]
)
def test_64_bit_items_need_the_pair_mux(control: int, pair: bool, text: str) -> None:
    send = Send(10, 5, S, control)
    tiles = {0: TileTrace(99, [send]), 64: TileTrace(99, selections=[heard(0, send, pair=pair)])}
    conflicts = list(verify._selections(64, tiles[64], tiles))
    assert [conflict.kind for conflict in conflicts] == (["pair"] if text else [])
    assert all(text in str(conflict) for conflict in conflicts)


@pytest.mark.parametrize(
    ("tile", "rows", "texts"),
    [
        # Words of tile 0 pass the mux of tile 64 one event before that of tile 66, its partner.
        (64, (64, 66), []),
        (66, (64, 66), ["the other tile of the pair, 64, which words reach first"]),
        (64, (64,), ["a partner, tile 66, without a row"]),
    ],
)
def test_the_pair_mux_of_the_tile_that_words_reach_first(
    tile: int, rows: tuple[int, ...], texts: list[str]
) -> None:
    selection = heard(0, Send(10, 5, S, WIDE), pair=True)
    conflicts = list(verify._pair(tile, selection, "pair mux", {row: TileTrace(99) for row in rows}))
    assert [conflict.kind for conflict in conflicts] == ["pair"] * len(texts)
    assert [conflict.parties[1] for conflict in conflicts] == texts


SELF = Send(10, 8, S, WORDS)
"""Of which tile 0 hears items 2..5 itself."""


@pytest.mark.parametrize(
    ("other", "alone"),
    [
        (None, True),
        (heard(0, SELF, pair=False), False),
        (heard(0, SELF, pair=False, items=2), True),
        (heard(0, SELF, pair=False, items=3), False),
        (heard(0, SELF, pair=False, before=6), True),
        (heard(0, SELF, pair=False, before=5), False),
        (heard(4, SELF, pair=False), True),
    ],
)
def test_a_message_that_only_its_sender_hears(other: Selection | None, alone: bool) -> None:
    own = heard(0, SELF, pair=False, before=2, items=4)
    tiles = {0: TileTrace(99, [SELF], selections=[own])}
    if other:
        tiles[64] = TileTrace(99, selections=[other])
    assert found(verify._alone(tiles)) == ([("alone", 1)] if alone else [])


def test_the_pair_mux_and_other_sources_are_never_alone() -> None:
    for selection in (heard(0, SELF, pair=True), heard(4, SELF, pair=False)):
        assert list(verify._alone({0: TileTrace(99, [SELF], selections=[selection])})) == []


@pytest.mark.parametrize(
    ("stores", "conflicts"),
    [
        ([stored(10, 5), stored(15, 5)], []),
        ([stored(10, 5), stored(14, 5)], [("overlap", 14)]),
        ([stored(10, 5), stored(15, 5, moved=True)], [("pointer", 15)]),
        ([stored(10, 5, None)], [("pointer", 10)]),
        ([stored(10, 5, D + 4)], []),
        ([stored(10, 5, D + 4, 1)], [("address", 10)]),
    ],
)
def test_stores(stores: list[Store], conflicts: list[tuple[str, int]]) -> None:
    assert found(verify._stores(0, TileTrace(99, stores=stores))) == conflicts


@pytest.mark.parametrize(
    ("formats", "store", "conflicts"),
    [
        # Words need format 0 from their first event on; 64-bit items theirs, two events before.
        ([], stored(20, 10), []),
        ([(5, 1)], stored(20, 10), [("format", 20)]),
        ([(25, 1)], stored(20, 10), [("format", 25)]),
        ([(5, 1), (20, 0)], stored(20, 10), []),
        ([(5, 1), (21, 0)], stored(20, 10), [("format", 20)]),
        ([(29, 1)], stored(20, 10), [("format", 29)]),
        ([(30, 1)], stored(20, 10), []),
        ([], stored(20, 10, D, 1), [("format", 18)]),
        ([(18, 1)], stored(20, 10, D, 1), []),
        ([(19, 1)], stored(20, 10, D, 1), [("format", 18)]),
        ([(5, 2)], stored(20, 10, D, 1), [("format", 18)]),
    ],
)
def test_formats(formats: list[tuple[int, int]], store: Store, conflicts: list[tuple[str, int]]) -> None:
    assert found(verify._formats(0, TileTrace(99, formats=formats, stores=[store]))) == conflicts


@pytest.mark.parametrize(
    ("store", "conflicts"),
    [
        # 10 words leave the same element at events 20..29.
        (stored(25, 50), [("element", 25)]),
        (stored(5, 50), [("element", 20)]),
        (stored(30, 50), []),
        (stored(29, 50), [("element", 29)]),
        (stored(20 - RECEIVE_GUARD - 5, 5), []),
        (stored(20 - RECEIVE_GUARD - 4, 5), [("element", 20)]),
        (stored(25, 50, S), []),
        (stored(25, 50, None), []),
    ],
)
def test_sends_from_an_element_that_a_receive_writes(store: Store, conflicts: list[tuple[str, int]]) -> None:
    assert (
        found(verify._elements(0, TileTrace(99, [Send(20, 10, D + 0x1000, WORDS)], stores=[store])))
        == conflicts
    )


@pytest.mark.parametrize(
    ("address", "words", "conflicts"),
    [
        (TILE_BASE, 4, []),
        (TILE_BASE - 8, 4, [("row", 0)]),
        (REGION1_BASE - 16, 4, []),
        (REGION1_BASE - 8, 4, [("row", 0)]),
        (TILE_BASE + 4, 4, [("row", 0)]),
    ],
)
def test_rows_lie_in_executable_memory(address: int, words: int, conflicts: list[tuple[str, int]]) -> None:
    assert found(verify._fetch(0, TileTrace(99), address, words)) == conflicts


@pytest.mark.parametrize(
    ("it", "conflicts"),
    [
        (TileTrace(99, [Send(20, 10, D + 0x100, WORDS)]), [("fetch", 20)]),
        (TileTrace(99, [Send(20, 10, S, WORDS)]), []),
        (TileTrace(99, stores=[stored(30, 10)]), [("fetch", 30)]),
        (TileTrace(99, stores=[stored(30, 10, S)]), []),
    ],
)
def test_no_message_in_the_element_of_the_row(it: TileTrace, conflicts: list[tuple[str, int]]) -> None:
    assert found(verify._fetch(0, it, D, 4)) == conflicts


@pytest.mark.parametrize(
    ("send", "store", "conflicts"),
    [
        # 10 words from S on leave at events 100..109; each must have been stored more than 5 events before.
        (Send(100, 10, S, WORDS), stored(89, 15, S - 20), []),
        (Send(100, 10, S, WORDS), stored(90, 15, S - 20), [("order", 100)]),
        (Send(100, 10, S, WORDS), stored(99, 15, S + 20), []),
        (Send(100, 10, S, WORDS), stored(100, 15, S + 20), [("order", 105)]),
        (Send(100, 10, S, WORDS), stored(150, 15, S + 40), []),
        (Send(100, 10, S, WORDS), stored(150, 5, S - 20), []),
        (Send(100, 10, S, WORDS), stored(150, 5, None), []),
        # 10 items of 8 bytes, read faster than words are stored: only the last word may be late.
        (Send(100, 10, S, WIDE), stored(94, 11, S), [("order", 105)]),
        (Send(100, 10, S, WIDE), stored(93, 2, S), []),
        (Send(100, 10, S, WIDE), stored(94, 2, S), [("order", 100)]),
        (Send(100, 10, S, WIDE), stored(84, 20, S), []),
        (Send(100, 10, S, WIDE), stored(94, 20, S), [("order", 109)]),
        (Send(100, 10, S, WIDE), stored(94, 30, S), [("order", 109)]),
    ],
)
def test_what_is_sent_on_has_arrived(send: Send, store: Store, conflicts: list[tuple[str, int]]) -> None:
    assert found(deliveries.out_of_order(0, TileTrace(300, [send], stores=[store]))) == conflicts
    # By definition: each word in common, one after the other.
    late = [
        send.event + (address - send.address) // send.size
        for address in range(send.address, send.address + send.size * send.items, 4)
        if store.address is not None
        and store.address <= address < store.address + store.bytes
        and send.event + (address - send.address) // send.size
        <= store.event + (address - store.address) * store.items // store.bytes + RECEIVE_GUARD
    ]
    assert bool(late) == bool(conflicts)


@pytest.mark.parametrize(
    ("at", "origin", "lengths"),
    [
        ([0, 4, 8], [0, 4, 8], [3]),
        ([0, 4, 12], [0, 4, 8], [2, 1]),
        ([0, 4, 8], [0, 4, 12], [2, 1]),
        ([], [], []),
    ],
)
def test_words_are_reported_in_runs(at: list[int], origin: list[int], lengths: list[int]) -> None:
    words = np.zeros(len(at), deliveries._PLACED)
    words["at"], words["from"] = at, origin
    assert [len(run) for run in deliveries._runs(words)] == lengths


def asked(words: int) -> tuple[np.ndarray, np.ndarray]:
    """A transfer of so many words from tile 8 to tile 0."""
    return np.array([(8, S, words, 0, 1)], TRANSFER), np.array([(0, D)], DESTINATION)


def delivered(stores: list[Store], words: int) -> list[Conflict]:
    return list(deliveries.deliveries({0: TileTrace(99, stores=stores)}, *asked(words)))


FIRST = "from tile 8 address 0x80000 to 0x60000"


@pytest.mark.parametrize(
    ("stores", "text"),
    [
        ([], f"5 words asked for {FIRST} against no word arriving"),
        (
            [stored(10, 3)],
            "2 words asked for from tile 8 address 0x8000c to 0x6000c against no word arriving",
        ),
        (
            [stored(10, 6)],
            "1 words arriving from tile 8 address 0x80014 to 0x60014 against no transfer asking for them",
        ),
        (
            [stored(10, 5), stored(20, 1)],
            f"1 words arriving {FIRST} against words that arrived there before",
        ),
        (
            [Store(10, 5, D, 4, S, False, 0)],
            f"5 words asked for {FIRST} against words from tile 4 address 0x80000 arriving",
        ),
    ],
)
def test_what_was_asked_for_arrives_once_and_nothing_else(stores: list[Store], text: str) -> None:
    assert delivered([stored(10, 5)], 5) == []
    assert [str(conflict).split(": ", 1)[1] for conflict in delivered(stores, 5)] == [text]


def test_transfers_and_destinations_of_other_types_are_refused() -> None:
    transfers, destinations = asked(5)
    for pair in ((transfers.tolist(), destinations), (transfers, destinations.tolist())):
        arrays = [np.asarray(part) for part in pair]
        with pytest.raises(ScheduleError, match="must be arrays of TRANSFER and DESTINATION records"):
            list(deliveries.deliveries({}, *arrays))
