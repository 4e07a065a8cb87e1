"""All passes for the IPU21, in order: plan, lower, place, schedule, emit, package.

Every arrow of the pipeline is a function of its own; this module only decides what to try next when something
does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial

from ..compiler.numerics import Numerics
from ..compiler.progress import Progress
from ..errors import PlacementError, TilewrightError, UsageError
from ..graph import Graph
from ..package import validate
from ..package.records import Package
from .emit.build_package import HostBindings, build_package
from .emit.call_code import call_words
from .emit.check_rows import check_rows
from .emit.images import ImageBlobs
from .emit.memory_map import data_start
from .emit.phase_transfers import phase_transfers
from .emit.predict import predict
from .emit.prepared import PreparedCalls
from .emit.runtime_image import Runtime, runtime_with
from .emit.step_code import class_code
from .emit.steps_profile import index_steps
from .emit.tile_programs import Programs, assemble_programs
from .fabric.schedule import Schedule, schedule
from .kernels.copy_spans import SYMBOL as COPY_SPANS
from .kernels.rounding import SET_ROUNDING
from .lower.calls import Call
from .lower.tile_work import Phase, TileWork, lower_plan
from .machine.memory import ELEMENT_BYTES, FETCH_LOOKAHEAD_BYTES, REGION1_BASE
from .machine.topology import TILES, to_physical
from .place.placement import Placement, place_work
from .place.request import NoRoomError
from .plan.planner import plan_graph
from .plan.steps import Plan
from .reasons import Fits, does_not_fit

PRICES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Cycles worth one byte of tile memory, tried in this order until the plan fits."""
NUMERICS = Numerics()
REFINEMENTS = 4
"""Prices tried between the last that was too low and the first that fits."""


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


@dataclass(frozen=True)
class Fitted:
    """A plan that fits, with its addresses.

    Attributes:
        price: cycles worth a byte of tile memory at which it was made.
    """

    work: TileWork
    placement: Placement
    runtime: Runtime
    price: float


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
    least = most = ELEMENT_BYTES
    economy = Economy.NONE
    while True:
        report("plan and place")
        # As long as programs have only what is always kept for them, it is not they that have no room.
        hopeless = economy == Economy.LAST or most == ELEMENT_BYTES
        try:
            reserves = (*range(most, least, -ELEMENT_BYTES), least) if economy else (most,)
            fitted = _fit(graph, tiles, reserves, numerics, explain=hopeless)
        except PlacementError:
            if hopeless:
                raise
            economy, least = Economy(economy + 1), ELEMENT_BYTES
            continue
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
    (progress or (lambda _: None))("plan and place")
    return _fit(graph, tiles, (ELEMENT_BYTES,), numerics)


def _check_tiles(tiles: int) -> None:
    if not 1 <= tiles <= TILES:
        raise UsageError(f"{tiles} tiles: the chip has {TILES:,}", hint=f"give a number from 1 to {TILES}")


def _fit(
    graph: Graph, tiles: int, reserves: Sequence[int], numerics: Numerics, *, explain: bool = True
) -> Fitted:
    """The fastest plan that fits; when none does, an error that says why, and what would help.

    Args:
        reserves: bytes kept for programs and exchange rows; of several the most with which a plan fits.
        explain: find out what would help.
    """
    failure: PlacementError | None = None
    too_cheap = 0.0
    for price in PRICES:
        work = lower_plan(plan_graph(graph, tiles=tiles, price=price, numerics=numerics))
        try:
            fitted = _placed(work, price, reserves, numerics)
        except PlacementError as error:
            failure, too_cheap = error, price
            continue
        return _refined(graph, fitted, too_cheap, reserves, numerics) if too_cheap else fitted
    assert failure is not None
    if not explain:
        raise failure
    raise _reasons(graph, work.plan, reserves, failure, numerics) from failure


def _refined(
    graph: Graph, fitted: Fitted, too_cheap: float, reserves: Sequence[int], numerics: Numerics
) -> Fitted:
    """A faster plan at a price between one that was too low and the one of a plan that fits."""
    low, best = too_cheap, fitted
    for _ in range(REFINEMENTS):
        price = (low * best.price) ** 0.5
        try:
            best = min(_try(graph, fitted.work.plan.tiles, price, reserves, numerics), best, key=_cycles)
        except PlacementError:
            low = price
    return best


def _cycles(fitted: Fitted) -> float:
    return fitted.work.plan.cycles()


def _try(graph: Graph, tiles: int, price: float, reserves: Sequence[int], numerics: Numerics) -> Fitted:
    """A plan at one price, with addresses. Raises PlacementError."""
    work = lower_plan(plan_graph(graph, tiles=tiles, price=price, numerics=numerics))
    return _placed(work, price, reserves, numerics)


def _placed(work: TileWork, price: float, reserves: Sequence[int], numerics: Numerics) -> Fitted:
    """A lowered plan with addresses. Raises PlacementError, about the least of the reserves."""
    kernels = {item.kernel for item in work.work if isinstance(item, Call)}
    if numerics.stochastic_rounding:
        kernels.add(SET_ROUNDING)
    if any(isinstance(item, Phase) and item.copies for item in work.work):
        kernels.add(COPY_SPANS)
    runtime = runtime_with(kernels)
    starts = sorted({data_start(runtime.program + reserved - 1) for reserved in reserves})
    while True:
        try:
            return Fitted(work, place_work(work, starts.pop()), runtime, price)
        except PlacementError:
            if not starts:
                raise


def _reasons(
    graph: Graph, plan: Plan, reserves: Sequence[int], failure: PlacementError, numerics: Numerics
) -> PlacementError:
    """The error for a graph that does not fit even by its most frugal plan, which `failure` is about."""

    def fits(changed: Graph, count: int, *, numerics: Numerics = numerics) -> bool:
        try:
            _try(changed, count, PRICES[-1], reserves, numerics)
        except TilewrightError:
            return False
        return True

    short = failure.__cause__
    if not isinstance(short, NoRoomError):
        return failure
    others: dict[str, Fits] = {}
    if numerics.precision != NUMERICS.precision:
        change = f"{NUMERICS.precision} instead of {numerics.precision}"
        others[change] = partial(fits, numerics=replace(numerics, precision=NUMERICS.precision))
    return does_not_fit(graph, plan.tiles, plan, short, failure.where or "", fits, others)


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
