"""What `tilewright embed` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .console import byte_size, count

if TYPE_CHECKING:
    from rich.console import Console

    from .embed_run import EmbedResult

MATRIX = 8
"""Sentences whose whole similarity matrix fits 80 columns; of more, each one's nearest is shown."""
NEAREST = 24
"""Sentences that the list of nearest ones shows."""
JSON_MATRIX = 1000
"""Sentences whose similarity matrix `--json` prints; of more it is null, as it would have millions of
numbers, and `--output` holds what is needed to compute it."""

_INVISIBLE = "\u200d\ufe0f"
"""Characters that are not printable by themselves but belong to emoji."""


def summary(result: EmbedResult, tiles: int) -> dict[str, Any]:
    """The numbers of a result, as `--json` prints them. Sentences count from 0."""
    small = len(result.sentences) <= JSON_MATRIX
    return {
        "sentences": len(result.sentences),
        "similarity": np.round(result.similarity, 6).astype(float).tolist() if small else None,
        "cycles": result.cycles,
        "sentences_per_second": round(result.sentences_per_second, 1),
        "compile_seconds": round(result.compile_seconds, 3),
        "simulate_seconds": round(result.simulate_seconds, 3),
        "tile_bytes_max": result.tile_bytes_max,
        "tiles": tiles,
        "cut": list(result.cut),
        "programs": [
            {
                "tokens": group.tokens,
                "batch": group.batch,
                "sentences": group.sentences,
                "runs": len(group.runs),
                "cycles": sum(execution.cycles),
                "tile_bytes_max": execution.tile_bytes_max,
                "compile_seconds": round(execution.compile_seconds, 3),
                "cached": execution.cached,
            }
            for group, execution in result.programs
        ],
    }


def show(out: Console, result: EmbedResult, *, model: str, tiles: int) -> None:
    """The result as text, 80 columns wide."""
    noun = "sentence" if len(result.sentences) == 1 else "sentences"
    out.print(
        f"{count(len(result.sentences))} {noun} by {model}, on {count(tiles)} tiles of a simulated IPU21\n",
        markup=False,
    )
    if len(result.sentences) <= MATRIX:
        _matrix(out, result)
    else:
        _nearest(out, result)
    out.print()
    _facts(out, result)


def _matrix(out: Console, result: EmbedResult) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("sentence", ratio=1, no_wrap=True, overflow="ellipsis")
    for number in range(1, len(result.sentences) + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    for number, (sentence, row) in enumerate(zip(result.sentences, result.similarity, strict=True), 1):
        table.add_row(str(number), Text(shown(sentence)), *(f"{value:.3f}" for value in row))
    out.print(table)


def _nearest(out: Console, result: EmbedResult) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("sentence", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("nearest other", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("cosine", justify="right", no_wrap=True)
    for index, sentence in enumerate(result.sentences[:NEAREST]):
        cosines = result.vectors @ result.vectors[index]
        cosines[index] = -np.inf
        nearest = int(np.argmax(cosines))
        other = Text(shown(result.sentences[nearest]))
        row = (str(index + 1), Text(shown(sentence)), str(nearest + 1), other, f"{cosines[nearest]:.3f}")
        table.add_row(*row)
    out.print(table)
    if (hidden := len(result.sentences) - NEAREST) > 0:
        out.print(f"... and {count(hidden)} more (--output keeps all vectors)")


def shown(sentence: str) -> str:
    """A sentence as one line that no terminal takes for a command."""
    text = "".join(c if c.isprintable() or c in _INVISIBLE else " " for c in sentence)
    return " ".join(text.split()) or "(empty)"


def _facts(out: Console, result: EmbedResult) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column()
    runs = sum(len(group.runs) for group, _ in result.programs)
    sizes = ", ".join(f"{group.batch} x {group.tokens}" for group, _ in result.programs)
    table.add_row("device cycles", count(result.cycles), "simulated")
    table.add_row("runs", count(runs), f"sentences x tokens: {sizes}")
    table.add_row("sentences/s", f"{result.sentences_per_second:,.0f}", "by those cycles at 1.5 GHz")
    share = result.tile_bytes_max / result.tile_bytes
    table.add_row(
        "tile memory",
        byte_size(result.tile_bytes_max),
        f"on the fullest tile, {share:.1%} of {result.tile_bytes // 1024} KiB",
    )
    kept = sum(execution.cached for _, execution in result.programs)
    origin = "graph to package"
    if kept:
        origin = "from the cache" if kept == len(result.programs) else f"{kept} of them from the cache"
    table.add_row("compile", f"{result.compile_seconds:.1f} s", origin)
    table.add_row("simulate", f"{result.simulate_seconds:.1f} s", "load, weights, all runs")
    out.print(table)
