"""Compile a graph and run it on the simulated chip, with what both took: for commands that do it all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy import generic
from numpy.typing import NDArray

from tilewright.compiler.cache import PackageCache, compile_cached
from tilewright.compiler.progress import Progress
from tilewright.graph import Graph
from tilewright.ipu21.simulator.compile import engine, is_kept
from tilewright.profiling import ProfileBuilder
from tilewright.runtime import Session, open_device

from .tile_memory import tile_bytes_max

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Execution:
    """What came of one program.

    Attributes:
        outputs, cycles: of each run: arrays by name, and simulated device cycles without host transfers.
        tile_bytes_max: bytes used on the fullest tile, of `tile_bytes`.
        compile_seconds, simulate_seconds: wall time on this computer; `cached` says that the first was only
            that of finding the package again.
        native_seconds: what making native code of the compiler and the simulator took besides, once per
            machine.
        profile: of all runs, if one was asked for.
    """

    outputs: list[dict[str, NDArray[generic]]]
    cycles: list[int]
    tile_bytes_max: int
    tile_bytes: int
    compile_seconds: float
    simulate_seconds: float
    cached: bool = False
    native_seconds: float = 0.0
    profile: ProfileBuilder | None = None


class Execute(Protocol):
    """Something that computes a graph once per element of `inputs`."""

    def __call__(self, graph: Graph, inputs: Sequence[Arrays], progress: Progress) -> Execution: ...


def compile_and_simulate(
    graph: Graph,
    inputs: Sequence[Arrays],
    progress: Progress,
    *,
    tiles: int,
    cache: PackageCache | None,
    check: bool = False,
    engines: str | None = None,
    profile: bool = False,
) -> Execution:
    """Compile `graph` for `tiles` tiles and run it in one session on the simulator.

    `check` verifies exchange rows when compiling, and looks for races, unwritten memory and the like when
    running. `engines` are those of `open_device`. Raises what compiling and running raise.
    """
    begin = time.perf_counter()
    made = compile_cached(graph, cache=cache, tiles=tiles, check=check, progress=progress)
    package = made.package
    compiled = time.perf_counter()
    built = 0.0
    if not is_kept():
        progress("build the simulator's native code, once")
        engine()
        built = time.perf_counter() - compiled
    builder = ProfileBuilder(package, name=graph.name, device="sim") if profile else None
    outputs, cycles = [], []
    progress("simulate, load")
    with (
        open_device("sim", check=check, engines=engines) as device,
        Session(device, package, activity=profile) as session,
    ):
        for number, arrays in enumerate(inputs, 1):
            progress("simulate" if len(inputs) == 1 else f"simulate, run {number} of {len(inputs)}")
            outputs.append(session.run(arrays))
            assert session.last_run is not None and session.last_run.cycles is not None
            cycles.append(session.last_run.cycles)
            if builder is not None:
                builder.add(session.last_run)
    simulated = time.perf_counter()
    return Execution(
        outputs=outputs,
        cycles=cycles,
        tile_bytes_max=tile_bytes_max(package),
        tile_bytes=package.tile_memory_size,
        compile_seconds=compiled - begin - made.native_seconds,
        simulate_seconds=simulated - compiled - built,
        cached=made.cached,
        native_seconds=made.native_seconds + built,
        profile=builder,
    )
