"""Cycles: the published worked example, the fitted GEMM panel, and the rules one by one."""

from __future__ import annotations

import numpy as np
import pytest
from tile_programs import DATA, from_words, run, run_workers, tile_of, words_array

from tilewright.ipu21.simulator.exchange_log import MUX, POINTER, SEND
from tilewright.ipu21.simulator.stops import StopKind
from tilewright.ipu21.simulator.tile import Tile

pytestmark = pytest.mark.sim

PROLOGUE = {
    0x4C010: 0x19E00000,
    0x4C014: 0x41800003,
    0x4C018: 0x41800002,
    0x4C01C: 0x19000640,
    0x4C020: 0x430080A0,
    0x4C024: 0x43F080A7,
    0x4C028: 0x19000600,
    0x4C02C: 0x430080A0,
    0x4C030: 0x41800007,
    0x4C034: 0x19000640,
    0x4C038: 0x430080A0,
}
SHARED = {
    0x4C080: 0x1904C090,
    0x4C084: 0x1500F000,
    0x4C088: 0x41800002,
    0x4C08C: 0x43700000,
    0x4C090: 0x43F04000,
    0x4C098: 0x40C00001,
    0x4C09C: 0x41800001,
    0x4C0A0: 0x43A00000,
}
SENDER = {
    0x4C03C: 0x18A1302A,
    0x4C040: 0x19800000,
    0x4C044: 0x438080A4,
    0x4C048: 0x43F080A7,
    0x4C04C: 0x18713020,
    0x4C050: 0x19800001,
    0x4C054: 0x438080A6,
    0x4C058: 0x41800003,
    0x4C05C: 0x18A1303A,
    0x4C060: 0x18A13026,
    0x4C064: 0x19000001,
    0x4C068: 0x19158000,
    0x4C06C: 0x4F10F000,
    0x4C070: 0x44F0F301,
    0x4C074: 0x43000000,
    0x4C0A8: 0x19800600,
    0x4C0AC: 0x438080A0,
    0x4C0B0: 0x4180000F,
    0x4C0B4: 0x19800003,
    0x4C0B8: 0x438080A6,
    0x4C0BC: 0x782A0003,
    0x4C0C0: 0x782A0013,
    0x4C0C4: 0x41800000,
    0x4C0C8: 0x41800007,
    0x4C0CC: 0x19800640,
    0x4C0D0: 0x438080A0,
    0x4C0D4: 0x43A00000,
    0x4C0E8: 0x40A00086,
    0x4C0EC: 0x784A0301,
    0x4C0F0: 0x43A00000,
}
RECEIVER = {
    0x4C03C: 0x18A13026,
    0x4C040: 0x19854000,
    0x4C044: 0x438080A4,
    0x4C048: 0x43F080A7,
    0x4C04C: 0x18713020,
    0x4C050: 0x19800001,
    0x4C054: 0x438080A6,
    0x4C058: 0x41800003,
    0x4C05C: 0x18A1303A,
    0x4C060: 0x18A1302A,
    0x4C0A8: 0x19800635,
    0x4C0AC: 0x438080A0,
    0x4C0B0: 0x4180000F,
    0x4C0B4: 0x19800001,
    0x4C0B8: 0x438080A6,
    0x4C0BC: 0x782A0003,
    0x4C0C0: 0x782A0013,
    0x4C0C4: 0x784A8003,
    0x4C0C8: 0x40A0000E,
    0x4C0CC: 0x782A0023,
    0x4C0D0: 0x41800000,
    0x4C0D4: 0x41800007,
    0x4C0D8: 0x19800640,
    0x4C0DC: 0x438080A0,
    0x4C0E0: 0x43A00000,
    0x4C0E8: 0x641C0000,
    0x4C0EC: 0x64008640,
    0x4C0F0: 0x61800000,
    0x4C0F4: 0x40A00007,
    0x4C0F8: 0x43A00000,
}


def expect_sync(tile: Tile, zone: int) -> int:
    """Run to the sync of a zone; its issue cycle."""
    stop = tile.run()
    assert (stop.kind, stop.zone) == (StopKind.SYNC, zone), stop
    return stop.clock


