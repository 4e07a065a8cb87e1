"""Running trials on a device and comparing every word that comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TilewrightError, UsageError
from ...runtime import Device, Session, open_device
from ...runtime.discovery import SIMULATOR
from ..fabric.schedule import schedule
from ..fabric.verify import verify
from ..machine.topology import TILES
from .random_trials import random_trial
from .scenarios import SCENARIOS
from .trial import Exchange, Trial
from .trial_memory import Memory
from .trial_package import TAKEN, trial_package

RUNS = 2
"""Runs of a trial in one session, so that the program's way back to its start is tried too."""


@dataclass(frozen=True)
class Outcome:
    """One trial.

    Attributes:
        name: of the trial. scenario: the scenario it is, "" for a random one.
        fault: what went wrong, "" if every word was right.
        cycles: simulated or measured device cycles of the last run.
        words: 32-bit words compared.
    """

    name: str
    seed: int
    tiles: int
    scenario: str
    late: bool
    fault: str
    cycles: int | None
    words: int
    seconds: float

    def command(self, device: str) -> str:
        """The command that runs this trial alone."""
        which = f"--scenario {self.scenario}" if self.scenario else "--count 1 --no-scenarios"
        return f"tilewright selftest {which} --seed {self.seed} --tiles {self.tiles} --device {device}"


def selftest(
    device: str,
    *,
    seed: int,
    count: int,
    tiles: int,
    scenarios: Sequence[str],
    progress: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Random trials of seeds seed..seed+count-1 and the named scenarios; it goes on after a failure.

    On the simulator every trial runs once more with late acknowledgements, and must then take the same device
    cycles. Raises UsageError for impossible numbers and DeviceError for a device that cannot be opened.
    """
    if not 2 <= tiles <= TILES:
        raise UsageError(f"{tiles} tiles: a self-test takes 2 to {TILES:,}")
    unknown = [name for name in scenarios if name not in SCENARIOS]
    if unknown:
        raise UsageError(f"there is no scenario {unknown[0]!r}", hint=f"known: {', '.join(SCENARIOS)}")
    makers: list[tuple[str, int, Callable[[int, int], Trial]]]
    makers = [("", number, random_trial) for number in range(seed, seed + count)]
    makers += [(name, seed, SCENARIOS[name]) for name in scenarios]
    outcomes = []
    with strict_device() if device == SIMULATOR else open_device(device) as opened:
        for scenario, number, make in makers:
            progress(scenario or f"seed {number}")
            outcomes.append(_attempt(opened, make, scenario, number, tiles))
    return outcomes


def _attempt(
    device: Device, make: Callable[[int, int], Trial], scenario: str, seed: int, tiles: int
) -> Outcome:
    begin = time.perf_counter()
    name, fault, cycles, words = scenario or f"random {seed}", "", None, 0
    late, trial = device.name == SIMULATOR, None
    try:
        trial = make(seed, tiles)
        cycles, words = run_trial(trial, seed, device)
        if late:
            with strict_device(seed) as slow:
                again, _ = run_trial(trial, seed, slow, runs=1)
            if again != cycles:
                fault = f"{again} device cycles with late acknowledgements, {cycles} without"
    except TilewrightError as error:
        fault = error.what if isinstance(error, MismatchError) else f"{type(error).__name__}: {error}"
        fault += _judged(trial) if trial is not None else ""
    return Outcome(name, seed, tiles, scenario, late, fault, cycles, words, time.perf_counter() - begin)


def _judged(trial: Trial) -> str:
    """What an independent look at the rows says about a trial that failed."""
    for number, step in enumerate(trial.steps):
        if not isinstance(step, Exchange):
            continue
        transfers, destinations = step.arrays()
        try:
            conflicts = verify(schedule(transfers, destinations).rows, {}, transfers, destinations)
        except TilewrightError as error:
            return f"; exchange_{number} cannot be scheduled: {error}"
        if conflicts:
            return f"; the rows of exchange_{number} are wrong: {conflicts[0]}"
    return "; its rows are in order"


def strict_device(late_seed: int | None = None) -> Device:
    """A simulated chip that also refuses what only a wrong schedule does; with a seed, its host is late."""
    from ..simulator.device import SimulatedDevice
    from ..simulator.hazards import PhaseChecks

    return SimulatedDevice(phase_checks=PhaseChecks(listening=True), acknowledge_delay_seed=late_seed)


class MismatchError(TilewrightError):
    """The device gave other words than the trial's meaning."""


def run_trial(trial: Trial, seed: int, device: Device, *, runs: int = RUNS) -> tuple[int | None, int]:
    """Device cycles of the last run, and the number of words compared.

    Raises MismatchError for the first word that differs, and whatever building and running raise.
    """
    weights = trial.initial(seed, ["weight"])
    package = trial_package(trial, weights)
    memory = Memory(trial)
    memory.write(weights)
    words = 0
    with Session(device, package) as session:
        for run in range(runs):
            inputs = trial.initial(seed + run)
            memory.write(inputs)
            expected = memory.run()
            results = session.run(inputs)
            for name, values in expected.items():
                _compare(trial, name, results[name + TAKEN], values, run)
                words += values.size
        assert session.last_run is not None, "run has returned"
        return session.last_run.cycles, words


def _compare(
    trial: Trial, name: str, got: NDArray[np.generic], expected: NDArray[np.uint32], run: int
) -> None:
    wrong = got != expected
    if not wrong.any():
        return
    row, word = np.argwhere(wrong)[0].tolist()
    area = next(area for area in trial.areas if area.name == name)
    raise MismatchError(
        f"run {run + 1}, tile {area.tiles[row]}, {name} at {area.address + 4 * word:#x}: "
        f"{int(got[row, word]):#010x} instead of {int(expected[row, word]):#010x}; "
        f"{int(wrong.sum())} words differ on {int(wrong.any(axis=1).sum())} tiles"
    )
