"""Workers that meet in memory, code that changes, budgets that end inside a launch."""

from __future__ import annotations

import numpy as np
import pytest
from launches import DATA, tile_of
from random_programs import differences

from tilewright.ipu21.simulator.batch import run_tiles
from tilewright.ipu21.simulator.stops import StopKind
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.translate.tiles import run_translated, translator

pytestmark = pytest.mark.sim


def both(worker: str, data: bytes = b"", budget: int | None = None, supervisor: str = "") -> tuple[Tile, int]:
    """The tile after running natively, and how many launches ran so; both engines have been compared."""
    one, other = (tile_of(worker, data, after=supervisor) for _ in range(2))
    before = translator().statistics().launches
    stop, stop_too = (
        run_tiles([one], budget=budget)[0],
        run_translated([other], budget=budget, overrun=0)[0],
    )
    assert stop == stop_too
    assert differences(one, other) == []
    return other, translator().statistics().launches - before


INCREMENT = """
    setzi $m3, 9
again:
    ld32 $m0, $mvertex_base, $mzero, 0
    add $m0, $m0, 1
    st32 $m0, $mvertex_base, $mzero, 0
    brnzdec $m3, again
"""


def test_a_shared_counter_counts_in_lock_step() -> None:
    # All six load before one of them stores: ten rounds count ten, not sixty.
    tile, native = both(INCREMENT)
    assert int(tile.memory[DATA - 0x4C000 :][:4].view(np.uint32)[0]) == 10
    assert native == 0


def test_one_writer_and_five_readers_of_one_word() -> None:
    # Worker 0 stores in round two what the others load in round three.
    _, native = both(
        """
    get $m0, $WSR
    and $m0, $m0, 7
    brnz $m0, other
    st32 $m15, $mvertex_base, $mzero, 8
    exitz $m15
other:
    ld32 $m1, $mvertex_base, $mzero, 8
"""
    )
    assert native == 0


def test_a_store_by_a_pointer_that_then_goes_elsewhere() -> None:
    _, native = both(
        """
    get $m0, $WSR
    and $m0, $m0, 7
    mov $m1, $mvertex_base
    shl $m3, $m0, 2
    add $m3, $m3, 1024
    brnz $m0, other
    st32 $m15, $m1, $mzero, 8
    add $m1, $m1, $m3
    bri next
other:
    ld32 $m2, $m1, $mzero, 8
    add $m1, $m1, $m3
next:
    st32 $m0, $m1, $mzero, 0
"""
    )
    assert native == 0


def test_neighbouring_words_do_not_meet() -> None:
    tile, native = both(
        """
    get $m0, $WSR
    and $m0, $m0, 7
    stm32 $m0, $mvertex_base, $m0
    ld32 $m1, $mvertex_base, $mzero, $m0
"""
    )
    assert native == 1
    assert tile.memory[DATA - 0x4C000 :][:24].view(np.uint32).tolist() == [0, 1, 2, 3, 4, 5]


def test_reading_what_all_read() -> None:
    _, native = both("ld32 $m1, $mvertex_base, $mzero, 0\nld32 $m2, $mvertex_base, $mzero, 1")
    assert native == 1


def test_a_strided_walk_that_interleaves_the_workers() -> None:
    data = np.arange(1200, dtype=np.uint16).tobytes()
    tile, native = both(
        """
    get $m0, $WSR
    and $m0, $m0, 7
    shl $m0, $m0, 3
    add $m1, $mvertex_base, $m0
    mov $m2, $m1
    rpt 40, 1
    { ld64step $a0:1, $mzero, $m1+=, 6 ; f16v4add $a2:3, $a0:1, $a0:1 }
    { st64step $a0:1, $mzero, $m2+=, 6 ; fnop }
""",
        data,
    )
    assert native == 1
    assert tile.memory[DATA - 0x4C000 :][: len(data)].tobytes() == data


STRIDED = """
    get $m0, $WSR
    and $m0, $m0, 7
    shl $m0, $m0, 3
    add $m1, $mvertex_base, $m0
    {more}
    rpt 20, 1
    {{ ld64step $a0:1, $mzero, $m{source}+=, {step} ; fnop }}
    {{ st64step $a0:1, $mzero, $m1+=, 6 ; fnop }}
"""


def test_a_strided_walk_over_what_the_next_worker_stores() -> None:
    _, native = both(STRIDED.format(more="add $m2, $m1, 8", source=2, step=6), bytes(2000))
    assert native == 0


def test_strided_walks_in_different_steps() -> None:
    # Every other word of one's own: only a look at each word can tell that nobody else stores there.
    _, native = both(STRIDED.format(more="mov $m2, $m1", source=2, step=12), bytes(4000))
    assert native == 1


