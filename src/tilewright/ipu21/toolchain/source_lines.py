"""Order in the source lines of code, whoever told them."""

from __future__ import annotations

from collections.abc import Iterable

from .objects import SourceLine


def by_place(rows: Iterable[SourceLine]) -> list[SourceLine]:
    """Rising by offset; of rows at one place the last counts, but an end gives way to what begins there."""
    found: dict[int, SourceLine] = {}
    for row in rows:
        if row.line or row.offset not in found:
            found[row.offset] = row
    return [found[offset] for offset in sorted(found)]


def joined(rows: list[SourceLine]) -> list[SourceLine]:
    """Rows without those that say the same as the one before."""
    return [
        row
        for index, row in enumerate(rows)
        if index == 0 or (row.file, row.line) != (rows[index - 1].file, rows[index - 1].line)
    ]
