"""Rows of a tile that take turns: forced on a small program, and chosen by one that has no room otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from support.judging import judge_whole
from tilewright import TensorType, ops
from tilewright.errors import ScheduleError, TilewrightError
from tilewright.ipu21 import compile as passes
from tilewright.ipu21 import fit
from tilewright.ipu21.emit.check_rows import check_rows
from tilewright.ipu21.emit.lines import Line, last_issue
from tilewright.ipu21.emit.predict import PHASE
from tilewright.ipu21.emit.tile_programs import Programs, Routine
from tilewright.ipu21.exchange.phases import list_phases
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.lower.tile_work import TileWork
from tilewright.ipu21.machine.timing import SUPERVISOR_BRANCH
from tilewright.ipu21.place.placement import Placement
from tilewright.package import write_package
from tilewright.package.records import EXECUTE, WRITE, Package
from tilewright.profiling.memory_map import MemoryMap

pytestmark = pytest.mark.sim

TILES, WIDTH, TOKENS = 16, 64, 32


def network(count: int, constants: int = 0, rows: int = 16) -> tw.Graph:
    """So many layers, and constants of so many rows that fill the memory."""
    random = np.random.default_rng(1)

    def weights(rows: int, columns: int) -> NDArray[np.float32]:
        return (random.normal(size=(rows, columns)) * rows**-0.5).astype(np.float32)

    layers = [
        ([weights(WIDTH, WIDTH) for _ in range(4)], weights(WIDTH, 4 * WIDTH), weights(4 * WIDTH, WIDTH))
        for _ in range(count)
    ]
    resident = [np.full((rows, WIDTH), number, np.float32) for number in range(constants)]

    def model(x: Any, y: Any) -> Any:
        for (wq, wk, wv, wo), w1, w2 in layers:
            x = x + ops.attention(x @ wq, x @ wk, x @ wv, heads=2) @ wo
            x = x + ops.gelu(x @ w1) @ w2
        for constant in resident:
            y = y + constant
        return x, y + y

    return tw.trace(model, x=TensorType((1, TOKENS, WIDTH)), y=TensorType((rows, WIDTH)))


@dataclass
class Compiled:
    """A package, and what was checked of it."""

    package: Package
    work: TileWork
    placement: Placement
    programs: Programs


def compiled_with(graph: tw.Graph, patched: pytest.MonkeyPatch, *, room: bool = True) -> Compiled:
    """Compile and check. Without room everything is shared that can be."""
    checked: list[Any] = []
    original = passes.assemble_programs

    def assemble(*arguments: Any, **keywords: Any) -> Programs:
        return original(*arguments, **(keywords if room else {**keywords, "room": arguments[5]}))

    def check(*arguments: Any) -> None:
        checked.extend(arguments)
        check_rows(*arguments)

    with patched.context() as inner:
        inner.setattr(passes, "assemble_programs", assemble)
        inner.setattr(passes, "check_rows", check)
        return Compiled(tw.compile(graph, tiles=TILES, check=True), *checked)


@pytest.fixture(scope="module")
def graph() -> tw.Graph:
    return network(4)


@pytest.fixture(scope="module")
def compiled(graph: tw.Graph) -> Compiled:
    with pytest.MonkeyPatch.context() as patched:
        # Weights are stored once and multicast, each from a place of its own.
        patched.setattr(fit, "PRICES", (100.0,))
        return compiled_with(graph, patched, room=False)


def inputs(rows: int = 16) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(2)
    return {
        "x": random.normal(0, 0.5, (1, TOKENS, WIDTH)).astype(np.float32),
        "y": random.normal(0, 0.5, (rows, WIDTH)).astype(np.float32),
    }


def test_some_rows_are_rewritten_and_some_only_moved(compiled: Compiled) -> None:
    uses = [use for own in compiled.programs.uses for use in own.values()]
    assert any(use.patch is not None for use in uses) and any(use.bases for use in uses)
    written = [part for image in compiled.package.images for part in image.segments if part.flags & 6 == 6]
    assert written and all(part.flags & EXECUTE and part.flags & WRITE for part in written)


def test_a_program_without_room_shares_rows_and_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants fill the memory; then the program is kept a little farther from them than it gets."""
    rows = 4906
    graph = network(10, 10, rows)
    made = compiled_with(graph, monkeypatch)
    spare = made.placement.standard_start - made.programs.end
    monkeypatch.setattr(passes, "FETCH_LOOKAHEAD_BYTES", spare + 300)
    made = compiled_with(graph, monkeypatch)
    assert made.placement.standard_start - made.programs.end >= spare + 300
    uses = [use for own in made.programs.uses for use in own.values()]
    assert any(use.patch is not None or use.bases for use in uses)
    given = inputs(rows)
    with tw.open_device("sim", check=True) as device, tw.Session(device, made.package) as session:
        judge_whole(graph, given, session.run(given), splits=TILES)


def test_it_computes_what_it_should_under_every_check(graph: tw.Graph, compiled: Compiled) -> None:
    given = inputs()
    with tw.open_device("sim", check=True) as device, tw.Session(device, compiled.package) as session:
        first, second = session.run(given), session.run(given)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
    judge_whole(graph, given, first, splits=TILES)


