"""Rows as the tile reports them: published sequences, stream rules, windows and their costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tile_programs import DATA, from_words, tile_of

from tilewright.ipu21.isa import build, csrs
from tilewright.ipu21.simulator.exchange_log import FORMAT, MUX, MUXPAIR, POINTER, SEND
from tilewright.ipu21.simulator.stops import ExceptionKind, StopKind
from tilewright.ipu21.simulator.tile import Tile

pytestmark = pytest.mark.sim

SYNC3, BR = 0x41800003, 0x43A00000
ROW = 0x4C018
Item = tuple[int, int, int, int]


def row(*words: int, base: int = 0, outgoing: int = 0, release: int = 1000) -> tuple[Tile, int]:
    """Run a row after `sync 3` released at `release`; the tile at its final branch, and the row's length."""
    tile = from_words({ROW - 4: SYNC3} | {ROW + 4 * index: word for index, word in enumerate((*words, BR))})
    tile.set_csr(csrs.INCOMING_BASE, base)
    tile.set_csr(csrs.OUTGOING_BASE, outgoing)
    assert tile.run().zone == 3
    tile.resume(release)
    stop = tile.run()
    assert stop.kind is StopKind.WINDOW_CLOSED, stop
    return tile, stop.clock - release


def items(tile: Tile, release: int = 1000) -> list[Item]:
    """(kind, event, count, value) of the log."""
    return [
        (int(item["kind"]), int(item["clock"]) - release, int(item["count"]), int(item["value"]))
        for item in tile.take_log()
    ]


def test_published_unicast_rows() -> None:
    tile, length = row(0x40A00086, 0x784A0301)
    assert length == 138
    assert items(tile) == [(SEND, 135, 3, 0x50180)]
    tile, length = row(0x641C0000, 0x64008640, 0x61800000, 0x40A00007, base=0x54000)
    assert length == 173
    assert items(tile) == [(MUX, 113, 0, 0), (MUX, 116, 0, 0x640), (POINTER, 165, 0, 0x54000)]


def test_published_receiver_of_four_messages() -> None:
    tile, length = row(
        *(0x64000082, 0x40A00032, 0xF6600000, 0x03014048, 0xF6600000, 0x03095000),
        *(0xF6600000, 0x04016000, 0xF7200000, 0x19017000),
    )
    assert length == 266
    log = items(tile)
    assert [event for kind, event, _, _ in log if kind == MUX] == [1, 53, 105, 157, 209]
    assert [event for kind, event, _, _ in log if kind == POINTER] == [53, 105, 157, 209]
    assert [value for kind, _, _, value in log if kind == MUX] == [0x82, 0xC0, 0xC2, 0x100, 0x640]
    assert [value for kind, _, _, value in log if kind == POINTER] == [0x50120, 0x54000, 0x58000, 0x5C000]


def test_published_full_duplex_stream() -> None:
    tile, length = row(0x7B6A0241, 0x70F00640, 0x71F95000)
    assert length == 52
    start = 0x14048 * 4
    assert items(tile) == [
        (SEND, 0, 28, start),
        (SEND, 28, 8, start + 28 * 4),
        (MUX, 29, 0, 0x640),
        (SEND, 36, 16, start + 36 * 4),
        (POINTER, 37, 0, 0x54000),
    ]


def test_published_paired_rows() -> None:
    tile, length = row(0x40A0001E, 0x7FE50005)
    log = tile.take_log()
    assert length == 31 + 64
    assert (int(log[0]["value"]), int(log[0]["count"]), int(log[0]["control"])) == (0x50000, 64, 5)
    tile, length = row(0x64002000, 0x61A40001, 0x60098000, 0x64022640, 0x61A40000, 0x40A00006)
    assert length == 118 + 7
    assert items(tile) == [
        (MUXPAIR, 1, 0, 0),
        (FORMAT, 54, 0, 1),
        (POINTER, 56, 0, 0x60000),
        (MUXPAIR, 65, 0, 0x640),
        (FORMAT, 118, 0, 0),
    ]


