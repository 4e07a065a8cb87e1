"""Every rule of a profile. The writer and the reader both apply it."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ProfileError
from tilewright.ipu21.machine.topology import TILES
from tilewright.package.limits import MAX_TEXT
from tilewright.package.records import STEP_KINDS

from .critical import host_steps, run_window
from .layers import CYCLE_BITS
from .limits import MAX_CLOCK_HZ, MAX_CYCLE, MAX_INSTANCES, MAX_INTERVALS, MAX_METADATA, MAX_RUNS, MAX_STEPS
from .records import BARRIER, CONTEXTS, INTERVAL, KINDS, SUPERVISOR, Profile, Run


def validate(profile: Profile) -> None:
    """Raises ProfileError saying what is wrong and where."""
    if not re.fullmatch("[0-9a-f]{64}", profile.digest):
        raise ProfileError("the package digest is not 64 hexadecimal digits")
    for name in ("package", "compiler", "device"):
        _text(getattr(profile, name), name, "profile", empty=True)
    if not 0 < profile.clock_hz <= MAX_CLOCK_HZ:
        raise ProfileError(f"a clock of {profile.clock_hz} Hz is outside 1..{MAX_CLOCK_HZ}")
    if not 0 < len(profile.runs) <= MAX_RUNS or not 0 < len(profile.steps) <= MAX_STEPS:
        raise ProfileError(
            f"{len(profile.runs)} runs of {len(profile.steps)} steps: at least one of each is needed"
        )
    if sum(len(run.intervals) for run in profile.runs) > MAX_INTERVALS:
        raise ProfileError(f"more than {MAX_INTERVALS} intervals")
    _steps(profile)
    host = host_steps(profile)
    for number, run in enumerate(profile.runs):
        _run(run, len(profile.steps), host, f"run {number}")


def _text(value: str, name: str, where: str, *, empty: bool = False) -> None:
    if not value and not empty:
        raise ProfileError(f"{name} is empty", where=where)
    # Control characters and marks that turn the direction of text are not printable either.
    if not value.isprintable():
        raise ProfileError(f"{name} {value[:40]!r} has characters that cannot be printed", where=where)
    if len(value.encode()) > MAX_TEXT:
        raise ProfileError(f"{name} {value[:40]!r}... is longer than {MAX_TEXT} bytes", where=where)


def _steps(profile: Profile) -> None:
    for number, step in enumerate(profile.steps):
        where = f"step {number}"
        _text(step.name, "name", where)
        if step.kind not in STEP_KINDS:
            raise ProfileError(f"kind {step.kind[:40]!r} is none of {', '.join(STEP_KINDS)}", where=where)
        _text(step.operation, "operation", where, empty=True)
        _text(step.kernel, "kernel", where, empty=True)
        if len(step.metadata) > MAX_METADATA:
            raise ProfileError(
                f"{len(step.metadata)} metadata entries, more than {MAX_METADATA}", where=where
            )
        for name, value in step.metadata:
            _text(name, "metadata name", where)
            _text(value, "metadata value", where, empty=True)


def _run(run: Run, steps: int, host: NDArray[np.bool_], where: str) -> None:
    rows, barriers = run.intervals, run.barriers
    if rows.dtype != INTERVAL or barriers.dtype != BARRIER or not len(rows):
        raise ProfileError("no intervals", where=where)
    for name, limit in (("tile", TILES), ("context", CONTEXTS), ("kind", len(KINDS)), ("step", steps)):
        _below(rows[name], limit, name, where)
    _below(rows["instance"], MAX_INSTANCES, "instance", where)
    _below(barriers["tile"], TILES, "tile of a barrier", where)
    begin, end = rows["begin"], rows["end"]
    if int(begin.min()) < 0 or int(end.max()) > MAX_CYCLE or bool((begin >= end).any()):
        raise ProfileError("an interval does not end after its begin", where=where)
    if int(end.max()) - int(begin.min()) >= 1 << CYCLE_BITS:
        raise ProfileError(f"a run longer than 2^{CYCLE_BITS} cycles", where=where)
    lane = rows["tile"].astype(np.int64) << 8 | rows["context"]
    same = lane[1:] == lane[:-1]
    if bool((lane[1:] < lane[:-1]).any()) or bool((same & (begin[1:] < end[:-1])).any()):
        raise ProfileError("intervals overlap or are not sorted by tile, context and begin", where=where)
    if bool((barriers["release"] < barriers["last"]).any()) or bool((np.diff(barriers["release"]) < 0).any()):
        raise ProfileError("barriers are not in time order", where=where)
    if not bool((rows["context"] == SUPERVISOR).any()):
        raise ProfileError("no supervisor intervals", where=where)
    _, low, high = run_window(run, host)
    if high - low != run.cycles:
        raise ProfileError(f"states {run.cycles} device cycles, its intervals say {high - low}", where=where)


def _below(values: NDArray[np.generic], limit: int, name: str, where: str) -> None:
    if len(values) and int(values.max()) >= limit:
        raise ProfileError(f"{name} {int(values.max())} is outside 0..{limit - 1}", where=where)
