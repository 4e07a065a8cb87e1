"""Random phases: the fast fabric against the closed formulas, and against the word-by-word definition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from chip_rows import FORMAT, ITEM, MUX, MUX_PAIR, NEUTRAL, POINTER, SEND, route, stored_words
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilewright.ipu21.machine.memory import TILE_BASE
from tilewright.ipu21.simulator.fabric import resolve
from tilewright.ipu21.simulator.movement import move, move_by_word
from tilewright.ipu21.simulator.traffic import Party, collect

pytestmark = pytest.mark.sim

RELEASE = 500
Log = list[tuple[int, int, int, int, int, int]]


def parties_of(logs: Mapping[int, Log], mux: Mapping[int, int] | None = None) -> list[Party]:
    return [
        Party(np.array([tile], np.int64), np.array(log, ITEM), (mux or {}).get(tile, NEUTRAL), close=1 << 40)
        for tile, log in logs.items()
    ]


def memories(tiles: list[int], seed: int) -> dict[int, NDArray[np.uint32]]:
    generator = np.random.default_rng(seed)
    return {t: generator.integers(0, 1 << 32, 1 << 15, dtype=np.uint32) for t in tiles}


def table(memory: Mapping[int, NDArray[np.uint32]]) -> list[NDArray[np.uint32]]:
    nothing = np.zeros(0, np.uint32)
    return [memory.get(tile, nothing) for tile in range(2048)]


def schedule(
    generator: np.random.Generator, tiles: list[int], messages: int, region: int
) -> tuple[dict[int, Log], list[tuple[int, int, int, int, int, int]]]:
    """Random unicasts and multicasts, as tight as the two windows allow; addresses within `region` bytes, so
    that small regions make tiles send on what they just received."""
    logs: dict[int, Log] = {tile: [] for tile in tiles}
    send_free = dict.fromkeys(tiles, 0)
    mux_free = dict.fromkeys(tiles, 0)
    moved = []
    for _ in range(messages):
        source = int(generator.choice(tiles))
        others = [t for t in tiles if t != source]
        count = int(generator.integers(1, min(len(others), 4) + 1))
        destinations = [int(d) for d in generator.choice(others, count, replace=False)]
        words = int(generator.integers(1, 40))
        send = send_free[source]
        for d in destinations:
            send = max(send, mux_free[d] - route(source, d)[0] - 1)
        read = TILE_BASE + 4 * int(generator.integers(0, region // 4 - words))
        ways = {route(source, d)[1] for d in destinations}
        control = 3 if len(ways) == 2 else ways.pop()
        logs[source].append((SEND, RELEASE + send, words, read, control, 0))
        send_free[source] = send + words
        for d in destinations:
            x = send + route(source, d)[0] + 1
            p = x + 52 + 2 * (d >> 6)
            write = TILE_BASE + 4 * int(generator.integers(0, region // 4 - words))
            logs[d] += [
                (MUX, RELEASE + x, 0, source, 0, 0),
                (MUX, RELEASE + x + words, 0, NEUTRAL, 0, 0),
                (POINTER, RELEASE + p, 0, write, 0, 0),
            ]
            mux_free[d] = x + words
            moved.append((send, source, read, p, d, write, words))
    return logs, [(s, a, r, p, d, w) for s, a, r, p, d, w, _ in moved]


def by_definition(
    words: list[tuple[int, int, int, int, int, int]], memory: dict[int, NDArray[np.uint32]]
) -> None:
    """Reads at the read cycle and stores at the store cycle, in time order."""
    events = []
    for number, (read_at, source, read, stored_at, destination, write) in enumerate(words):
        events.append((read_at, 0, number, source, read))
        events.append((stored_at, 1, number, destination, write))
    flying = {}
    for _, kind, number, tile, address in sorted(events):
        index = (address - TILE_BASE) // 4
        if kind == 0:
            flying[number] = memory[tile][index]
        else:
            memory[tile][index] = flying[number]


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 30), region=st.sampled_from([256, 1024, 65536]))
def test_random_phases_move_what_the_formulas_say(seed: int, region: int) -> None:
    generator = np.random.default_rng(seed)
    tiles = sorted(int(t) for t in generator.choice(1472, 7, replace=False))
    logs, messages = schedule(generator, tiles, 25, region)
    resolution = resolve(collect(parties_of(logs), RELEASE), np.zeros(2048, np.int64))

    words = stored_words({t: np.array(log, ITEM) for t, log in logs.items()}, RELEASE)
    expanded = sorted(
        (
            RELEASE + p["write_event"] + k,
            p["destination"],
            RELEASE + p["read_event"] + k,
            p["source"],
            p["read_address"] + 4 * k,
            p["write_address"] + 4 * k,
        )
        for p in resolution.pieces
        for k in range(p["items"])
    )
    assert expanded == [(w[3], w[4], w[0], w[1], w[2], w[5]) for w in words]
    starts = {
        (
            p["read_event"],
            p["source"],
            p["read_address"],
            p["write_event"],
            p["destination"],
            p["write_address"],
        )
        for p in resolution.pieces
    }
    assert set(messages) <= starts

    expected, fast, slow = (memories(tiles, seed) for _ in range(3))
    by_definition(words, expected)
    move(resolution.pieces, table(fast))
    move_by_word(resolution.pieces, table(slow))
    for tile in tiles:
        np.testing.assert_array_equal(fast[tile], expected[tile])
        np.testing.assert_array_equal(slow[tile], expected[tile])


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 30))
def test_arbitrary_logs_resolve_as_the_definition_says(seed: int) -> None:
    """Sends, muxes and pointers at random: lost words, half messages, silent sources, pointers that carry."""
    generator = np.random.default_rng(seed)
    tiles = sorted(int(t) for t in generator.choice(1472, 5, replace=False))
    logs: dict[int, Log] = {}
    for tile in tiles:
        log: Log = []
        now = 0
        for _ in range(6):
            now += int(generator.integers(0, 60))
            words = int(generator.integers(1, 50))
            read = TILE_BASE + 4 * int(generator.integers(0, 4096))
            log.append((SEND, RELEASE + now, words, read, int(generator.integers(0, 4)), 0))
            now += words
        for at in generator.integers(0, 500, 8):
            log.append((MUX, RELEASE + int(at), 0, int(generator.choice([*tiles, NEUTRAL])), 0, 0))
        for at in generator.integers(0, 600, 8):
            log.append(
                (POINTER, RELEASE + int(at), 0, TILE_BASE + 4 * int(generator.integers(0, 4096)), 0, 0)
            )
        logs[tile] = log
    mux = {tile: int(generator.choice([*tiles, NEUTRAL])) for tile in tiles}
    first = np.zeros(2048, np.int64)
    first[tiles] = TILE_BASE + 4 * generator.integers(0, 4096, len(tiles))
    resolution = resolve(collect(parties_of(logs, mux), RELEASE), first)
    words = stored_words(
        {t: np.array(sorted(log, key=lambda i: i[1]), ITEM) for t, log in logs.items()},
        RELEASE,
        mux,
        {t: int(first[t]) for t in tiles},
    )
    expanded = sorted(
        (
            RELEASE + p["write_event"] + k,
            p["destination"],
            RELEASE + p["read_event"] + k,
            p["source"],
            p["read_address"] + 4 * k,
            p["write_address"] + 4 * k,
        )
        for p in resolution.pieces
        for k in range(p["items"])
    )
    assert expanded == [(w[3], w[4], w[0], w[1], w[2], w[5]) for w in words]
    fast, slow = memories(tiles, seed), memories(tiles, seed)
    move(resolution.pieces, table(fast))
    move_by_word(resolution.pieces, table(slow))
    for tile in tiles:
        np.testing.assert_array_equal(fast[tile], slow[tile])


@settings(max_examples=30)
@given(seed=st.integers(0, 1 << 30))
def test_random_paired_phases(seed: int) -> None:
    """64-bit messages from the published rules: the early partner selects, both set format and pointer."""
    generator = np.random.default_rng(seed)
    pairs = sorted({int(t) & ~2 for t in generator.choice(1472, 8, replace=False)})
    tiles = sorted([*pairs, *(t | 2 for t in pairs)])
    logs: dict[int, Log] = {tile: [] for tile in tiles}
    send_free, receive_free = dict.fromkeys(pairs, 0), dict.fromkeys(pairs, 0)
    expected = []
    for _ in range(8):
        source = int(generator.choice(tiles))
        others = [p for p in pairs if p != source & ~2]
        chosen = [int(p) for p in generator.choice(others, int(generator.integers(1, 3)), replace=False)]
        count = int(generator.integers(4, 60))
        early = {p: min((p, p | 2), key=lambda t: route(source, t)[0]) for p in chosen}
        send = max([send_free[source & ~2], *(receive_free[p] - route(source, early[p])[0] for p in chosen)])
        read = TILE_BASE + 8 * int(generator.integers(0, 2048))
        control = (route(source, early[chosen[0]])[1] if len(chosen) == 1 else 3) | 4
        logs[source].append((SEND, RELEASE + send, count, read, control, 0))
        send_free[source & ~2] = send + count
        for p in chosen:
            time, way = route(source, early[p])
            x = RELEASE + send + time + 1
            f = x + 51 + 2 * (p >> 6)
            logs[early[p]].append((MUX_PAIR, x, 0, source ^ (early[p] & 2), 0, 0))
            logs[early[p]].append((MUX_PAIR, x + count, 0, NEUTRAL, 0, 0))
            for member in (p, p | 2):
                write = TILE_BASE + 0x8000 + 8 * int(generator.integers(0, 2048))
                logs[member].append((FORMAT, f, 0, way, 0, 0))
                logs[member].append((POINTER, f + 2, 0, write, 0, 0))
                logs[member].append((FORMAT, f + count, 0, 0, 0, 0))
                expected.append((source, member, send, f + 2 - RELEASE, count, 8, read, write))
            receive_free[p] = x + count - RELEASE + 2
    pieces = resolve(collect(parties_of(logs), RELEASE), np.zeros(2048, np.int64)).pieces
    assert sorted(piece[:8] for piece in pieces.tolist()) == sorted(expected)
    memory, slow = memories(tiles, seed), memories(tiles, seed)
    before = {tile: words.copy() for tile, words in memory.items()}
    move(pieces, table(memory))
    move_by_word(pieces, table(slow))
    for source, member, _, _, count, _, read, write in sorted(expected, key=lambda m: m[3]):
        begin, end = (write - TILE_BASE) // 4, (read - TILE_BASE) // 4
        before[member][begin : begin + 2 * count] = before[source][end : end + 2 * count]
    for tile in tiles:
        np.testing.assert_array_equal(memory[tile], before[tile])
        np.testing.assert_array_equal(slow[tile], before[tile])


def test_pointers_persist_to_the_next_phase() -> None:
    """A message without a pointer write continues where the last phase stopped."""
    source, destination = 0, 53
    time, way = route(source, destination)
    send = 200
    x = send + time + 1
    log = [(MUX, RELEASE + x, 0, source, 0, 0), (MUX, RELEASE + x + 4, 0, NEUTRAL, 0, 0)]
    first = np.zeros(2048, np.int64)
    first[destination] = 0x51234
    logs = {source: [(SEND, RELEASE + send, 4, 0x60000, way, 0)], destination: log}
    resolution = resolve(collect(parties_of(logs), RELEASE), first)
    assert resolution.pieces["write_address"].tolist() == [0x51234]
    assert (resolution.pointer_tile.tolist(), resolution.pointer_value.tolist()) == ([53], [0x51244])


def test_a_spiral_of_relays() -> None:
    """Two tiles feed each other from one buffer: word order matters within each message."""
    a, b = 0, 53
    logs: dict[int, Log] = {a: [], b: []}
    for source, destination, start in ((a, b, 100), (b, a, 200)):
        time, way = route(source, destination)
        logs[source].append((SEND, RELEASE + start, 400, TILE_BASE + 4 * (start - 100), way, 0))
        x = start + time + 1
        logs[destination].append((MUX, RELEASE + x, 0, source, 0, 0))
        logs[destination].append((POINTER, RELEASE + x + 52, 0, TILE_BASE + 4 * 60, 0, 0))
    for log in logs.values():
        log.sort(key=lambda item: item[1])
    resolution = resolve(collect(parties_of(logs), RELEASE), np.zeros(2048, np.int64))
    assert resolution.pieces["items"].tolist() == [400, 400]
    fast, slow = memories([a, b], 1), memories([a, b], 1)
    move(resolution.pieces, table(fast))
    move_by_word(resolution.pieces, table(slow))
    np.testing.assert_array_equal(fast[a], slow[a])
    np.testing.assert_array_equal(fast[b], slow[b])
