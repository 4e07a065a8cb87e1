"""Coarser profiles: smaller files, the same device cycles.

step     every part of every instance of every step, workers included: what is recorded
phase    without workers; synchronisation, exchange and the steps' own work stay apart
region   one interval per tile and stretch of steps of one operation
graph    one interval per tile and run
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from .divide import occurrences
from .records import BARRIER, COMPUTE, HOST, INTERVAL, SUPERVISOR, Run, Step


class Granularity(StrEnum):
    """How much of a run a profile keeps."""

    step = "step"
    phase = "phase"
    region = "region"
    graph = "graph"


def coarse_steps(steps: list[Step], granularity: Granularity) -> tuple[list[Step], NDArray[np.int64]]:
    """The steps of a coarser profile, and which of them each step becomes part of."""
    if granularity in (Granularity.step, Granularity.phase):
        return steps, np.arange(len(steps))
    made: list[Step] = []
    known: dict[tuple[str, str], int] = {}
    indices = []
    for step in steps:
        host = step.kind == "host"
        name = step.name if host else step.operation or step.name
        if granularity is Granularity.graph and not host:
            name = "program"
        key = ("host" if host else "compute", name)
        if key not in known:
            known[key] = len(made)
            operation = step.operation if granularity is Granularity.region else ""
            kernel = "host" if host else "(several)"
            made.append(Step(name, key[0], operation, kernel))
        indices.append(known[key])
    return made, np.array(indices, np.int64)


def coarsen(run: Run, steps: list[Step], granularity: Granularity) -> Run:
    """A run at a coarser granularity; `steps` are those of the run. Its device cycles stay as they are."""
    if granularity is Granularity.step:
        return run
    rows = run.intervals[run.intervals["context"] == SUPERVISOR]
    if granularity is Granularity.phase:
        return Run(run.cycles, rows, run.barriers)
    made, of = coarse_steps(steps, granularity)
    step = of[rows["step"]]
    # Rows of a tile follow one another without a gap.
    changes = (step[1:] != step[:-1]) | (rows["tile"][1:] != rows["tile"][:-1])
    first = np.flatnonzero(np.concatenate([[True], changes]))
    last = np.concatenate([first[1:], [len(rows)]]) - 1
    result = np.zeros(len(first), INTERVAL)
    result["tile"], result["step"] = rows["tile"][first], step[first]
    result["begin"], result["end"] = rows["begin"][first], rows["end"][last]
    host = np.array([item.kind == "host" for item in made])
    result["kind"] = np.where(host[result["step"]], HOST, COMPUTE)
    result["instance"] = occurrences(result)
    return Run(run.cycles, result, np.zeros(0, BARRIER))
