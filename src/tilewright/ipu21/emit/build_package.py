"""The package: images, bindings, host protocol, profile marks, symbols, and what a person wants to see."""

from __future__ import annotations

import numpy as np

from ... import __version__
from ...graph import Graph
from ...package.records import (
    PROVISIONAL_WORD,
    Debug,
    Package,
    ProfilePlan,
    Region,
    Segment,
    Symbol,
)
from ..lower.tile_work import TileWork
from ..machine.topology import to_physical
from ..place.placement import Placement, live_at_steps
from .bindings import make_binding
from .code_lines import code_lines
from .debug_info import program_info
from .host_plan import plan_batches
from .host_protocol import entry_points, host_exchange
from .images import ImageBlobs, build_images, initial_zeros, merge
from .row_regions import row_regions
from .runtime_image import Runtime
from .steps_profile import ProfileIndex
from .tile_programs import HostTraffic, Programs
from .weights import store_weights


class HostBindings:
    """Bindings of all three groups, and how their bytes travel."""

    def __init__(self, graph: Graph, work: TileWork, placement: Placement, store: ImageBlobs) -> None:
        plan = work.plan
        types = {value.name: value.type for value in graph.inputs}
        outputs = dict(graph.outputs)
        self.inputs = [
            make_binding(name, plan.inputs[name], type_.shape, type_.dtype, work, placement, replicas=True)
            for name, type_ in types.items()
        ]
        self.outputs = [
            make_binding(
                name,
                held,
                outputs[name].type.shape,
                outputs[name].type.dtype,
                work,
                placement,
                replicas=False,
            )
            for name, held in plan.outputs.items()
        ]
        constants = {value.name: data for value, data in graph.constants}
        self.weights = store_weights(work, placement, constants, store, {*types, *outputs})
        self.traffic = HostTraffic(plan_batches([]), plan_batches(self.inputs), plan_batches(self.outputs))


def build_package(
    graph: Graph,
    work: TileWork,
    placement: Placement,
    host: HostBindings,
    programs: Programs,
    runtime: Runtime,
    profile: ProfileIndex,
    store: ImageBlobs,
) -> Package:
    """Put everything together. The result is not validated yet; the writer does that."""
    data: dict[int, list[Segment]] = {}
    for tile_class in work.classes:
        padding = initial_zeros(work, placement, tile_class)
        for tile in tile_class.tiles.tolist():
            data[int(to_physical(tile))] = padding + host.weights.segments[tile]
    images, mark_tables = build_images(programs, data, profile.output, runtime, store)
    names = {step: profile.steps[number].name for step, number in profile.step.items()}
    provisional = {*runtime.active.provisional, *runtime.idle.provisional}
    exchange = host_exchange(host.traffic)
    return Package(
        compiler_version=f"tilewright {__version__}",
        blobs=store.blobs,
        images=images.images,
        tiles=images.tiles,
        inputs=host.inputs,
        outputs=host.outputs,
        weights=host.weights.bindings,
        host_exchange=exchange,
        entry_points=entry_points(exchange),
        profile=ProfilePlan(profile.steps, mark_tables),
        symbols=[
            Symbol(name, address)
            for name, address in sorted(runtime.active.symbols.items(), key=lambda item: (item[1], item[0]))
        ],
        regions=[*_regions(work, placement), *row_regions(programs, names)],
        lines=code_lines(runtime.active.lines),
        provisional=np.array(sorted(provisional), dtype=PROVISIONAL_WORD),
        debug=_debug(graph, work, placement, profile, programs),
    )


def _regions(work: TileWork, placement: Placement) -> list[Region]:
    """Data memory of each active tile: the union of its buffers, whatever their lifetimes."""
    spans = [
        merge([(placed.address, placed.end) for placed in classes.values()]) for classes in placement.classes
    ]
    tiles = sorted((int(to_physical(tile)), int(work.class_of[tile])) for tile in range(work.plan.tiles))
    return [Region(tile, begin, end - begin, "data") for tile, index in tiles for begin, end in spans[index]]


def _debug(
    graph: Graph, work: TileWork, placement: Placement, profile: ProfileIndex, programs: Programs
) -> Debug:
    plan = work.plan
    lines = [f"{name}: {buffer.layout.describe()}" for name, buffer in plan.buffers.items()]
    lines += [f"{report.operation}: {report.chosen}" for report in plan.reports]
    # A plan step may have become two profile steps (copies, then exchange) or none.
    live: list[list[str]] = [[] for _ in profile.steps]
    for index, names in enumerate(live_at_steps(plan)):
        for steps in (profile.copies, profile.step):
            if index in steps:
                live[steps[index]] = names
    copiers = {step: name for code in programs.classes for step, name in code.copiers.items()}
    program = program_info(graph, work, placement, profile, copiers)
    return Debug(graph=str(graph), layouts="\n".join(lines), live=live, program=program)
