"""Overlays: encodings and flag numbers of an outside assembler, laid over our table when the user asks.

An overlay is a JSON file made by `tilewright isa probe`. It is loaded explicitly and once, before the table
is read; nothing looks for it by itself. This module stands outside the package of the instruction set, which
reads the table as soon as it is imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ObjectError, UsageError
from ..files import read_file, write_whole

FORMAT = "tilewright isa overlay"
VERSION = 1
SIZE_LIMIT = 4 << 20
"""Bytes of an overlay file."""

Pieces = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class FormOverlay:
    """One form: the word with every operand zero, and per operand where its bits are."""

    fixed: int
    operands: tuple[Pieces, ...]


@dataclass
class Overlay:
    """What differs from the table or was unknown there.

    Attributes:
        assembler: the command it was learnt from.
        forms: form string -> encoding, for forms that differ.
        constants: flag family -> name -> number, for every name that was assembled.
        refused: form string or flag name -> why the assembler did not take it.
    """

    assembler: str = ""
    forms: dict[str, FormOverlay] = field(default_factory=dict)
    constants: dict[str, dict[str, int]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """The file's text; equal overlays give equal text."""
        value = {
            "format": FORMAT,
            "version": VERSION,
            "target": "ipu21",
            "assembler": self.assembler,
            "forms": {
                name: {
                    "fixed": f"{item.fixed:#010x}",
                    "operands": [list(map(list, p)) for p in item.operands],
                }
                for name, item in sorted(self.forms.items())
            },
            "constants": {name: dict(values) for name, values in sorted(self.constants.items())},
            "refused": dict(sorted(self.refused.items())),
        }
        return json.dumps(value, indent=1) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file whole. Raises UsageError."""
        write_whole(path, self.to_json().encode())

    def apply(self, parsed: dict[str, Any]) -> None:
        """Change a parsed table. Raises ObjectError where the overlay does not fit it."""
        by_form = {entry["form"]: entry for entry in parsed["forms"]}
        for name, item in self.forms.items():
            entry = by_form.get(name)
            if entry is None or len(entry["operands"]) != len(item.operands):
                raise ObjectError(f"the table has no form {name!r} with {len(item.operands)} operands")
            entry["fixed"] = f"{item.fixed:#010x}"
            for operand, pieces in zip(entry["operands"], item.operands, strict=True):
                width = sum(piece[1] for piece in operand["pieces"])
                if sum(piece[1] for piece in pieces) != width:
                    raise ObjectError(f"{name!r}: an operand of {width} bits has another width")
                operand["pieces"] = [list(piece) for piece in pieces]
            entry["evidence"] = "derived"
        for family, values in self.constants.items():
            known = parsed["enums"].get(family)
            if known is None or not set(values) <= set(known["values"]):
                raise ObjectError(f"the table has no such constants in {family!r}")
            known["values"].update(values)
            known["known"] = sorted({*known.get("known", ()), *values})


def read_overlay(data: bytes, *, name: str = "<overlay>") -> Overlay:
    """An overlay from its bytes; every value is checked. Raises ObjectError naming `name`."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ObjectError(f"no JSON: {str(error)[:80]}", where=name) from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ObjectError("this is no instruction set overlay", where=name)
    if value.get("version") != VERSION or value.get("target") != "ipu21":
        raise ObjectError(
            f"version {value.get('version')} for {value.get('target')!r} is unknown", where=name
        )
    try:
        forms = {str(key): _form(item) for key, item in dict(value.get("forms", {})).items()}
        constants = {
            str(family): {str(key): _number(number, 0xFF) for key, number in dict(values).items()}
            for family, values in dict(value.get("constants", {})).items()
        }
        refused = {str(key): str(text) for key, text in dict(value.get("refused", {})).items()}
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ObjectError(f"a value is malformed: {str(error)[:80]}", where=name) from None
    return Overlay(str(value.get("assembler", "")), forms, constants, refused)


def _form(item: Mapping[str, Any]) -> FormOverlay:
    operands: list[Pieces] = []
    for pieces in item["operands"]:
        checked: list[tuple[int, int, int]] = []
        for piece in pieces:
            lsb, width, value_lsb = (_number(number, 32) for number in piece)
            if not 1 <= width <= 32 - lsb or value_lsb + width > 32:
                raise ValueError(f"piece {piece}")
            checked.append((lsb, width, value_lsb))
        operands.append(tuple(checked))
    return FormOverlay(_number(int(str(item["fixed"]), 16), 0xFFFFFFFF), tuple(operands))


def _number(value: Any, maximum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= maximum:
        raise ValueError(f"{value!r} is no number up to {maximum}")
    return value


def use_overlay_file(path: str | os.PathLike[str]) -> Overlay:
    """Load an overlay for this process. Raises UsageError or ObjectError; also when it comes too late."""
    overlay = read_overlay(read_file(Path(path), limit=SIZE_LIMIT), name=str(path))
    if _in_use:
        raise UsageError(
            "the instruction table is in use already", hint="load an overlay before anything else"
        )
    _chosen.append(overlay)
    return overlay


_chosen: list[Overlay] = []
_in_use: list[bool] = []


def changed(parsed: dict[str, Any]) -> dict[str, Any]:
    """The table with the overlay of this process, if there is one; from now on none can be chosen."""
    _in_use.append(True)
    for overlay in _chosen:
        overlay.apply(parsed)
    return parsed


def in_force() -> bool:
    """True if an overlay was chosen."""
    return bool(_chosen)
