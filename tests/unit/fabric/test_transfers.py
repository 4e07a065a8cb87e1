"""Checks and cutting of transfers."""

from __future__ import annotations

import numpy as np
import pytest
from exchange_phases import PhaseBuilder

from tilewright.errors import ScheduleError
from tilewright.ipu21.fabric.messages import cut, spans_of
from tilewright.ipu21.fabric.transfers import (
    DESTINATION,
    TRANSFER,
    check_transfers,
    element_masks,
)
from tilewright.ipu21.machine import memory, topology

pytestmark = pytest.mark.unit

S, D = 0x80000, 0x60000


@pytest.mark.parametrize(
    ("transfers", "destinations", "message"),
    [
        ([(0, S, 4, 0, 1)], [(0, D)], "transfer 0: it goes from tile 0 to itself"),
        ([(0, S, 4, 0, 2)], [(0, D), (1, D)], "sender 0 may receive its own message only beside"),
        (
            [(0, D, 4, 0, 3)],
            [(0, D + 64), (1, D), (2, D)],
            "sender 0 would read and write one memory element",
        ),
        ([(0, S, 4, 0, 2)], [(1, D), (1, D + 64)], "tile 1 is named twice"),
        ([(0, S + 2, 4, 0, 1)], [(1, D)], "source on tile 0 is not aligned"),
        ([(0, S, 4, 0, 1)], [(1, D + 1)], "destination on tile 1 is not aligned"),
        ([(0, memory.TILE_END - 12, 4, 0, 1)], [(1, D)], "source on tile 0 lies outside"),
        ([(0, S, 4, 0, 1)], [(1, memory.TILE_BASE - 4)], "destination on tile 1 lies outside"),
        ([(0, S, 0xFFFFFFFF, 0, 1)], [(1, D)], "outside"),
        ([(0, S, 0, 0, 1)], [(1, D)], "no words"),
        ([(0, S, 4, 0, 0)], [(1, D)], "no destination"),
        ([(0, S, 4, 1, 1)], [(1, D)], "end at 2, past the array"),
        ([(1472, S, 4, 0, 1)], [(1, D)], "source 1472 is not a tile"),
        ([(0, S, 4, 0, 1)], [(1500, D)], "destination 1500 is not a tile"),
        (
            [(0, S, 4, 0, 1), (2, S, 4, 1, 1)],
            [(1, D), (1, D + 12)],
            "transfer 1: .*also written by transfer 0",
        ),
        (
            [(0, S, 4, 0, 1), (2, S, 4, 1, 1)],
            [(1, D), (0, S + 12)],
            "transfer 0: transfer 1 overwrites its source",
        ),
    ],
)
def test_refuses(transfers: list[tuple[int, ...]], destinations: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        check_transfers(np.array(transfers, TRANSFER), np.array(destinations, DESTINATION))


def test_refuses_other_arrays() -> None:
    with pytest.raises(ScheduleError, match="TRANSFER"):
        check_transfers(np.zeros(2), np.zeros(0, DESTINATION))


def test_accepts_neighbours() -> None:
    check_transfers(
        np.array([(0, S, 4, 0, 1), (2, S, 4, 1, 2)], TRANSFER),
        np.array([(1, D), (1, D + 16), (0, S + 16)], DESTINATION),
    )


@pytest.mark.parametrize(("words", "pieces"), [(4148, [4148]), (4149, [2074, 2075]), (9000, [3000] * 3)])
def test_long_transfers_are_cut(words: int, pieces: list[int]) -> None:
    builder = PhaseBuilder()
    builder.add(0, S, words, [53, 9])
    messages = cut(spans_of(*builder.build()))
    assert messages.words.tolist() == pieces
    begins = np.concatenate([[0], np.cumsum(pieces)[:-1]])
    assert messages.address.tolist() == (S + 4 * begins).tolist()
    assert messages.target.reshape(-1, 2)[:, 1].tolist() == (D + 4 * begins).tolist()
    assert set(messages.control.tolist()) == {topology.BOTH}


def test_a_unicast_drives_one_direction() -> None:
    builder = PhaseBuilder()
    builder.add(0, S, 4, [53])
    builder.add(53, S, 4, [63])
    assert cut(spans_of(*builder.build())).control.tolist() == [topology.EAST, topology.WEST]


def test_own_messages_never_close_the_mux_where_the_send_begins() -> None:
    for source in range(4):
        for words in range(1, 130):
            builder = PhaseBuilder()
            builder.add(source, S, words, [source, 53, 9])
            messages = cut(spans_of(*builder.build()))
            route = int(topology.time_to_mux(np.array(source), np.array(source)))
            assert not set((route + 1 + messages.words).tolist()) & {0, 1}
            assert messages.words.sum() == words


def test_element_masks_agree_with_the_memory_map() -> None:
    random = np.random.default_rng(2)
    address = 4 * random.integers(memory.TILE_BASE // 4, memory.TILE_END // 4 - 20_000, 300)
    words = random.integers(1, 20_000, 300)
    for a, w, mask in zip(address, words, element_masks(address, words), strict=True):
        expected = memory.effective_elements(int(a), int(a + 4 * w))
        assert int(mask) == sum(1 << element for element in expected)
