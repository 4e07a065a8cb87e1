"""The linked code that tiles carry: start-up, runtime routines, and the kernels the program calls."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from ...arithmetic import align_up
from ..kernels import CODE_END, COMPUTING, IDLE, KERNELS, STRAIGHT, link_kernels
from ..kernels.copy_spans import SYMBOL as COPY_SPANS
from ..kernels.rounding import SET_ROUNDING
from ..machine.memory import REGION1_BASE
from ..toolchain import LinkedImage
from .memory_map import PROGRAM

NAMES = (SET_ROUNDING, COPY_SPANS, *KERNELS, *STRAIGHT)
"""What may be asked for, in the order of linking."""


@dataclass(frozen=True)
class Runtime:
    """Code that is the same on every tile.

    Attributes:
        active: for tiles that compute: full start-up, kernels.
        idle: for tiles that only keep the barriers or request host traffic for others.
        program: where a tile's own program begins: behind kernels for which there was no room below.
    """

    active: LinkedImage
    idle: LinkedImage
    program: int


def runtime_with(kernels: Collection[str]) -> Runtime:
    """The runtime with these kernels; equal sets give equal bytes."""
    return _runtime(tuple(name for name in NAMES if name in kernels and name not in COMPUTING))


@lru_cache(maxsize=8)
def _runtime(kernels: tuple[str, ...]) -> Runtime:
    more = (PROGRAM, REGION1_BASE)
    names = (*COMPUTING, *kernels)
    # Where the program begins depends on the sizes only, which no address changes.
    draft = link_kernels(names, {"tile_program": PROGRAM}, more)
    ends = [segment.address + len(segment.data) for segment in draft.segments if segment.address >= CODE_END]
    program = align_up(max(ends, default=PROGRAM), 32)
    return Runtime(
        link_kernels(names, {"tile_program": program}, more),
        link_kernels(IDLE, {"tile_program": program}),
        program,
    )
