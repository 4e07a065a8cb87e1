"""Memory of a package as one page for a browser: a map over address and step, peaks, and what is where."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ipu21.machine.memory import REGION1_BASE, TILE_BASE, TILE_END
from tilewright.ipu21.machine.topology import ROWS
from tilewright.package.digest import package_digest
from tilewright.package.records import Package

from .memory_map import KINDS, SPAN, MemoryMap
from .memory_report import class_data
from .single_page import Columns, one_page, pack_columns

SCRIPTS = ("columns", "common", "memory")
STYLES = ("page.css", "memory.css")


def render_memory(package: Package, name: str, tile: int | None = None) -> bytes:
    """The page in UTF-8. `name`: what the package is called. `tile`: shown first, instead of the fullest.

    Raises UsageError for a tile that does not exist.
    """
    found = MemoryMap(package)
    usages = found.fullest()
    if tile is not None:
        chosen = found.usage(tile)
        usages = [chosen, *(usage for usage in usages if usage.group != chosen.group)]
    ends = np.cumsum([len(usage.spans) for usage in usages])
    spans = np.concatenate([usage.spans for usage in usages])
    columns: Columns = [(key, spans[key]) for key in SPAN.names or ()]
    columns += [
        ("peaks", found.peaks.astype(np.uint32)),
        ("class_of", (found.class_of & 0xFFFF).astype(np.uint16)),
        ("live", np.concatenate([usage.live for usage in usages]).astype(np.uint32)),
    ]
    packed, places = pack_columns(columns)
    groups: list[dict[str, Any]] = []
    for usage, end in zip(usages, ends.tolist(), strict=True):
        groups.append({**class_data(found, usage), "spans": [end - len(usage.spans), end]})
    kinds = [step.kind for step in package.profile.steps] or ["host"]
    program = found.program
    header = {
        "package": name,
        "digest": package_digest(package),
        "compiler": package.compiler_version,
        "base": TILE_BASE,
        "end": TILE_END,
        "region1": REGION1_BASE,
        "rows": ROWS,
        "kinds": KINDS,
        "steps": [
            {
                "name": step,
                "kind": kinds[number],
                "operation": program.steps[number].operation if program is not None and program.steps else "",
            }
            for number, step in enumerate(found.steps)
        ],
        "labels": found.labels,
        "buffers": [{"owner": buffer.owner, "layout": buffer.layout} for buffer in found.buffers],
        "groups": groups,
        "columns": places,
    }
    return one_page("memory.html", STYLES, SCRIPTS, header, packed)