@pytest.mark.parametrize("step", [48, 64, 96, 128, 256])
@pytest.mark.parametrize("meets", [False, True])
def test_more_strided_walks_than_are_kept_apart(step: int, meets: bool) -> None:
    # Six walks of each worker, the workers' words between one another's. One store more: to the last word
    # that worker 5 has stored, or to the word behind it.
    rows, blocks = 11, 6
    behind = step * rows * blocks
    last = behind - step + 44
    extra = last if meets else last + 4 if step > 48 else behind
    tile, native = both(
        f"""
    get $m0, $WSR
    and $m0, $m0, 7
    shl $m1, $m0, 3
    add $m1, $mvertex_base, $m1
    setzi $m3, {blocks - 1}
walk:
    rpt {rows}, 0
    {{ st64step $azeros, $mzero, $m1+=, {step // 8} ; fnop }}
    brnzdec $m3, walk
    brnz $m0, done
    setzi $m2, {extra}
    st32 $m15, $mvertex_base, $m2, 0
done:
""",
        b"\xff" * (behind + 64),
    )
    assert native == (0 if meets else 1)
    stored = tile.memory[DATA - 0x4C000 :][:behind].view(np.uint32).reshape(-1, step // 4)
    assert (stored[:-1, :12] == 0).all() and (stored[:-1, 12:] == 0xFFFFFFFF).all()


def test_a_strided_walk_through_a_block_that_all_load() -> None:
    _, native = both(
        STRIDED.format(more="setzi $m3, 0x5c000\nld64 $a2:3, $m3, $mzero, 12\nnop", source=1, step=0),
        bytes(2000),
    )
    assert native == 0


def test_a_repeat_whose_last_store_meets_the_next_worker() -> None:
    _, native = both(
        """
    get $m0, $WSR
    and $m0, $m0, 7
    shl $m0, $m0, 6
    add $m1, $mvertex_base, $m0
    mov $m2, $m1
    rpt 9, 1
    { ld64step $a0:1, $mzero, $m1+=, 1 ; fnop }
    { st64step $a0:1, $mzero, $m2+=, 1 ; fnop }
""",
        np.arange(512, dtype=np.uint16).tobytes(),
    )
    assert native == 0


def test_code_that_stores_over_itself() -> None:
    # The second instruction is replaced by a copy of the third before it is issued.
    _, native = both(
        """
    setzi $m1, victim
    ld32 $m2, $m1, $mzero, 1
    st32 $m2, $m1, $mzero, 0
victim:
    setzi $m4, 111
    setzi $m4, 222
"""
    )
    assert native == 0


def test_code_that_stores_beside_itself_and_then_over_itself() -> None:
    _, native = both(
        """
    get $m0, $WSR
    and $m0, $m0, 7
    brnz $m0, done
    setzi $m1, spare
    setzi $m3, victim
    bri first
first:
    st32 $m15, $m1, $mzero, 0
    sub $m3, $m3, $m1
    add $m1, $m1, $m3
    bri next
next:
    ld32 $m2, $m1, $mzero, 1
    st32 $m2, $m1, $mzero, 0
victim:
    setzi $m4, 111
    setzi $m4, 222
done:
    exitz $m15
    .space 128
spare:
    .word 0
"""
    )
    assert native == 0


TWO_ENTRIES = """
    setzi $m0, {first}
    run $m0, $m2, 0
    setzi $m0, {second}
    run $m0, $m2, 0
    sync 2
    br $m10
.align 8
writer:
    setzi $m1, victim
    ld32 $m2, $m1, $mzero, 1
    st32 $m2, $m1, $mzero, 0
    exitz $m15
.align 8
reader:
    setzi $m5, 0
    setzi $m5, 1
    setzi $m5, 2
victim:
    setzi $m4, 111
    setzi $m4, 222
    exitz $m15
"""


@pytest.mark.parametrize(("first", "second"), [("writer", "reader"), ("reader", "writer")])
def test_a_worker_that_stores_into_the_code_of_another(first: str, second: str) -> None:
    _, native = both("nop", supervisor=TWO_ENTRIES.format(first=first, second=second))
    assert native == 1


def test_two_different_workers_at_once() -> None:
    _, native = both("nop", supervisor=TWO_ENTRIES.format(first="reader", second="reader"))
    assert native == 2


def test_changed_code_is_translated_anew() -> None:
    first = tile_of("setzi $m4, 111")
    second = tile_of("setzi $m4, 222")
    begin = first.pc
    assert run_translated([first])[0].kind is StopKind.ENDED
    assert run_translated([second])[0].kind is StopKind.ENDED
    assert (int(first.m[1, 4]), int(second.m[1, 4])) == (111, 222)
    first.memory[:] = second.memory
    first.invalidate(0x4C000, 0x1000)
    first.pc, first.m[0, 10] = begin, 0
    assert run_translated([first])[0].kind is StopKind.ENDED
    assert int(first.m[1, 4]) == 222


@pytest.mark.parametrize("budget", [1, 3, 4, 17, 40, 100, 250, 371])
def test_a_budget_that_ends_inside(budget: int) -> None:
    both(INCREMENT.replace("$mvertex_base", "$mworker_base"), budget=budget)


def test_an_endless_worker_is_stopped_at_the_same_place() -> None:
    tile, _ = both("forever: bri forever", budget=5000)
    assert tile.active_workers == 6


def test_a_launch_may_finish_behind_the_budget() -> None:
    tile = tile_of("setzi $m3, 99\nagain: brnzdec $m3, again")
    stop = run_translated([tile], budget=50)[0]
    assert stop.kind is StopKind.BUDGET
    assert tile.active_workers == 0
    assert run_translated([tile])[0].kind is StopKind.ENDED


@pytest.mark.parametrize("where", ["0x4bff8", "0xe8000", "0x5c004"])
def test_bad_addresses_are_reported_alike(where: str) -> None:
    tile, native = both(f"setzi $m1, {where}\nld64 $a0:1, $m1, $mzero, 0")
    assert native == 0
    del tile
