"""Published exchange rows (hardware-tested encodings) through the fabric: which words, where, when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from chip_rows import NEUTRAL, read_row, route
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.ipu21.simulator.fabric import Resolution, resolve
from tilewright.ipu21.simulator.hazards import PhaseChecks, check_phase
from tilewright.ipu21.simulator.traffic import Party, collect

pytestmark = pytest.mark.sim

RELEASE = 1000
ROW_PC = 0x4C100


def row_words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def party(tile: int, text: str | Sequence[int], *, incoming: int = 0, outgoing: int = 0) -> Party:
    words = row_words(text) if isinstance(text, str) else list(text)
    log, close = read_row(words, release=RELEASE, pc=ROW_PC, incoming=incoming, outgoing=outgoing)
    return Party(
        members=np.array([tile], np.int64),
        log=log,
        mux=NEUTRAL,
        close=close,
        code=(ROW_PC, ROW_PC + 4 * len(words)),
    )


def run(*parties: Party, checks: PhaseChecks | None = None) -> Resolution:
    traffic = collect(parties, RELEASE)
    resolution = resolve(traffic, np.zeros(2048, np.int64))
    check_phase(traffic, resolution.pieces, checks or PhaseChecks())
    return resolution


def pieces_of(resolution: Resolution, tile: int) -> NDArray[np.void]:
    return resolution.pieces[resolution.pieces["destination"] == tile]


def test_unicast_of_three_words() -> None:
    """5.1 a: logical 0 -> 1286; sent at 135, stored at 165."""
    result = run(
        party(0, "41800003 40a00086 78400001 43a00000", outgoing=0x50180),
        party(53, "41800003 641c0000 64008640 61800000 40a00007 43a00000", incoming=0x54000),
    )
    (piece,) = result.pieces.tolist()
    assert piece == (0, 53, 135, 165, 3, 4, 0x50180, 0x54000, 0)
    assert result.pointer_tile.tolist() == [53]
    assert result.pointer_value.tolist() == [0x5400C]


def test_unicast_of_4148_words() -> None:
    """5.1 b: logical 32 -> 0; the row leaves the silent source selected and stores exactly 4148."""
    result = run(
        party(1024, "41800003 40a0006c 7fe00001 766fc001 43a00000", outgoing=0x60000),
        party(0, "41800003 641c0400 61980000 67ffc640 40a00038 43a00000", incoming=0x70000),
    )
    (piece,) = result.pieces.tolist()
    assert piece == (1024, 0, 109, 165, 4148, 4, 0x60000, 0x70000, 0)


def test_unicast_sender_with_continuation() -> None:
    """5.1 c: 65 words logical 1286 -> 1471 are one uninterrupted run."""
    log, close = read_row(row_words("41800003 40a0007d 7fe00002 70000002 43a00000"))
    assert log["count"].tolist() == [64, 1]
    assert (log["clock"].tolist(), close) == ([126, 190], 191)
    traffic = collect([party(53, "41800003 40a0007d 7fe00002 70000002 43a00000")], RELEASE)
    assert traffic.runs["items"].tolist() == [65]
    assert 126 + route(53, 63)[0] + 1 == 113, "the row's send event matches the published convention X = 113"


def test_multicast_of_three_words() -> None:
    """5.1 d: logical 0 -> 274 and 1286 with an absolute pointer."""
    other = [0x64000000 | 112 << 14, 0x64008640, 0x61814000, 0x40A00007, 0x43A00000]
    send_event = 23
    x = send_event + route(0, 53)[0] + 1
    assert x == 1
    other[0] = 0x64000000 | (x - 1) << 14
    other[2] = 0x60000000 | (x + 52 - (x + 3) - 1) << 19 | 0x50000 >> 2
    result = run(
        party(0, "41800003 40a00016 78400003 43a00000", outgoing=0x60000),
        party(9, "41800003 64000000 64008640 61814000 40a00007 43a00000"),
        party(53, other),
    )
    first, second = pieces_of(result, 9), pieces_of(result, 53)
    for piece in (first, second):
        assert piece["items"].tolist() == [3]
        assert piece["read_address"].tolist() == [0x60000]
        assert piece["write_address"].tolist() == [0x50000]
    assert first["write_event"].tolist() == [53]


SDK_SOURCES = (130, 192, 194, 256)
SDK_ROW = "64000082 40a00032 f6600000 03014048 f6600000 03095000 f6600000 04016000 f7200000 19017000 43a00000"


def test_four_back_to_back_messages_of_the_vendor() -> None:
    """5.1 e: four 52-word messages abut in mux and pointer; every one lands at its own address."""
    sources = SDK_SOURCES
    senders = []
    for index, source in enumerate(sources):
        x = 1 + 52 * index
        time, way = route(source, 0)
        send = x - time - 1
        assert send > 0
        senders.append(party(source, [0x40A00000 | send - 1, 0x78000000 | 51 << 21 | way, 0x43A00000]))
        senders[-1].log["value"] += 0x60000
    result = run(party(0, SDK_ROW), *senders)
    assert result.pieces["source"].tolist() == list(sources)
    assert result.pieces["items"].tolist() == [52] * 4
    assert result.pieces["write_event"].tolist() == [53, 105, 157, 209]
    expected = [0x14048 << 2, 0x15000 << 2, 0x16000 << 2, 0x17000 << 2]
    assert result.pieces["write_address"].tolist() == expected


def test_row_of_the_vendor_ends_in_time() -> None:
    """5.1 e ends at event 266 = last store 260 + 1 + 5: accepted; one event less is reported."""
    assert read_row(row_words(SDK_ROW))[1] == 266
    time, way = route(256, 0)
    sender = party(
        256, [0x40A00000 | 157 - time - 2, 0x78000000 | 51 << 21 | way, 0x43A00000], outgoing=0x60000
    )
    run(sender, party(0, SDK_ROW))
    with pytest.raises(SimulationError, match="row ends at event 265") as error:
        run(sender, party(0, SDK_ROW.replace("f7200000", "f7000000")))
    assert error.value.tile == 0


def test_full_duplex_row() -> None:
    """5.1 f: 52 words leave while a receive ends; mux and pointer change inside the send, 8 events apart."""
    log, _ = read_row(row_words("7b6a0241 70f00640 71f95000 43a00000"))
    sends = log[log["kind"] == 0]
    assert sends["count"].tolist() == [28, 8, 16]
    assert sends["value"].tolist() == [0x14048 * 4, 0x14048 * 4 + 28 * 4, 0x14048 * 4 + 36 * 4]
    assert log[log["kind"] == 1][["clock", "value"]].tolist() == [(29, 0x640)]
    assert log[log["kind"] == 2][["clock", "value"]].tolist() == [(37, 0x15000 * 4)]
    result = collect([party(260, "7b6a0241 70f00640 71f95000 43a00000")], RELEASE)
    assert result.runs["items"].tolist() == [52]


def test_paired_items_reach_both_members() -> None:
    """5.1 g: logical 0 -> {2, 3} with 64 items of 8 bytes."""
    result = run(
        party(0, "41800003 40a0001e 7fe50005 43a00000"),
        party(64, "41800003 64002000 61a40001 60098000 64022640 61a40000 40a00006 43a00000"),
        party(66, "41800003 61ac0001 60098000 61ec0000 40a00006 43a00000"),
    )
    assert result.pieces["destination"].tolist() == [64, 66]
    assert result.pieces["items"].tolist() == [64, 64]
    assert result.pieces["item_bytes"].tolist() == [8, 8]
    assert result.pieces["read_address"].tolist() == [0x50000, 0x50000]
    assert result.pieces["write_address"].tolist() == [0x60000, 0x60000]
    assert result.pieces["write_event"].tolist() == [56, 56]
    assert result.pointer_value.tolist() == [0x60200, 0x60200]


def test_paired_items_need_the_format() -> None:
    with pytest.raises(SimulationError, match="need INCOMING_FORMAT 1, it is 0") as error:
        run(
            party(0, "41800003 40a0001e 7fe50005 43a00000"),
            party(64, "41800003 64002000 61a40000 60098000 64022640 61a40000 40a00006 43a00000"),
            party(66, "41800003 61ac0001 60098000 61ec0000 40a00006 43a00000"),
        )
    assert error.value.tile == 64


def test_early_exit_of_a_multicast() -> None:
    """5.1 i: neutral at X + 10 takes exactly 10 of 64 words."""
    x = 1
    row = [0x64000000, 0x64000000 | 9 << 14 | NEUTRAL, 0x60000000 | (x + 52 - x - 10 - 1) << 19 | 0x14000]
    row += [0x40A00000 | 10 + 5 - 1, 0x43A00000]
    result = run(party(0, "41800003 40a00016 7fe00003 43a00000", outgoing=0x60000), party(9, row))
    assert result.pieces["items"].tolist() == [10]
    assert result.pieces["write_event"].tolist() == [53]
    assert result.pieces["write_address"].tolist() == [0x50000]
