"""One page for a browser: data, drawing code and style in one file, and nothing from anywhere else.

The page's policy forbids every request and every script but the one whose hash it names, so that nothing in
a file's names could run even if it became markup; it does not, since names only ever become text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = list[tuple[str, NDArray[np.generic]]]
Places = list[tuple[str, str, int, int]]
"""Name, type, offset and length of each column in what `pack_columns` packs."""

_HARMLESS = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}
"""Characters that could end or begin markup, as JSON escapes."""


def one_page(
    template: str, styles: Sequence[str], scripts: Sequence[str], header: Mapping[str, Any], data: bytes
) -> bytes:
    """The page in UTF-8. `template`, `styles` and `scripts` are files of the viewer."""
    script = '"use strict";\n' + "\n".join(_part(f"{name}.js") for name in scripts)
    style = "".join(map(_part, styles))
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    parts = {
        "@POLICY@": policy,
        "@STYLE@": style,
        "@HEADER@": json.dumps(header, separators=(",", ":")).translate(_HARMLESS),
        "@DATA@": base64.b64encode(data).decode(),
        "@SCRIPT@": script,
    }
    page = _part(template)
    pieces = []
    # One pass over the template: what has been inserted is never looked at again.
    for name, value in parts.items():
        before, page = page.split(name, 1)
        pieces += [before, value]
    return "".join([*pieces, page]).encode()


def pack_columns(columns: Columns) -> tuple[bytes, Places]:
    """All columns one after another, widest numbers first so that each is aligned, compressed; places."""
    places = []
    parts = []
    offset = 0
    for name, column in sorted(columns, key=lambda entry: -entry[1].itemsize):
        places.append((name, f"{column.dtype.kind}{column.itemsize}", offset, len(column)))
        data = np.ascontiguousarray(column).tobytes()
        data += bytes(-len(data) % 8)
        parts.append(data)
        offset += len(data)
    return zlib.compress(b"".join(parts), 6), places


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath("viewer").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
