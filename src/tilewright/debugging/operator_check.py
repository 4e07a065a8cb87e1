"""Stop a simulated run whenever a value of the graph is whole, and compare it with its reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tilewright.errors import MismatchError
from tilewright.graph import Graph
from tilewright.ipu21.machine.topology import TILES
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.choice import TRANSLATED, make_engines
from tilewright.ipu21.simulator.classes import word_table
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.ipu21.simulator.hazards import PhaseChecks
from tilewright.package.program_info import ValueInfo
from tilewright.package.records import Package
from tilewright.runtime import Session

from .cuts import Cut
from .pausing import Hit, PausingTiles
from .reference import Expected, OperatorReference, package_graph, rounded
from .shards import Difference, Memory, compare, gather
from .step_order import StepOrder


@dataclass(frozen=True)
class Checked:
    """One comparison that came out well.

    Attributes:
        value: its name; of a copy for another operation, `owner` says which.
        step, instance: the profile step that made it whole, and which time.
        worst: largest error in units of the tolerance.
        reason: of the tolerance.
    """

    value: str
    owner: str
    copy: bool
    step: int
    instance: int
    worst: float
    reason: str


@dataclass
class OperatorReport:
    """What a checked run gave.

    Attributes:
        outputs: by name, as `Session.run` gives them.
        checked: every comparison, in order of the program.
        skipped: values that could not be compared, with the reason.
        unkept: operations whose result the plan keeps nowhere; they are judged with the next that is kept.
    """

    outputs: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    checked: list[Checked] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    unkept: list[str] = field(default_factory=list)


def paused_device(*, check: bool = False, engines: str = TRANSLATED) -> tuple[SimulatedDevice, PausingTiles]:
    """A simulated chip whose tiles can be held; with `check`, one that looks for more, as `--check` does."""
    checks = Checks.thorough() if check else Checks()
    pausing = PausingTiles(make_engines(engines, checks))
    phases = PhaseChecks(listening=True, unwritten=True) if check else None
    return SimulatedDevice(checks=checks, phase_checks=phases, engines=pausing), pausing


def memory_of(device: SimulatedDevice) -> Memory:
    """Memory of each physical tile of a loaded chip, as it is now."""
    table = word_table(device.chip.classes)
    return lambda tile: table[tile].view(np.uint8)


def check_operators(
    package: Package,
    inputs: Mapping[str, ArrayLike],
    *,
    graph: Graph | None = None,
    check: bool = False,
    engines: str = TRANSLATED,
) -> OperatorReport:
    """Run a package once on the simulator and compare every value of its graph when it is whole.

    Args:
        graph: with the constants' data; by default the package's own, with its weights as the chip has them.
        check: the simulator looks for more than the machine would notice.
        engines: `translated` or `reference`; the result is the same.

    Raises MismatchError naming the first wrong operator, tile and element; UsageError for a package without
    debug information; and what `Session` raises.
    """
    device, pausing = paused_device(check=check, engines=engines)
    with device, Session(device, package) as session:
        checker = OperatorChecker(package, device, pausing, graph)
        checker.begin(inputs)
        checker.report.outputs = session.run(inputs)
    return checker.report


class OperatorChecker:
    """Holds all tiles behind each step that makes a value whole, in order of the program."""

    def __init__(
        self, package: Package, device: SimulatedDevice, engines: PausingTiles, graph: Graph | None = None
    ) -> None:
        found, unknown = package_graph(package) if graph is None else (graph, set[str]())
        assert package.program is not None
        self._package = package
        self._program = package.program
        self._device = device
        self._engines = engines
        self._order = StepOrder(package)
        self._reference = OperatorReference(found, self._program.splits(), unknown)
        self._inputs: Mapping[str, ArrayLike] = {}
        self.report = OperatorReport()
        self.report.unkept = self._unkept()
        events: dict[int, list[ValueInfo]] = {}
        for value in self._program.values:
            for position in self._order.places.get(value.step, []):
                events.setdefault(position, []).append(value)
        self._events = sorted(events.items())
        self._event = -1
        self._cut = Cut(package, device, self._order)

    def _unkept(self) -> list[str]:
        kept = {value.binding.name for value in self._program.values}
        return [item.name for item in self._program.operations if item.name not in kept]

    def begin(self, inputs: Mapping[str, ArrayLike]) -> None:
        """Before a run: look at it from its first step on."""
        self._inputs = inputs
        self._reference.begin()
        self._event = -1
        engines, cut = self._engines, self._cut
        engines.wants, engines.met, engines.keeps = cut.wanted, cut.met, cut.reached
        engines.ready = lambda _, others: cut.complete(engines.held, others)
        engines.paused = self._paused
        self._next(passed=0)

    def _next(self, passed: int) -> None:
        """Hold all tiles behind the next event. `passed`: position of a step that all have begun."""
        self._event += 1
        if self._event == len(self._events):
            self._cut.aim(None, np.zeros(TILES, np.int64))
            return
        self._cut.aim(self._events[self._event][0], self._passed(passed))

    def _passed(self, position: int) -> NDArray[np.int64]:
        """Where tiles held behind a position wait: those marks will not hold them again."""
        result = np.zeros(TILES, np.int64)
        known: dict[int, int] = {}
        for tile in self._package.tiles:
            if tile.image not in known:
                there = self._order.next_mark(self._order.marks(tile.physical_tile), position)
                known[tile.image] = there if there is not None and self._event else position
            result[tile.physical_tile] = known[tile.image]
        return result

    def _paused(self, _: list[Hit]) -> None:
        position, values = self._events[self._event]
        for value in values:
            self._check(value, position)
        self._next(passed=position)

    # What is compared -------------------------------------------------------------------------------------

    def _check(self, value: ValueInfo, position: int) -> None:
        place = self._order.place(position)
        binding, name = value.binding, value.binding.name
        memory = memory_of(self._device)
        iteration = self._iteration(place.step, place.instance)
        self._reference.enter(iteration, value.owner if value.copy else name)
        expected = self._expected(value, iteration)
        if expected is None:
            self.report.skipped[name] = "its operands are not known here"
            if not value.copy:
                self._reference.note(name, gather(memory, binding))
            return
        found = compare(memory, binding, expected.array, expected.bound)
        if found.difference is not None:
            raise self._mismatch(value, place.step, place.instance, expected, found.difference)
        if not value.copy:
            self._reference.note(name, gather(memory, binding))
        self.report.checked.append(
            Checked(name, value.owner, value.copy, place.step, place.instance, found.worst, expected.reason)
        )

    def _iteration(self, step: int, instance: int) -> int:
        loops = [loop for loop in self._program.loops if loop.first <= step <= loop.last]
        return instance % loops[-1].count if loops else 0

    def _expected(self, value: ValueInfo, iteration: int) -> Expected | None:
        name = value.binding.name
        if value.copy:
            held = self._reference.values.get(name)
            seen = self._reference.seen.get(name)
            if seen is None and held is not None:
                seen = self._reference.resolve(held, iteration)
            return None if seen is None else Expected(seen.array, 0.0, "a copy is exact")
        if name in self._inputs:
            array = np.asarray(self._inputs[name])
            bound = rounded(array, value.binding.device_dtype)
            return Expected(array.astype(np.float32), bound, "rounded once by the host")
        if name not in self._reference.values:
            return None
        return self._reference.expect(name, iteration)

    def _mismatch(
        self, value: ValueInfo, step: int, instance: int, expected: Expected, wrong: Difference
    ) -> MismatchError:
        name = value.binding.name
        time = f", time {instance + 1}" if instance else ""
        where = f"step {self._package.profile.steps[step].name}{time}, tile {wrong.tile}, {wrong.address:#x}"
        what = f"copy of {name} for {value.owner}" if value.copy else f"operator {value.owner or name}"
        total = int(np.prod(value.binding.shape))
        return MismatchError(
            f"{what}: element {list(wrong.element)} of {name} is {wrong.found:.6g}, {wrong.expected:.6g} was "
            f"expected, at most {wrong.bound:.3g} off ({expected.reason}); {wrong.wrong:,} of {total:,} "
            f"elements are wrong, on {wrong.tiles:,} tiles",
            where=where,
        )


def report_data(report: OperatorReport, package: Package) -> dict[str, Any]:
    """The report as plain data, for `--json`."""
    return {
        "checked": [
            {
                "value": item.value,
                "operation": item.owner,
                "copy": item.copy,
                "step": package.profile.steps[item.step].name,
                "instance": item.instance,
                "worst": round(item.worst, 6),
                "reason": item.reason,
            }
            for item in report.checked
        ],
        "skipped": [{"value": name, "reason": reason} for name, reason in report.skipped.items()],
        "not_kept": report.unkept,
    }
