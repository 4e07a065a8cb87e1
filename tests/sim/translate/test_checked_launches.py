"""What native code sees of the checks that look at accesses: the same as the engine that looks at each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from launches import DATA, tile_of
from random_programs import differences

from tilewright.ipu21.machine.memory import REGION1_BASE, TILE_BASE
from tilewright.ipu21.simulator import state as at
from tilewright.ipu21.simulator.batch import run_tiles
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.engine_checks import keep_touch
from tilewright.ipu21.simulator.stops import ExceptionKind, Stop, StopKind
from tilewright.ipu21.simulator.translate import reasons
from tilewright.ipu21.simulator.translate.tiles import run_translated, translator

pytestmark = pytest.mark.sim

OFF = Checks()


def both(
    worker: str, checks: Checks, written: int = 0, **supervisor: str
) -> tuple[Stop, int, dict[str, int]]:
    """How the program ends, how many launches ran natively, and why others did not; both engines have been
    compared. `written`: bytes of data that somebody has written before. `supervisor`: as for `tile_of`.
    """
    tiles = [tile_of(worker, checks=checks, **supervisor) for _ in range(2)]
    for tile in tiles:
        if written:
            tile.write(DATA, bytes(written))
    past = translator().statistics()
    stop, stop_too = run_tiles(tiles[:1])[0], run_translated(tiles[1:])[0]
    now = translator().statistics()
    assert stop == stop_too
    assert differences(*tiles) == []
    why = {text: count - past.reasons.get(text, 0) for text, count in now.reasons.items()}
    return stop, now.launches - past.launches, {text: count for text, count in why.items() if count}


OWN = """
    get $m0, $WSR
    and $m0, $m0, 7
    shl $m1, $m0, 10
    add $m1, $mvertex_base, $m1
"""
"""$m1: the worker's own kilobyte."""
UNWRITTEN = reasons.NAMES[reasons.UNWRITTEN]


@pytest.mark.parametrize(
    "loads",
    [
        "ld32 $m3, $m1, $mzero, 31",
        "ld64 $a0:1, $m1, $mzero, 15",
        "{ rpt 16, 0 ; fnop }\n{ ld64step $a0:1, $mzero, $m1+=, 1 ; fnop }",
        "{ rpt 6, 0 ; fnop }\n{ ld64step $a0:1, $mzero, $m1+=, 3 ; fnop }",
        "setzi $m4, 5\n1: ld64step $a0:1, $mzero, $m1+=, 3\nbrnzdec $m4, 1b",
    ],
)
def test_a_load_of_what_nobody_has_written(loads: str) -> None:
    """The last of the bytes of worker 5; the others' are all there."""
    poison = replace(OFF, poison=True)
    stop, native, _ = both(OWN + loads, poison, 0x1480)
    assert stop.kind is StopKind.ENDED and native == 1
    stop, native, why = both(OWN + loads, poison, 0x147C)
    assert stop.exception is ExceptionKind.POISON and native == 0 and UNWRITTEN in why
    assert stop.context == 6


def test_half_a_word_that_has_been_written() -> None:
    """Bits are kept per byte and native code compares words: such a launch runs in the other engine."""
    stop, native, why = both("ldz16 $m3, $mvertex_base, $mzero, 0", replace(OFF, poison=True), 2)
    assert stop.kind is StopKind.ENDED and native == 0 and UNWRITTEN in why


def test_what_a_worker_has_stored_is_there_in_the_next_launch() -> None:
    """In the launch itself native code does not know what came first."""
    worker = OWN + "st64 $azeros, $m1, $mzero, 0\nld64 $a0:1, $m1, $mzero, 0"
    again = "setzi $m0, worker\nrunall $m0, $m2, 0\nsync 2\n"
    stop, native, why = both(worker, replace(OFF, poison=True), after=2 * again)
    assert stop.kind is StopKind.ENDED and native == 2 and UNWRITTEN in why


@pytest.mark.parametrize("step", [1, 3])
def test_stores_of_a_native_launch_count_as_written_and_nothing_between_them(step: int) -> None:
    stores = f"{{ rpt 6, 0 ; fnop }}\n{{ st64step $azeros, $mzero, $m1+=, {step} ; fnop }}"
    for word, there in ((10 * step, True), (10 * step + 1, True), (10 * step + 2, False)):
        stop, native, _ = both(
            OWN + stores, replace(OFF, poison=True), after=f"ld32 $m3, $m2, $mzero, {word + 256}"
        )
        assert native == 1
        assert (stop.kind is StopKind.ENDED) == there, word


