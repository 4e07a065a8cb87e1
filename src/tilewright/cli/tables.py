"""Tables of results: names with values, and titled lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from .console import count

if TYPE_CHECKING:
    from rich.console import Console

ROWS = 24
"""Rows of a list that are shown; `--json` prints all of them."""


def facts(out: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, two columns, no header."""
    table = Table.grid(padding=(0, 2))
    for name, value in pairs:
        table.add_row(Text(name), Text(value))
    out.print(table)
    out.print()


def listing(
    out: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, limit: int = ROWS
) -> None:
    """A titled table of at most `limit` rows; nothing when there are none.

    A column whose name begins with `>` is aligned to the right.
    """
    if not rows:
        return
    out.print(Text(title, style="bold"))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=any(columns))
    for column in columns:
        table.add_column(
            column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold"
        )
    for row in rows[:limit]:
        table.add_row(*map(Text, row))
    out.print(table)
    if len(rows) > limit:
        out.print(Text(f"... and {count(len(rows) - limit)} more (--json prints all)"))
    out.print()
