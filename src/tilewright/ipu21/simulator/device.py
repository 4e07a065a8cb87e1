"""The simulated chip behind the interface of a device: load, pages, marks, states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import DeviceError
from tilewright.ipu21.machine.topology import ROWS
from tilewright.package.records import INTERVAL, Package

from .activity import ACTIVITY
from .checks import Checks
from .chip import Chip
from .choice import TRANSLATED, check_engines, make_engines
from .engine import Engines
from .hazards import PhaseChecks
from .hostport import HostPort, LateHost
from .intervals import intervals

PHYSICAL_IDS = ROWS * 64
MARK_LIMIT = 0xFFFF
"""Largest mark; the host reads 16 bits back."""


class SimulatedDevice:
    """A chip that executes a package's bytes.

    It runs only inside `read_mark("gs2")`, and then until nothing can move without the host; so results never
    depend on when the host calls.

    Args:
        checks: optional rules inside a tile.
        phase_checks: rules of an exchange phase.
        host_latency: cycles between a tile's wait for host words and its release.
        acknowledge_delay_seed: let the host be late by seeded delays: cycles before each acknowledgement and
            before its words, and reads of GS2 that do not yet see the answer. Results and device cycles
            do not depend on it.
        engines: "translated" (workers as native code, the default), "reference" (the compiled engine alone),
            or another implementation of tiles, to compare with. Nothing but speed depends on it.
    """

    name = "sim"

    def __init__(
        self,
        *,
        checks: Checks | None = None,
        phase_checks: PhaseChecks | None = None,
        host_latency: int = 0,
        acknowledge_delay_seed: int | None = None,
        engines: Engines | str = TRANSLATED,
    ) -> None:
        if isinstance(engines, str):
            check_engines(engines)
        self._checks = checks or Checks()
        self._phase_checks = phase_checks or PhaseChecks(unwritten=self._checks.poison)
        self._host_latency = host_latency
        self._late_seed = acknowledge_delay_seed
        self._late_host = LateHost(acknowledge_delay_seed)
        self._polls_left = 0
        self._engines = engines
        self._port = HostPort()
        self._chip: Chip | None = None
        self._recording = False

    def load(self, package: Package) -> None:
        """Replaces what runs: memories as the package says, all tiles before their first instruction."""
        self._port = HostPort()
        self._late_host = LateHost(self._late_seed)
        self._chip = Chip(
            package,
            self._port,
            self._made_engines(),
            phase_checks=self._phase_checks,
            host_latency=self._host_latency,
            late_host=self._late_host,
            instruction_limit=self._checks.budget,
        )
        if self._recording:
            self._chip.record(True)

    def _made_engines(self) -> Engines:
        return make_engines(self._engines, self._checks) if isinstance(self._engines, str) else self._engines

    @property
    def chip(self) -> Chip:
        """The loaded chip. Raises DeviceError before `load` and after `close`."""
        if self._chip is None:
            raise DeviceError("no package is loaded", hint="call load(package) first")
        return self._chip

    def attach(self, index: int, buffer: NDArray[np.uint8]) -> None:
        """Gives the device a host page, used in place; device addresses follow the order of the calls."""
        _ = self.chip
        self._port.attach(index, buffer)

    def detach_all(self) -> None:
        self._port.detach_all()

    def write_mark(self, register: str, value: int) -> None:
        """Writes a mark. GS1 only paces loaders and reads back 0; GS2 holds the credits for host barriers."""
        chip, name = self.chip, _register(register)
        if not 0 <= value <= MARK_LIMIT:
            raise DeviceError(f"mark {value} is outside 0..{MARK_LIMIT}")
        if name == "gs2":
            chip.credit = value
            self._polls_left = self._late_host.polls()

    def read_mark(self, register: str) -> int:
        """What is left of a mark. Reading GS2 runs the chip until it is blocked for the host.

        Raises SimulationError for a fault of the program and for a deadlock.
        """
        chip = self.chip
        if _register(register) == "gs1":
            return 0
        if chip.credit and self._polls_left:
            self._polls_left -= 1
            return chip.credit
        chip.advance()
        return chip.credit

    def supervisor_states(self) -> NDArray[np.uint8]:
        """Context state per physical id: 0 inactive or waiting, 1 running, 3 stopped by a fault."""
        states = np.zeros(PHYSICAL_IDS, np.uint8)
        failed = self.chip.failed
        if failed is not None and failed.tile is not None:
            states[failed.tile] = 3
        for group in self.chip.classes:
            if group.runs:
                states[group.members] = 1
        return states

    def waits_for(self) -> str | None:
        """What the chip waits for from the host, in words; None when every tile has ended."""
        return self.chip.wait_text()

    def intervals(self) -> NDArray[np.void]:
        """Profile intervals (INTERVAL) since `load` or `clear_intervals`."""
        return intervals(self.chip.table) if self._chip else np.zeros(0, INTERVAL)

    def clear_intervals(self) -> None:
        """Forgets the intervals so far; the next list starts with each tile's next mark."""
        if self.chip.recording:
            self.chip.activity.clear(self.chip.table)
        self.chip.table.marks.clear()

    def record_activity(self, wanted: bool) -> None:
        """Whether to note what tiles do inside their profile steps, from now on and after every load.

        It changes neither results nor cycles.
        """
        self._recording = wanted
        if self._chip is not None:
            self._chip.record(wanted)

    def activity(self) -> NDArray[np.void]:
        """What was noted (ACTIVITY) since `load` or `clear_intervals`."""
        return self.chip.activity.table(self.chip.classes) if self._chip else np.zeros(0, ACTIVITY)

    @property
    def clock(self) -> int:
        """The latest cycle that any tile has reached since `load`."""
        return self.chip.clock

    def close(self) -> None:
        """Forgets chip and pages. The device can be loaded again."""
        self._port.detach_all()
        self._chip = None

    def __enter__(self) -> SimulatedDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _register(name: str) -> str:
    if name not in ("gs1", "gs2"):
        raise DeviceError(f"there is no mark register {name!r}", hint="gs1 or gs2")
    return name