def test_walks_that_only_a_bitmap_holds() -> None:
    """More walks than are kept, of words and of the gaps between them."""

    def walks(what: str, register: str) -> str:
        return OWN + "".join(
            f"mov $m3, $m1\nadd $m3, $m3, {8 * number}\n{{ rpt 3, 0 ; fnop }}\n"
            f"{{ {what}step {register}, $mzero, $m3+=, {9 + number} ; fnop }}\n"
            for number in range(6)
        )

    stores, loads = walks("st64", "$azeros"), walks("ld64", "$a0:1")
    poison = replace(OFF, poison=True)
    assert both(loads, poison)[1] == 0
    stop, native, _ = both(loads, poison, 0x1800)
    assert stop.kind is StopKind.ENDED and native == 1
    missing = 2 * (5 + 2 * 14)  # The last word pair of the last walk.
    for word, there in ((missing, True), (missing + 1, True), (missing + 2, False)):
        stop, native, _ = both(stores, poison, after=f"ld32 $m3, $m2, $mzero, {word}")
        assert native == 1 and (stop.kind is StopKind.ENDED) == there


def test_weights_that_nobody_has_written() -> None:
    load = f"setzi $m3, {DATA}\nput $CCCSLOAD, $m3\n" + "".join(
        f"ld64putcs {number}\n" for number in range(8)
    )
    poison = replace(OFF, poison=True)
    stop, _, _ = both("nop", poison, 64, after=load)
    assert stop.kind is StopKind.ENDED
    stop, _, _ = both("nop", poison, 60, after=load)
    assert stop.exception is ExceptionKind.POISON


MEET = """
    get $m0, $WSR
    and $m0, $m0, 7
    brnz $m0, other
    st32 $m15, $mvertex_base, $mzero, 8
    exitz $m15
other:
    ld32 $m1, $mvertex_base, $mzero, 8
"""


def test_workers_that_share_a_word() -> None:
    stop, native, _ = both(MEET, replace(OFF, races=True))
    assert stop.exception is ExceptionKind.RACE and native == 0
    stop, native, _ = both(OWN + "st32 $m15, $m1, $mzero, 0", replace(OFF, races=True))
    assert stop.kind is StopKind.ENDED and native == 1


TOUCHED = reasons.NAMES[reasons.TOUCHED]
STORES = "st32 $m15, $m1, $mzero, 3"
TEETH = "{ rpt 6, 0 ; fnop }\n{ st64step $azeros, $mzero, $m1+=, 3 ; fnop }"
MORE_TEETH = "".join(
    f"mov $m3, $m1\nadd $m3, $m3, {8 * number}\n{{ rpt 3, 0 ; fnop }}\n"
    f"{{ st64step $azeros, $mzero, $m3+=, {9 + number} ; fnop }}\n"
    for number in range(6)
)
"""So many walks that native code keeps words in a bitmap."""


@pytest.mark.parametrize(
    ("worker", "what", "word", "races"),
    [
        ("ld32 $m3, $m1, $mzero, 3", "st32 $m15", 3, True),
        ("ld32 $m3, $m1, $mzero, 3", "st32 $m15", 4, False),
        ("ld32 $m3, $m1, $mzero, 3", "ld32 $m3", 3, False),
        (STORES, "ld32 $m3", 3, True),
        (STORES, "ld32 $m3", 2, False),
        (STORES, "ldz8 $m3", 15, True),
        (STORES, "ldz8 $m3", 11, False),
        (TEETH, "ld32 $m3", 31, True),
        (TEETH, "ld32 $m3", 32, False),
        (TEETH, "st32 $m15", 35, False),
        (MORE_TEETH, "ld32 $m3", 67, True),
        (MORE_TEETH, "ld32 $m3", 68, False),
        (MORE_TEETH.replace("st64step $azeros", "ld64step $a0:1"), "st32 $m15", 67, True),
        (MORE_TEETH.replace("st64step $azeros", "ld64step $a0:1"), "ld32 $m3", 67, False),
    ],
)
def test_what_the_supervisor_touches_behind_a_launch(worker: str, what: str, word: int, races: bool) -> None:
    stop, native, why = both(
        OWN + worker, replace(OFF, races=True), launch=f"runall $m0, $m2, 0\n{what}, $m2, $mzero, {word}"
    )
    assert (stop.exception is ExceptionKind.RACE) == races
    assert native == (not races) and (TOUCHED in why) == races


@pytest.mark.parametrize(("word", "races"), [(8, True), (10, False)])
def test_a_word_that_the_supervisor_stores_between_launches(word: int, races: bool) -> None:
    """Workers are launched one by one; the store comes when the first is under way."""
    launch = f"run $m0, $m2, 0\nst32 $m15, $m2, $mzero, {word}\nrun $m0, $m2, 1"
    worker = "ld32 $m3, $mvertex_base, $mzero, 8"
    stop, native, why = both(worker, replace(OFF, races=True), launch=launch)
    assert (stop.exception is ExceptionKind.RACE) == races
    assert native == (not races) and (TOUCHED in why) == races


