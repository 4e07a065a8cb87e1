"""Sums over a profile: by kernel, operation, phase, tile, kind, step, run, or any key of the steps' metadata.

Four measures, kept apart:

critical   cycles of the critical path (see `critical`). Over all groups they add up to the device cycles.
phase      per instance of a step the cycles of the tile with the most of them, added over instances: what the
           group would take if nothing overlapped. Tiles that sit an exchange phase out do not count.
work       cycles of all tiles together, waiting included. Over all groups they add up to the profile's total.
busy       the part of `work` in which tiles do something rather than wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import UsageError

from .critical import critical_path
from .products import PEAK
from .records import BUSY, COMPUTE, IDLE, KINDS, SUPERVISOR, Profile, Step

KEYS = ("kernel", "operation", "phase", "tile", "kind", "step", "run")
SORTS = ("critical", "phase", "work", "busy", "utilisation", "share", "peak", "intervals", "first", "name")
MISSING = "(missing)"
"""Group of steps whose metadata do not have the key."""
WORKERS = 6

Rows = NDArray[np.void]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """Sums of one group.

    Attributes:
        critical, phase, work, busy: cycles, see the module.
        workers: cycles of all workers together.
        intervals, instances, tiles: how many intervals, step instances and tiles contribute.
        first: cycle at which its first interval begins, from the begin of its run.
        multiply_adds: those of the step instances in it. peak: their share of what the matrix units of the
            tiles that the query looks at could do in the phase cycles. Both 0 by tile.
        share: critical cycles per device cycle. utilisation: busy cycles per cycle of `phase` and tile that
            the query looks at. worker_utilisation: the same of the workers.
    """

    name: str
    critical: int
    phase: int
    work: int
    busy: int
    workers: int
    intervals: int
    instances: int
    tiles: int
    first: int
    multiply_adds: int
    peak: float
    share: float
    utilisation: float
    worker_utilisation: float


@dataclass(frozen=True)
class Result:
    """What a query found: its groups in order, and the sums over all of them, hidden ones included."""

    device_cycles: int
    total: Group
    groups: list[Group]
    found: int


@dataclass(frozen=True, eq=False)
class Pieces:
    """Intervals of all runs and their critical paths as columns, run numbers beside them."""

    rows: Rows
    run: Numbers
    path: Rows
    path_run: Numbers


def pieces_of(profile: Profile) -> Pieces:
    """Columns of a profile, for several queries."""
    path = critical_path(profile)
    return Pieces(
        np.concatenate([run.intervals for run in profile.runs]),
        np.repeat(np.arange(len(profile.runs)), [len(run.intervals) for run in profile.runs]),
        path,
        path["run"].astype(np.int64),
    )


def query(
    profile: Profile,
    group_by: str = "kernel",
    *,
    where: Sequence[str] = (),
    sort: str = "critical",
    limit: int = 0,
    pieces: Pieces | None = None,
) -> Result:
    """Groups of a profile.

    Args:
        group_by: one of KEYS, or a name in the steps' metadata.
        where: conditions `KEY=VALUE`, all of which must hold; see `condition`.
        sort: one of SORTS; largest first, except that `first` and `name` rise.
        limit: most groups returned, 0 for all.

    Raises UsageError for unknown keys.
    """
    if group_by not in KEYS and group_by not in metadata_names(profile):
        known = ", ".join((*KEYS, *metadata_names(profile)))
        raise UsageError(f"cannot group by {group_by!r}", hint=f"known: {known}")
    if sort not in SORTS:
        raise UsageError(f"cannot sort by {sort!r}", hint=f"known: {', '.join(SORTS)}")
    data = pieces or pieces_of(profile)
    rows, run = _chosen(profile, data.rows, data.run, where)
    path, path_run = _chosen(profile, data.path, data.path_run, where)
    keys = _group_keys(profile, group_by, rows, run)
    path_keys = _group_keys(profile, group_by, path, path_run)
    values = np.unique(np.concatenate([keys, path_keys]))
    sums = _Sums(profile, rows, run, path, products=group_by != "tile")
    groups = sums.groups(np.searchsorted(values, keys), np.searchsorted(values, path_keys), len(values))
    names = _names(profile, group_by, values)
    tiles = 1 if group_by == "tile" else sums.tiles
    listed = [sums.finish(names[index], tiles, *columns) for index, columns in enumerate(groups)]
    one = sums.groups(np.zeros(len(rows), np.int64), np.zeros(len(path), np.int64), 1)
    total = sums.finish("total", sums.tiles, *one[0])
    order = sorted(listed, key=_order(sort))
    return Result(profile.cycles, total, order[:limit] if limit > 0 else order, len(order))


def metadata_names(profile: Profile) -> list[str]:
    """Names in the metadata of any step, in order of first use, that are no group keys already."""
    names = dict.fromkeys(name for step in profile.steps for name, _ in step.metadata)
    return [name for name in names if name not in KEYS]


def _order(sort: str) -> Callable[[Group], tuple[object, ...]]:
    if sort == "name":
        return lambda group: (group.name,)
    if sort == "first":
        return lambda group: (group.first, group.name)
    return lambda group: (-getattr(group, sort), group.first, group.name)


# --- choosing ---


def _chosen(profile: Profile, rows: Rows, run: Numbers, where: Sequence[str]) -> tuple[Rows, Numbers]:
    kept = np.ones(len(rows), np.bool_)
    for text in where:
        kept &= condition(profile, text)(rows, run)
    return rows[kept], run[kept]


def condition(profile: Profile, text: str) -> Callable[[Rows, Numbers], NDArray[np.bool_]]:
    """A condition `KEY=VALUE`, or `KEY!=VALUE`.

    VALUE of tile, run and instance: numbers and ranges such as `0,4-7`. Of kernel, operation, kind and step:
    a name, in which `*` and `?` stand for anything; a step may be given by its number, and `exchange` is
    every kind whose name begins so. Raises UsageError.
    """
    key, equals, value = text.partition("=")
    negated = key.endswith("!")
    key = key.removesuffix("!")
    if not equals or not value:
        raise UsageError(f"--where {text!r} is not KEY=VALUE")
    if key in ("tile", "run", "instance"):
        spans = _spans(value)

        def numbered(rows: Rows, run: Numbers) -> NDArray[np.bool_]:
            numbers = run if key == "run" else rows[key].astype(np.int64)
            found = np.zeros(len(rows), np.bool_)
            for low, high in spans:
                found |= (numbers >= low) & (numbers <= high)
            return found ^ negated

        return numbered
    steps = profile.steps
    if key == "kind":
        column, names = "kind", [[name] for name in KINDS]
        if value == "exchange":
            value = "exchange*"
    elif key == "step":
        column, names = "step", [[step.name, str(number)] for number, step in enumerate(steps)]
    elif key in ("kernel", "operation") or key in metadata_names(profile):
        column, names = "step", [[_step_name(step, key)] for step in steps]
    else:
        known = ("kernel", "operation", "kind", "step", "tile", "run", "instance", *metadata_names(profile))
        raise UsageError(f"--where knows no key {key!r}", hint=f"known: {', '.join(known)}")
    matches = np.array([any(fnmatchcase(name, value) for name in several) for several in names], np.bool_)
    if not matches.any():
        raise UsageError(f"no {key} of this profile matches {value!r}")

    def named(rows: Rows, run: Numbers) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = matches[rows[column]] ^ negated
        return chosen

    return named


def _spans(text: str) -> list[tuple[int, int]]:
    spans = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if not match:
            raise UsageError(f"{text!r} is no list of numbers and ranges such as 0,4-7")
        spans.append((int(match[1]), int(match[2] or match[1])))
    return spans


# --- grouping ---


def _group_keys(profile: Profile, key: str, rows: Rows, run: Numbers) -> Numbers:
    if key == "run":
        return run
    if key in ("tile", "kind", "step"):
        return rows[key].astype(np.int64)
    if key == "phase":
        return _phase(rows, run)
    keys: Numbers = _name_indices(profile, key)[0][rows["step"]]
    return keys


def _phase(rows: Rows, run: Numbers) -> Numbers:
    """Run, instance and step as one number."""
    phase: Numbers = (run << 47) | (rows["instance"].astype(np.int64) << 16) | rows["step"]
    return phase


def _step_name(step: Step, key: str) -> str:
    """What a step is called under a key that is a matter of the step alone."""
    if key in ("kernel", "operation"):
        return str(getattr(step, key)) or f"({step.kind})"
    return dict(step.metadata).get(key, MISSING)


def _name_indices(profile: Profile, key: str) -> tuple[Numbers, list[str]]:
    names: dict[str, int] = {}
    indices = [names.setdefault(_step_name(step, key), len(names)) for step in profile.steps]
    return np.array(indices, np.int64), list(names)


def _names(profile: Profile, key: str, values: Numbers) -> list[str]:
    if key == "kind":
        return [KINDS[value] for value in values.tolist()]
    if key == "step":
        return [_numbered(profile, value) for value in values.tolist()]
    if key == "phase":
        return [_phase_name(profile, value) for value in values.tolist()]
    if key in ("tile", "run"):
        return [f"{key} {value}" for value in values.tolist()]
    known = _name_indices(profile, key)[1]
    return [known[value] for value in values.tolist()]


def _numbered(profile: Profile, step: int) -> str:
    return f"{step} {profile.steps[step].name}"


def _phase_name(profile: Profile, value: int) -> str:
    run, instance, step = value >> 47, value >> 16 & 0x7FFFFFFF, value & 0xFFFF
    parts = []
    if len(profile.runs) > 1:
        parts.append(f"run {run}")
    if instance:
        parts.append(f"time {instance + 1}")
    return _numbered(profile, step) + (f" ({', '.join(parts)})" if parts else "")


class _Sums:
    """Sums over chosen intervals; groups are given as numbers per interval and per piece of the path."""

    def __init__(self, profile: Profile, rows: Rows, run: Numbers, path: Rows, *, products: bool) -> None:
        self._cycles = profile.cycles
        self.tiles = max(len(np.unique(rows["tile"])), 1)
        mine = rows["context"] == SUPERVISOR
        self._mine = mine
        self._rows = rows[mine]
        self._length = (rows["end"] - rows["begin"]).astype(np.int64)
        self._path_length = (path["end"] - path["begin"]).astype(np.int64)
        starts = np.array([int(r.intervals["begin"].min()) for r in profile.runs], np.int64)
        self._first = rows["begin"][mine] - starts[run[mine]]
        key = _phase(self._rows, run[mine])
        _, self._phase = np.unique(key, return_inverse=True)
        self._products = np.array([step.multiply_adds * products for step in profile.steps], np.int64)
        self._computes = (self._rows["kind"] == COMPUTE) & (self._products[self._rows["step"]] > 0)

    def groups(self, keys: Numbers, path_keys: Numbers, count: int) -> list[tuple[int, ...]]:
        """Per group: critical, phase, work, busy, workers, intervals, instances, tiles, first."""
        own = keys[self._mine]
        length, rows = self._length[self._mine], self._rows
        busy = np.where(BUSY[rows["kind"]], length, 0)
        workers = _add(keys[~self._mine], self._length[~self._mine], count)
        first = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(first, own, self._first)
        phase, instances = self._phase_sums(own, length, count)
        pairs = np.unique(own * 65536 + rows["tile"])
        tiles = np.bincount(pairs // 65536, minlength=count)
        columns = (
            _add(path_keys, self._path_length, count),
            phase,
            _add(own, length, count),
            _add(own, busy, count),
            workers,
            np.bincount(own, minlength=count),
            instances,
            tiles,
            np.where(first == np.iinfo(np.int64).max, 0, first),
            self._multiply_adds(own, count),
        )
        return [tuple(int(column[index]) for column in columns) for index in range(count)]

    def _phase_sums(self, own: Numbers, length: Numbers, count: int) -> tuple[Numbers, Numbers]:
        """Per group: the largest sum of a tile in each step instance, added; and the number of instances."""
        # One key per (group, instance, tile), made in two steps so that it stays below 2^63.
        _, pair = np.unique(own * (int(self._phase.max(initial=0)) + 1) + self._phase, return_inverse=True)
        group_of = np.zeros(int(pair.max(initial=-1)) + 1, np.int64)
        group_of[pair] = own
        keys, place = np.unique(pair.astype(np.int64) * 65536 + self._rows["tile"], return_inverse=True)
        sums = _add(place, np.where(self._rows["kind"] == IDLE, 0, length), len(keys))
        longest = np.zeros(len(group_of), np.int64)
        np.maximum.at(longest, keys // 65536, sums)
        return _add(group_of, longest, count), np.bincount(group_of, minlength=count)

    def _multiply_adds(self, own: Numbers, count: int) -> Numbers:
        """Per group: those of the step instances in which it computes, each once."""
        rows = self._computes
        pairs = np.stack([own[rows], self._phase[rows], self._rows["step"][rows].astype(np.int64)])
        distinct = np.unique(pairs, axis=1)
        return _add(distinct[0], self._products[distinct[2]], count)

    def finish(
        self,
        name: str,
        of_tiles: int,
        critical: int,
        phase: int,
        work: int,
        busy: int,
        workers: int,
        intervals: int,
        instances: int,
        tiles: int,
        first: int,
        multiply_adds: int,
    ) -> Group:
        """The group; its phase cycles are compared with those of `of_tiles` tiles."""
        whole = phase * of_tiles
        return Group(
            name,
            critical,
            phase,
            work,
            busy,
            workers,
            intervals,
            instances,
            tiles,
            first,
            multiply_adds,
            peak=multiply_adds / (PEAK * whole) if whole else 0.0,
            share=critical / self._cycles if self._cycles else 0.0,
            utilisation=busy / whole if whole else 0.0,
            worker_utilisation=workers / (WORKERS * whole) if whole else 0.0,
        )


def _add(keys: NDArray[np.integer], values: Numbers, count: int) -> Numbers:
    """Exact sums per key."""
    result = np.zeros(count, np.int64)
    np.add.at(result, keys, values)
    return result
