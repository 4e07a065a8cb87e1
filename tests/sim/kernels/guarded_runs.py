"""Runs kernels with every check that a compiled program must satisfy: nothing unwritten is read, no races."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel_runs import image_of
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import Result, run_function
from tilewright.ipu21.toolchain import LinkedImage


def guarded(
    symbol: str,
    arguments: Mapping[str, int],
    inputs: Sequence[tuple[int, NDArray[Any]]],
    image: LinkedImage | None = None,
) -> Result:
    """Call one kernel, of an image or alone, in memory that holds its inputs only."""
    registers = KERNELS[symbol].contract.registers(**arguments)
    image = image or image_of(symbol)
    return run_function(image, symbol, registers, dict(inputs), checks=Checks.thorough())
