"""All passes for the IPU21, in order: plan, lower, place, schedule, emit, package.

Every arrow of the pipeline is a function of its own; this module only decides what to try next when something
does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..compiler.progress import Progress
from ..errors import PlacementError, UsageError
from ..graph import Graph
from ..package import validate
from ..package.records import Package
from .emit.build_package import HostBindings, build_package
from .emit.check_rows import check_rows
from .emit.images import ImageBlobs
from .emit.memory_map import PROGRAM, data_start
from .emit.phase_transfers import phase_transfers
from .emit.runtime_image import active_runtime, idle_runtime
from .emit.step_code import class_code
from .emit.steps_profile import index_steps
from .emit.tile_programs import Programs, assemble_programs
from .fabric.schedule import schedule
from .lower.tile_work import Phase, TileWork, lower_plan
from .machine.memory import ELEMENT_BYTES, REGION1_BASE
from .machine.topology import TILES, to_physical
from .place.placement import Placement, place_work
from .plan.planner import plan_graph

PRICES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Cycles worth one byte of tile memory, tried in this order until the plan fits."""


@dataclass(frozen=True)
class Fitted:
    """A plan that fits, with its addresses."""

    work: TileWork
    placement: Placement


def compile_for_ipu21(
    graph: Graph, *, tiles: int, check: bool = False, progress: Progress | None = None
) -> Package:
    """Compile a graph for logical tiles 0..tiles-1 of one chip.

    `check`: judge every exchange row as emitted, by a verifier that shares nothing with the scheduler.

    Raises UnsupportedError, PlacementError, ScheduleError; UsageError for an impossible tile count.
    """
    if not 1 <= tiles <= TILES:
        raise UsageError(f"{tiles} tiles: the chip has {TILES:,}", hint=f"give a number from 1 to {TILES}")
    report = progress or (lambda _: None)
    reserved = ELEMENT_BYTES
    while True:
        report("plan and place")
        fitted = _fit(graph, tiles, data_start(PROGRAM + reserved - 1))
        package, programs = _emit(graph, fitted, report)
        needed = programs.end - PROGRAM
        if data_start(programs.end) <= fitted.placement.standard_start:
            if check:
                report("check exchange rows")
                check_rows(fitted.work, fitted.placement, programs)
            return package
        # The programs outgrew the elements kept for them; give them what they need and start again.
        if data_start(PROGRAM + needed) >= REGION1_BASE:
            raise PlacementError(
                f"programs and exchange rows of a tile need {needed:,} bytes; "
                f"{REGION1_BASE - PROGRAM:,} can be executed",
                hint="use a smaller model or other tile counts",
            )
        reserved = needed


def _fit(graph: Graph, tiles: int, standard_start: int) -> Fitted:
    """The fastest plan that fits; when none does, an error that says how many tiles would do."""
    failure: PlacementError | None = None
    for price in PRICES:
        work = lower_plan(plan_graph(graph, tiles=tiles, price=price))
        try:
            return Fitted(work, place_work(work, standard_start))
        except PlacementError as error:
            failure = error
    assert failure is not None
    enough = _tiles_that_do(graph, tiles, standard_start)
    hint = f"{enough:,} tiles would do" if enough else f"even {TILES:,} tiles would not do"
    raise PlacementError(failure.what, where=failure.where, hint=hint) from failure


def _tiles_that_do(graph: Graph, tiles: int, standard_start: int) -> int | None:
    """The smallest tile count above `tiles`, to one part in 16, on which the most frugal plan fits."""

    def fits(count: int) -> bool:
        try:
            place_work(lower_plan(plan_graph(graph, tiles=count, price=PRICES[-1])), standard_start)
        except PlacementError:
            return False
        return True

    low, high = tiles, min(2 * tiles, TILES)
    while not fits(high):
        if high == TILES:
            return None
        low, high = high, min(2 * high, TILES)
    while high - low > max(1, high // 16):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _schedule(
    work: TileWork, placement: Placement, report: Progress
) -> dict[int, dict[int, NDArray[np.uint32]]]:
    """Rows of every exchange step by tile. Phases that move the same words are scheduled once."""
    done: dict[tuple[bytes, bytes], dict[int, NDArray[np.uint32]]] = {}
    phase_rows = {}
    for step, item in enumerate(work.work):
        if isinstance(item, Phase) and item.words:
            transfers, destinations = phase_transfers(item, work, placement)
            key = (transfers.tobytes(), destinations.tobytes())
            if key not in done:
                report(f"schedule {work.plan.steps[step].name}")
                done[key] = dict(schedule(transfers, destinations).rows)
            phase_rows[step] = done[key]
    return phase_rows


def _emit(graph: Graph, fitted: Fitted, report: Progress) -> tuple[Package, Programs]:
    work, placement = fitted.work, fitted.placement
    store = ImageBlobs()
    report("pack weights")
    host = HostBindings(graph, work, placement, store)
    phase_rows = _schedule(work, placement, report)
    report("emit")
    profile = index_steps(work)
    active, idle = active_runtime(), idle_runtime()
    programs = assemble_programs(
        [to_physical(tile_class.tiles).tolist() for tile_class in work.classes],
        partial(class_code, work, placement, profile, active.symbols),
        host.traffic,
        phase_rows,
        active.symbols["copy_u64"],
    )
    package = build_package(graph, work, placement, host, programs, active, idle, profile, store)
    validate(package)
    return package, programs
