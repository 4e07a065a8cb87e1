"""`CodeLines` to its part of a message and back; knows nothing of its meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import PackageError

from .binding_wire import get_blob, put_blob, read_rows
from .blobs import Budget
from .records import LINE, CodeLines

_I32 = np.dtype("<i4")


def put_lines(section: Any, lines: CodeLines) -> None:
    """Fill the debug section of a message. Differences are small numbers, which compress well."""
    section.lineFiles = list(lines.files)
    columns = [np.diff(lines.rows[name].astype(np.int64), prepend=0) for name in LINE.names or ()]
    put_blob(section.init("lines"), np.concatenate(columns).astype(_I32).tobytes())


def get_lines(section: Any, budget: Budget) -> CodeLines:
    """The source lines in a debug section; none where it has none. Raises PackageError."""
    files = [str(name) for name in section.lineFiles]
    if not files:
        return CodeLines()
    numbers = read_rows(get_blob(section.lines, budget, "source lines"), _I32, "source lines")
    names = LINE.names or ()
    if len(numbers) % len(names):
        raise PackageError("source lines have columns of different lengths")
    rows = np.zeros(len(numbers) // len(names), LINE)
    for name, column in zip(names, numbers.reshape(len(names), -1), strict=True):
        values = np.cumsum(column, dtype=np.int64)
        if len(values) and not 0 <= values.min() <= values.max() < 1 << 32:
            raise PackageError(f"source lines have a {name} that is no 32-bit number")
        rows[name] = values
    return CodeLines(files, rows)
