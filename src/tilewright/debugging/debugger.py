"""A debugger for the simulated chip: stop, look, step, go on. For scripts and notebooks.

    with Debugger(package, {"x": images}) as debugger:
        debugger.break_at("operator", "gelu_0")
        print(debugger.resume())            # Stopped(...), or None when the run is over
        print(debugger.tensor("matmul_0"))
        print(debugger.step())

A run goes on in a thread of its own while the debugger waits for it, never at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tilewright.errors import DeviceError, UsageError
from tilewright.graph import Graph
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.ipu21.simulator.stops import StopKind, context_name
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.tiles import CompiledTiles
from tilewright.ipu21.simulator.trace import Step, steps
from tilewright.package.records import Package
from tilewright.runtime import Session

from .breakpoints import Breakpoint, breakpoint_at, operation_of
from .cuts import Cut, tile_positions
from .inspection import Inspection
from .pausing import Hit, PausingTiles

_STOP_WAIT = 0.2
"""Seconds between two looks whether the user has interrupted a run."""


@dataclass(frozen=True)
class Stopped:
    """Where a run has stopped.

    Attributes:
        reason: the breakpoint or the kind of step. tile: a physical id; of several held tiles the lowest.
        context: `supervisor` or `worker 0`..`worker 5`. address, symbol: of the instruction to come.
        cycle: of that tile. step: name of the profile step that it is in. tiles: how many are held.
    """

    reason: str
    tile: int
    context: str
    address: int
    symbol: str
    cycle: int
    step: str
    tiles: int

    def __str__(self) -> str:
        held = f", {self.tiles:,} tiles held" if self.tiles > 1 else ""
        place = f"tile {self.tile}, {self.context} at {self.address:#x} <{self.symbol}>"
        return f"stopped at {self.reason}: {place}, cycle {self.cycle:,}, in step {self.step}{held}"


class Debugger(Inspection):
    """One run of a package on the simulated chip, under control.

    Args:
        inputs: as `Session.run` takes them.
        graph: with the constants' data, for comparisons; by default the package's own.
        writers: keep track of who wrote each word last, which is slower.
    """

    def __init__(
        self,
        package: Package,
        inputs: Mapping[str, ArrayLike],
        *,
        graph: Graph | None = None,
        writers: bool = True,
    ) -> None:
        checks = Checks(races=writers)
        engines = PausingTiles(CompiledTiles(checks))
        device = SimulatedDevice(checks=checks, engines=engines)
        super().__init__(package, inputs, device, engines, graph)
        self.outputs: dict[str, NDArray[np.generic]] | None = None
        self.breakpoints: list[Breakpoint] = []
        self._cut = Cut(package, device, self._order)
        self._session: Session | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._go, self._there = threading.Event(), threading.Event()
        self._over = self._closing = False
        self._temporary: str | None = None
        self._why = ""

    # Life -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the chip back; a run that has not ended is given up."""
        self._closing = True
        if self._thread is not None and self._thread.is_alive():
            self._go.set()
            self._thread.join()
        if self._session is not None:
            self._session.close()
        self._device.close()

    @property
    def over(self) -> bool:
        """Whether the run has ended, well or not."""
        return self._over

    @property
    def where(self) -> list[Hit]:
        """Tiles held now, the lowest first."""
        return self._hits

    # Breakpoints and running ------------------------------------------------------------------------------

    def break_at(self, kind: str, name: str, tile: int | None = None) -> Breakpoint:
        """Stop at an `operator`, `phase` (before its first instruction, on all tiles), `kernel` or `address`
        (on the first tile that comes there). Raises UsageError."""
        found = breakpoint_at(self.package, kind, name, tile)
        self.breakpoints.append(found)
        return found

    def resume(self) -> Stopped | None:
        """Go on, to the next breakpoint; None when the run is over. Raises what ended the run otherwise."""
        return self._advance(None)

    def step_phase(self) -> Stopped | None:
        """Go on to the next exchange phase or host step, on all tiles."""
        return self._advance("phase")

    def step_operator(self) -> Stopped | None:
        """Go on to the first step of the next operator, on all tiles."""
        return self._advance("operator")

    def step(self, tile: int | None = None, count: int = 1) -> list[Step]:
        """Let a held tile issue instructions or bundles, of whichever context's turn it is.

        Fewer than `count` when it comes to a barrier or to words it needs: then only `resume` leads on.
        """
        chosen = self.held(tile)
        done: list[Step] = []
        while len(done) < count and not self._engines.stopped(chosen):
            issued = list(steps(chosen, budget=1))
            done += [item for item in issued if isinstance(item, Step)]
            stop = issued[-1]
            if not isinstance(stop, Step) and stop.kind is not StopKind.BUDGET:
                self._engines.deliver(chosen, stop)
        return done

    def _advance(self, temporary: str | None) -> Stopped | None:
        if self._over:
            raise UsageError("the run is over", hint="make another debugger")
        self._temporary = temporary
        self._hits = []
        self._there.clear()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tilewright-run", daemon=True)
            self._thread.start()
        else:
            self._aim()
            self._go.set()
        while not self._there.wait(_STOP_WAIT):
            pass
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return None if self._over else self._describe()

    def _run(self) -> None:
        try:
            with Session(self._device, self.package) as session:
                self._session = session
                engines = self._engines
                engines.wants, engines.met = self._wanted, self._met
                engines.ready, engines.paused = self._ready, self._paused
                self._aim()
                self.outputs = session.run(self.inputs)
        except _GivenUp:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._over = True
            self._there.set()

    def _aim(self) -> None:
        """Point the cut at the nearest step that a breakpoint or the kind of stepping asks for."""
        positions = tile_positions(self._device, self._order, self._engines.held)
        watched = [g.members for g in self._device.chip.classes if g.watched]
        active = np.concatenate(watched) if watched else np.zeros(0, np.int64)
        # Some may wait at the next place already while others are still on their way.
        slowest = int(positions[active].min()) if len(active) else 0
        for position in range(slowest + 1, len(self._order.sequence)):
            self._why = self._reason(position)
            if self._why:
                self._cut.aim(position - 1, positions)
                return
        self._cut.aim(None, positions)

    def _reason(self, position: int) -> str:
        step = self._order.sequence[position]
        for item in self.breakpoints:
            if step in item.steps:
                return str(item)
        kind, operation = self.package.profile.steps[step].kind, operation_of(self.package, step)
        if self._temporary == "phase" and kind in ("exchange", "host"):
            return f"phase {self.package.profile.steps[step].name}"
        before = operation_of(self.package, self._order.sequence[position - 1])
        if self._temporary == "operator" and operation and operation != before:
            return f"operator {operation}"
        return ""

    # What the engine asks, in the thread of the run -------------------------------------------------------

    def _wanted(self, tile: Tile) -> list[int]:
        marks = self._order.marks(tile.physical)
        points = [address for item in self._concerning(tile) for address in item.addresses(marks)]
        return list(dict.fromkeys([*self._cut.wanted(tile), *points]))

    def _concerning(self, tile: Tile) -> list[Breakpoint]:
        members = self.members(tile)
        return [item for item in self.breakpoints if item.tile is None or item.tile in members]

    def _met(self, hit: Hit) -> bool:
        reached = self._cut.met(hit)
        return reached or self._point(hit) is not None

    def _point(self, hit: Hit) -> Breakpoint | None:
        marks = self._order.marks(hit.tile.physical)
        return next(
            (item for item in self._concerning(hit.tile) if hit.address in item.addresses(marks)), None
        )

    def _ready(self, held: Sequence[Tile], others: Sequence[Tile]) -> bool:
        waiting = self._engines.held
        if any(self._point(hit) is not None for hit in waiting.values()):
            return True
        return self._cut.complete(waiting, others)

    def _paused(self, hits: list[Hit]) -> None:
        self._hits = sorted(hits, key=lambda hit: hit.tile.physical)
        points = [item for hit in self._hits if (item := self._point(hit)) is not None]
        if points:
            self._why = str(points[0])
            # Those that only wait for the others at a cut are not what stopped the run.
            self._hits.sort(key=lambda hit: self._point(hit) is None)
        self._engines.keeps = self._keeps
        self._there.set()
        self._go.wait()
        self._go.clear()
        if self._closing:
            raise _GivenUp

    def _keeps(self, hit: Hit) -> bool:
        """A tile that is at the next cut already waits there for the others."""
        return self._cut.position is not None and self._cut.reached(hit)

    def _describe(self) -> Stopped:
        hit = self._hits[0]
        tile = hit.tile.physical
        positions = tile_positions(self._device, self._order, self._engines.held)
        step = self.package.profile.steps[self._order.sequence[int(positions[tile])]].name
        held = sum(len(self.members(item.tile)) for item in self._hits)
        stopped = Stopped(
            reason=self._why,
            tile=tile,
            context=context_name(hit.context),
            address=hit.address,
            symbol=self.symbol(tile, hit.address),
            cycle=hit.tile.clock,
            step=step,
            tiles=held,
        )
        return replace(stopped, tiles=1) if hit.context else stopped


class _GivenUp(DeviceError):
    """The user has left a run that had not ended."""

    def __init__(self) -> None:
        super().__init__("the run was given up")
