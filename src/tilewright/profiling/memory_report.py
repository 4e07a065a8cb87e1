"""Memory of a package in numbers, as plain data for `--json`, tables and the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ipu21.machine.memory import TILE_BYTES
from tilewright.package.records import Package

from .memory_map import KINDS, REGIONS, MemoryMap, Usage

TIGHTEST = 10


def memory_summary(package: Package) -> dict[str, Any]:
    """Peaks per class and region, fragmentation, overlaps, and the tightest tiles."""
    found = MemoryMap(package)
    usages = found.fullest()
    active = found.peaks if found.program is None else found.peaks[found.class_of >= 0]
    order = np.lexsort((np.arange(len(found.peaks)), -found.peaks))
    return {
        "tile_bytes": TILE_BYTES,
        "tiles": len(active),
        "peak_bytes": int(active.max(initial=0)),
        "median_peak_bytes": int(np.median(active)) if len(active) else 0,
        "known": found.program is not None,
        "steps": found.steps,
        "classes": [class_data(found, usage) for usage in usages],
        "tightest": [
            {
                "tile": tile,
                "class": int(found.class_of[tile]),
                "peak_bytes": int(found.peaks[tile]),
                "free_bytes": TILE_BYTES - int(found.peaks[tile]),
            }
            for tile in order[:TIGHTEST].tolist()
        ],
    }


def class_data(found: MemoryMap, usage: Usage) -> dict[str, Any]:
    """The fullest tile of a class."""
    return {
        "class": usage.group,
        "tiles": usage.tiles,
        "tile": usage.tile,
        "peak_bytes": usage.peak,
        "peak_step": usage.peak_step,
        "peak_step_name": found.steps[usage.peak_step],
        "by_kind": usage.by_kind(usage.peak_step),
        "regions": [
            {"name": name, "bytes": end - begin, "peak_bytes": usage.in_region(begin, end)}
            for name, begin, end in REGIONS
        ],
        "free_bytes": usage.free_bytes,
        "free_spans": len(usage.free),
        "largest_free_bytes": usage.largest_free,
        "fragmentation": round(fragmentation(usage), 6),
        "overlaps": [
            {
                "one": overlap.one,
                "other": overlap.other,
                "address": overlap.address,
                "bytes": overlap.size,
                "step": overlap.step,
            }
            for overlap in found.overlaps(usage)
        ],
    }


def fragmentation(usage: Usage) -> float:
    """Share of the free bytes that lie outside the largest free span, at the peak."""
    return 1 - usage.largest_free / usage.free_bytes if usage.free_bytes else 0.0


def tile_memory(package: Package, tile: int) -> dict[str, Any]:
    """Everything on one tile, by address. Raises UsageError for a tile that does not exist."""
    found = MemoryMap(package)
    usage = found.usage(tile)
    spans = []
    for row in usage.spans:
        buffer = found.buffer(row)
        spans.append(
            {
                "address": int(row["begin"]),
                "bytes": int(row["end"]) - int(row["begin"]),
                "kind": KINDS[int(row["kind"])],
                "name": found.name(row),
                "owner": buffer.owner if buffer is not None else "",
                "layout": buffer.layout if buffer is not None else "",
                "first_step": int(row["first"]),
                "last_step": int(row["last"]),
            }
        )
    return {
        **class_data(found, usage),
        "steps": found.steps,
        "live_bytes": usage.live.tolist(),
        "spans": spans,
        "free": [{"address": begin, "bytes": end - begin} for begin, end in usage.free],
    }
