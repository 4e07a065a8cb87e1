"""Tiles that launch six workers on a body of assembly."""

from __future__ import annotations

from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import prepare
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.toolchain import assemble, link

DATA = 0x5C000


def tile_of(
    worker: str,
    data: bytes = b"",
    *,
    checks: Checks | None = None,
    before: str = "",
    launch: str = "runall $m0, $m2, 0",
    after: str = "",
) -> Tile:
    """A tile about to run a supervisor; $m2 is DATA, where the workers' vertex begins.

    Args:
        worker: what each worker does before it exits.
        before, launch, after: what the supervisor does around and for the launch, of the code at $m0.
    """
    source = f"""
.section .text.f, "ax"
.globl f
.type f, @function
.align 8
f:
    setzi $m0, worker
    {before}
    {launch}
    sync 2
    {after}
    br $m10
.align 8
worker:
    {worker}
    exitz $m15
"""
    image = link([assemble(source)], roots=["f"])
    return prepare(image, "f", {2: DATA}, {DATA: data} if data else None, checks=checks)
