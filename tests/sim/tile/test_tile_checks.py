"""The optional checks: each finds its fault when it is on, alone, and stays silent when it is off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tile_programs import DATA, DATA1, WORKERS, image, run, run_workers, stop_of, tile_of, words_array

from tilewright.errors import SimulationError
from tilewright.ipu21.isa import build
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.class_table import ClassTable
from tilewright.ipu21.simulator.classes import TileClass
from tilewright.ipu21.simulator.crowd import Crowd
from tilewright.ipu21.simulator.noted import noted
from tilewright.ipu21.simulator.sent_words import check_sent
from tilewright.ipu21.simulator.single import FunctionError, prepare, run_function
from tilewright.ipu21.simulator.stops import ExceptionKind, Stop, StopKind
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.tiles import CompiledTiles
from tilewright.ipu21.simulator.together import TileByTile

pytestmark = pytest.mark.sim

QUIET = Checks(conflict=False, fetch=False)
NUMBER = "get $m0, $WSR\nand $m0, $m0, 7\n"
"""$m0 = the worker's number."""


def only(**chosen: bool) -> Checks:
    """These checks and no other."""
    return Checks(**({"conflict": False, "fetch": False} | chosen))


def stop_with(body: str, checks: Checks, memory: dict[int, Any] | None = None) -> Stop:
    """Where six workers on the body stop; `exitz` is appended."""
    return stop_of(tile_of(f"{WORKERS}{body}\nexitz $m15\n", {2: DATA}, memory, checks=checks))


def finishes(body: str, checks: Checks, memory: dict[int, Any] | None = None) -> None:
    run_workers(body, memory=memory, checks=checks)


# ---- races


RACES = {
    "write after write": NUMBER + "st32 $m0, $m13, $m15, 0",
    "read after write": NUMBER + "brnz $m0, 1f\nst32 $m0, $m13, $m15, 1\nbri 2f\n"
    "1: nop\nnop\nldz8 $m1, $m13, $m15, 5\n2:",
    "write after read": NUMBER + "ld32 $m1, $m13, $m15, 2\ncmpeq $m1, $m0, 5\nbrz $m1, 1f\n"
    "st32 $m0, $m13, $m15, 2\n1:",
    "pair against word": NUMBER + "brz $m0, 1f\nld64 $a0:1, $m13, $m15, 0\nbri 2f\n"
    "1: nop\nnop\nst32 $m0, $m13, $m15, 1\n2:",
}


@pytest.mark.parametrize("name", RACES)
def test_races_are_reported_with_both_sides(name: str) -> None:
    memory = {DATA: words_array(0, 0, 0, 0)}
    stop = stop_with(RACES[name], only(races=True), memory)
    assert (stop.kind, stop.exception, stop.category) == (
        StopKind.EXCEPTION,
        ExceptionKind.RACE,
        "program",
    )
    assert stop.context != stop.other_context and {stop.context, stop.other_context} <= set(range(1, 7))
    assert DATA <= stop.address < DATA + 16 and f"{stop.address:#x}" in stop.text
    assert f"{stop.pc:#x}" in stop.text and f"{stop.other_pc:#x}" in stop.text
    assert stop.text.count("worker") == 2 and stop.cause == 0
    finishes(RACES[name], QUIET, memory)


def test_the_sides_of_a_race_are_the_right_ones() -> None:
    body = NUMBER + "brnz $m0, 1f\nst32 $m0, $m13, $m15, 1\nbri 2f\n1: nop\nnop\nld32 $m1, $m13, $m15, 1\n2:"
    tile = tile_of(
        f"{WORKERS}{body}\nexitz $m15\n", {2: DATA}, {DATA: words_array(0, 0)}, checks=only(races=True)
    )
    stop = stop_of(tile)
    assert (stop.context, stop.other_context, stop.address) == (2, 1, DATA + 4)
    assert tile.instruction_text(stop.pc).startswith("ld32")
    assert tile.instruction_text(stop.other_pc).startswith("st32")


@pytest.mark.parametrize(
    "body",
    [
        # Every worker its own word; a second launch may touch another's.
        NUMBER + "shl $m1, $m0, 2\nst32step $m0, $m13, $m1+=, 1\nshl $m1, $m0, 2\nld32 $m2, $m13, $m1, 0",
        # Everybody reads.
        "ld64 $a0:1, $m13, $m15, 0\nldz16 $m1, $m13, $m15, 1",
        # Discarded loads touch nothing.
        NUMBER + "ld32 $m15, $m13, $m15, 0\nbrnz $m0, 1f\nst32 $m0, $m13, $m15, 0\n1:",
    ],
)
def test_no_race_where_there_is_none(body: str) -> None:
    finishes(body, only(races=True), {DATA: np.zeros(8, np.uint32)})


