"""The instruction table's data file, parsed once.

The file (`data/ipu21.json`) is the only home of encodings, register names, CSR numbers and named constants;
every fact in it carries its source and an evidence tag (known, derived, assumed, open). An overlay
may replace encodings and flag numbers, but only before anything has read the table.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from .. import overlay


def original_table() -> dict[str, Any]:
    """The data file as it is, parsed anew."""
    text = resources.files(__package__).joinpath("data/ipu21.json").read_text(encoding="utf-8")
    parsed: dict[str, Any] = json.loads(text)
    return parsed


@functools.cache
def table() -> dict[str, Any]:
    """The parsed data file, with the changes of an overlay if one was chosen."""
    return overlay.changed(original_table())


@functools.cache
def original_flags() -> dict[str, dict[str, int]]:
    """Family of flags -> name -> the number the meaning functions understand, whatever the encoding is."""
    return {
        name: dict(entry["values"])
        for name, entry in original_table()["enums"].items()
        if entry.get("flag_family")
    }