def start(words: dict[int, int]) -> Tile:
    """Through the prologue: B0 and B1, each released at cycle 0 of a clock that starts anew."""
    tile = from_words(PROLOGUE | SHARED | words)
    expect_sync(tile, 3)
    tile.resume(0)
    assert tile.run().kind is StopKind.WINDOW_CLOSED
    expect_sync(tile, 7)
    return tile


def test_worked_example_sender() -> None:
    tile = start(SENDER)
    tile.resume(1000)
    expect_sync(tile, 15)
    tile.take_log()
    tile.resume(2000)
    assert expect_sync(tile, 0) == 2000 + 11
    sends = tile.take_log()
    assert list(sends["clock"] - 2000) == [7, 9]
    assert list(sends["value"]) == [0x50000, 0x50008]
    assert set(sends["kind"]) == {SEND} and set(sends["count"]) == {2} and set(sends["control"]) == {3}
    tile.resume(2500)
    assert expect_sync(tile, 7) == 2500
    tile.resume(3000)
    assert expect_sync(tile, 3) == 3000 + 80
    assert tile.counters[1:].tolist() == [1] * 6
    tile.resume(3330)
    closed = tile.run()
    assert (closed.kind, closed.clock, closed.pc) == (StopKind.WINDOW_CLOSED, 3000 + 468, 0x4C0F0)
    (send,) = tile.take_log()
    assert (send["kind"], send["clock"], send["count"], send["value"], send["control"]) == (
        SEND,
        3000 + 465,
        3,
        0x50180,
        1,
    )
    assert expect_sync(tile, 1) == 3000 + 481
    assert (tile.sans, tile.sans_clock) == (2, 3000 + 480)
    tile.sans = 0
    tile.resume(4000)
    ended = tile.run()
    assert (ended.kind, ended.clock) == (StopKind.ENDED, 4000 + 20)
    assert tile.read(0x58000, 4) == b"\x01\0\0\0"


def test_worked_example_receiver() -> None:
    tile = start(RECEIVER)
    tile.resume(1000)
    expect_sync(tile, 1)
    assert tile.sans == 2
    tile.sans = 0
    tile.resume(3000)
    assert expect_sync(tile, 3) == 3000 + 73
    tile.take_log()
    tile.resume(3330)
    closed = tile.run()
    assert (closed.kind, closed.clock) == (StopKind.WINDOW_CLOSED, 3000 + 503)
    log = tile.take_log()
    assert list(log["kind"]) == [MUX, MUX, POINTER]
    assert list(log["clock"] - 3000) == [443, 446, 495]
    assert list(log["value"]) == [0, 0x640, 0x54000]
    assert expect_sync(tile, 15) == 3000 + 522
    tile.resume(5000)
    assert expect_sync(tile, 0) == 5000 + 31
    assert list(tile.take_log()["clock"] - 5000) == [7, 9, 11, 29]


PANEL = """
    setzi $m0, worker
    setzi $m1, 0x80000
    nop
    nop
    nop
    nop
    nop
    put $CCCSLOAD, $m1
    {busy}
    runall $m0, $m2, 0
    sync 2
    {after}
    br $m10
.align 8
worker:
    {fixed}
    rpt $m4, 3
    {{ nop ; f16v4hihov4amp $a0:1, $a2:3, $a4:5, 0 }}
    {{ nop ; f16v4hihov4amp $a0:1, $a2:3, $a4:5, 1 }}
    {{ nop ; f16v4hihov4amp $a0:1, $a2:3, $a4:5, 2 }}
    {{ nop ; f16v4hihov4amp $a0:1, $a2:3, $a4:5, 3 }}
    exitz $m15
"""