def test_puts_to_exchange_bases_take_thirteen_events_inside_a_row_only() -> None:
    setzi = build.setzi(8, 0x100)
    base, outgoing = build.put(csrs.INCOMING_BASE, 8), build.put(csrs.OUTGOING_BASE, 8)
    assert row(setzi, base, outgoing)[1] == 27
    assert row(base)[1] == 13
    assert row(build.put(csrs.FP_ICTL, 15))[1] == 1
    tile = from_words({ROW: base, ROW + 4: outgoing, ROW + 8: SYNC3})
    assert tile.run().clock == 2


def test_bases_are_added_to_sources_and_pointers() -> None:
    send = build.send(3, 0x1000 // 4, 1)
    tile, _ = row(send, build.delaypic(0, 0, 0x40), base=0x54000, outgoing=0x50000)
    assert items(tile) == [(SEND, 0, 4, 0x51000), (POINTER, 5, 0, 0x54100)]


def test_continuation_skips_by_its_delta_and_directionless_sends_drive_nothing() -> None:
    silent = build.send(3, 0x50000 // 4, 0)
    tile, length = row(build.send(0, 0x50000 // 4, 1), build.sendoff(99, 2, 2), silent)
    assert length == 1 + 100 + 4
    assert items(tile) == [(SEND, 0, 1, 0x50000), (SEND, 1, 100, 0x5000C)]


def test_a_call_behind_the_barrier_lies_before_event_zero() -> None:
    call = build.call(10, ROW + 0x10)
    tile = from_words({ROW - 4: SYNC3, ROW: call, ROW + 0x10: build.delay(4), ROW + 0x14: BR})
    tile.run()
    tile.resume(500)
    stop = tile.run()
    assert (stop.kind, stop.clock) == (StopKind.WINDOW_CLOSED, 505)
    assert tile.m[0, 10] == ROW + 4


def test_the_window_stays_open_for_register_work_and_closes_before_memory() -> None:
    tile = from_words(
        {
            ROW - 4: SYNC3,
            ROW: build.setzi(1, 0x50000),
            ROW + 4: build.add_imm(1, 1, 4),
            ROW + 8: build.st32(1, 1, 15, 0),
        }
    )
    tile.run()
    tile.resume(100)
    stop = tile.run()
    assert (stop.kind, stop.pc) == (StopKind.WINDOW_CLOSED, ROW + 8)
    assert tile.read(0x50000, 8) == bytes(8)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        (build.send(3, 0x4D000 // 4, 1), ExceptionKind.FETCH_CONFLICT),
        (build.send(3, 0x40000 // 4, 1), ExceptionKind.ADDRESS_RANGE),
        (build.send(63, 0xE7FFC // 4, 1), ExceptionKind.ADDRESS_RANGE),
    ],
)
def test_sends_that_cannot_be_read(word: int, kind: ExceptionKind) -> None:
    tile = from_words({ROW - 4: SYNC3, ROW: word})
    tile.run()
    tile.resume(0)
    stop = tile.run()
    assert (stop.kind, stop.exception, stop.pc) == (StopKind.EXCEPTION, kind, ROW)


def test_the_merged_pair_must_be_aligned() -> None:
    prefix, payload = build.sendpicp(0, 0, 0, 0, 0, 0x640, 0)
    tile = from_words({ROW: SYNC3, ROW + 4: prefix, ROW + 8: payload})
    tile.run()
    tile.resume(0)
    assert tile.run().exception is ExceptionKind.MISALIGNED_BUNDLE


def test_long_rows_fill_more_than_one_log() -> None:
    tile, length = row(*([build.delayxpic(0, 0, 7)] * 2000))
    assert length == 2000
    log = tile.take_log()
    assert len(log) == 2000 and np.array_equal(log["clock"], 1001 + np.arange(2000))
    assert len(tile.take_log()) == 0


def test_sans_counts_up() -> None:
    tile = tile_of("sans 0\nsans 2\nsync 1\nbr $m10", {2: DATA})
    stop: Any = tile.run()
    assert (stop.zone, tile.sans, tile.sans_clock, stop.clock) == (1, 4, 1, 2)
