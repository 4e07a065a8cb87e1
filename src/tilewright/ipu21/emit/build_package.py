"""The package: images, bindings, host protocol, profile marks, symbols, and what a person wants to see."""

from __future__ import annotations

import numpy as np

from ... import __version__
from ...graph import Graph
from ...package.orders import pack_slices
from ...package.records import (
    PROVISIONAL_WORD,
    Binding,
    Debug,
    Package,
    ProfilePlan,
    Region,
    Symbol,
)
from ..lower.tile_work import TileWork
from ..machine.topology import to_physical
from ..place.placement import Placement, live_at_steps
from ..toolchain import LinkedImage
from .bindings import make_binding
from .debug_info import program_info
from .host_plan import plan_batches
from .host_protocol import entry_points, host_exchange
from .images import ImageBlobs, build_images, initial_zeros, merge
from .row_regions import row_regions
from .steps_profile import ProfileIndex
from .tile_programs import HostTraffic, Programs


class HostBindings:
    """Bindings of all three groups, and how their bytes travel."""

    def __init__(self, graph: Graph, work: TileWork, placement: Placement, store: ImageBlobs) -> None:
        plan = work.plan
        types = {value.name: value.type for value in graph.inputs}
        constants = {value.name: (value, data) for value, data in graph.constants}
        outputs = dict(graph.outputs)

        def bind(name: str, buffer: str, shape: tuple[int, ...], dtype: str, replicas: bool) -> Binding:
            return make_binding(name, plan.buffers[buffer], shape, dtype, work, placement, replicas=replicas)

        self.inputs = [
            bind(value.name, plan.inputs[value.name], types[value.name].shape, types[value.name].dtype, True)
            for value in graph.inputs
            if value.name in plan.inputs
        ]
        self.outputs = [
            bind(name, buffer, outputs[name].type.shape, outputs[name].type.dtype, False)
            for name, buffer in plan.outputs.items()
        ]
        self.weights = []
        for buffer, use in plan.weights.items():
            value, data = constants[use.constant]
            binding = bind(use.binding, buffer, use.shape, value.type.dtype, True)
            binding.blob = store.add(pack_slices(binding, np.broadcast_to(data, use.shape)))
            self.weights.append(binding)
        self.traffic = HostTraffic(
            plan_batches(self.weights), plan_batches(self.inputs), plan_batches(self.outputs)
        )


def build_package(
    graph: Graph,
    work: TileWork,
    placement: Placement,
    host: HostBindings,
    programs: Programs,
    active_runtime: LinkedImage,
    idle_runtime: LinkedImage,
    profile: ProfileIndex,
    store: ImageBlobs,
) -> Package:
    """Put everything together. The result is not validated yet; the writer does that."""
    padding = [initial_zeros(work, placement, tile_class) for tile_class in work.classes]
    images, mark_tables = build_images(programs, padding, profile.output, active_runtime, idle_runtime, store)
    names = {step: profile.steps[number].name for step, number in profile.step.items()}
    provisional = {*active_runtime.provisional, *idle_runtime.provisional}
    exchange = host_exchange(host.traffic)
    return Package(
        compiler_version=f"tilewright {__version__}",
        blobs=store.blobs,
        images=images.images,
        tiles=images.tiles,
        inputs=host.inputs,
        outputs=host.outputs,
        weights=host.weights,
        host_exchange=exchange,
        entry_points=entry_points(exchange),
        profile=ProfilePlan(profile.steps, mark_tables),
        symbols=[
            Symbol(name, address)
            for name, address in sorted(active_runtime.symbols.items(), key=lambda item: (item[1], item[0]))
        ],
        regions=[*_regions(work, placement), *row_regions(programs, names)],
        provisional=np.array(sorted(provisional), dtype=PROVISIONAL_WORD),
        debug=_debug(graph, work, placement, profile),
    )


def _regions(work: TileWork, placement: Placement) -> list[Region]:
    """Data memory of each active tile: the union of its buffers, whatever their lifetimes."""
    spans = [
        merge([(placed.address, placed.end) for placed in classes.values()]) for classes in placement.classes
    ]
    tiles = sorted((int(to_physical(tile)), int(work.class_of[tile])) for tile in range(work.plan.tiles))
    return [Region(tile, begin, end - begin, "data") for tile, index in tiles for begin, end in spans[index]]


def _debug(graph: Graph, work: TileWork, placement: Placement, profile: ProfileIndex) -> Debug:
    plan = work.plan
    lines = [f"{name}: {buffer.layout.describe()}" for name, buffer in plan.buffers.items()]
    lines += [f"{name}: grid {grid}" for name, grid in plan.grids.items()]
    # A plan step may have become two profile steps (copies, then exchange) or none.
    live: list[list[str]] = [[] for _ in profile.steps]
    for index, names in enumerate(live_at_steps(plan)):
        for steps in (profile.copies, profile.step):
            if index in steps:
                live[steps[index]] = names
    program = program_info(graph, work, placement, profile)
    return Debug(graph=str(graph), layouts="\n".join(lines), live=live, program=program)
