"""Control registers, identity, copies, watch marks, and the compiled engine's cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tile_programs import DATA, WORKERS, image, run, tile_of

from tilewright.errors import UsageError
from tilewright.ipu21.isa import csrs
from tilewright.ipu21.simulator import compile as compile_module
from tilewright.ipu21.simulator.batch import run_tiles
from tilewright.ipu21.simulator.compile import cache_root, engine, engine_digest
from tilewright.ipu21.simulator.single import FunctionError, run_function
from tilewright.ipu21.simulator.stops import StopKind
from tilewright.ipu21.simulator.tile import Tile

pytestmark = pytest.mark.sim


def test_reset_state() -> None:
    tile = Tile(1234)
    assert tile.csr(3) == 1234 and tile.csr(0xA9) == 7
    assert [tile.csr(1, context) for context in range(1, 7)] == list(range(6))
    assert not tile.m.any() and not tile.a.any() and not tile.memory.any()


def test_supervisor_reads_what_it_put_and_waits_for_it() -> None:
    result = run("put $FP_ICTL, $m2\nget $m3, $FP_ICTL\nget $m4, $TILE_ID\nbr $m10", {2: 5}, physical=77)
    assert (result.tile.m[0, 3], result.tile.m[0, 4]) == (5, 77)
    assert result.cycles == 6 + 1 + 1 + 6


def test_cycle_counters_show_the_global_clock() -> None:
    tile = tile_of("get $m3, $SCOUNT_L\nget $m4, $SCOUNT_U\nbr $m10")
    tile.clock = 5 * 2**32 + 17
    tile.run()
    assert (tile.m[0, 3], tile.m[0, 4]) == (17, 5)
    body = WORKERS + "get $m3, $COUNT_L\nget $m4, $COUNT_L\nexitz $m15"
    found = run(body, {2: DATA}).tile.m[1:, 3:5]
    assert found.tolist() == [[16 + worker, 22 + worker] for worker in range(6)]


def test_weights_are_cleared_by_the_control_register() -> None:
    tile = tile_of("setzi $m0, 4\nput $CR, $m0\nbr $m10")
    tile.weights[...] = 1
    tile.run()
    assert not tile.weights.any()


def test_shared_tiles_stop_before_they_learn_who_they_are() -> None:
    tile = tile_of("setzi $m0, 3\nget $m1, $TILE_ID\nbr $m10", physical=3)
    tile.shared = True
    stop = tile.run()
    assert stop.kind is StopKind.NEEDS_IDENTITY
    twin = tile.copy(9)
    for each in (tile, twin):
        each.shared = False
        assert each.run().kind is StopKind.ENDED
    assert (tile.m[0, 1], twin.m[0, 1]) == (3, 9)


def test_copies_are_independent() -> None:
    tile = tile_of("st32 $m2, $m3, $m15, 0\nbr $m10", {2: 7, 3: DATA})
    twin = tile.copy(1)
    twin.m[0, 2] = 8
    tile.run()
    twin.run()
    assert tile.read(DATA, 4) == b"\7\0\0\0" and twin.read(DATA, 4) == b"\x08\0\0\0"


def test_watch_marks_give_issue_cycles_and_do_not_stop() -> None:
    tile = tile_of("1: nop\nbrnzdec $m2, 1b\nsetzi $m0, 0\nbr $m10", {2: 2})
    first = tile.pc
    tile.set_watch(np.array([first, first + 8]), np.array([4, 9]))
    assert tile.run().kind is StopKind.ENDED
    marks = tile.take_marks()
    assert marks["step"].tolist() == [4, 4, 4, 9]
    assert marks["clock"].tolist() == [0, 7, 14, 16]
    assert len(tile.take_marks()) == 0
    with pytest.raises(UsageError):
        tile.set_watch(np.array([0x80000]), np.array([1]))


def test_many_marks() -> None:
    tile = tile_of("1: brnzdec $m2, 1b\nbr $m10", {2: 3000})
    tile.set_watch(np.array([tile.pc]), np.array([0]))
    tile.run()
    assert len(tile.take_marks()) == 3001


def test_tiles_run_together_as_alone() -> None:
    body = "1: brnzdec $m2, 1b\nbr $m10"
    tiles = [tile_of(body, {2: count}) for count in (1, 50, 7)]
    stops = run_tiles(tiles)
    assert [stop.clock for stop in stops] == [6 * count + 1 for count in (1, 50, 7)]


def test_functions_that_do_not_return_say_why() -> None:
    built = image("sync 3\nbr $m10")
    with pytest.raises(FunctionError) as caught:
        run_function(built, "f")
    assert caught.value.stop.kind is StopKind.SYNC
    with pytest.raises(UsageError, match="no symbol"):
        run_function(built, "g")
    with pytest.raises(UsageError):
        run_function([(0xE7FF0, bytes(32))], 0x4C014)


def test_segments_are_checked() -> None:
    tile = Tile(0)
    with pytest.raises(UsageError):
        tile.load(0x4C000, b"abc", 2)
    with pytest.raises(UsageError):
        tile.write(0xE7FFF, b"ab")
    tile.load(0x4C010, b"abc", 5)
    assert tile.read(0x4C010, 5) == b"abc\0\0"


def test_the_engine_is_cached_under_a_digest_of_its_sources() -> None:
    engine()
    directory = cache_root() / engine_digest()
    assert (directory / "complete").exists()


SCRIPT = """
from tilewright.ipu21.simulator.compile import engine
from tilewright.ipu21.simulator.tile import Tile
tile = Tile(0)
tile.load(0x4c014, (0x43f00000).to_bytes(4, "little"), 4)
tile.pc = 0x4c014
print(tile.run().kind.name, engine().cached)
"""


def test_a_second_process_takes_the_engine_from_the_cache() -> None:
    engine()
    found = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["ENDED", "True"]


def test_a_cache_that_cannot_be_used_is_passed_over(tmp_path: Path) -> None:
    """The cache directory is a file: nothing can be kept there, and the engine works all the same."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"XDG_CACHE_HOME": str(blocked)},
    )
    assert found.stdout.split() == ["ENDED", "False"]


