"""Kernels of this folder on a bench."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from tilewright.tile import Checks, TileBench, TileProgram

ALL = Checks(poison=True, races=True, code=True, stack=True)


@lru_cache(maxsize=32)
def _program(name: str) -> TileProgram:
    path = Path(__file__).parent / f"{name}.S"
    return TileProgram.from_source(path.read_text(), filename=path.name)


def bench(name: str, checks: Checks | None = None) -> TileBench:
    """A tile with the kernels of one source file."""
    return TileBench(_program(name), checks=checks or ALL)