def test_a_barrier_ends_a_compute_phase() -> None:
    body = f"""
    setzi $m0, first
    setzi $m1, second
    runall $m0, $m2, 0
    sync 2
    ld32 $m3, $m2, $m15, 0
    st32 $m3, $m2, $m15, 1
    runall $m1, $m2, 0
    sync 2
    br $m10
.align 8
first:
    {NUMBER} shl $m1, $m0, 2
    stm32 $m0, $m13, $m0
    exitz $m15
.align 8
second:
    {NUMBER} setzi $m1, 5
    sub $m1, $m1, $m0
    stm32 $m0, $m13, $m1
    exitz $m15
"""
    result = run(body, {2: DATA}, {DATA: np.zeros(8, np.uint32)}, checks=only(races=True))
    assert result.read(DATA, 6, np.uint32).tolist() == [5, 4, 3, 2, 1, 0]


def test_the_supervisor_takes_part_while_workers_run() -> None:
    body = "setzi $m0, w\nrun $m0, $m2, 0\ndelay 40\nld32 $m3, $m2, $m15, 0\nsync 2\nbr $m10\n.align 8\n"
    body += "w: st32 $m0, $m13, $m15, 0\nexitz $m15"
    tile = tile_of(body, {2: DATA}, {DATA: words_array(1)}, checks=only(races=True))
    tile.run()
    early = body.replace("delay 40", "delay 10").replace("w: st32", "w: nop\nnop\nnop\nnop\nst32")
    stop = stop_of(tile_of(early, {2: DATA}, {DATA: words_array(1)}, checks=only(races=True)))
    assert (stop.exception, stop.context, stop.other_context) == (ExceptionKind.RACE, 1, 0)


def test_copies_keep_the_marks() -> None:
    body = NUMBER + "st32 $m0, $m13, $m15, 0"
    tile = tile_of(f"{WORKERS}{body}\nexitz $m15\n", {2: DATA}, checks=only(races=True))
    tile.run(budget=14)
    twin = tile.copy(3)
    assert [each.run().exception for each in (tile, twin)] == [ExceptionKind.RACE] * 2


# ---- code

PATCH = """
    ld32 $m3, $m4, $m15, 0
    st32 $m3, $m5, $m15, 0
    {between}
place:
    setzi $m0, 1
    br $m10
other: setzi $m0, 7
"""


def patching(between: str = "", checks: Checks = QUIET) -> Tile:
    built = image(PATCH.format(between=between) + "\n.globl place\n.globl other\n")
    registers = {4: built.symbols["other"], 5: built.symbols["place"]}
    return prepare(built, "f", registers, checks=checks)


def test_fetching_what_the_program_stored() -> None:
    tile = patching()
    assert tile.run().kind is StopKind.ENDED and tile.m[0, 0] == 7
    watched = patching(checks=only(code=True))
    stop = watched.run()
    assert (stop.exception, stop.pc, stop.cause) == (ExceptionKind.CODE_WRITTEN, watched.symbols["place"], 0)
    assert patching(checks=only(poison=True, races=True)).run().kind is StopKind.ENDED


def test_storing_over_what_was_executed() -> None:
    body = "place: setzi $m0, 1\nst32 $m0, $m5, $m15, 0\nbr $m10\n.globl place"
    built = image(body)
    with pytest.raises(FunctionError) as caught:
        run_function(built, "f", {5: built.symbols["place"]}, checks=only(code=True))
    assert caught.value.stop.exception is ExceptionKind.CODE_WRITTEN
    assert caught.value.stop.address == built.symbols["place"]
    assert run_function(built, "f", {5: built.symbols["place"]}, checks=QUIET).tile.m[0, 0] == 1


def test_code_from_outside_is_no_fault() -> None:
    tile = patching(checks=only(code=True))
    tile.run(budget=2)
    place = tile.symbols["place"]
    tile.write(place, tile.read(place, 4))
    assert tile.run().kind is StopKind.ENDED


