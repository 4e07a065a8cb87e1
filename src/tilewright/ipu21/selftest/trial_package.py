"""From a trial to a package, with the emitters that compiled models use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ... import __version__
from ...errors import PlacementError
from ...package import validate
from ...package.records import (
    NO_BLOB,
    PROVISIONAL_WORD,
    SLICE,
    Binding,
    Package,
    ProfilePlan,
    ProfileStep,
    Region,
    Symbol,
)
from ..emit.call_code import call_words
from ..emit.code_lines import code_lines
from ..emit.host_plan import plan_batches
from ..emit.host_protocol import entry_points, host_exchange
from ..emit.images import ImageBlobs, build_images, zeros
from ..emit.lines import words_of
from ..emit.memory_map import data_start
from ..emit.row_regions import row_regions
from ..emit.row_use import RowUse, exchange_block
from ..emit.runtime_image import runtime_with
from ..emit.shared_rows import PhaseRows
from ..emit.step_code import StepCode
from ..emit.steps_profile import INITIALIZE, INPUT
from ..emit.tile_programs import HostTraffic, assemble_programs
from ..fabric.schedule import schedule
from ..isa import build
from ..kernels import KERNELS
from .trial import Area, Exchange, Trial

FIRST_STEP = max(INITIALIZE, INPUT) + 1
"""Profile step of the program's first step."""
TAKEN = ".taken"
"""Behind the name of an area in the name of the output binding that takes it."""


def trial_package(
    trial: Trial, weights: Mapping[str, NDArray[np.uint32]], *, invocations: int = 1
) -> Package:
    """The package of a trial.

    Args:
        weights: contents [tiles, words] of the areas given as weights.
        invocations: runs per command.

    Raises PlacementError if code and areas do not fit together, ScheduleError for impossible messages.
    """
    tiles, store = trial.tiles, ImageBlobs()
    held, given = (
        [_binding(area) for area in trial.areas if area.given == way] for way in ("weight", "host")
    )
    for binding in held:
        binding.blob = store.add(np.ascontiguousarray(weights[binding.name], "<u4").tobytes())
    outputs = [_binding(area, TAKEN) for area in trial.areas if area.taken]
    traffic = HostTraffic(plan_batches(held), plan_batches(given), plan_batches(outputs))
    phase_rows = {
        number: dict(schedule(*step.arrays()).rows)
        for number, step in enumerate(trial.steps)
        if isinstance(step, Exchange)
    }
    calls = {call.kernel for step in trial.steps if not isinstance(step, Exchange) for call in step.calls}
    runtime = runtime_with(calls)
    active, idle = runtime.active, runtime.idle
    emit = partial(_step_code, trial, tiles, phase_rows, active.symbols)
    programs = assemble_programs(
        [[tile] for tile in tiles], emit, traffic, phase_rows, active.symbols["copy_u64"], runtime.program
    )
    lowest = min(area.address for area in trial.areas)
    if data_start(programs.end) > lowest:
        raise PlacementError(
            f"programs reach {programs.end:#x}, the first area begins at {lowest:#x}", where=trial.name
        )
    data = {
        tile: [zeros(a.address, 4 * a.words) for a in trial.areas if a.given == "zero" and tile in a.tiles]
        for tile in tiles
    }
    steps = profile_steps(trial)
    images, mark_tables = build_images(programs, data, len(steps) - 1, runtime, store)
    exchange = host_exchange(traffic, invocations)
    package = Package(
        compiler_version=f"tilewright {__version__}",
        blobs=store.blobs,
        images=images.images,
        tiles=images.tiles,
        inputs=given,
        outputs=outputs,
        weights=held,
        host_exchange=exchange,
        entry_points=entry_points(exchange),
        profile=ProfilePlan(steps, mark_tables),
        symbols=[Symbol(name, at) for name, at in sorted(active.symbols.items(), key=lambda s: (s[1], s[0]))],
        regions=[
            *(
                Region(tile, area.address, 4 * area.words, area.name)
                for area in trial.areas
                for tile in area.tiles
            ),
            *row_regions(programs, {number: steps[FIRST_STEP + number].name for number in phase_rows}),
        ],
        lines=code_lines(active.lines),
        provisional=np.array(sorted({*active.provisional, *idle.provisional}), PROVISIONAL_WORD),
    )
    validate(package)
    return package


def profile_steps(trial: Trial) -> list[ProfileStep]:
    """Profile steps of a trial: `exchange 0`, `compute 1`, ... between those of the host."""
    kinds = ["exchange" if isinstance(step, Exchange) else "compute" for step in trial.steps]
    return [
        ProfileStep("initialize", "host"),
        ProfileStep("input", "host"),
        *(ProfileStep(f"{kind}_{number}", kind) for number, kind in enumerate(kinds)),
        ProfileStep("output", "host"),
    ]


def _binding(area: Area, suffix: str = "") -> Binding:
    count, size = len(area.tiles), 4 * area.words
    slices = np.zeros(count, SLICE)
    slices["tile"], slices["address"], slices["size"] = area.tiles, area.address, size
    slices["file_offset"], slices["row"] = np.arange(count) * size, np.arange(count)
    slices["rows"] = slices["padded_rows"] = 1
    slices["columns"] = slices["padded_columns"] = area.words
    shape = (count, area.words)
    return Binding(area.name + suffix, "uint32", "uint32", shape, "row-major", shape, slices, NO_BLOB)


def _step_code(
    trial: Trial,
    tiles: list[int],
    phase_rows: PhaseRows,
    symbols: Mapping[str, int],
    index: int,
    rows: Mapping[int, RowUse],
    address: int,
    next_address: int,
) -> StepCode:
    tile, code = tiles[index], StepCode()
    for number, step in enumerate(trial.steps):
        code.mark(FIRST_STEP + number)
        if isinstance(step, Exchange):
            block = exchange_block(rows[number] if tile in phase_rows[number] else None)
            code.words += words_of([*block.setup, *block.body])
            continue
        for call in step.calls:
            if call.tile == tile:
                registers = KERNELS[call.kernel].contract.registers(**call.arguments)
                code.words += call_words(symbols, call.kernel, list(registers.values()))
    code.words.append(build.bri(next_address))
    return code
