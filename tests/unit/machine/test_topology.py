"""Topology and route times against published values."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ipu21.machine import topology
from tilewright.ipu21.machine.topology import EAST, WEST

pytestmark = pytest.mark.unit

ALL = topology.to_physical(np.arange(topology.TILES))


@pytest.mark.parametrize(
    ("logical", "physical"),
    [
        (0, 0),
        (1, 2),
        (2, 64),
        (32, 1024),
        (46, 1409),
        (100, 260),
        (274, 9),
        (736, 32),
        (900, 613),
        (1286, 53),
        (1471, 63),
        (5, 130),
        (6, 192),
        (7, 194),
        (8, 256),
    ],
)
def test_published_ids(logical: int, physical: int) -> None:
    assert topology.to_physical(logical) == physical
    assert topology.to_logical(physical) == logical


def test_ids_are_a_permutation() -> None:
    assert sorted(ALL.tolist()) == list(range(1472))
    assert topology.to_logical(ALL).tolist() == list(range(1472))


def test_neighbours_in_logical_order_are_partners() -> None:
    logical = np.arange(topology.TILES)
    assert (topology.to_logical(topology.partner(ALL)) == logical ^ 1).all()


@pytest.mark.parametrize(
    ("source", "destination", "time", "displacement", "way"),
    [
        (0, 53, -23, 13, EAST),
        (0, 32, -4, 47, EAST),
        (0, 64, -31, 1, EAST),
        (0, 66, -30, 2, EAST),
        (32, 260, 49, -41, WEST),
        (53, 63, -14, -10, WEST),
        (1024, 0, 3, 1, EAST),
        (32, 0, 68, -47, WEST),
    ],
)
def test_published_routes(source: int, destination: int, time: int, displacement: int, way: int) -> None:
    pair = np.array(source), np.array(destination)
    assert topology.time_to_mux(*pair) == time
    assert topology.displacement(*pair) == displacement
    assert topology.direction(*pair) == way


@pytest.fixture(scope="module")
def times() -> np.ndarray:
    return topology.time_to_mux(ALL[:, None], ALL[None, :])


def test_range_of_route_times(times: np.ndarray) -> None:
    assert (times.min(), times.max()) == (-78, 112)
    assert (topology.displacement(ALL[:, None], ALL[None, :]) != 0).all()


def test_a_broadcast_from_tile_0_can_start_at_73(times: np.ndarray) -> None:
    assert -times[topology.to_logical(0)].min() == 73


def test_partners_differ_by_one(times: np.ndarray) -> None:
    assert (np.abs(times[:, 0::2] - times[:, 1::2]) == 1).all()


def test_own_route(times: np.ndarray) -> None:
    assert set(np.diagonal(times).tolist()) == {-29, -28}


def test_moving_both_ends_by_rows_changes_nothing() -> None:
    random = np.random.default_rng(0)
    source, destination = random.integers(0, 64 * 12, (2, 5000))
    shift = 64 * random.integers(0, 11, 5000)
    before = topology.time_to_mux(source, destination)
    assert (before == topology.time_to_mux(source + shift, destination + shift)).all()


def test_words_arrive_later_than_they_leave(times: np.ndarray) -> None:
    lead = times + 1 + topology.mux_to_store(ALL)[None, :]
    assert (lead.min(), lead.max()) == (19, 165)


def test_the_receivers_row_cancels_in_the_store_event(times: np.ndarray) -> None:
    flat = topology.time_to_mux(ALL[:, None], (ALL % 64)[None, :])
    assert (times + 1 + topology.mux_to_store(ALL)[None, :] == flat + 53).all()


def test_multicast_receivers_differ_as_measured() -> None:
    """One word from tile 0 to tiles 32 and 53: rows end at 78 and 59 (18 apart as measured in sixes)."""
    ends = {}
    route = {tile: int(topology.time_to_mux(np.array(0), np.array(tile))) for tile in (32, 53)}
    start = max(0, -min(route.values()))
    for tile, time in route.items():
        ends[tile] = start + time + 1 + topology.mux_to_store(tile) + 1 + topology.RECEIVE_GUARD
    assert ends == {32: 78, 53: 59}


def test_published_pointer_events() -> None:
    """Vendor rows into logical 2 (row 1) select at 2, 54, 106, 158 and write the pointer at 56, 108, ..."""
    delay = topology.mux_to_store(topology.to_physical(2))
    assert [event + delay for event in (2, 54, 106, 158)] == [56, 108, 160, 212]
    assert topology.mux_to_store(topology.to_physical(0)) == 165 - 113