def test_code_that_is_said_to_be_written_is_no_fault() -> None:
    tile = patching(checks=only(code=True))
    tile.allow_rewriting(tile.symbols["place"], 4)
    assert tile.copy(3).run().kind is StopKind.ENDED
    assert tile.run().kind is StopKind.ENDED and tile.m[0, 0] == 7
    beside = patching(checks=only(code=True))
    beside.allow_rewriting(beside.symbols["place"] + 4, 4)
    assert beside.run().exception is ExceptionKind.CODE_WRITTEN


def test_data_beside_code_is_no_fault() -> None:
    finishes("st32 $m0, $m13, $m15, 0\nld32 $m0, $m13, $m15, 0", only(code=True))


# ---- stacks


@pytest.mark.parametrize(
    ("body", "context"),
    [
        (NUMBER + "add $m11, $m12, -256\nst32 $m0, $m11, $m15, 0", None),
        (NUMBER + "add $m11, $m12, -260\nst32 $m0, $m11, $m15, 0", 1),
        (NUMBER + "add $m11, $m12, -260\nld32 $m1, $m11, $m15, 0", 1),
        (NUMBER + "brz $m0, 1f\nadd $m5, $m12, -260\nst32 $m0, $m5, $m15, 0\n1:", 2),
        (NUMBER + "cmpeq $m1, $m0, 5\nbrz $m1, 1f\nst32 $m0, $m12, $m15, 0\n1:", 6),
        # Another register may point anywhere below.
        (NUMBER + "brnz $m0, 1f\nadd $m5, $m12, -260\nst32 $m0, $m5, $m15, 0\n1:", None),
    ],
)
def test_stacks_of_workers(body: str, context: int | None) -> None:
    memory = {0x57F00: np.zeros(2048, np.uint8)}
    finishes(body, QUIET, memory)
    if context is None:
        finishes(body, only(stack=True), memory)
        return
    stop = stop_with(body, only(stack=True), memory)
    assert (stop.exception, stop.context) == (ExceptionKind.STACK_OVERFLOW, context)


def test_the_supervisors_stack() -> None:
    body = "add $m11, $m11, -{}\nst32 $m15, $m11, $m15, 0\nbr $m10"
    run(body.format(0x100), checks=only(stack=True))
    stop = stop_of(tile_of(body.format(0x104), checks=only(stack=True)))
    assert (stop.exception, stop.context, stop.address) == (ExceptionKind.STACK_OVERFLOW, 0, 0x585DC)
    run(body.format(0x104), checks=QUIET)


def test_workers_may_write_to_a_frame_of_the_supervisor() -> None:
    body = """
    add $m11, $m11, -32
    setzi $m0, w
    runall $m0, $m11, 0
    sync 2
    br $m10
.align 8
w:  get $m0, $WSR
    and $m0, $m0, 7
    shl $m1, $m0, 2
    add $m1, $m1, {}
    st32 $m0, $m13, $m1, 0
    exitz $m15
"""
    assert stop_of_or_none(body.format(0)) is None
    stop = stop_of_or_none(body.format(-4))
    assert stop is not None and (stop.exception, stop.context) == (ExceptionKind.STACK_OVERFLOW, 1)


def stop_of_or_none(body: str) -> Stop | None:
    stop = tile_of(body, checks=only(stack=True)).run()
    return None if stop.kind is StopKind.ENDED else stop


def test_bounds_of_stacks_can_be_set() -> None:
    body = "add $m11, $m11, -8\nst32 $m15, $m11, $m15, 0\nbr $m10"
    small = Checks(stack=True, supervisor_stack=(0x586DC, 0x586E0))
    assert stop_of(tile_of(body, checks=small)).exception is ExceptionKind.STACK_OVERFLOW
    worker = NUMBER + "add $m11, $m12, -8\nst32 $m0, $m11, $m15, 0"
    assert stop_with(worker, Checks(stack=True, worker_stack=4)).exception is ExceptionKind.STACK_OVERFLOW
    finishes(worker, Checks(stack=True, worker_stack=8))


# ---- unwritten bytes that leave


