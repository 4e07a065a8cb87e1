"""Source lines of the linked code, in the form a package keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...package.records import LINE, CodeLines
from ..toolchain.objects import SourceLine


def code_lines(lines: Sequence[SourceLine]) -> CodeLines:
    """The record for lines by rising address; where none is known from there on, the line is 0."""
    if not any(line.line for line in lines):
        return CodeLines()
    names, offsets, numbers = zip(*((line.file, line.offset, line.line) for line in lines), strict=True)
    files = {name: number for number, name in enumerate(dict.fromkeys(filter(None, names)))}
    rows = np.zeros(len(lines), LINE)
    rows["address"], rows["line"] = offsets, numbers
    rows["file"] = [files.get(name, 0) for name in names]
    return CodeLines(list(files), rows)
