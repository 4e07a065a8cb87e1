"""Small assembled programs on one simulated tile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import FunctionError, Result, finish, prepare
from tilewright.ipu21.simulator.stops import Stop
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.toolchain import LinkedImage, assemble, link

DATA = 0x5C000
"""Free bytes of region 0."""
DATA1 = 0x80000
"""Start of region 1."""
CODE = 0x4C014


def image(body: str) -> LinkedImage:
    """Assemble a body with the symbol `f`; it may define further labels, such as a worker's entry."""
    source = f'.section .text.f, "ax"\n.globl f\n.type f, @function\n.align 8\nf:\n{body}\n'
    return link([assemble(source)], roots=["f"])


def tile_of(
    body: str,
    registers: Mapping[int, int] | None = None,
    memory: Mapping[int, bytes | NDArray[Any]] | None = None,
    **options: Any,
) -> Tile:
    """A tile about to execute the body."""
    built = image(body)
    return prepare(built, "f", registers, memory, **options)


def run(
    body: str,
    registers: Mapping[int, int] | None = None,
    memory: Mapping[int, bytes | NDArray[Any]] | None = None,
    **options: Any,
) -> Result:
    """Execute a body that ends with `br $m10`."""
    return finish(tile_of(body, registers, memory, **options))


WORKERS = """
    setzi $m0, worker
    runall $m0, $m2, 0
    sync 2
    br $m10
.align 8
worker:
"""
"""A supervisor that runs all workers on `worker` with vertex base $m2."""


def run_workers(
    body: str,
    registers: Mapping[int, int] | None = None,
    memory: Mapping[int, bytes | NDArray[Any]] | None = None,
    **options: Any,
) -> Result:
    """Execute a body in all six workers; `exitz $m15` is appended."""
    return run(f"{WORKERS}\n{body}\nexitz $m15\n", {2: DATA} | dict(registers or {}), memory, **options)


def stop_of(tile: Tile) -> Stop:
    """Where a tile stops that does not return."""
    try:
        finish(tile)
    except FunctionError as error:
        return error.stop
    raise AssertionError("the program returned")


def worker_stop(
    body: str,
    registers: Mapping[int, int] | None = None,
    memory: Mapping[int, bytes | NDArray[Any]] | None = None,
    **options: Any,
) -> Stop:
    """Where six workers on a body stop."""
    tile = tile_of(f"{WORKERS}\n{body}\nexitz $m15\n", {2: DATA} | dict(registers or {}), memory, **options)
    return stop_of(tile)


def from_words(words: Mapping[int, int], physical: int = 0, **options: Any) -> Tile:
    """A tile with these instruction words, at the first of them."""
    tile = Tile(physical, checks=Checks(**options))
    for address, word in words.items():
        tile.load(address, word.to_bytes(4, "little"), 4)
    tile.pc = min(words)
    return tile


def words_array(*values: int) -> NDArray[np.uint32]:
    return np.array(values, dtype=np.uint32)