def test_sending_what_nobody_wrote() -> None:
    words = [build.send(3, (DATA + 0x4000) // 4, 3), 0x43A00000]

    def tile(checks: Checks, written: int) -> Tile:
        made = Tile(0, checks=checks)
        made.load(0x4C014, words_array(*words).tobytes(), 8)
        made.load(DATA + 0x4000, bytes(written), written)
        made.pc = 0x4C014
        return made

    stop = tile(only(poison=True), 12).run()
    assert (stop.exception, stop.address) == (ExceptionKind.POISON, DATA + 0x400C)
    assert tile(only(poison=True), 16).run().kind is StopKind.ENDED
    assert tile(QUIET, 12).run().kind is StopKind.ENDED
    made = tile(only(poison=True), 12)
    assert made.first_unwritten(DATA + 0x4000, 16) == DATA + 0x400C
    assert made.first_unwritten(DATA + 0x4002, 10) is None
    assert tile(QUIET, 12).first_unwritten(DATA + 0x4000, 16) is None


@pytest.mark.parametrize("many", [TileByTile, Crowd])
def test_sending_what_nobody_wrote_in_a_phase(many: type[TileByTile] | type[Crowd]) -> None:
    """Judged when the phase is over: a tile may send on what it received."""
    row = [0x41800003, build.send(3, (DATA + 0x4000) // 4, 3), build.send(0, DATA // 4, 0), 0x43A00000]

    def check_after_phase(received: int) -> None:
        tile = Tile(9, checks=only(poison=True))
        tile.load(0x4C014, words_array(*row).tobytes(), 16)
        tile.load(DATA + 0x4000, bytes(8), 8)
        tile.pc = 0x4C014
        tile.run()
        tile.resume(1000)
        assert tile.run().kind is StopKind.WINDOW_CLOSED
        tile.write(DATA + 0x4008, bytes(received))
        table = ClassTable([TileClass(tile, np.array([9]), 0)])
        table.items.add(noted(np.array([0]), [tile.take_log()]))
        engines: Any = CompiledTiles(tile.checks)
        check_sent(table, many([tile], engines.run_states if many is Crowd else engines.run))

    check_after_phase(8)
    with pytest.raises(SimulationError, match="nobody has written") as caught:
        check_after_phase(4)
    assert (caught.value.tile, caught.value.address) == (9, 0x4C018)
    assert f"{DATA + 0x400C:#x}" in str(caught.value)


def test_discarded_loads_can_be_held_to_their_address() -> None:
    body = "ld32 $m15, $m15, $m15, 0"
    finishes(body, QUIET)
    assert stop_with(body, only(discards=True)).exception is ExceptionKind.ADDRESS_RANGE
    finishes(f"setzi $m1, {DATA}\nld64 $a14:15, $m1, $m15, 0", only(discards=True))


# ---- what errors carry


def test_errors_are_simulation_errors_with_a_place() -> None:
    built = image("nop\nbri place\nplace: trap 0\n.globl place\n")
    with pytest.raises(SimulationError) as caught:
        run_function(built, "f", physical=77)
    error = caught.value
    assert (error.category, error.tile, error.context) == ("program", 77, "supervisor")
    assert (error.address, error.symbol, error.cycle) == (built.symbols["place"], "place", 7)
    assert "tile 77" in str(error) and "<place>" in str(error) and "trap" in str(error)
    with pytest.raises(SimulationError) as unknown:
        run_function(image(f"{WORKERS}f16v4hihov4amp $a0:1, $a2:3, $a4:5, 63\nexitz $m15"), "f", {2: DATA})
    assert unknown.value.category == "fact unknown" and unknown.value.context == "worker 0"
    with pytest.raises(SimulationError) as endless:
        run_function(image("1: bri 1b"), "f", budget=100)
    assert endless.value.category == "program" and "budget" in str(endless.value)
    with pytest.raises(SimulationError) as waiting:
        run_function(image("sync 3\nbr $m10"), "f")
    assert waiting.value.category == "unsupported"


def test_every_check_can_be_switched_alone() -> None:
    names = ("conflict", "fetch", "poison", "races", "code", "stack", "discards")
    bits = [only(**{name: True}).bits() for name in names]
    assert all(value and value & (value - 1) == 0 for value in bits) and len(set(bits)) == len(bits)
    assert not Checks().singly
    assert [name for name in names if only(**{name: True}).singly] == ["stack", "discards"]
    conflict = f"setzi $m4, {DATA1}\nsetzi $m5, {DATA1 + 16}\nld2x64pace $a0:1, $a2:3, $m4:5+=, $m15, 0"
    everything_else = Checks(conflict=False, poison=True, races=True, code=True, stack=True)
    finishes(conflict, everything_else, {DATA1: np.zeros(64, np.uint8)})
