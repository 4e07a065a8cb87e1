"""What a person asks of a package, as plain data: for text, for JSON, for reports."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import numpy as np

from tilewright.errors import UsageError

from .digest import FORMAT_VERSION, package_digest
from .orders import DTYPES
from .records import ALL_TILES, EXECUTE, NO_MARKS, WRITE, Binding, HostCall, Image, Package


def summarize(package: Package) -> dict[str, Any]:
    """Identity, bindings, calls, steps, memory per image, blobs and provisional words of a package."""
    return {
        "format": FORMAT_VERSION,
        "digest": package_digest(package),
        "target": package.target,
        "compiler": package.compiler_version,
        "tiles": len(package.tiles),
        "inputs": [_binding(binding) for binding in package.inputs],
        "outputs": [_binding(binding) for binding in package.outputs],
        "weights": [_binding(binding) for binding in package.weights],
        "calls": [_call(call) for call in package.host_exchange.calls],
        "pages": [{"index": page.index, "bytes": page.size} for page in package.host_exchange.pages],
        "steps": [{"name": step.name, "kind": step.kind} for step in package.profile.steps],
        "images": _images(package),
        "blobs": _blobs(package),
        "config_writes": len(package.device_config_writes),
        "symbols": len(package.symbols),
        "provisional": [{"address": address, "word": word} for address, word in package.provisional.tolist()],
    }


def summarize_tile(package: Package, physical: int) -> dict[str, Any]:
    """Segments, named regions, host slices and step marks of one tile (physical id).

    Raises UsageError for a tile that the package does not have.
    """
    if not 0 <= physical < len(package.tiles):
        raise UsageError(f"there is no tile {physical}", hint=f"tiles are 0..{len(package.tiles) - 1}")
    number = package.tiles[physical].image
    image = package.images[number]
    slices = [
        {"binding": binding.name, **{key: int(row[key]) for key in row.dtype.names or ()}}
        for binding in (*package.inputs, *package.outputs, *package.weights)
        for row in binding.slices[binding.slices["tile"] == physical]
    ]
    marks: list[dict[str, Any]] = []
    if image.mark_table != NO_MARKS:
        marks = [
            {"address": address, "step": step, "name": package.profile.steps[step].name}
            for address, step in package.profile.mark_tables[image.mark_table].tolist()
        ]
    return {
        "tile": physical,
        "image": number,
        "tiles_with_image": sum(tile.image == number for tile in package.tiles),
        "entry_point": image.entry_point,
        "memory": _memory(image),
        "segments": [
            {
                "address": part.address,
                "memory_bytes": part.memory_size,
                "file_bytes": part.file_size,
                "flags": flag_text(part.flags),
                "blob": part.blob,
                "blob_offset": part.blob_offset,
            }
            for part in sorted(image.segments, key=lambda part: part.address)
        ],
        "regions": [
            {"name": region.name, "address": region.address, "bytes": region.size}
            for region in sorted(package.regions, key=lambda region: (region.address, region.name))
            if region.physical_tile in (physical, ALL_TILES)
        ],
        "slices": slices,
        "marks": marks,
    }


def flag_text(flags: int) -> str:
    """Segment flags as `rwx` with dashes."""
    return "".join(letter if flags >> bit & 1 else "-" for bit, letter in enumerate("rwx"))


def _binding(binding: Binding) -> dict[str, Any]:
    elements = int(np.prod(binding.shape, dtype=np.int64))
    return {
        "name": binding.name,
        "shape": list(binding.shape),
        "host_dtype": binding.host_dtype,
        "device_dtype": binding.device_dtype,
        "order": binding.order,
        "view": list(binding.view),
        "tiles": len(np.unique(binding.slices["tile"])),
        "slices": len(binding.slices),
        "bytes": elements * DTYPES[binding.device_dtype].itemsize,
        "padded_bytes": binding.nbytes,
    }


def _call(call: HostCall) -> dict[str, Any]:
    return {
        "name": call.name,
        "command": call.command,
        "phases": call.phases,
        "input_batches": len(call.input_batch_ends),
        "output_batches": len(call.output_batch_ends),
        "input_bytes": int(call.inputs["size"].sum(dtype=np.int64)),
        "output_bytes": int(call.outputs["size"].sum(dtype=np.int64)),
    }


def _images(package: Package) -> list[dict[str, Any]]:
    tiles: dict[int, list[int]] = {}
    for tile in package.tiles:
        tiles.setdefault(tile.image, []).append(tile.physical_tile)
    return [
        {
            "image": number,
            "tiles": len(tiles.get(number, [])),
            "first_tile": min(tiles.get(number, []), default=None),
            **_memory(image),
            "segments": len(image.segments),
            "marks": 0
            if image.mark_table == NO_MARKS
            else len(package.profile.mark_tables[image.mark_table]),
        }
        for number, image in enumerate(package.images)
    ]


def _memory(image: Image) -> dict[str, int]:
    """Bytes of tile memory by use: executable, read-only, writable."""
    size: Counter[str] = Counter(code=0, constants=0, variables=0)
    for part in image.segments:
        use = "code" if part.flags & EXECUTE else "variables" if part.flags & WRITE else "constants"
        size[use] += part.memory_size
    return {
        **size,
        "total": sum(part.memory_size for part in image.segments),
        "end": max(part.address + part.memory_size for part in image.segments),
    }


def _blobs(package: Package) -> list[dict[str, Any]]:
    segments: Counter[int] = Counter(
        part.blob for image in package.images for part in image.segments if part.file_size
    )
    weights: dict[int, list[str]] = {}
    for weight in package.weights:
        weights.setdefault(weight.blob, []).append(weight.name)
    return [
        {
            "blob": number,
            "bytes": len(blob),
            "sha256": hashlib.sha256(blob).hexdigest(),
            "segments": segments[number],
            "weights": weights.get(number, []),
        }
        for number, blob in enumerate(package.blobs)
    ]
