"""Profiles from what a session measured."""

from __future__ import annotations

from tilewright.errors import ProfileError
from tilewright.ipu21.machine.topology import CLOCK_HZ
from tilewright.package.digest import package_digest
from tilewright.package.records import Package
from tilewright.runtime import RunRecord

from .divide import divide
from .granularity import Granularity, coarse_steps, coarsen
from .records import Profile, Run
from .steps import describe_steps


class ProfileBuilder:
    """Collects the runs of a session into a profile.

    Args:
        package: what ran. name: what to call it; shown, nothing else.
        device: name of the device.
        granularity: how much to keep; see `granularity`.

    Open the session with `activity=True`, or the steps stay undivided.
    """

    def __init__(
        self,
        package: Package,
        *,
        name: str,
        device: str,
        granularity: Granularity = Granularity.step,
    ) -> None:
        self._digest = package_digest(package)
        self._name = name
        self._compiler = package.compiler_version
        self._device = device
        self._steps = describe_steps(package)
        self._runs: list[Run] = []
        self._exact = True
        self._granularity = granularity

    def add(self, record: RunRecord | None) -> None:
        """Append the runs of one `Session.run` or `run_many`. ProfileError if nothing was measured."""
        if record is None:
            raise ProfileError("nothing has run yet")
        kinds = [step.kind for step in self._steps]
        for cycles, intervals, activity in record.each_run():
            if cycles is None:
                raise ProfileError("the package has no profile steps, so nothing was measured")
            rows, barriers = divide(intervals, activity, kinds)
            self._exact = self._exact and activity is not None
            self._runs.append(coarsen(Run(cycles, rows, barriers), self._steps, self._granularity))

    def profile(self) -> Profile:
        """Everything so far. Raises ProfileError before the first run."""
        if not self._runs:
            raise ProfileError("nothing has run yet")
        return Profile(
            digest=self._digest,
            package=self._name,
            compiler=self._compiler,
            device=self._device,
            clock_hz=CLOCK_HZ,
            exact=self._exact and self._granularity in (Granularity.step, Granularity.phase),
            steps=coarse_steps(self._steps, self._granularity)[0],
            runs=list(self._runs),
        )
