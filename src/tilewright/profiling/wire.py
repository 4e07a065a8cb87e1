"""Profiles to Cap'n Proto messages and back: the only module here that talks to pycapnp."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import capnp
import numpy as np
from numpy.typing import NDArray

from tilewright.errors import PackageError, ProfileError
from tilewright.package.blobs import Budget, compress, expand
from tilewright.package.limits import NESTING, TRAVERSAL_FACTOR

from .limits import MAX_COLUMN_BYTES, MAX_METADATA, MAX_RUNS, MAX_STEPS
from .records import BARRIER, INTERVAL, Profile, Run, Step

FORMAT = "tilewright cycle profile"
VERSION = 1


@cache
def _schema() -> Any:
    capnp.remove_import_hook()
    return capnp.load(str(Path(__file__).parent / "schema" / "twprof.capnp"))


def to_message(profile: Profile) -> bytes:
    """The file bytes of a valid profile. Equal profiles give equal bytes."""
    out = _schema().Profile.new_message()
    out.version, out.format = VERSION, FORMAT
    out.packageDigest = bytes.fromhex(profile.digest)
    out.packageName, out.compiler, out.device = profile.package, profile.compiler, profile.device
    out.clockHz, out.exact = int(profile.clock_hz), bool(profile.exact)
    for item, step in zip(out.init("steps", len(profile.steps)), profile.steps, strict=True):
        item.name, item.kind, item.operation, item.kernel = step.name, step.kind, step.operation, step.kernel
        for pair, (name, value) in zip(item.init("metadata", len(step.metadata)), step.metadata, strict=True):
            pair.name, pair.value = name, value
    intervals = barriers = 0
    for item, run in zip(out.init("runs", len(profile.runs)), profile.runs, strict=True):
        intervals += len(run.intervals)
        barriers += len(run.barriers)
        item.cycles, item.intervalEnd, item.barrierEnd = int(run.cycles), intervals, barriers
    out.barriers = np.concatenate([run.barriers for run in profile.runs]).tobytes()
    for name in INTERVAL.names or ():
        column = np.concatenate([run.intervals[name] for run in profile.runs]).tobytes()
        item = out.init(name)
        item.sha256, item.size = hashlib.sha256(column).digest(), len(column)
        item.codec, item.data = compress(column)
    data: bytes = out.to_bytes()
    return data


def is_profile(data: bytes, words: int) -> bool:
    """Whether a message of `words` words whose framing is sound says that it is a profile."""
    try:
        with _open(data, words) as root:
            return str(root.format) == FORMAT
    except (capnp.KjException, UnicodeDecodeError, ValueError):
        return False


def from_message(data: bytes, words: int) -> Profile:
    """The profile in a message of `words` words whose framing is sound; version and format are
    looked at first.

    The result has the right types and no more: the caller validates. Raises ProfileError.
    """
    try:
        with _open(data, words) as root:
            return _read(root)
    except capnp.KjException as error:
        raise ProfileError("damaged message: a pointer or a list in it is not well formed") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"damaged message: a text is not UTF-8 at its byte {error.start}") from error
    except PackageError as error:
        raise ProfileError(error.what, where=error.where) from error
    except (ValueError, OverflowError, MemoryError) as error:
        raise ProfileError(f"damaged message: {error}") from error


def _open(data: bytes, words: int) -> Any:
    return _schema().Profile.from_bytes(
        data, traversal_limit_in_words=TRAVERSAL_FACTOR * words, nesting_limit=NESTING
    )


def _read(root: Any) -> Profile:
    if str(root.format) != FORMAT:
        raise ProfileError("not a profile", hint="`tilewright run --profile FILE` writes one")
    if int(root.version) != VERSION:
        raise ProfileError(
            f"profile of format version {int(root.version)}, this reader knows {VERSION}",
            hint="profile the run again with this version",
        )
    if len(root.runs) > MAX_RUNS or len(root.steps) > MAX_STEPS:
        raise ProfileError(f"{len(root.runs)} runs of {len(root.steps)} steps are more than {MAX_RUNS}")
    table = _intervals(root)
    barriers = _rows(bytes(root.barriers), BARRIER, "barriers")
    return Profile(
        digest=bytes(root.packageDigest).hex(),
        package=str(root.packageName),
        compiler=str(root.compiler),
        device=str(root.device),
        clock_hz=int(root.clockHz),
        exact=bool(root.exact),
        steps=[_step(item) for item in root.steps],
        runs=_runs(root.runs, table, barriers),
    )


def _step(item: Any) -> Step:
    if len(item.metadata) > MAX_METADATA:
        raise ProfileError(f"a step with {len(item.metadata)} metadata entries, more than {MAX_METADATA}")
    metadata = tuple((str(pair.name), str(pair.value)) for pair in item.metadata)
    return Step(str(item.name), str(item.kind), str(item.operation), str(item.kernel), metadata)


def _intervals(root: Any) -> NDArray[np.void]:
    budget = Budget(MAX_COLUMN_BYTES)
    columns = {}
    for name in INTERVAL.names or ():
        item, where = getattr(root, name), f"column {name!r}"
        data = expand(int(item.codec), bytes(item.data), int(item.size), bytes(item.sha256), budget, where)
        columns[name] = _rows(data, INTERVAL[name], where)
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise ProfileError("columns of the intervals have different lengths")
    table = np.zeros(lengths.pop(), INTERVAL)
    for name, column in columns.items():
        table[name] = column
    return table


def _rows(data: bytes, dtype: np.dtype[Any], where: str) -> NDArray[Any]:
    if len(data) % dtype.itemsize:
        raise ProfileError(
            f"{len(data)} bytes are no whole number of {dtype.itemsize}-byte rows", where=where
        )
    return np.frombuffer(data, dtype)


def _runs(items: Any, table: NDArray[np.void], barriers: NDArray[np.void]) -> list[Run]:
    runs = []
    low = first = 0
    for item in items:
        high, last = int(item.intervalEnd), int(item.barrierEnd)
        if not low <= high <= len(table) or not first <= last <= len(barriers):
            raise ProfileError("ends of the runs do not cut the tables of intervals and barriers into runs")
        runs.append(Run(int(item.cycles), table[low:high], barriers[first:last]))
        low, first = high, last
    if low != len(table) or first != len(barriers):
        raise ProfileError("intervals or barriers follow those of the last run")
    return runs
