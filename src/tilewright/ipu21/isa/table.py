"""The instruction table's data file, parsed once.

The file (`data/ipu21.json`) is the only home of encodings, register names, CSR numbers and named constants;
every fact in it carries its source and an evidence tag (known, derived, assumed, open).
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any


@functools.cache
def table() -> dict[str, Any]:
    """The parsed data file."""
    text = resources.files(__package__).joinpath("data/ipu21.json").read_text(encoding="utf-8")
    parsed: dict[str, Any] = json.loads(text)
    return parsed
