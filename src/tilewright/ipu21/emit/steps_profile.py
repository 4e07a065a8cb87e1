"""Profile steps: the names under which a run's cycles are reported, in program order."""

from __future__ import annotations

from dataclasses import dataclass

from ...package.records import ProfileStep
from ..lower.calls import Call
from ..lower.tile_work import TileWork

INITIALIZE, INPUT = 0, 1


@dataclass(frozen=True)
class ProfileIndex:
    """Which profile step each plan step became.

    Attributes:
        steps: all profile steps; the first two and the last are host steps.
        step: plan step -> profile step of its kernel call or exchange.
        copies: plan step -> profile step of its local copies, where some tile makes any.
    """

    steps: list[ProfileStep]
    step: dict[int, int]
    copies: dict[int, int]

    @property
    def output(self) -> int:
        return len(self.steps) - 1


def index_steps(work: TileWork) -> ProfileIndex:
    """Profile steps of a lowered plan."""
    steps = [ProfileStep("initialize", "host"), ProfileStep("input", "host")]
    step: dict[int, int] = {}
    copies: dict[int, int] = {}
    for index, (planned, item) in enumerate(zip(work.plan.steps, work.work, strict=True)):
        if isinstance(item, Call):
            step[index] = len(steps)
            steps.append(ProfileStep(planned.name, "compute"))
            continue
        if item.copies:
            copies[index] = len(steps)
            steps.append(ProfileStep(f"{planned.name}.copy", "copy"))
        if item.words:
            step[index] = len(steps)
            steps.append(ProfileStep(planned.name, "exchange"))
    steps.append(ProfileStep("output", "host"))
    return ProfileIndex(steps, step, copies)
