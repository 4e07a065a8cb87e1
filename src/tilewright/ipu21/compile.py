"""All passes for the IPU21, in order: plan, lower, place, schedule, emit, package.

Every arrow of the pipeline is a function of its own; this module only decides what to try next when programs
do not fit beside the data.
"""

from __future__ import annotations

import time
from enum import IntEnum
from functools import partial

from ..compiler.numerics import Numerics
from ..compiler.progress import Progress
from ..errors import PlacementError, UsageError
from ..graph import Graph
from ..native.loops import missing
from ..package import validate
from ..package.records import Package
from .emit.build_package import HostBindings, build_package
from .emit.call_code import call_words
from .emit.check_rows import check_rows
from .emit.images import ImageBlobs
from .emit.phase_transfers import phase_transfers
from .emit.predict import predict
from .emit.prepared import PreparedCalls
from .emit.step_code import class_code
from .emit.steps_profile import index_steps
from .emit.tile_programs import Programs, assemble_programs
from .fabric.schedule import Schedule, schedule
from .fit import NUMERICS, Fitted, fit
from .kernels.rounding import SET_ROUNDING
from .lower.tile_work import Phase, TileWork
from .machine.memory import ELEMENT_BYTES, FETCH_LOOKAHEAD_BYTES, REGION1_BASE
from .machine.topology import TILES, to_physical
from .place.placement import Placement
from .plan.price import Prices


class Economy(IntEnum):
    """What a program does without when it has no room otherwise, each with those before it.

    Attributes:
        ROWS: rows of a tile take turns in one place, as far as that is needed.
        FRAMES: calls that run once have no frames that lie ready.
        LOOPS: neither have those in loops.
    """

    NONE = 0
    ROWS = 1
    FRAMES = 2
    LOOPS = 3
    LAST = LOOPS

    @property
    def runs(self) -> int | None:
        """How often a call must run to have a frame; None: none has one."""
        return None if self >= Economy.LOOPS else 2 if self >= Economy.FRAMES else 1


def prepare(progress: Progress | None = None) -> float:
    """Make the native code of the compiler that this machine has not got yet. Returns the seconds it took: a
    quarter of a minute the first time, and then 0."""
    begin, loops = time.perf_counter(), missing()
    if not loops:
        return 0.0
    for number, loop in enumerate(loops, 1):
        if progress is not None:
            progress(f"build the compiler's native code, once ({number} of {len(loops)})")
        loop.make()
    return time.perf_counter() - begin


def compile_for_ipu21(
    graph: Graph,
    *,
    tiles: int,
    check: bool = False,
    numerics: Numerics = NUMERICS,
    progress: Progress | None = None,
) -> Package:
    """Compile a graph for logical tiles 0..tiles-1 of one chip.

    `check`: judge every exchange row as emitted, by a verifier that shares nothing with the scheduler.

    Raises UnsupportedError, PlacementError, ScheduleError; UsageError for an impossible tile count.
    """
    _check_tiles(tiles)
    report = progress or (lambda _: None)
    prepare(progress)
    least = most = ELEMENT_BYTES
    economy = Economy.NONE
    known: Prices | None = None
    while True:
        report("plan and place")
        # As long as programs have only what is always kept for them, it is not they that have no room.
        hopeless = economy == Economy.LAST or most == ELEMENT_BYTES
        try:
            reserves = (*range(most, least, -ELEMENT_BYTES), least) if economy else (most,)
            fitted = fit(graph, tiles, reserves, numerics, known=known, explain=hopeless)
        except PlacementError:
            if hopeless:
                raise
            economy, least = Economy(economy + 1), ELEMENT_BYTES
            continue
        known = fitted.prices
        package, programs = _emit(graph, fitted, report, numerics, economy)
        if package is not None:
            if check:
                report("check exchange rows")
                check_rows(fitted.work, fitted.placement, programs)
            return package
        # The programs outgrew the elements kept for them; give them what they need and start again.
        needed = programs.end - programs.start
        if programs.end + FETCH_LOOKAHEAD_BYTES <= REGION1_BASE:
            most = max(most, needed)
            least = needed if economy else least
        elif economy == Economy.LAST:
            raise PlacementError(
                f"programs and exchange rows of a tile need {needed:,} bytes; "
                f"{REGION1_BASE - programs.start:,} can be executed",
                hint="use a smaller model or other tile counts",
            )
        else:
            most = REGION1_BASE - programs.start
            economy, least = Economy(economy + 1), ELEMENT_BYTES


def plan_for_ipu21(
    graph: Graph, *, tiles: int, numerics: Numerics = NUMERICS, progress: Progress | None = None
) -> Fitted:
    """The plan that `compile_for_ipu21` starts from, with addresses."""
    _check_tiles(tiles)
    prepare(progress)
    (progress or (lambda _: None))("plan and place")
    return fit(graph, tiles, (ELEMENT_BYTES,), numerics)


def _check_tiles(tiles: int) -> None:
    if not 1 <= tiles <= TILES:
        raise UsageError(f"{tiles} tiles: the chip has {TILES:,}", hint=f"give a number from 1 to {TILES}")


def _schedule(work: TileWork, placement: Placement, report: Progress) -> dict[int, Schedule]:
    """Schedules of every exchange step with traffic. Phases that move the same words are scheduled once."""
    done: dict[tuple[bytes, bytes], Schedule] = {}
    schedules = {}
    for step, item in enumerate(work.work):
        if isinstance(item, Phase) and item.words:
            transfers, destinations = phase_transfers(item, work, placement)
            key = (transfers.tobytes(), destinations.tobytes())
            if key not in done:
                report(f"schedule {work.plan.steps[step].name}")
                done[key] = schedule(transfers, destinations)
            schedules[step] = done[key]
    return schedules


def _emit(
    graph: Graph, fitted: Fitted, report: Progress, numerics: Numerics, economy: Economy
) -> tuple[Package | None, Programs]:
    """The package, if the programs fit below the data."""
    work, placement = fitted.work, fitted.placement
    store = ImageBlobs()
    report("pack weights")
    host = HostBindings(graph, work, placement, store)
    schedules = _schedule(work, placement, report)
    phase_rows = {step: made.rows for step, made in schedules.items()}
    report("emit")
    profile = index_steps(work)
    runtime = fitted.runtime
    prepared = PreparedCalls(work, placement, runtime.active, runs=economy.runs)
    programs = assemble_programs(
        [to_physical(tile_class.tiles).tolist() for tile_class in work.classes],
        partial(class_code, work, placement, profile, runtime.active.symbols, prepared),
        host.traffic,
        phase_rows,
        runtime.active.symbols["copy_u64"],
        runtime.program,
        frames=prepared,
        times=dict(enumerate(work.plan.times())),
        prologue=call_words(runtime.active.symbols, SET_ROUNDING, [1])
        if numerics.stochastic_rounding
        else [],
        room=placement.standard_start - FETCH_LOOKAHEAD_BYTES if economy else None,
    )
    if programs.end + FETCH_LOOKAHEAD_BYTES > placement.standard_start:
        return None, programs
    work.plan.steps = predict(work, placement, schedules, programs)
    package = build_package(graph, work, placement, host, programs, runtime, profile, store)
    validate(package)
    return package, programs
