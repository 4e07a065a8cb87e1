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
    EntryPoint,
    HostCall,
    HostExchange,
    HostPage,
    Package,
    ProfilePlan,
    Region,
    Symbol,
)
from ..lower.tile_work import TileWork
from ..machine.host import SLOT_BYTES
from ..machine.topology import to_physical
from ..place.placement import Placement, live_at_steps
from ..toolchain import LinkedImage
from .bindings import make_binding
from .host_plan import COMMAND_PAGE, COMMAND_PAGE_BYTES, DATA_PAGE, Batches, plan_batches
from .images import BlobStore, build_images, merge
from .steps_profile import ProfileIndex
from .tile_programs import HostTraffic, Programs

STARTUP_MARK = 23
"""Last mark the loader leaves when a host program follows: one per batch of 64 tiles (known)."""
INITIALIZE_COMMAND, RUN_COMMAND = 1, 0


class HostBindings:
    """Bindings of all three groups, and how their bytes travel."""

    def __init__(self, graph: Graph, work: TileWork, placement: Placement, store: BlobStore) -> None:
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
    store: BlobStore,
) -> Package:
    """Put everything together. The result is not validated yet; the writer does that."""
    images, mark_tables = build_images(
        work, placement, programs, active_runtime, idle_runtime, profile, store
    )
    provisional = {*active_runtime.provisional, *idle_runtime.provisional}
    return Package(
        compiler_version=f"tilewright {__version__}",
        blobs=store.blobs,
        images=images.images,
        tiles=images.tiles,
        inputs=host.inputs,
        outputs=host.outputs,
        weights=host.weights,
        host_exchange=_host_exchange(host.traffic),
        entry_points=_entry_points(host.traffic),
        profile=ProfilePlan(profile.steps, mark_tables),
        symbols=[
            Symbol(name, address)
            for name, address in sorted(active_runtime.symbols.items(), key=lambda item: (item[1], item[0]))
        ],
        regions=_regions(work, placement),
        provisional=np.array(sorted(provisional), dtype=PROVISIONAL_WORD),
        debug=_debug(graph, work, profile),
    )


def _call(name: str, command: int, inputs: Batches | None, outputs: Batches | None) -> HostCall:
    call = HostCall(name, command, 0)
    if inputs is not None:
        call.inputs, call.input_batch_ends = inputs.host_slices, inputs.ends
    if outputs is not None:
        call.outputs, call.output_batch_ends = outputs.host_slices, outputs.ends
    call.phases = 2 * (len(call.input_batch_ends) + len(call.output_batch_ends))
    return call


def _host_exchange(traffic: HostTraffic) -> HostExchange:
    calls = [_call("run", RUN_COMMAND, traffic.inputs, traffic.outputs)]
    if traffic.weights.slots:
        calls.insert(0, _call("initialize", INITIALIZE_COMMAND, traffic.weights, None))
    slots = max(traffic.weights.tiles, traffic.inputs.tiles, traffic.outputs.tiles)
    return HostExchange(
        startup_mark=STARTUP_MARK,
        command_page=COMMAND_PAGE,
        command_offset=0,
        pages=[HostPage(COMMAND_PAGE, COMMAND_PAGE_BYTES), HostPage(DATA_PAGE, slots * SLOT_BYTES)],
        attach_order=[COMMAND_PAGE, DATA_PAGE],
        calls=calls,
    )


def _entry_points(traffic: HostTraffic) -> list[EntryPoint]:
    return [EntryPoint(call.name, call.command, call.phases) for call in _host_exchange(traffic).calls]


def _regions(work: TileWork, placement: Placement) -> list[Region]:
    """Data memory of each active tile: the union of its buffers, whatever their lifetimes."""
    spans = [
        merge([(placed.address, placed.end) for placed in classes.values()]) for classes in placement.classes
    ]
    tiles = sorted((int(to_physical(tile)), int(work.class_of[tile])) for tile in range(work.plan.tiles))
    return [Region(tile, begin, end - begin, "data") for tile, index in tiles for begin, end in spans[index]]


def _debug(graph: Graph, work: TileWork, profile: ProfileIndex) -> Debug:
    plan = work.plan
    lines = [f"{name}: {buffer.layout.describe()}" for name, buffer in plan.buffers.items()]
    lines += [f"{name}: grid {grid}" for name, grid in plan.grids.items()]
    # A plan step may have become two profile steps (copies, then exchange) or none.
    live: list[list[str]] = [[] for _ in profile.steps]
    for index, names in enumerate(live_at_steps(plan)):
        for steps in (profile.copies, profile.step):
            if index in steps:
                live[steps[index]] = names
    return Debug(graph=str(graph), layouts="\n".join(lines), live=live)
