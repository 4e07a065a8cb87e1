"""What differs between two packages: identity, predicted cycles, memory, layouts, code."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.package.digest import debug_digest, package_digest
from tilewright.package.records import EXECUTE, Package

from .loops import repetitions
from .memory_map import MemoryMap

UNKNOWN = "(unknown)"


def diff_packages(one: Package, other: Package) -> dict[str, Any]:
    """Every difference, as plain data: `changes` counts them; equal parts are left out of the lists."""
    identity = {
        "digest": [package_digest(one), package_digest(other)],
        "compiler": [one.compiler_version, other.compiler_version],
    }
    result: dict[str, Any] = {
        "same": identity["digest"][0] == identity["digest"][1],
        "same_debug": debug_digest(one) == debug_digest(other),
        **identity,
        "totals": _pairs(_totals(one), _totals(other), keep=True),
        "bindings": _pairs(_bindings(one), _bindings(other)),
        "steps": _pairs(_steps(one), _steps(other)),
        "operations": _pairs(_cycles(one), _cycles(other)),
        "plans": _pairs(_plans(one), _plans(other)),
        "layouts": _pairs(_layouts(one), _layouts(other)),
        "kernels": _pairs(_kernels(one), _kernels(other)),
        "weights": _pairs(_weights(one), _weights(other)),
    }
    lists = ("bindings", "steps", "operations", "plans", "layouts", "kernels", "weights")
    changed = [entry for entry in result["totals"] if entry["one"] != entry["other"]]
    result["changes"] = len(changed) + sum(len(result[name]) for name in lists)
    return result


def _pairs(one: Mapping[str, Any], other: Mapping[str, Any], *, keep: bool = False) -> list[dict[str, Any]]:
    """What differs, in the order of the first and then of the second; None where there is nothing."""
    return [
        {"name": name, "one": one.get(name), "other": other.get(name)}
        for name in dict.fromkeys([*one, *other])
        if keep or one.get(name) != other.get(name)
    ]


def _totals(package: Package) -> dict[str, float]:
    """Numbers of the whole package, in words that a person reads."""
    found = MemoryMap(package)
    program = package.program
    cycles = sum(_cycles(package).values()) if program is not None else 0.0
    images = [
        sum(part.memory_size for part in image.segments if part.flags & EXECUTE) for image in package.images
    ]
    rows = {
        (region.physical_tile, region.address): region.size
        for region in package.regions
        if region.name.endswith(".row")
    }
    return {
        "predicted cycles": round(cycles),
        "steps of a run": sum(repetitions(package)),
        "tiles with buffers": int(np.count_nonzero(found.class_of >= 0)),
        "tile classes": len(program.classes) if program is not None else 0,
        "images": len(package.images),
        "peak bytes of the fullest tile": int(found.peaks.max(initial=0)),
        "peak bytes of the median tile": int(np.median(found.peaks[found.class_of >= 0]))
        if (found.class_of >= 0).any()
        else 0,
        "most code on a tile, bytes": max(images, default=0),
        "bytes of exchange rows": sum(rows.values()),
        "bytes of all blobs": sum(map(len, package.blobs)),
        "host phases of a run": sum(
            call.phases for call in package.host_exchange.calls if call.name == "run"
        ),
    }


def _bindings(package: Package) -> dict[str, str]:
    groups = (("input", package.inputs), ("output", package.outputs))
    return {
        f"{kind} {b.name}": f"{b.host_dtype}{list(b.shape)}, {b.device_dtype} in {b.order} order in "
        f"{len(b.slices):,} slices"
        for kind, group in groups
        for b in group
    }


def _steps(package: Package) -> dict[str, str]:
    return {step.name: step.kind for step in package.profile.steps}


def _cycles(package: Package) -> dict[str, float]:
    """Predicted cycles by operation, repetitions counted."""
    program = package.program
    totals: Counter[str] = Counter()
    if program is not None:
        for step, times in zip(program.steps, repetitions(package), strict=True):
            if step.cycles:
                totals[step.operation or UNKNOWN] += round(step.cycles * times)
    return dict(totals)


def _plans(package: Package) -> dict[str, str]:
    program = package.program
    if program is None:
        return {}
    return {operation.name: "; ".join(operation.plan) for operation in program.operations}


def _layouts(package: Package) -> dict[str, str]:
    program = package.program
    if program is None:
        return {}
    sizes: Counter[int] = Counter()
    for group in program.classes:
        for number, size in group.buffers[["buffer", "size"]].tolist():
            sizes[number] = max(sizes[number], size)
    return {
        buffer.name: f"{buffer.role}, {buffer.layout}, {sizes[number]:,} bytes"
        for number, buffer in enumerate(program.buffers)
    }


def _kernels(package: Package) -> dict[str, str]:
    """Hash of the code of each symbol, in the first image that has it."""
    symbols = sorted({symbol.address: symbol.name for symbol in package.symbols}.items())
    found: dict[str, str] = {}
    ends = [begin for begin, _ in symbols[1:]] + [1 << 32]
    for (begin, name), end in zip(symbols, ends, strict=False):
        for image in package.images:
            part = next(
                (
                    s
                    for s in image.segments
                    if s.flags & EXECUTE and s.address <= begin < s.address + s.file_size
                ),
                None,
            )
            if part is None:
                continue
            code = package.segment_bytes(part)[begin - part.address : end - part.address]
            found[name] = f"{len(code):,} bytes, {hashlib.sha256(code).hexdigest()[:12]}"
            break
    return found


def _weights(package: Package) -> dict[str, str]:
    return {
        binding.name: f"{binding.order}, {hashlib.sha256(package.blobs[binding.blob]).hexdigest()[:12]}"
        for binding in package.weights
    }
