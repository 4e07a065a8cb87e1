"""Relocatable objects and linked images as data and as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .console import count
from .tables import facts, listing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

_TYPE_OFFSET = 16
_EXECUTABLE = 2


def describe_elf(data: bytes, name: str) -> dict[str, Any]:
    """Sections and symbols of an object, or segments and symbols of a linked image. Raises ObjectError."""
    kind = int.from_bytes(data[_TYPE_OFFSET : _TYPE_OFFSET + 2], "little")
    return _describe_image(data, name) if kind == _EXECUTABLE else _describe_object(data, name)


def show_elf(out: Console, description: Mapping[str, Any]) -> None:
    """The description as tables."""
    if "segments" in description:
        _show_segments(out, description)
    else:
        _show_sections(out, description)
    listing(
        out,
        "Symbols",
        ("name", "value", "binding", "section"),
        [
            (symbol["name"], f"{symbol['value']:#x}", symbol["binding"], symbol["section"])
            for symbol in description["symbols"]
        ],
    )


def describe_gp(data: bytes, name: str) -> dict[str, Any]:
    """The targets of a `.gp` archive, each with its object. Raises ObjectError."""
    from tilewright.ipu21.toolchain.gp import read_gp

    targets = []
    for target in read_gp(data, name=name):
        runs = target.architecture in ("ipu2", "ipu21")
        entry: dict[str, Any] = {
            "name": target.name,
            "architecture": target.architecture,
            "bytes": len(target.elf),
            "usable": runs,
        }
        if runs:
            entry["object"] = describe_elf(target.elf, f"{name}({target.name})")
        targets.append(entry)
    return {"kind": ".gp archive", "targets": targets}


def show_gp(out: Console, description: Mapping[str, Any]) -> None:
    """The targets as a table, and the object of each that runs on this machine."""
    facts(out, [("file", description["kind"])])
    listing(
        out,
        "Targets",
        ("name", "architecture", ">bytes", "runs on ipu21"),
        [
            (item["name"], item["architecture"], count(item["bytes"]), "yes" if item["usable"] else "no")
            for item in description["targets"]
        ],
    )
    for item in description["targets"]:
        if "object" in item:
            show_elf(out, item["object"])


def describe_archive(data: bytes, name: str) -> dict[str, Any]:
    """The members of an archive of `ar` and the names each defines. Raises ObjectError."""
    from tilewright.ipu21.toolchain.archives import read_archive

    return {
        "kind": "archive of objects",
        "members": [
            {
                "name": item.name,
                "bytes": sum(section.size for section in item.sections if section.allocated),
                "defines": [
                    symbol.name for symbol in item.symbols if symbol.defined and symbol.binding != "local"
                ],
            }
            for item in read_archive(data, name=name)
        ],
    }


def show_archive(out: Console, description: Mapping[str, Any]) -> None:
    """The members as a table."""
    facts(out, [("file", description["kind"])])
    listing(
        out,
        "Members",
        ("name", ">bytes", "defines"),
        [(item["name"], count(item["bytes"]), ", ".join(item["defines"])) for item in description["members"]],
    )


def _show_segments(out: Console, description: Mapping[str, Any]) -> None:
    entry = description["entry"]
    words = len(description["provisional"])
    facts(
        out,
        [
            ("file", description["kind"]),
            ("entry", "none" if entry is None else f"{entry:#x}"),
            ("provisional words", f"{count(words)}{': simulator only' if words else ''}"),
        ],
    )
    listing(
        out,
        "Segments",
        ("address", "end", ">bytes", "flags", "sections"),
        [
            (
                f"{part['address']:#x}",
                f"{part['address'] + part['bytes']:#x}",
                count(part["bytes"]),
                part["flags"],
                ", ".join(part["sections"]),
            )
            for part in description["segments"]
        ],
    )


def _show_sections(out: Console, description: Mapping[str, Any]) -> None:
    facts(out, [("file", description["kind"])])
    listing(
        out,
        "Sections",
        ("name", ">bytes", "flags", ">align", ">relocations"),
        [
            (
                part["name"],
                count(part["bytes"]),
                part["flags"],
                str(part["alignment"]),
                count(part["relocations"]),
            )
            for part in description["sections"]
        ],
    )


def _describe_object(data: bytes, name: str) -> dict[str, Any]:
    from tilewright.ipu21.toolchain.objects import ObjectFile

    content = ObjectFile.from_bytes(data, name=name)
    return {
        "kind": "relocatable object",
        "sections": [
            {
                "name": section.name,
                "bytes": max(section.size, len(section.data)),
                "flags": section.flags,
                "alignment": section.alignment,
                "relocations": len(section.relocations),
            }
            for section in content.sections
        ],
        "symbols": [
            {
                "name": symbol.name,
                "value": symbol.value,
                "binding": symbol.binding,
                "section": "absolute"
                if symbol.absolute
                else "undefined"
                if symbol.section is None
                else content.sections[symbol.section].name,
            }
            for symbol in content.symbols
        ],
    }


def _describe_image(data: bytes, name: str) -> dict[str, Any]:
    from tilewright.ipu21.toolchain.image import LinkedImage

    content = LinkedImage.from_elf(data, name=name)
    return {
        "kind": "linked image",
        "entry": content.entry,
        "segments": [
            {
                "address": segment.address,
                "bytes": len(segment.data),
                "flags": segment.flags,
                "sections": [name for name, _ in segment.sections],
            }
            for segment in content.segments
        ],
        "symbols": [
            {"name": symbol, "value": address, "binding": "global", "section": "absolute"}
            for symbol, address in sorted(content.symbols.items(), key=lambda item: (item[1], item[0]))
        ],
        "provisional": [{"address": address, "word": word} for address, word in content.provisional],
    }