def test_more_words_of_the_supervisor_than_are_kept() -> None:
    """Those of the compute phase before are forgotten; one too many leaves the phase to the other engine."""
    state = np.zeros(at.STATE_WORDS, np.int64)
    for epoch in (4, 5):
        state[at.EPOCH] = epoch
        for number in range(at.MOST_TOUCHES):
            keep_touch(state, DATA + 8 * number, 8, number % 2 == 1)
        assert state[at.TOUCHES : at.TOUCHES + 2].tolist() == [epoch, at.MOST_TOUCHES]
        kept = state[at.TOUCHES + 2 :].reshape(-1, at.TOUCH_FIELDS)
        assert kept[1].tolist() == [DATA + 8, DATA + 16, 1] and kept[2].tolist() == [DATA + 16, DATA + 24, 0]
        assert state[at.LAST_TOUCH] != epoch
    keep_touch(state, DATA, 4, False)
    assert state[at.LAST_TOUCH] == 5 and state[at.TOUCHES + 1] == at.MOST_TOUCHES
    loads = 8 * "ld32 $m3, $m2, $mzero, 1\n"
    launch = "run $m0, $m2, 0\n" + loads + "run $m0, $m2, 1"
    assert both(OWN, replace(OFF, races=True), launch=launch)[1] == 1
    assert both(OWN, replace(OFF, races=True), launch=launch + "\n" + loads)[1] == 0


PATCH = "setzi $m3, worker\nld32 $m4, $m3, $mzero, 0\nst32 $m4, $m3, $mzero, {word}\n"


def test_stores_over_code_that_has_run_natively() -> None:
    worker = "setzi $m4, 1\nsetzi $m5, 2\nadd $m4, $m4, $m5"
    for word, fetched in ((2, True), (3, True), (4, False)):
        stop, native, _ = both(worker, replace(OFF, code=True), after=PATCH.format(word=word))
        assert native == 1
        assert (stop.exception is ExceptionKind.CODE_WRITTEN) == fetched, word


def test_workers_in_code_that_the_program_has_stored() -> None:
    worker = "setzi $m4, 1\nsetzi $m5, 2\nadd $m4, $m4, $m5"
    stop, native, why = both(worker, replace(OFF, code=True), before=PATCH.format(word=1))
    assert stop.exception is ExceptionKind.CODE_WRITTEN
    assert native == 0 and reasons.NAMES[reasons.REWRITTEN] in why


def test_a_worker_that_stores_over_what_the_supervisor_has_fetched() -> None:
    """And over data beside code, which nobody may fetch from then on."""
    worker = OWN + "brnz $m0, 1f\nsetzi $m3, f\nst32 $m15, $m3, $mzero, {word}\n1:"
    stop, native, _ = both(worker.format(word=0), replace(OFF, code=True))
    assert stop.exception is ExceptionKind.CODE_WRITTEN and native == 0
    behind = "st32 $m15, $m2, $mzero, 0\nbri spare\nspare: nop"
    store = "brnz $m0, 1f\nsetzi $m3, spare\nst32 $m15, $m3, $mzero, 0\n1:"
    stop, native, _ = both(OWN + store, replace(OFF, code=True), after=behind)
    assert stop.exception is ExceptionKind.CODE_WRITTEN and native == 1


def test_code_that_may_be_rewritten() -> None:
    worker = OWN + "brnz $m0, 1f\nsetzi $m3, spare\nst32 $m5, $m3, $mzero, 0\n1:"
    before = "setzi $m3, spare\nld32 $m5, $m3, $mzero, 0\nst32 $m5, $m2, $mzero, 0\nbri spare\nspare: nop"
    load = "\nld32 $m5, $mvertex_base, $mzero, 0\n"
    for allowed in (False, True):
        tile = tile_of(load + worker, checks=replace(OFF, code=True), before=before, after="bri spare")
        if allowed:
            tile.allow_rewriting(TILE_BASE, REGION1_BASE - TILE_BASE)
        stop = run_translated([tile], budget=1000)[0]
        # Allowed, it goes round for ever.
        assert stop.kind is (StopKind.BUDGET if allowed else StopKind.EXCEPTION)


def test_checks_that_ask_for_the_instruction_stay_in_the_other_engine() -> None:
    for checks in (replace(OFF, stack=True), replace(OFF, discards=True)):
        stop, native, _ = both(OWN, checks)
        assert stop.kind is StopKind.ENDED and native == 0
    stop, native, _ = both(OWN + "st64 $azeros, $m1, $mzero, 0", Checks.thorough())
    assert stop.kind is StopKind.ENDED and native == 1


def test_what_came_from_outside_and_what_workers_stored() -> None:
    tile = tile_of(OWN + "st32 $m15, $m1, $mzero, 0", checks=replace(OFF, races=True))
    tile.write(DATA + 64, bytes(4))
    assert run_tiles([tile])[0].kind is StopKind.ENDED
    context, address = tile.last_store(DATA) or (0, 0)
    assert context == 1 and address
    assert tile.last_store(DATA + 64) == (7, 0), "the fabric"
    assert tile.last_store(TILE_BASE + 0x20000) is None
    loaded = int(np.flatnonzero(tile.memory)[0]) + TILE_BASE
    assert tile.last_store(loaded) == (7, 0), "the loader"
    assert tile.copy(3).last_store(loaded) == (7, 0) and tile.copy(3).last_store(DATA) == (context, address)
