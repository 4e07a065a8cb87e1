"""A session drives real instructions: one tile gives back what the host sends, again and again.

The words are those of a published host transfer, for one tile that is owner and target of both directions and
branches back to its start. All other tiles only keep the barriers.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import TilewrightError
from tilewright.package import BlobStore, read_package, write_package
from tilewright.package.records import (
    EXECUTE,
    HOST_SLICE,
    MARK,
    NO_BLOB,
    READ,
    SLICE,
    WRITE,
    Binding,
    HostCall,
    HostExchange,
    HostPage,
    Image,
    Package,
    ProfilePlan,
    ProfileStep,
    Segment,
    TileImage,
)
from tilewright.runtime import Session, open_device

pytestmark = pytest.mark.sim

LOOP, BETWEEN = 0x4C03C, 0x4C040
PROLOGUE = [
    0x19E00000, 0x41800003, 0x41800002, 0x19000640, 0x430080A0, 0x43F080A7,  # nop; sync 3; sync 2; mux
    0x19000600, 0x430080A0, 0x41800007, 0x19000640, 0x430080A0,  # host mux; sync 7; neutral mux
]  # fmt: skip
RECEIVE = [
    0x19800600, 0x438080A0, 0x4180000F, 0x19800004, 0x438080A6,  # host mux; sync 15; DCOUNT := 4
    0x782A0003, 0x782A0013, 0x41800000, 0x41800007,  # XREQ; read header; sync 0; sync 7
    0x19800640, 0x438080A0, 0x43A00000,  # neutral mux; br $m10
]  # fmt: skip
SEND = [
    0x19800600, 0x438080A0, 0x4180000F, 0x19800001, 0x438080A6,  # host mux; sync 15; DCOUNT := 1
    0x782A0003, 0x782A0023, 0x786A0303, 0x40A0000D,  # XREQ; write header; 4 words from 0x50180; 14 events
    0x782A0033, 0x41800000, 0x41800007,  # closing read; sync 0; sync 7
    0x19800640, 0x438080A0, 0x43A00000,  # neutral mux; br $m10
]  # fmt: skip
FOLLOW = [0x40C00001, 0x41800001, 0x43A00000]  # sans 1; sync 1; br $m10
PACKETS = [1, 0, 0xCC00020C, 0x00004004, 0x80000000, 0x00004004, 0xCC00020B, 0]


def call(address: int) -> int:
    return 0x18A00000 | address >> 2


def program(first: list[int], second: list[int]) -> bytes:
    """nop and prologue, then for ever: the first host phase, the second."""
    start = 0x4C0A8
    loop = [call(start), call(start + 4 * len(first)), 0x19000000 | LOOP, 0x43000000]  # setzi; br $m0
    words = np.zeros((start - 0x4C010) // 4 + len(first) + len(second), "<u4")
    words[: len(PROLOGUE)] = PROLOGUE
    words[(LOOP - 0x4C010) // 4 :][: len(loop)] = loop
    words[(start - 0x4C010) // 4 :] = first + second
    return words.tobytes()


def echo_package(*, second: list[int] = SEND) -> Package:
    store = BlobStore()

    def image(code: bytes, mark_table: int, *data: Segment) -> Image:
        segment = Segment(0x4C010, len(code), store.add(code), 0, len(code), READ | EXECUTE)
        return Image(0x4C014, 0, 0, [segment, *data], mark_table)

    packets = np.array(PACKETS, "<u4").tobytes()
    busy = image(
        program(RECEIVE, second),
        0,
        Segment(0x50000, len(packets), store.add(packets), 0, len(packets), READ | WRITE),
        Segment(0x50160, 0x30, NO_BLOB, 0, 0, READ | WRITE),
    )
    idle = image(program(FOLLOW, FOLLOW), -1)

    def binding(name: str) -> Binding:
        slices = np.array([(0, 0x50180, 0, 16, 0, 1, 1, 0, 4, 4)], SLICE)
        return Binding(name, "uint32", "uint32", (4,), "row-major", (1, 4), slices)

    moved = np.array([(1, 0, 0, 16)], HOST_SLICE)
    run = HostCall("run", 0, 4, moved, moved.copy(), input_batch_ends=[1], output_batch_ends=[1])
    return Package(
        compiler_version="test",
        blobs=store.blobs,
        images=[busy, idle],
        tiles=[TileImage(tile, int(tile != 0)) for tile in range(1472)],
        inputs=[binding("x")],
        outputs=[binding("y")],
        host_exchange=HostExchange(23, 0, 0, [HostPage(0, 4096), HostPage(1, 4096)], [0, 1], [run]),
        profile=ProfilePlan(
            [ProfileStep("in", "host"), ProfileStep("out", "copy")],
            [np.array([(LOOP, 0), (BETWEEN, 1)], MARK)],
        ),
    )


def test_a_tile_gives_back_what_it_gets() -> None:
    package = read_package(write_package(echo_package()))
    with open_device("sim") as device, Session(device, package) as session:
        for start in (0, 7, 0xFFFFFFF0):
            x = np.arange(start, start + 4, dtype=np.uint32)
            np.testing.assert_array_equal(session.run({"x": x})["y"], x)
        assert session.last_run is not None
        assert set(session.last_run.intervals["tile"].tolist()) <= {0}


def test_two_sessions_one_after_another() -> None:
    with open_device("sim") as device:
        for value in (1, 2):
            with Session(device, echo_package()) as session:
                x = np.full(4, value, np.uint32)
                np.testing.assert_array_equal(session.run({"x": x})["y"], x)


def test_program_that_stops_answering_ends_the_session() -> None:
    """The second phase waits for words that nobody sends."""
    silent = [*SEND[:5], 0x41800000, *SEND[5:]]
    with open_device("sim") as device, Session(device, echo_package(second=silent), timeout=0.1) as session:
        with pytest.raises(TilewrightError) as first:
            session.run({"x": np.zeros(4, np.uint32)})
        with pytest.raises(TilewrightError, match="the session is over since it failed"):
            session.run({"x": np.zeros(4, np.uint32)})
    assert str(first.value)
