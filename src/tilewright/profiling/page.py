"""A profile as one page for a browser."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ipu21.machine.topology import ROWS

from .critical import critical_path
from .products import PEAK
from .records import BUSY, KINDS, SUPERVISOR, Profile
from .single_page import Columns, Places, one_page, pack_columns

SCRIPTS = ("columns", "data", "sums", "common", "look", "timeline", "chip", "table", "flame", "main")
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


def render(profile: Profile) -> bytes:
    """The page in UTF-8."""
    columns, runs, note = _columns(profile)
    packed, places = pack_columns(columns)
    header = _header(profile, places, runs, note)
    return one_page("page.html", ("page.css",), SCRIPTS, header, packed)


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


def _header(profile: Profile, places: Places, runs: list[dict[str, Any]], note: str) -> dict[str, Any]:
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
        "peak": PEAK,
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
                "products": step.multiply_adds,
            }
            for step in profile.steps
        ],
        "runs": runs,
        "columns": places,
    }
