"""Packages, runs and devices as tables of at most 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from .console import byte_size, count
from .tables import facts, listing

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.runtime import DeviceInfo

FEW = 8
"""Rows of lists that are rarely read."""

TILE_MEMORY_BYTES = 624 * 1024
"""For percentages only, repeated here because the machine description costs start-up time."""


def show_package(out: Console, summary: Mapping[str, Any]) -> None:
    """The summary of a package."""
    facts(
        out,
        [
            ("package", f"format {summary['format']}, target {summary['target']}"),
            ("made by", summary["compiler"] or "unknown"),
            ("file", byte_size(summary["file_bytes"])),
            ("digest", summary["digest"]),
            ("tiles", f"{count(summary['tiles'])} with {count(len(summary['images']))} different images"),
        ],
    )
    bindings = [(kind, binding) for kind in ("input", "output", "weight") for binding in summary[f"{kind}s"]]
    listing(
        out,
        "Bindings",
        ("", "name", "host", "device", ">tiles", ">bytes", ">padded"),
        [
            (
                kind,
                binding["name"],
                f"{binding['host_dtype']}{binding['shape']}",
                f"{binding['device_dtype']} {binding['order']}",
                count(binding["tiles"]),
                count(binding["bytes"]),
                count(binding["padded_bytes"]),
            )
            for kind, binding in bindings
        ],
    )
    listing(
        out,
        "Host calls",
        ("name", ">command", ">phases", ">batches in", ">bytes in", ">batches out", ">bytes out"),
        [
            (
                call["name"],
                str(call["command"]),
                count(call["phases"]),
                count(call["input_batches"]),
                count(call["input_bytes"]),
                count(call["output_batches"]),
                count(call["output_bytes"]),
            )
            for call in summary["calls"]
        ],
    )
    listing(
        out,
        "Steps",
        (">step", "kind", "name"),
        [(str(number), step["kind"], step["name"]) for number, step in enumerate(summary["steps"])],
    )
    listing(
        out,
        "Memory per tile, by image (bytes; buffers outside the image not counted)",
        (">image", ">tiles", ">first", ">code", ">constants", ">variables", ">total", ">of tile"),
        [
            (
                str(image["image"]),
                count(image["tiles"]),
                "-" if image["first_tile"] is None else str(image["first_tile"]),
                count(image["code"]),
                count(image["constants"]),
                count(image["variables"]),
                count(image["total"]),
                f"{100 * image['total'] / TILE_MEMORY_BYTES:.1f} %",
            )
            for image in sorted(summary["images"], key=lambda image: (-image["total"], image["image"]))
        ],
    )
    blobs = summary["blobs"]
    listing(
        out,
        f"Blobs ({count(len(blobs))}, {byte_size(sum(blob['bytes'] for blob in blobs))} uncompressed)",
        (">blob", ">bytes", "sha256", ">segments", "weights"),
        [
            (
                str(blob["blob"]),
                count(blob["bytes"]),
                blob["sha256"][:12],
                count(blob["segments"]),
                ", ".join(blob["weights"]),
            )
            for blob in sorted(blobs, key=lambda blob: (-blob["bytes"], blob["blob"]))
        ],
        limit=FEW,
    )
    words = summary["provisional"]
    if words:
        listing(
            out,
            f"Provisional words ({count(len(words))}): encodings not public, simulator only",
            ("address", "word"),
            [(f"{word['address']:#x}", f"{word['word']:#010x}") for word in words],
            limit=FEW,
        )
    else:
        out.print(Text("No provisional words."))


def show_tile(out: Console, summary: Mapping[str, Any]) -> None:
    """One tile of a package."""
    memory = summary["memory"]
    facts(
        out,
        [
            ("tile", f"{summary['tile']} (physical)"),
            ("image", f"{summary['image']}, on {count(summary['tiles_with_image'])} of the tiles"),
            ("entry", f"{summary['entry_point']:#x}"),
            (
                "memory",
                f"{count(memory['code'])} code + {count(memory['constants'])} constants + "
                f"{count(memory['variables'])} variables = {count(memory['total'])} bytes",
            ),
        ],
    )
    listing(
        out,
        "Segments",
        ("address", "end", ">bytes", ">in file", "flags", ">blob", ">offset"),
        [
            (
                f"{part['address']:#x}",
                f"{part['address'] + part['memory_bytes']:#x}",
                count(part["memory_bytes"]),
                count(part["file_bytes"]),
                part["flags"],
                "-" if part["blob"] < 0 else str(part["blob"]),
                count(part["blob_offset"]),
            )
            for part in summary["segments"]
        ],
    )
    listing(
        out,
        "Named regions",
        ("address", ">bytes", "name"),
        [
            (f"{region['address']:#x}", count(region["bytes"]), region["name"])
            for region in summary["regions"]
        ],
    )
    listing(
        out,
        "Parts of bindings",
        ("binding", "address", ">bytes", "rows", "columns", "padded to"),
        [
            (
                part["binding"],
                f"{part['address']:#x}",
                count(part["size"]),
                f"{part['row']}..{part['row'] + part['rows'] - 1}",
                f"{part['column']}..{part['column'] + part['columns'] - 1}",
                f"{part['padded_rows']} x {part['padded_columns']}",
            )
            for part in summary["slices"]
        ],
    )
    listing(
        out,
        "Steps begin at",
        ("address", ">step", "name"),
        [(f"{mark['address']:#x}", str(mark["step"]), mark["name"]) for mark in summary["marks"]],
    )


def show_run(out: Console, report: Mapping[str, Any]) -> None:
    """What a run gave and cost."""
    cycles = report["cycles"]
    facts(
        out,
        [
            ("device", report["device"]),
            (
                "cycles",
                "not measured" if cycles is None else f"{count(cycles)} ({cycles / 1500:,.2f} us at 1.5 GHz)",
            ),
            ("host", f"{byte_size(report['bytes_in'])} in, {byte_size(report['bytes_out'])} out"),
            ("weights", f"{byte_size(report['weight_bytes'])} uploaded once"),
        ],
    )
    listing(
        out,
        "Outputs",
        ("name", "type", "file"),
        [
            (output["name"], f"{output['dtype']}{output['shape']}", output["file"] or "not written")
            for output in report["outputs"]
        ],
    )


def show_devices(out: Console, found: Sequence[DeviceInfo]) -> None:
    """The devices and whether they can be used."""
    listing(
        out,
        "Devices",
        ("name", "what", "usable"),
        [(d.name, d.description, "yes" if d.usable else f"no: {d.reason}") for d in found],
    )
