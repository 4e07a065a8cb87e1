"""A profile as one page for a browser: its data, drawing code and style, and nothing from anywhere else.

The page's policy forbids every request and every script but the one whose hash it names, so that nothing in
a profile's names could run even if it became markup; it does not, since names only ever become text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.machine.topology import ROWS

from .critical import critical_path
from .records import BUSY, KINDS, SUPERVISOR, Profile

SCRIPTS = ("data", "sums", "look", "timeline", "chip", "table", "main")
MAX_WORKER_ROWS = 6_000_000
"""More intervals of workers than this stay out of the page, which then says so."""
_STACK = (
    "compute",
    "copy",
    "control",
    "exchange.both",
    "exchange.send",
    "exchange.receive",
    "exchange",
    "exchange.idle",
    "synchronisation",
    "host",
    "idle",
)
"""Order of the kinds in the overview, from the bottom."""

Columns = list[tuple[str, NDArray[np.generic]]]


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath("viewer").joinpath(name).read_text(encoding="utf-8")


def render(profile: Profile) -> bytes:
    """The page in UTF-8."""
    columns, runs, note = _columns(profile)
    packed, places = _pack(columns)
    header = _header(profile, places, runs, note)
    script = '"use strict";\n' + "\n".join(_part(f"{name}.js") for name in SCRIPTS)
    style = _part("page.css")
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    parts = {
        "@POLICY@": policy,
        "@STYLE@": style,
        "@HEADER@": json.dumps(header, separators=(",", ":")).translate(_HARMLESS),
        "@DATA@": base64.b64encode(packed).decode(),
        "@SCRIPT@": script,
    }
    page = _part("page.html")
    pieces = []
    # One pass over the template: what has been inserted is never looked at again.
    for name, value in parts.items():
        before, page = page.split(name, 1)
        pieces += [before, value]
    return "".join([*pieces, page]).encode()


_HARMLESS = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}
"""Characters that could end or begin markup, as JSON escapes."""


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _columns(profile: Profile) -> tuple[Columns, list[dict[str, Any]], str]:
    """Columns of supervisors (s_), workers (w_) and critical path (p_), and where each run's rows are."""
    rows = np.concatenate([run.intervals for run in profile.runs])
    path = critical_path(profile)
    origin = int(min(rows["begin"].min(), path["begin"].min()))
    mine = rows["context"] == SUPERVISOR
    workers = rows[~mine]
    note = ""
    if len(workers) > MAX_WORKER_ROWS:
        workers, note = workers[:0], "too many intervals of workers to show"
    span = int(rows["end"].max()) - origin
    time = np.dtype("<u4") if span < 1 << 32 else np.dtype("<f8")
    columns: Columns = []
    for prefix, table in (("s_", rows[mine]), ("w_", workers), ("p_", path)):
        columns.append((prefix + "begin", (table["begin"] - origin).astype(time)))
        columns.append((prefix + "length", (table["end"] - table["begin"]).astype(time)))
        names = ("instance", "step", "tile", "kind") + (("context",) if prefix == "w_" else ())
        columns += [(prefix + name, table[name]) for name in names]
    runs = []
    ends = {"supervisor": 0, "workers": 0, "path": 0}
    for number, run in enumerate(profile.runs):
        own = int((run.intervals["context"] == SUPERVISOR).sum())
        counts = {
            "supervisor": own,
            "workers": 0 if note else len(run.intervals) - own,
            "path": int((path["run"] == number).sum()),
        }
        entry: dict[str, Any] = {"cycles": run.cycles, "begin": int(run.intervals["begin"].min()) - origin}
        for name, count in counts.items():
            entry[name] = [ends[name], ends[name] + count]
            ends[name] += count
        runs.append(entry)
    return columns, runs, note


def _pack(columns: Columns) -> tuple[bytes, list[tuple[str, str, int, int]]]:
    """All columns one after another, widest numbers first so that each is aligned, compressed; places."""
    places = []
    parts = []
    offset = 0
    for name, column in sorted(columns, key=lambda entry: -entry[1].itemsize):
        places.append((name, f"{column.dtype.kind}{column.itemsize}", offset, len(column)))
        data = np.ascontiguousarray(column).tobytes()
        data += bytes(-len(data) % 8)
        parts.append(data)
        offset += len(data)
    return zlib.compress(b"".join(parts), 6), places


def _header(
    profile: Profile, places: list[tuple[str, str, int, int]], runs: list[dict[str, Any]], note: str
) -> dict[str, Any]:
    begin = min(int(run.intervals["begin"].min()) for run in profile.runs)
    end = max(int(run.intervals["end"].max()) for run in profile.runs)
    return {
        "package": profile.package,
        "device": profile.device,
        "compiler": profile.compiler,
        "digest": profile.digest,
        "clock": profile.clock_hz,
        "exact": profile.exact,
        "cycles": profile.cycles,
        "span": end - begin,
        "rows": ROWS,
        "note": note,
        "instances": 1 + max(int(run.intervals["instance"].max()) for run in profile.runs),
        "kinds": [{"name": name, "busy": bool(BUSY[kind])} for kind, name in enumerate(KINDS)],
        "stack": [KINDS.index(name) for name in _STACK],
        "steps": [
            {
                "name": step.name,
                "kind": step.kind,
                "operation": step.operation,
                "kernel": step.kernel,
                "metadata": step.metadata,
            }
            for step in profile.steps
        ],
        "runs": runs,
        "columns": places,
    }