def test_every_phase_takes_exactly_the_cycles_that_are_expected(compiled: Compiled) -> None:
    package, programs = compiled.package, compiled.programs
    assert package.debug is not None and package.debug.program is not None
    with tw.open_device("sim") as device, tw.Session(device, package) as session:
        session.run(inputs())
        record = session.last_run
    assert record is not None
    own = record.intervals[record.intervals["context"] == 0]
    names = [step.name for step in package.profile.steps]
    prepared_phases, fixed = 0, set()
    numbers = {
        phase.step: step for phase, step in zip(list_phases(package), _exchanges(programs), strict=True)
    }
    for profile_step, step in numbers.items():
        mine = own[own["step"] == profile_step].tolist()
        spans = {tile: (begin, end) for tile, _, _, begin, end in mine}
        before, behind = {}, {}
        for tile, rows in programs.rows.items():
            for row in rows:
                if row.step == step:
                    use = programs.uses[programs.class_of[tile]][step]
                    rewriting = [part.lines for part in programs.routines[tile] if part.address == use.patch]
                    before[tile] = programs.classes[programs.class_of[tile]].cycles[step]
                    before[tile] += sum(last_issue(lines) + SUPERVISOR_BRANCH for lines in rewriting)
                    prepared_phases += bool(rewriting)
                    behind[tile] = parse_row(row.words).end + len(use.bases)
        met = max(spans[tile][0] + cycles for tile, cycles in before.items())
        for tile, cycles in behind.items():
            fixed.add(spans[tile][1] - met - cycles)
        # What a step copies inside its tiles is expected together with its phase.
        if f"{names[profile_step]}.copy" not in names:
            expected = package.debug.program.steps[profile_step].cycles
            assert expected == PHASE + max(before.values()) + max(behind.values())
    # Barrier, entry and return: the same everywhere, whatever a tile does before and behind.
    assert len(fixed) == 1 and prepared_phases > 20


def _exchanges(programs: Programs) -> list[int]:
    return sorted({row.step for rows in programs.rows.values() for row in rows})


def test_what_is_shown_of_a_phase_is_the_row_as_it_runs(compiled: Compiled) -> None:
    changed = 0
    for phase, step in zip(list_phases(compiled.package), _exchanges(compiled.programs), strict=True):
        for tile, words in phase.rows.items():
            stored = next(row for row in compiled.programs.rows[tile] if row.step == step)
            assert len(words) == len(stored.words) and phase.addresses[tile] == stored.address
            changed += not np.array_equal(words, stored.words)
    assert changed > 100


def test_the_memory_report_names_rows_and_counts_no_byte_twice(compiled: Compiled) -> None:
    tile = next(tile for tile, routines in compiled.programs.routines.items() if routines)
    usage = MemoryMap(compiled.package).usage(tile)
    places = {row.address: row.words.nbytes for row in compiled.programs.rows[tile]}
    assert usage.by_kind(0)["row"] == sum(places.values())


def _break(programs: Programs) -> int:
    """Change an address that a routine puts into a row; the tile."""
    tile = next(tile for tile, routines in sorted(programs.routines.items()) if routines)
    routine = programs.routines[tile][0]
    lines = list(routine.lines)
    # Behind the row's address come the lower halves of the words; bit 4 is one of an address in any.
    lines[1] = Line(lines[1].word ^ 1 << 4, *lines[1][1:])
    programs.routines[tile] = [Routine(routine.address, lines), *programs.routines[tile][1:]]
    return tile


def test_a_wrong_word_is_found_by_the_verifier(compiled: Compiled) -> None:
    broken = replace(compiled.programs, routines=dict(compiled.programs.routines))
    tile = _break(broken)
    with pytest.raises(ScheduleError, match=r"exchange phases break a rule of the fabric") as caught:
        check_rows(compiled.work, compiled.placement, broken)
    assert f"tile {tile}," in str(caught.value)
    check_rows(compiled.work, compiled.placement, compiled.programs)


def test_a_program_that_forgets_to_say_that_it_writes_code_is_stopped(compiled: Compiled) -> None:
    flags = [(part, part.flags) for image in compiled.package.images for part in image.segments]
    try:
        for part, was in flags:
            if was & EXECUTE:
                part.flags = was & ~WRITE
        with (
            tw.open_device("sim", check=True) as device,
            tw.Session(device, compiled.package) as session,
            pytest.raises(TilewrightError, match="instruction stored over by the program"),
        ):
            session.run(inputs())
    finally:
        for part, was in flags:
            part.flags = was


def test_in_and_around_a_loop_no_bit_changes_and_bytes_are_the_same_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(3)
    stacked = random.normal(size=(5, WIDTH, WIDTH)).astype(np.float32) / 8
    before, behind = (random.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 8 for _ in range(2))
    graph = tw.trace(
        lambda x: ops.repeat(lambda x, w: ops.gelu(x @ w) @ before + x, 5, x @ before, stacked) @ behind,
        x=TensorType((TOKENS, WIDTH)),
    )
    x = {"x": random.normal(size=(TOKENS, WIDTH)).astype(np.float32)}
    monkeypatch.setattr(fit, "PRICES", (100.0,))
    apart, shared, again = (compiled_with(graph, monkeypatch, room=room) for room in (True, False, False))
    assert write_package(shared.package) == write_package(again.package)
    used = [[use for own in made.programs.uses for use in own.values()] for made in (apart, shared)]
    assert [any(use.patch or use.bases for use in uses) for uses in used] == [False, True]
    results = []
    for made in (apart, shared):
        with tw.open_device("sim", check=True) as device, tw.Session(device, made.package) as session:
            results += [session.run(x)["output"] for _ in range(2)]
    for result in results:
        np.testing.assert_array_equal(result, results[0])