@pytest.mark.parametrize("rows", [6, 48, 300])
def test_published_gemm_panel(rows: int) -> None:
    """Hardware shows 235 + 4 * rows per panel of 66 supervisor cycles before the launch, 20 fixed worker
    slots and four per row, and 21 supervisor cycles after the wait."""
    program = PANEL.format(
        busy="\n".join([f"ld128putcs {2 * index}" for index in range(32)] + ["nop"] * 21),
        after="\n".join(["nop"] * 15),
        fixed=f"setzi $m4, {rows // 6}\n{{ nop ; fnop }}\n" + "nop\n" * 16,
    )
    result = run(program, {2: DATA}, {0x80000: np.zeros(512, np.uint8)})
    assert result.slots.tolist() == [20 + 4 * rows // 6] * 6
    assert result.cycles == 235 + 4 * rows


def test_dependent_supervisor_instructions_wait_six_cycles() -> None:
    """The published count of load, shift, shift, store: 6 + 6 + 6 + 1."""
    body = "ld32 $m0, $m2, $m15, 0\nshl $m0, $m0, 1\nshr $m0, $m0, 1\nst32 $m0, $m2, $m15, 1\nbr $m10"
    assert run(body, {2: DATA}, {DATA: words_array(7, 0)}).cycles == 19 + 6
    independent = "ld32 $m0, $m2, $m15, 0\nshl $m1, $m3, 1\nshr $m4, $m3, 1\nst32 $m3, $m2, $m15, 1"
    independent += "\nbr $m10"
    assert run(independent, {2: DATA}, {DATA: words_array(7, 0)}).cycles == 4 + 6


def test_taken_branches_take_six_cycles_and_others_one() -> None:
    assert run("brz $m2, 1f\n1: br $m10", {2: 1}).cycles == 1 + 6
    assert run("brz $m2, 1f\nnop\n1: br $m10", {2: 0}).cycles == 6 + 6
    loop = "1: brnzdec $m2, 1b\nbr $m10"
    assert run(loop, {2: 10}).cycles == 10 * 6 + 1 + 6


def test_no_result_is_awaited_from_the_zero_register() -> None:
    assert run("or $m15, $m2, $m2\nor $m0, $m15, $m15\nbr $m10").cycles == 2 + 6


def test_weights_load_one_per_cycle_after_the_pointer_is_written() -> None:
    body = "put $CCCSLOAD, $m2\nld64putcs 0\nld64putcs 1\nld64putcs 2\nbr $m10"
    assert run(body, {2: DATA}, {DATA: np.zeros(24, np.uint8)}).cycles == 6 + 3 + 6


def test_waiting_for_workers_that_left_long_ago_costs_one_cycle() -> None:
    launch = "setzi $m0, worker\nrunall $m0, $m2, 0\n{}\nsync 2\nbr $m10\n.align 8\nworker: exitz $m15"
    assert run(launch.format("delay 99"), {2: DATA}).cycles == 7 + 100 + 1 + 6
    assert run(launch.format(""), {2: DATA}).cycles == 6 + 10 + 6 + 18 + 6


@pytest.mark.parametrize(
    ("instruction", "slots"), [("f16v2tanh", 2), ("f32tanh", 5), ("f32exp", 3), ("f32ln", 6)]
)
def test_elementary_functions_hold_their_worker(instruction: str, slots: int) -> None:
    base = run_workers("nop").cycles
    operand = "setzi $a0, 0x3c00"
    found = run_workers(f"{operand}\n{instruction} $a1, $a0").cycles
    assert found == base + 6 * slots


def test_exponential_of_zero_takes_one_slot() -> None:
    assert run_workers("f16v2exp $a1, $a15").cycles == run_workers("nop").cycles
    assert (
        run_workers("f16v2exp $a1, $a15\nsetzi $a0, 1\nf16v2exp $a1, $a0").cycles
        == run_workers("nop\nnop\nnop\nnop").cycles
    )


def test_one_worker_leaves_the_supervisor_five_slots_in_six() -> None:
    body = """
    setzi $m0, worker
    run $m0, $m2, 0
    setzi $m1, 99
    nop
    nop
    nop
    nop
    nop
    nop
    nop
    nop
    {nops}
    br $m10
.align 8
worker:
    setzi $m0, 1000
1:  brnzdec $m0, 1b
    exitz $m15
"""
    nops = 60
    tile = tile_of(body.format(nops="nop\n" * nops), {2: DATA})
    stop = tile.run()
    assert stop.kind is StopKind.ENDED
    # Launched at 6, so the worker's slot is lent from cycle 16 on; then five of six cycles are free.
    assert stop.clock == 17 + nops + nops // 5
    assert tile.active_workers == 1


def test_a_supervisor_waits_while_all_six_workers_run() -> None:
    body = """
    setzi $m0, worker
    runall $m0, $m2, 0
    delay 8
    setzi $m1, 1
    br $m10
.align 8
worker:
    nop
    nop
    exitz $m15
"""
    tile = tile_of(body, {2: DATA})
    stop = tile.run()
    # Slots are lent from cycle 16 on; worker 0 gives its own back at 28, so the next free cycle is 34.
    assert stop.clock == 34 + 1