@pytest.mark.parametrize("damage", ["no object", "empty", "cut off", "one bit", "other name"])
def test_a_damaged_engine_is_not_taken_from_the_cache(tmp_path: Path, damage: str) -> None:
    engine()
    kept = cache_root() / engine_digest()
    data, name = (kept / "engine.o").read_bytes(), (kept / "complete").read_text()
    (tmp_path / "complete").write_text("run" if damage == "other name" else name)
    contents = {
        "empty": b"",
        "cut off": data[: len(data) // 2],
        "other content": b"engine",
        "other name": data,
    }
    if damage in contents:
        (tmp_path / "engine.o").write_bytes(contents[damage])
    assert compile_module._load(tmp_path) is None
    (tmp_path / "engine.o").write_bytes(data)
    (tmp_path / "complete").write_text(name)
    assert compile_module._load(tmp_path) is not None


def test_worker_runs_are_noted_when_wanted() -> None:
    body = WORKERS + "nop\nnop\nexitz $m15"
    tile = tile_of(body, {2: DATA})
    tile.note_spans(True)
    tile.run()
    rows = sorted(tile.take_spans().tolist())
    # The first issue turns that `get $COUNT_L` shows above; three instructions, six cycles apart.
    assert rows == [(1 + worker, 16 + worker, 16 + worker + 13) for worker in range(6)]
    assert len(tile.take_spans()) == 0
    silent = tile_of(body, {2: DATA})
    silent.run()
    assert len(silent.take_spans()) == 0


def test_many_worker_runs() -> None:
    loop = "setzi $m0, w\n1: runall $m0, $m2, 0\nsync 2\nbrnzdec $m3, 1b\nbr $m10\n.align 8\nw: exitz $m15"
    tile = tile_of(loop, {2: DATA, 3: 499})
    tile.note_spans(True)
    assert tile.run().kind is StopKind.ENDED
    spans = tile.take_spans()
    assert len(spans) == 3000 and (spans["end"] - spans["begin"] == 1).all()
    first = spans["begin"][spans["context"] == 1]
    assert (np.diff(first) == first[1] - first[0]).all()


def test_context_status_is_live() -> None:
    body = """
    setzi $m0, w
    get $m3, $CTXT_STS
    run $m0, $m2, 0
    run $m0, $m2, 0
    get $m4, $CTXT_STS
    sync 2
    get $m5, $CTXT_STS
    br $m10
.align 8
w:  nop
    exitz $m15
"""
    tile = run(body, {2: DATA}).tile
    assert tile.m[0, 3:6].tolist() == [0b1, 0b010101, 0b1]
    assert tile.csr(csrs.CTXT_STS) == 0


@pytest.mark.parametrize(
    ("body", "context", "cause", "status"),
    [
        ("trap 0", 1, 2, 2),
        ("trap 1", 1, 3, 2),
        ("ld32 $m1, $m15, $m15, 0", 1, 8, 3),
        ("setzi $m1, 0x80000\nbr $m1", 1, 10, 3),
        ("get $m1, 0xf0", 1, 9, 3),
        ("setzi $a0, 2\nuput $FP_CTL, $a0\nf32oox $a1, $a15", 1, 5, 3),
        (f"setzi $m4, {DATA}\nsetzi $m5, {DATA}\nld2x64pace $a0:1, $a2:3, $m4:5+=, $m15, 0", 1, 6, 3),
        (".long 0x53000000", 1, 12, 3),
    ],
)
def test_exceptions_leave_their_cause_in_the_status_registers(
    body: str, context: int, cause: int, status: int
) -> None:
    tile = tile_of(f"{WORKERS}{body}\nexitz $m15\n", {2: DATA})
    stop = tile.run()
    assert (stop.kind, stop.context, stop.cause) == (StopKind.EXCEPTION, context, cause)
    wsr = tile.csr(csrs.WSR, context)
    assert (wsr >> 4 & 15, wsr & 7, wsr >> 9 & 1) == (cause, context - 1, 0)
    assert tile.csr(csrs.SSR) >> 4 & 15 == 0
    state = tile.csr(csrs.CTXT_STS)
    assert state >> 2 * context & 3 == status
    # The supervisor waits in `sync 2`; the other workers are still active.
    assert state & 3 == 0 and state >> 4 & 3 == 1


def test_an_exception_in_a_repeat_is_marked() -> None:
    body = "nop\nrpt 3, 0\n{ ld32 $m1, $m15, $m15, 0 ; fnop }"
    tile = tile_of(f"{WORKERS}{body}\nexitz $m15\n", {2: DATA})
    assert tile.run().kind is StopKind.EXCEPTION
    assert tile.csr(csrs.WSR, 1) >> 4 & 0x3F == 8 | 1 << 5


def test_the_supervisors_exception() -> None:
    tile = tile_of("trap 0\nbr $m10")
    tile.run()
    assert (tile.csr(csrs.SSR) >> 4 & 15, tile.csr(csrs.CTXT_STS)) == (2, 2)
